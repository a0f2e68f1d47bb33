"""The numbers behind the paper's figures: curves over magnitude, severity, training size and radius."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auglabel.corrupt import SEVERITIES
from auglabel.lab.paper.page import Block, Page, Record, name_of
from auglabel.lab.paper.tables import BESIDE, DATA, notes_of
from auglabel.lab.study.published import published
from auglabel.lab.study.readings import reading
from auglabel.lab.study.row import Scale, StudyRow
from auglabel.lab.study.rows import rows_of
from auglabel.lab.study.rows_fast import IMAGES
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.result import Result

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
ALL_IMAGES: dict[Scale, float] = {"cpu": 2000.0, "fast": float(IMAGES), "paper": 1.0}  # 1: of the share
SCALED = ("ece T", "cece T")  # at a fitted temperature
ONLY_DRAWN = "The paper draws this figure and prints none of its numbers."


def figure(name: str, study: Study) -> Page:
    """A figure by its name: a block per panel, a line per curve, a column per point."""
    rows = rows_of(name, study.scale)
    found = study.found(rows)
    records = [record for row in rows for record in _curves(name, row, study.scale, found[row.name])]
    measured = {record.metric for record in records if record.values}
    records = [record for record in records if record.metric in measured or record.metric in CHARTED[name]]
    panels = dict.fromkeys((record.data, record.metric) for record in records)
    blocks = [_block(name, [r for r in records if (r.data, r.metric) == panel]) for panel in panels]
    notes = [ONLY_DRAWN, *notes_of(study, rows, found)]
    few = {row.images for row in rows}
    if name != "figure6" and len(few) == 1 and (images := few.pop()) is not None:
        notes.insert(1, f"All of it with {images:,.0f} training images.")
    if name == "figure6" and (epochs := _epochs(rows, study)):
        notes.insert(1, epochs)
    if name == "figure1" and records:
        notes.insert(0, "![Pictures of every bucket](figure1_images.png)")
        notes.insert(1, "The pictures are of the embedded images; the labels were learned on the data above.")
    return Page(name, str(published()[name]["title"]), blocks, records, notes)


def _epochs(rows: Sequence[StudyRow], study: Study) -> str:
    """What changes with the number of images beside it; nothing if they are all trained for as long."""
    images = {row: row.images or ALL_IMAGES[study.scale] for row in rows}
    epochs = {count: study.planned(row)[0].recipe.training.epochs for row, count in images.items()}
    if len(set(epochs.values())) == 1:
        return ""
    told = ", ".join(f"{count:,g} images {epochs[count]}" for count in sorted(epochs))
    return f"Epochs: {told}. So the curves tell of images seen more often as well as of fewer of them."


def _block(name: str, records: Sequence[Record]) -> Block:
    places = sorted({record.x for record in records if record.x is not None})
    curves = dict.fromkeys(record.method for record in records)
    cells = {(record.method, record.x): record.shown() for record in records}
    body = [[curve, *(cells.get((curve, x), "") for x in places)] for curve in curves]
    first = records[0]
    title = f"{DATA[first.data]}: {name_of(first.metric)} by {AXES[name]}"
    return Block(title, ["", *(f"{x:g}" for x in places)], body)


def _curves(name: str, row: StudyRow, scale: Scale, found: Mapping[int, Result]) -> list[Record]:
    """What a row adds to the curves of a figure: all of one curve, or a point of several."""
    if name == "figure1":  # the learned label of each bucket
        return _by_level(row, "label", {seed: result.labels or {} for seed, result in found.items()})
    if name == "figure2":  # accuracy on transformed test images
        views = {
            seed: {kind: seen.accuracy for kind, seen in (result.views or {}).items()}
            for seed, result in found.items()
        }
        return _by_level(row, "accuracy", views)
    points: list[tuple[str, str, float | None]]  # the metric of the curve, how to read the point, and its x
    if name == "figure5":  # clean images, then each severity
        points = [
            (f"{metric}{end}", f"{metric}@{severity}{end}", severity)
            for metric, end in (("ece", ""), ("debiased_ece", ""), ("nll", ""), ("brier", ""), ("ece", " T"))
            for severity in (0, *SEVERITIES)
        ]
    else:
        images = float(row.images or ALL_IMAGES[scale])
        x = {"figure3": float(row.magnitude), "figure6": images, "figure7": row.radius}[name]
        more = () if name == "figure7" else (*BESIDE, *SCALED)
        points = [(metric, metric, x) for metric in (*CHARTED[name], *more)]
    return [
        Record.of(row.data, row.title, curve, {seed: reading(each, m) for seed, each in found.items()}, x=x)
        for curve, m, x in points
    ]


def _by_level(
    row: StudyRow, metric: str, by_seed: Mapping[int, Mapping[str, Sequence[float]]]
) -> list[Record]:
    """A curve for each kind of distortion, over its levels."""
    kinds = next(iter(by_seed.values()), {})
    return [
        Record.of(row.data, kind, metric, {seed: each[kind][n] for seed, each in by_seed.items()}, x=n + 1)
        for kind, levels in kinds.items()
        for n in range(len(levels))
    ]
