"""An evaluation as JSON, as CSV, and as a table in the terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from auglabel.errors import UserError
from auglabel.lab.evaluate.bootstrap import Figure
from auglabel.lab.evaluate.evaluate import Evaluation
from auglabel.lab.evaluate.predict import TA, T
from auglabel.util.checksummed_json import mismatch, read_checksummed

EVALUATION_FORMAT = "auglabel evaluation, version 2"
VERSION_1 = "auglabel evaluation, version 1"
FIGURES = {...: {"value": (float, None), ...: (float, None)}}
MEANS = {...: (float, None)}
BINS = {name: [float] for name in ("count", "confidence", "correct")}


def _shape(scaled: Any, scaled_means: Any) -> dict[str, Any]:
    """What is read of an evaluation."""
    row = {"on": str, "severity": (int, None), "count": int, "figures": FIGURES, "scaled": scaled}
    return {
        **{"checkpoint": str, "epoch": int, "data": {"checksum": str}},
        **{"attack?": (None, {"epsilon": float}), "notes": [str]},
        **{"temperature?": (float, None), "temperatures?": {...: float}},
        "corruptions?": (None, {"from": str, "names": [str], "severities": [int]}),
        "rows": [row | {"bins?": (None, dict)}],
        "means": [{"pairs": int, "figures": MEANS, "scaled": scaled_means}],
    }


EVALUATION = {
    EVALUATION_FORMAT: _shape({...: FIGURES}, {...: MEANS}),
    VERSION_1: _shape((None, FIGURES), (None, MEANS)),
}
IN_PERCENT = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "equal_mass_ece", "classwise_ece")
SHOWN = {
    **{"accuracy": "accuracy", "ece": "ECE", "debiased_ece": "debiased", "nll": "NLL"},
    **{"brier": "Brier", "aurc": "AURC"},
}
MEANING = {T: "temperature fitted on clean validation images", TA: "on augmented ones"}


def read_evaluation(path: Path) -> dict[str, Any]:
    """What `auglabel eval` wrote, in the form that it has now."""
    again = "Measure it again."
    found = read_checksummed(path, EVALUATION_FORMAT, VERSION_1, what="an evaluation", otherwise=again)
    if wrong := mismatch(found, EVALUATION[found["format"]]):
        raise UserError(f"{path} is damaged or of another version: {wrong}. {again}")
    for row in found["rows"]:
        bins = row.get("bins") or {name: [] for name in BINS}  # older ones have none
        if row["count"] < 1 or mismatch(bins, BINS) or len({len(bins[name]) for name in BINS}) > 1:
            raise UserError(f"{path} is damaged: the images or bins of a row of it are wrong. {again}")
    return _converted(found) if found["format"] == VERSION_1 else found


def _converted(found: dict[str, Any]) -> dict[str, Any]:
    """An evaluation of version 1, which had one temperature and told in a note which images it is from."""
    at = TA if "The temperature was fitted on augmented validation images." in found["notes"] else T
    for part in (*found["rows"], *found["means"]):
        part["scaled"] = {at: part["scaled"]} if part["scaled"] else {}
    temperature = found.pop("temperature", None)
    return found | {"temperatures": {} if temperature is None else {at: temperature}}


def as_json(evaluation: Evaluation, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, with `about` what it is a measurement of."""
    return {
        "format": EVALUATION_FORMAT,
        **about,
        "temperatures": evaluation.temperatures,
        "notes": evaluation.notes,
        "rows": [
            {
                "on": row.on,
                "severity": row.severity,
                "count": row.count,
                "figures": _plain(row.figures),
                "scaled": {at: _plain(figures) for at, figures in row.scaled.items()},
                "bins": row.bins,
            }
            for row in evaluation.rows
        ],
        "means": [
            mean
            | {"figures": _finite(mean["figures"])}
            | {"scaled": {at: _finite(each) for at, each in mean["scaled"].items()}}
            for mean in evaluation.means()
        ],
    }


def _plain(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
    return {name: _finite(figure._asdict()) for name, figure in figures.items()}


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no nan and no infinity: null."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


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
    for name in SHOWN.values():
        table.add_column(f" {name}", justify="right", no_wrap=True)
    for row in evaluation.rows:
        if row.severity is None:
            for at, figures in {"": row.figures, **row.scaled}.items():
                label = Text(f"  at {at}" if at else row.on)
                table.add_row(label, *(_with_interval(metric, figures[metric]) for metric in SHOWN))
    for mean in evaluation.means()[-1:]:  # over all pairs of corruption and severity
        for at, values in {"": mean["figures"], **mean["scaled"]}.items():
            label = Text(f"  at {at}" if at else f"{mean['on']}, mean of {mean['pairs']}")
            table.add_row(label, *(_shown(metric, values[metric]) for metric in SHOWN))
    return table


def _by_severity(evaluation: Evaluation) -> Table:
    """Accuracy and ECE of every corruption at every severity, and their means."""
    found = {(row.on, row.severity): _pair(row.figures) for row in evaluation.rows}
    severities = sorted({row.severity for row in evaluation.rows if row.severity is not None})
    table = Table(box=box.SIMPLE_HEAD, padding=0, caption="accuracy / ECE in %, by severity")
    table.add_column("corruption", overflow="fold")
    for title in (*map(str, severities), "mean"):
        table.add_column(f" {title}", justify="right", no_wrap=True)
    for mean in evaluation.means()[:-1]:
        cells = [found.get((mean["on"], severity), "") for severity in severities]
        table.add_row(Text(mean["on"]), *cells, _pair(mean["figures"]))
    return table


def _pair(figures: Mapping[str, Figure] | Mapping[str, float]) -> str:
    values = (figures[name] for name in ("accuracy", "ece"))
    return "/".join(f"{100 * (v.value if isinstance(v, Figure) else v):.1f}" for v in values)


def _caption(evaluation: Evaluation) -> str:
    intervals = any(not math.isnan(row.figures["accuracy"].low) for row in evaluation.rows)
    parts = ["accuracy and both ECEs in %"]
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
    """Percent with one digit, others with three or `fewer`; large ones with less, to fit the column."""
    if name in IN_PERCENT:
        return f"{100 * value:.1f}"
    digits = max(0, 3 - fewer - sum(abs(value) >= step for step in (9.995, 99.95)))
    return f"{value:.{digits}f}" if abs(value) < 999.5 else f"{value:.2g}"
