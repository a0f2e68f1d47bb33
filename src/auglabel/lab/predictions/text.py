"""A report of predictions as text: a table that needs no library, notes, and the verdict last."""

from __future__ import annotations

import math

from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.predictions.measure import Report
from auglabel.lab.runs.metric_list import METRICS

SHOWN = (
    *(
        "accuracy",
        "top_k_accuracy",
        "confidence",
        "over_confidence",
        "ece",
        "debiased_ece",
        "smooth_ece",
        "classwise_ece",
    ),
    *("nll", "brier", "aurc", "auroc"),
)
PARTS = {
    "by_temperature": "  the best temperature mends",
    "by_isotonic": "  isotonic confidence mends more",
    "refinement": "  refinement: what is left",
}


def screen(report: Report, top: int) -> str:
    """All of it; the last line is the verdict."""
    head = f"{report.source}: {report.count:,} predictions of {report.classes} classes"
    notes = [f"note: {note}" for note in report.notes]
    if report.scaled:
        notes.insert(0, f"Scaled: fitted on {report.fitted_on}.")
    return "\n".join([head, "", *_table(report, top), "", *notes, report.verdict])


def _table(report: Report, top: int) -> list[str]:
    at = "temperature" if report.temperature is None else f"T = {report.temperature:.3g}"
    names = [at if name == "temperature" else name for name in report.scaled]
    rows = [["", "as given", "95 % interval", *names]]
    for name in SHOWN:
        if name not in report.figures:
            continue
        metric, figure = METRICS[name], report.figures[name]
        title = f"top-{top} {METRICS['accuracy'].heading}" if name == "top_k_accuracy" else metric.heading
        after = [_value(name, found[name].value) for found in report.scaled.values()]
        rows.append([title, _value(name, figure.value), _interval(name, figure), *after])
        if name in ("nll", "brier"):
            parts = getattr(report.decomposition, name)
            rows += [[title, _value(name, getattr(parts, part))] for part, title in PARTS.items()]
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(len(rows[0]))]
    return [_line(row, widths) for row in rows]


def _line(row: list[str], widths: list[int]) -> str:
    rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=False))
    return "  ".join([row[0].ljust(widths[0]), *rest]).rstrip()


def _value(name: str, value: float) -> str:
    return METRICS[name].shown(value) if math.isfinite(value) else str(value)


def _interval(name: str, figure: Figure) -> str:
    ends = (figure.low, figure.high)
    return "" if any(map(math.isnan, ends)) else " - ".join(_value(name, end) for end in ends)
