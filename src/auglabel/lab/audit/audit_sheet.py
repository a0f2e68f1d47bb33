"""The audit as one picture: every bucket, and where labels must soften or the class is lost."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image
from torch import nn

from auglabel.augment.base import Augmentation
from auglabel.data.source import Source
from auglabel.lab.audit.audit import Audit, Bucket
from auglabel.lab.pictures.contact_sheet import Heading, Note, annotated_sheet
from auglabel.lab.pictures.drawing import BLACK, WHITE

SHOWN = 64  # images to choose from
ORANGE, DARK = (245, 166, 35), (75, 10, 45)  # told apart in grey, too
GROUNDS = {"keep": WHITE, "soften": ORANGE, "destroyed": DARK}
MEANINGS = {
    "keep": "the label holds",
    "soften": "it must be softer",
    "destroyed": "this network no longer sees the class",
}
WORDS = {"soften": "softer", "destroyed": "lost"}


def audit_sheet(
    audit: Audit, augment: Augmentation, source: Source, classes: Sequence[str], model: nn.Module, seed: int
) -> Image.Image:
    """A picture of each bucket over its label and accuracy; a bar where softer labels or losses begin."""
    rows, clean = torch.arange(min(SHOWN, len(source))), audit.clean
    under = f"As they are, {100 * clean.accuracy:.0f} % of {clean.count:,} images are right. "
    heading = Heading(
        f"{type(augment).__name__}: where it begins to hurt",
        under + "Below each picture: the label that is called for, and the accuracy.",
        tuple((MEANINGS[verdict], ground) for verdict, ground in GROUNDS.items()),
        tuple(_remarks(audit, buckets) for _, buckets in audit.kinds()),
    )
    notes = [note for _, buckets in audit.kinds() for note in _notes(audit, buckets)]
    pictures = source.fetch(rows)
    return annotated_sheet(augment, pictures, source.labels[rows], classes, notes, heading, model, seed)


def _spans(audit: Audit, buckets: Sequence[Bucket]) -> dict[str, tuple[int, int]]:
    """First and last level at which the class is lost, and at which labels must be softer, if those are more.

    One level between two that are better may be noise: something begins with two in a row, or at the last.
    """
    verdicts = [audit.verdict(bucket) for bucket in buckets]
    found: dict[str, tuple[int, int]] = {}
    for verdict, worse in (("destroyed", ["destroyed"]), ("soften", list(WORDS))):
        levels = [level for level, each in enumerate(verdicts, start=1) if each in worse]
        begin = [level for level in levels if level == len(verdicts) or level + 1 in levels]
        if begin and (begin[0], levels[-1]) not in found.values():
            found[verdict] = begin[0], levels[-1]
    return found


def _remarks(audit: Audit, buckets: Sequence[Bucket]) -> tuple[str, ...]:
    lines = []
    for verdict, (first, last) in reversed(_spans(audit, buckets).items()):
        where = f"from {first}" if last == len(buckets) else f"{first} to {last}"
        lines.append(f"{WORDS[verdict]} {where}" if len(buckets) > 1 else WORDS[verdict])
    return tuple(lines)


def _notes(audit: Audit, buckets: Sequence[Bucket]) -> list[Note]:
    begin = [first for first, _ in _spans(audit, buckets).values()]
    return [_note(audit, bucket, bucket.level in begin) for bucket in buckets]


def _note(audit: Audit, bucket: Bucket, begins: bool) -> Note:
    ground = GROUNDS[audit.verdict(bucket)]
    return Note(
        f"label {audit.label(bucket):.2f}",
        ground,
        WHITE if ground == DARK else BLACK,
        (f"{100 * bucket.accuracy:.0f} % right",),
        ground if begins else None,
    )
