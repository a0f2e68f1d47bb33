"""The page of choices: what rho and alpha were chosen from, by what, and what was taken."""

from __future__ import annotations

from auglabel.lab.paper.page import NOT_RUN, Block, Page
from auglabel.lab.paper.tables import DATA, place_of
from auglabel.lab.runs.metric_list import METRICS
from auglabel.lab.study.rows import MADE
from auglabel.lab.study.study import Study

NOTES = [
    "One run each with seed 100, which is not reported; no test image was looked at.",
    "NLL hardly differs between neighbouring values, and as much between two trainings with other seeds; "
    "their ECE does differ, and a choice by it would often have been another.",
]
NOTES_FAST = [
    "Mean over runs with seeds 100 and 101, which are not reported, on views that the augmentation draws of "
    "validation images as it does in training; no test image was looked at.",
    "AutoLabel has nothing to choose: its step follows from the epochs left and the noise of the gap.",
]


def choices(study: Study) -> Page:
    """Every value of rho and alpha that was tried, its validation NLL (the lowest was taken) and ECE."""
    body = []
    for row in study.rows(MADE[study.scale]):
        if row.values:
            tried, beside = (
                ", ".join(f"{v:g}: {METRICS[name].shown(mean)}" for v, mean in study.tried(row, name).items())
                for name in ("nll", "ece")
            )
            chosen = study.chosen(row)
            taken = NOT_RUN if chosen is None else f"{chosen:g}"
            taken += " (end of the list)" if chosen in (row.values[0], row.values[-1]) else ""
            told = [tried, taken, beside]
            body.append([DATA[row.data], row.title + place_of(row), row.tuned, *told])
    nll = f"value: NLL on {study.choosing.words}"
    head = ["data", "method", "option", nll, "chosen", "value: ECE there, %"]
    notes = NOTES_FAST if study.scale == "fast" else NOTES
    return Page("choices", "what rho and alpha were chosen from", [Block("", head, body)], [], notes)
