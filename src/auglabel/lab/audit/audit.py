"""Is an augmentation too strong? What a trained network makes of every bucket, and what its labels should be.

No training: the network is asked for its predictions on labelled images moved by distances of each bucket.
The label that is proposed is AutoLabel's update at alpha 1, from one-hot labels and with the signed gap:

    c = clip(1 - (confidence - accuracy), accuracy, 1)

Where the network no longer sees the class, the gap says nothing of the label: a network that is right on 29 %
and claims no more has none. There c is the accuracy, or chance if that is more: what a calibrated network
would claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from auglabel.calibration import Calibration
from auglabel.distance import DistanceGrid

Z = 1.959964  # of a 95 % interval
NOTICED = 0.01  # beyond its interval: less than a point is no reason to soften a label, nor does it hurt
LEFT = 0.5  # of what a network knows beyond chance: with less, it no longer sees the class


@dataclass(frozen=True)
class Bucket:
    """What the network reaches on one bucket."""

    kind: str
    level: int
    count: int
    accuracy: float
    confidence: float
    ece: float
    debiased_ece: float

    @property
    def gap(self) -> float:
        """Above 0: over-confident."""
        return self.confidence - self.accuracy

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95 %, of the accuracy."""
        return wilson(self.accuracy, self.count)


@dataclass(frozen=True)
class Audit:
    """Every bucket, and the images as they are."""

    grid: DistanceGrid
    clean: Bucket
    buckets: Sequence[Bucket]
    chance: float

    def verdict(self, bucket: Bucket) -> str:
        """What its label calls for: keep, soften, or destroyed where the class is lost."""
        if self.lost(bucket):
            return "destroyed"
        return "soften" if bucket.confidence - bucket.interval[1] > NOTICED else "keep"

    def lost(self, bucket: Bucket) -> bool:
        """Whether less than half of what the network knows beyond chance is left."""
        return bucket.accuracy < self.chance + LEFT * (self.clean.accuracy - self.chance)

    def hurts(self, bucket: Bucket) -> bool:
        """Whether certainly fewer are right than as they are, by Newcombe's interval of the difference."""
        clean = self.clean
        noise = math.hypot(clean.accuracy - clean.interval[0], bucket.interval[1] - bucket.accuracy)
        return clean.accuracy - bucket.accuracy - noise > NOTICED

    def label(self, bucket: Bucket) -> float:
        """The confidence that the bucket's label should have."""
        if self.lost(bucket):
            return max(bucket.accuracy, self.chance)
        return min(1.0, max(bucket.accuracy, 1 - bucket.gap))

    def kinds(self) -> Iterator[tuple[str, list[Bucket]]]:
        """The buckets of each kind, from weak to strong."""
        for kind in self.grid.kinds:
            yield kind, [bucket for bucket in self.buckets if bucket.kind == kind]

    def sentences(self) -> list[str]:
        """A sentence per kind: up to which level its labels hold, what beyond, and where it hurts."""
        return [
            f"{kind}: {'; '.join((*self._parts(buckets), *self._harm(buckets)))}."
            for kind, buckets in self.kinds()
        ]

    def _parts(self, buckets: Sequence[Bucket]) -> Iterator[str]:
        """Runs of levels with the same verdict."""
        start = 0
        for place in range(1, len(buckets) + 1):
            verdicts = [self.verdict(bucket) for bucket in buckets]
            if place < len(buckets) and verdicts[place] == verdicts[start]:
                continue
            yield self._part(verdicts[start], buckets[start:place], alone=len(buckets) == 1)
            start = place

    def _part(self, verdict: str, buckets: Sequence[Bucket], alone: bool) -> str:
        first, last = buckets[0], buckets[-1]
        where = f"level {first.level} " if first is last else f"levels {first.level} to {last.level} "
        where, ending = "" if alone else where, "s" if first is last else ""
        labels = _ends(f"{self.label(bucket):.2f}" for bucket in (first, last))
        if verdict == "keep":
            lowest = min(self.label(bucket) for bucket in buckets)
            noise = f" (the table's {lowest:.2f} is within noise of 1)" if lowest < 1 - NOTICED else ""
            return f"{where}keep{ending} the label as it is{noise}"
        if verdict == "destroyed":
            accuracy = _ends(f"{100 * bucket.accuracy:.0f}" for bucket in (first, last))
            at = f"at {where}" if where else ""
            return f"{at}this network no longer sees the class (accuracy {accuracy} %): a label of {labels}"
        return f"{where}want{ending} a label of {labels} (over-confident by {100 * last.gap:.1f} points)"

    def _harm(self, buckets: Sequence[Bucket]) -> Iterator[str]:
        """Where accuracy is lower, unless that is where the class is lost, which says so."""
        span = span_of(buckets, self.hurts)
        if span is None or span == span_of(buckets, self.lost):
            return
        first, last = span
        where = f"from level {first} on " if last == len(buckets) else f"at levels {first} to {last} "
        where = "" if len(buckets) == 1 else f"at level {first} " if first == last else where
        accuracy = _ends(f"{100 * buckets[level - 1].accuracy:.0f}" for level in span)
        yield f"{where}it hurts: accuracy {accuracy} %, not {100 * self.clean.accuracy:.0f} %"


