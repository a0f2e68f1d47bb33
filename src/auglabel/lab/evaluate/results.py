"""An evaluation as JSON, as CSV, and as a table in the terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from auglabel.lab.evaluate.evaluate import Evaluation
from auglabel.lab.evaluate.mean_over_corruptions import means_over_corruptions
from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.runs.diagnosis import TemperatureFit, diagnosis
from auglabel.lab.runs.evaluations import EVALUATION_FORMAT, TA, T
from auglabel.lab.runs.metric_list import METRICS

COLUMNS = {  # the metrics of the table, which 80 columns must hold
    name: METRICS[name].title for name in ("accuracy", "ece", "debiased_ece", "nll", "brier", "aurc")
} | {"debiased_ece": "debiased"}
MEANING = {T: "temperature fitted on clean validation images", TA: "on augmented ones"}


def as_json(evaluation: Evaluation, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, with `about` what it is a measurement of."""
    return {
        "format": EVALUATION_FORMAT,
        **about,
        "temperatures": evaluation.temperatures,
        "notes": evaluation.notes,
        "diagnosis": diagnosis_of(evaluation, about.get("temperature_from")),
        "rows": [_plain(vars(row)) for row in evaluation.rows],
        "means": [_plain(mean._asdict()) for mean in means_over_corruptions(evaluation.rows)],
    }


def diagnosis_of(evaluation: Evaluation, temperature_from: str | None = None) -> str:
    """In words, what was measured on clean images; "" where they were not.

    `temperature_from` is the run whose temperature it is, if not that of the network itself.
    """
    clean = [row for row in evaluation.rows if row.on == "clean"]
    if not clean:
        return ""
    row, fit = clean[0], None
    if T in row.scaled:
        fitted_on = "clean validation images" + (f" for {temperature_from}" if temperature_from else "")
        fit = TemperatureFit(evaluation.temperatures[T], fitted_on, row.scaled[T]["ece"].value)
    values = {name: figure.value for name, figure in row.figures.items()}
    return diagnosis(values, row.count, fit, "and no temperature was fitted", row.figures["ece"].low)


def _plain(value: Any) -> Any:
    """For JSON, which has no nan and no infinity: null."""
    if isinstance(value, Figure):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(evaluation: Evaluation) -> str:
    """A line per row as trained, and one at each fitted temperature; three columns per metric."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = list(evaluation.rows[0].figures)
    columns = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    writer.writerow(["on", "severity", "count", "at", "temperature", *columns])
    temperatures = {"": 1.0, **evaluation.temperatures}
    for row in evaluation.rows:
        for at, figures in {"": row.figures, **row.scaled}.items():
            values = [value for name in names for value in figures[name]]
            severity = "" if row.severity is None else row.severity
            writer.writerow([row.on, severity, row.count, at, temperatures[at], *values])
    return file.getvalue()


def as_tables(evaluation: Evaluation, title: str) -> list[Table]:
    """The usual metrics, and every corruption by severity if there are any."""
    graded = any(row.severity is not None for row in evaluation.rows)
    return [_usual(evaluation, title), *([_by_severity(evaluation)] if graded else [])]


def _usual(evaluation: Evaluation, heading: str) -> Table:
    """Under each figure its interval; under each row the same at the fitted temperatures."""
    count = evaluation.rows[0].count
    images = Text(f"{heading}: {count:,} test image{'s' if count > 1 else ''}")
    table = Table(title=images, box=box.SIMPLE_HEAD, padding=0, caption=_caption(evaluation))
    table.add_column("on", min_width=9, overflow="fold")
    for name in COLUMNS.values():
        table.add_column(f" {name}", justify="right", no_wrap=True)
    for row in evaluation.rows:
        if row.severity is None:
            for at, figures in {"": row.figures, **row.scaled}.items():
                label = Text(f"  at {at}" if at else row.on)
                table.add_row(label, *(_with_interval(metric, figures[metric]) for metric in COLUMNS))
    for mean in means_over_corruptions(evaluation.rows)[-1:]:  # over all pairs of corruption and severity
        for at, values in {"": mean.figures, **mean.scaled}.items():
            label = Text(f"  at {at}" if at else f"{mean.on}, mean of {mean.pairs}")
            table.add_row(label, *(_shown(metric, values[metric]) for metric in COLUMNS))
    return table


def _by_severity(evaluation: Evaluation) -> Table:
    """Accuracy and ECE of every corruption at every severity, and their means."""
    found = {(row.on, row.severity): _pair(row.figures) for row in evaluation.rows}
    severities = sorted({row.severity for row in evaluation.rows if row.severity is not None})
    table = Table(box=box.SIMPLE_HEAD, padding=0, caption="accuracy / ECE in %, by severity")
    table.add_column("corruption", overflow="fold")
    for title in (*map(str, severities), "mean"):
        table.add_column(f" {title}", justify="right", no_wrap=True)
    for mean in means_over_corruptions(evaluation.rows)[:-1]:
        cells = [found.get((mean.on, severity), "") for severity in severities]
        table.add_row(Text(mean.on), *cells, _pair(mean.figures))
    return table


def _pair(figures: Mapping[str, Figure] | Mapping[str, float]) -> str:
    values = ((name, figures[name]) for name in ("accuracy", "ece"))
    return "/".join(_shown(name, v.value if isinstance(v, Figure) else v) for name, v in values)


def _caption(evaluation: Evaluation) -> str:
    intervals = any(not math.isnan(row.figures["accuracy"].low) for row in evaluation.rows)
    parts = ["accuracy and both ECEs in %, AURC x 1000"]
    parts += ["below, 95 % bootstrap intervals"] if intervals else []
    parts += [
        f"{at}: {MEANING[at]}, {temperature:.3g}" for at, temperature in evaluation.temperatures.items()
    ]
    return "; ".join(parts)


def _with_interval(name: str, figure: Figure) -> str:
    value = _shown(name, figure.value)
    if math.isnan(figure.low):
        return value
    return f"{value}\n {_shown(name, figure.low, 1)}-{_shown(name, figure.high, 1)}"


def _shown(name: str, value: float, fewer: int = 0) -> str:
    """A value in its metric's unit; large ones with fewer digits, to fit the column."""
    metric = METRICS[name]
    if metric.unit:
        return metric.shown(value)
    fewer += sum(abs(value) >= step for step in (9.995, 99.95))
    return metric.shown(value, fewer) if abs(value) < 999.5 else f"{value:.2g}"
