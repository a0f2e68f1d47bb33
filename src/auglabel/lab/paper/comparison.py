"""Every kind of labels, setting by setting, and how far each is from one-hot labels at a temperature."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from auglabel.lab.paper.claim_verdicts import Part
from auglabel.lab.paper.page import Block, Page
from auglabel.lab.paper.tables import LABELLED, POOLED, TEMPERATURES, TableLine, lines_of
from auglabel.lab.runs.metric_list import DIGITS, SCALES, metric_named
from auglabel.lab.study.readings import reading
from auglabel.lab.study.rows_fast import SETTINGS
from auglabel.lab.study.study import Found, Study

SHOWN = ("accuracy", "ece", "gap", "nll", "caccuracy", "cece", "cgap", "cnll")
COMPARED = ("accuracy", "ece", "nll", "caccuracy", "cece", "cnll")
LEARNED = "RandAug + AutoLabel"  # the title of the rows whose labels are shown by operation and magnitude
NOTES = [
    "Mean ± standard deviation over seeds, of all rows with at least two; all but NLL in percent. Gap: mean "
    "confidence less accuracy; above 0 is over-confident. c: the mean over 17 corruptions in 5 severities. "
    "ECE is of 10,000 clean test images and of 1,000 of each corruption and severity, and is larger the "
    "fewer there are; Table 2 has it debiased. Corrupted images are made here, with drawn frost: they are "
    "not the official CIFAR-100-C. RandAug's color is much like one of the corruptions, saturate.",
    "Differences are paired by seed, with Student's 95 % interval. They are not corrected for their number: "
    "where a claim of the plan asks the same, its verdict counts. Rows were trained on different processors, "
    "whose results of the same recipe differ as if by chance.",
    TEMPERATURES,
    LABELLED,
    POOLED,
]


def comparison(study: Study) -> Page:
    """Two tables for each setting of `fast` that has runs, then AutoLabel's labels by operation."""
    blocks: list[Block] = []
    for title, rows in SETTINGS.items():
        found = study.found(rows)
        lines = [line for line in lines_of(rows) if len(found[line.row.name]) > 1]
        if not lines or lines[0].row is not rows[0]:
            continue
        images = next(iter(found[rows[0].name].values())).data.images
        about = f"{title}: {images['train']:,} images trained on, {images['validation']:,} held out"
        blocks.append(_shown(about, lines, found))
        scaled = [line for line in lines if line.row is rows[0] and line.temperature]
        if scaled and len(found[rows[0].name]) > 2:  # of two differences an interval says nothing
            blocks.append(_compared(lines, scaled[-1], found))
        if learned := [found[row.name] for row in rows if row.title == LEARNED and found[row.name]]:
            blocks.append(_labels([result.labels or {} for result in learned[0].values()]))
    return Page("comparison", "every kind of labels, setting by setting", blocks, [], NOTES)


def _shown(title: str, lines: Sequence[TableLine], found: Found) -> Block:
    def cell(line: TableLine, metric: str) -> str:
        values = [value for value in _by_seed(line, metric, found).values() if value is not None]
        return metric_named(metric).mean_and_spread(values) if values else "-"

    body = [
        [_name(line), str(len(found[line.row.name])), *(cell(line, metric) for metric in SHOWN)]
        for line in lines
    ]
    return Block(title, ["labels", "seeds", *(metric_named(metric).title for metric in SHOWN)], body)


def _compared(lines: Sequence[TableLine], base: TableLine, found: Found) -> Block:
    def cell(line: TableLine, metric: str) -> str:
        here, there = (_by_seed(each, metric, found) for each in (line, base))
        pairs = [(here[seed], there[seed]) for seed in sorted(here.keys() & there.keys())]
        values = [mine - theirs for mine, theirs in pairs if mine is not None and theirs is not None]
        if not any(values):
            return "same" if values else "-"
        return difference(metric, values) if len(values) > 2 else "-"

    body = [[_name(line), *(cell(line, metric) for metric in COMPARED)] for line in lines if line is not base]
    head = ["labels", *(metric_named(metric).title for metric in COMPARED)]
    return Block(f"Difference from {_name(base)}: mean [interval]", head, body)


def difference(metric: str, values: Sequence[float]) -> str:
    """Mean [interval] of differences by seed, in the metric's unit."""
    unit = metric_named(metric).unit
    part = Part("", [], list(values))
    told = (f"{SCALES[unit] * each:+.{DIGITS[unit]}f}" for each in (part.mean, *part.interval))
    return "{} [{}, {}]".format(*told)


def _by_seed(line: TableLine, metric: str, found: Found) -> Mapping[int, float | None]:
    return {seed: reading(result, line.metric(metric)) for seed, result in found[line.row.name].items()}


def _name(line: TableLine) -> str:
    """The labels alone; the setting's title has the augmentation."""
    method, _, labels = line.row.title.partition(" + ")
    if not labels:
        augmentation, comma, more = method.partition(", ")
        labels = {"RandAug": "one-hot", "AugMix": "one-hot"}.get(augmentation, augmentation) + comma + more
    beta = "" if line.row.beta is None else f", beta {line.row.beta:g}"
    return f"{labels}{beta}" + (f", {line.temperature}" if line.temperature else "")


def _labels(tables: Sequence[Mapping[str, Sequence[float]]]) -> Block:
    """The learned label of each operation and magnitude, mean over seeds."""
    most = max(len(levels) for levels in tables[0].values())
    body = []
    for kind, levels in tables[0].items():
        means = [statistics.fmean(table[kind][place] for table in tables) for place in range(len(levels))]
        body.append([kind, *(f"{100 * mean:.0f}" for mean in means), *[""] * (most - len(levels))])
    title = "Labels of AutoLabel at the end, %, by operation and magnitude"
    return Block(title, ["", *(str(place + 1) for place in range(most))], body)