def span_of(buckets: Sequence[Bucket], claim: Callable[[Bucket], bool]) -> tuple[int, int] | None:
    """First and last level of a kind at which the claim holds.

    One level between two others may be noise: a claim begins with two in a row, or at the last.
    """
    levels = [bucket.level for bucket in buckets if claim(bucket)]
    begin = [level for level in levels if level == len(buckets) or level + 1 in levels]
    return (begin[0], levels[-1]) if begin else None


def _ends(ends: Iterable[str]) -> str:
    """0.35 to 0.29, or one number where both ends are the same."""
    return " to ".join(dict.fromkeys(ends))


def audit_of(clean: Calibration, seen: Calibration, grid: DistanceGrid, classes: int) -> Audit:
    """An audit out of what was seen, on images as they are and in every bucket."""
    cut = zip(grid.kinds, grid.levels, strict=True)
    levels = [(kind, level + 1) for kind, count in cut for level in range(count)]
    buckets = [_bucket(kind, level, seen, place) for place, (kind, level) in enumerate(levels)]
    return Audit(grid, _bucket("clean", 0, clean, 0), buckets, 1 / classes)


def _bucket(kind: str, level: int, seen: Calibration, place: int) -> Bucket:
    readings = (seen.accuracy, seen.confidence, seen.ece, seen.debiased_ece)
    return Bucket(kind, level, int(seen.count[place]), *(float(reading[place]) for reading in readings))


def as_json(audit: Audit, about: dict[str, Any]) -> dict[str, Any]:
    """Everything; `confidence` makes it a label table for training."""
    return {
        "format": "auglabel audit, version 1",
        **about,
        "confidence": {kind: [round(audit.label(b), 6) for b in some] for kind, some in audit.kinds()},
        "hurting_levels": {kind: span_of(some, audit.hurts) for kind, some in audit.kinds()},
        "clean": _plain(audit, audit.clean),
        "buckets": [
            _plain(audit, bucket) | {"verdict": audit.verdict(bucket), "hurts": audit.hurts(bucket)}
            for bucket in audit.buckets
        ],
        "sentences": audit.sentences(),
    }


def _plain(audit: Audit, bucket: Bucket) -> dict[str, Any]:
    low, high = bucket.interval
    numbers = {
        "accuracy": bucket.accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        "confidence": bucket.confidence,
        "gap": bucket.gap,
        "ece": bucket.ece,
        "debiased_ece": bucket.debiased_ece,
        "label": audit.label(bucket),
    }
    about = {"kind": bucket.kind, "level": bucket.level, "count": bucket.count}
    return about | {name: round(value, 6) for name, value in numbers.items()}


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `count`."""
    middle = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z / (1 + Z**2 / count) * math.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    return max(0.0, middle - half), min(1.0, middle + half)
