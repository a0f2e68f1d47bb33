"""An evaluation as JSON, as CSV, and as a table in the terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from auglabel.lab.bootstrap import Figure
from auglabel.lab.evaluate import Evaluation, Row

IN_PERCENT = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "equal_mass_ece", "classwise_ece")
SHOWN = {"accuracy": "accuracy", "ece": "ECE", "debiased_ece": "debiased", "nll": "NLL"}


def as_json(evaluation: Evaluation, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, with `about` what it is a measurement of."""
    return {
        "format": "auglabel evaluation, version 1",
        **about,
        "temperature": evaluation.temperature,
        "notes": evaluation.notes,
        "rows": [
            {
                "on": row.on,
                "severity": row.severity,
                "count": row.count,
                "figures": _plain(row.figures),
                "scaled": None if row.scaled is None else _plain(row.scaled),
            }
            for row in evaluation.rows
        ],
        "means": evaluation.means(),
    }


def _plain(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        name: {part: number(value) for part, value in figure._asdict().items()}
        for name, figure in figures.items()
    }


def as_csv(evaluation: Evaluation) -> str:
    """One line per row and temperature, three columns per metric."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = list(evaluation.rows[0].figures)
    columns = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
    writer.writerow(["on", "severity", "count", "temperature", *columns])
    for row in evaluation.rows:
        for temperature, figures in ((1.0, row.figures), (evaluation.temperature, row.scaled)):
            if figures is not None:
                values = [value for name in names for value in figures[name]]
                severity = "" if row.severity is None else row.severity
                writer.writerow([row.on, severity, row.count, temperature, *values])
    return file.getvalue()


def as_table(evaluation: Evaluation, title: str) -> Table:
    """The usual metrics; under each its interval, beside them ECE and NLL at the fitted temperature."""
    images = f"{title}: {evaluation.rows[0].count:,} test images"
    table = Table(title=images, box=box.SIMPLE_HEAD, padding=0, caption=_caption(evaluation))
    table.add_column("on", min_width=9, overflow="fold")
    for name in SHOWN.values():
        table.add_column(f" {name}", justify="right", no_wrap=True)
    if evaluation.temperature is not None:
        for name in ("ECE T", "NLL T"):
            table.add_column(f" {name}", justify="right", no_wrap=True)
    for row in evaluation.rows:
        table.add_row(*_cells(row))
    for mean in evaluation.means():
        scaled = [_shown(name, mean["scaled"][name]) for name in ("ece", "nll")] if mean["scaled"] else []
        values = [_shown(name, mean["figures"][name]) for name in SHOWN]
        table.add_row(f"mean of {mean['pairs']}, {mean['on']}", *values, *scaled)
    return table


def _caption(evaluation: Evaluation) -> str:
    scaled = "" if evaluation.temperature is None else f"; T: at temperature {evaluation.temperature:.3f}"
    return f"accuracy, ECE and debiased ECE in %; below, 95 % intervals{scaled}"


def _cells(row: Row) -> list[str]:
    name = row.on if row.severity is None else f"{row.on} {row.severity}"
    cells = [name]
    cells += [_with_interval(metric, row.figures[metric]) for metric in SHOWN]
    if row.scaled is not None:
        cells += [_with_interval(metric, row.scaled[metric]) for metric in ("ece", "nll")]
    return cells


def _with_interval(name: str, figure: Figure) -> str:
    value = _shown(name, figure.value)
    if math.isnan(figure.low):
        return value
    digits = 1 if name in IN_PERCENT else 2
    return f"{value}\n {_shown(name, figure.low, digits)}-{_shown(name, figure.high, digits)}"


def _shown(name: str, value: float, digits: int | None = None) -> str:
    return f"{100 * value:.1f}" if name in IN_PERCENT else f"{value:.{digits or 3}f}"
