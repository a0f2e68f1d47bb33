"""The page of choices: what rho and alpha were chosen from, by what, and what was taken."""

from __future__ import annotations

from auglabel.lab.paper.page import NOT_RUN, Block, Page
from auglabel.lab.paper.row import Row
from auglabel.lab.paper.rows import MADE
from auglabel.lab.paper.study import Study
from auglabel.lab.paper.tables import DATA, place_of

NOTES = [
    "One run each with seed 100, which is not reported; no test image was looked at.",
    "NLL hardly differs between neighbouring values, and as much between two trainings with other seeds; "
    "their ECE does differ, and a choice by it would often have been another.",
]
NOTES_FAST = [
    "Mean over runs with seeds 100 and 101, which are not reported, on views that the augmentation draws of "
    "validation images as it does in training; no test image was looked at. Rho and alpha have equally many "
    "values to choose from.",
]


def choices(study: Study) -> Page:
    """Every value of rho and alpha that was tried, its validation NLL (the lowest was taken) and ECE."""
    body = []
    for row in study.rows(MADE[study.scale]):
        if row.values:
            tried = [f"{value:g}: {mean:.3f}" for value, mean in study.tried(row).items()]
            beside = [f"{value:g}: {100 * ece:.1f}" for value, ece in study.tried(row, "ece").items()]
            chosen = study.chosen(row)
            taken = NOT_RUN if chosen is None else f"{chosen:g}"
            taken += " (end of the list)" if chosen in (row.values[0], row.values[-1]) else ""
            told = [", ".join(tried), taken, ", ".join(beside)]
            body.append([DATA[row.data], row.title + place_of(row) + _images_of(row), row.tuned, *told])
    head = [
        "data",
        "method",
        "option",
        f"value: NLL on {study.choosing.words}",
        "chosen",
        "value: ECE there, %",
    ]
    notes = NOTES_FAST if study.scale == "fast" else NOTES
    return Page("choices", "what rho and alpha were chosen from", [Block("", head, body)], [], notes)


def _images_of(row: Row) -> str:
    images = row.number("train")
    return "" if images is None else f", {images:,.0f} training images"
