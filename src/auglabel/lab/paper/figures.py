"""The numbers behind the paper's figures: curves over magnitude, severity, training size and radius."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from auglabel.corrupt import SEVERITIES
from auglabel.lab.paper.page import Block, Page, Record, name_of
from auglabel.lab.paper.published import published
from auglabel.lab.paper.readings import reading
from auglabel.lab.paper.row import Row
from auglabel.lab.paper.rows import rows_of
from auglabel.lab.paper.rows_fast import IMAGES
from auglabel.lab.paper.study import Study
from auglabel.lab.paper.tables import BESIDE, DATA, notes_of

AXES = {
    "figure1": "level, from weak to strong",
    "figure2": "magnitude",
    "figure3": "largest training magnitude",
    "figure5": "severity (0: clean)",
    "figure6": "training images",
    "figure7": "epsilon_max",
}
# What of its numbers a figure draws; the others stand beside every ECE.
CHARTED = {
    "figure1": ("label",),
    "figure2": ("accuracy",),
    "figure3": ("accuracy", "caccuracy", "ece", "cece"),
    "figure5": ("ece", "debiased_ece"),
    "figure6": ("ece", "cece"),
    "figure7": ("accuracy", "adversarial_accuracy"),
}
SCALED = ("ece T", "cece T")  # at a fitted temperature
ONLY_DRAWN = "The paper draws this figure and prints none of its numbers."


def figure(name: str, study: Study) -> Page:
    """A figure by its name: a block per panel, a line per curve, a column per point."""
    rows = rows_of(name, study.scale)
    found = {row.name: study.found(row) for row in rows}
    records = [record for row in rows for record in CURVES[name](row, found[row.name])]
    measured = {record.metric for record in records if record.values}
    records = [record for record in records if record.metric in measured or record.metric in CHARTED[name]]
    panels = dict.fromkeys((record.data, record.metric) for record in records)
    blocks = [_block(name, [r for r in records if (r.data, r.metric) == panel]) for panel in panels]
    notes = [ONLY_DRAWN, *notes_of(study, rows, found)]
    if name == "figure1" and records:
        notes.insert(0, "![Pictures of every bucket](figure1_images.png)")
        notes.insert(1, "The pictures are of the embedded images; the labels were learned on the data above.")
    return Page(name, str(published()[name]["title"]), blocks, records, notes)


def _block(name: str, records: Sequence[Record]) -> Block:
    places = sorted({record.x for record in records if record.x is not None})
    curves = dict.fromkeys(record.method for record in records)
    cells = {(record.method, record.x): record.shown() for record in records}
    body = [[curve, *(cells.get((curve, x), "") for x in places)] for curve in curves]
    first = records[0]
    title = f"{DATA[first.data]}: {name_of(first.metric)} by {AXES[name]}"
    return Block(title, ["", *(f"{x:g}" for x in places)], body)


Result = dict[str, Any]
Found = dict[int, Result]  # by seed
Read = Callable[[Result], float | None]


def _record(row: Row, curve: str, metric: str, x: float, found: Found, read: Read) -> Record:
    by_seed = {seed: read(result) for seed, result in found.items()}
    there = {seed: value for seed, value in by_seed.items() if value is not None}
    return Record(row.data, curve, metric, list(there), list(there.values()), x)


def _inside(result: Any, path: tuple[str | int, ...]) -> float:
    for step in path:
        result = result[step]
    return float(result)


def _labels(row: Row, found: Found) -> list[Record]:
    """Figure 1: the learned label of each bucket."""
    kinds = next(iter(found.values()))["labels"] if found else {}
    return [
        _record(row, kind, "label", n + 1, found, partial(_inside, path=("labels", kind, n)))
        for kind, levels in kinds.items()
        for n in range(len(levels))
    ]


def _views(row: Row, found: Found) -> list[Record]:
    """Figure 2: accuracy on transformed test images."""
    kinds = next(iter(found.values()))["views"] if found else {}
    return [
        _record(row, kind, "accuracy", n + 1, found, partial(_inside, path=("views", kind, "accuracy", n)))
        for kind, about in kinds.items()
        for n in range(len(about["accuracy"]))
    ]


def _severities(row: Row, found: Found) -> list[Record]:
    """Figure 5: clean images, then each severity."""
    return [
        _record(
            row,
            row.title,
            metric + end,
            severity,
            found,
            partial(reading, metric=f"{metric}@{severity}{end}"),
        )
        for metric, end in (("ece", ""), ("debiased_ece", ""), ("nll", ""), ("brier", ""), ("ece", " T"))
        for severity in (0, *SEVERITIES)
    ]


def _over(
    metrics: Sequence[str], place: Callable[[Row], float | None]
) -> Callable[[Row, Found], list[Record]]:
    """Curves of these metrics; a row is one point of its method's, or of none."""

    def curves(row: Row, found: Found) -> list[Record]:
        if (x := place(row)) is None:
            return []
        return [_record(row, row.title, m, x, found, partial(reading, metric=m)) for m in metrics]

    return curves


def _largest_magnitude(row: Row) -> float | None:
    return row.number("(?:five-|max)", otherwise=10)


def _images(row: Row) -> float | None:
    """Training images, or the share of them at the paper's scale; rows of Table 2 have all."""
    everything = {"cpu": 2000.0, "fas": float(IMAGES), "pap": 1.0}[row.recipe[:3]]
    return row.number("train", otherwise=everything)


def _radius(row: Row) -> float | None:
    return row.place


CURVES: dict[str, Callable[[Row, Found], list[Record]]] = {
    "figure1": _labels,
    "figure2": _views,
    "figure3": _over((*CHARTED["figure3"], *BESIDE, *SCALED), _largest_magnitude),
    "figure5": _severities,
    "figure6": _over((*CHARTED["figure6"], *BESIDE, *SCALED), _images),
    "figure7": _over(CHARTED["figure7"], _radius),
}
