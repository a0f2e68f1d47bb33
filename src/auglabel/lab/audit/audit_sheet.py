"""The audit as one picture: every bucket, and where it hurts, labels must soften or the class is lost."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image
from torch import nn

from auglabel.augment.base import Augmentation
from auglabel.data.source import Source
from auglabel.lab.audit.audit import Audit, Bucket, span_of
from auglabel.lab.pictures.contact_sheet import Heading, Note, annotated_sheet
from auglabel.lab.pictures.drawing import BLACK, GREY, WHITE, Colour

SHOWN = 64  # images to choose from
BLUE, ORANGE, DARK = (20, 75, 160), (245, 166, 35), (75, 10, 45)  # told apart in grey, too
COLOURS = {"keep": WHITE, "hurts": BLUE, "soften": ORANGE, "destroyed": DARK}
MEANINGS = {
    "keep": "the label holds",
    "hurts": "it hurts: certainly fewer are right",
    "soften": "the label must be softer",
    "destroyed": "this network no longer sees the class",
}
WORDS = {"hurts": "hurts", "soften": "softer", "destroyed": "lost"}


def audit_sheet(
    audit: Audit, augment: Augmentation, source: Source, classes: Sequence[str], model: nn.Module, seed: int
) -> Image.Image:
    """A picture of each bucket over its label and accuracy; bars where harm, soft labels or losses begin."""
    rows, clean = torch.arange(min(SHOWN, len(source))), audit.clean
    under = f"As they are, {100 * clean.accuracy:.0f} % of {clean.count:,} images are right. "
    heading = Heading(
        f"{type(augment).__name__}: where it begins to hurt",
        under + "Below each picture: the label that is called for, and the accuracy.",
        tuple((MEANINGS[name], ground) for name, ground in COLOURS.items()),
        tuple(_remarks(audit, buckets) for _, buckets in audit.kinds()),
    )
    notes = [note for _, buckets in audit.kinds() for note in _notes(audit, buckets)]
    pictures = source.fetch(rows)
    return annotated_sheet(augment, pictures, source.labels[rows], classes, notes, heading, model, seed)


def _spans(audit: Audit, buckets: Sequence[Bucket]) -> dict[str, tuple[int, int]]:
    """Levels at which it hurts, labels must be softer, and the class is lost, which says the others too."""
    lost = span_of(buckets, audit.lost)
    spans = {
        "hurts": span_of(buckets, audit.hurts),
        "soften": span_of(buckets, lambda bucket: audit.verdict(bucket) != "keep"),
    }
    found = {name: span for name, span in spans.items() if span is not None and span != lost}
    return found if lost is None else found | {"destroyed": lost}


def _remarks(audit: Audit, buckets: Sequence[Bucket]) -> tuple[str, ...]:
    lines = []
    for name, (first, last) in _spans(audit, buckets).items():
        where = f"from {first}" if last == len(buckets) else f"{first} to {last}"
        lines.append(f"{WORDS[name]} {where}" if len(buckets) > 1 else WORDS[name])
    return tuple(lines)


def _notes(audit: Audit, buckets: Sequence[Bucket]) -> list[Note]:
    begin = [(first, COLOURS[name]) for name, (first, _) in _spans(audit, buckets).items()]
    return [
        _note(audit, bucket, tuple(bar for first, bar in begin if first == bucket.level))
        for bucket in buckets
    ]


def _note(audit: Audit, bucket: Bucket, begins: tuple[Colour, ...]) -> Note:
    ground = COLOURS[audit.verdict(bucket)]
    return Note(
        f"label {audit.label(bucket):.2f}",
        ground,
        WHITE if ground == DARK else BLACK,
        (f"{100 * bucket.accuracy:.0f} % right",),
        BLUE if audit.hurts(bucket) else GREY,
        begins,
    )
