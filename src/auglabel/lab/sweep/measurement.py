"""What of a run is measured on the test images, and how that enters the digest of a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from auglabel.lab.evaluate.options import Attack, Corruptions, EvalOptions
from auglabel.lab.evaluate.request import EvalRequest


@dataclass(frozen=True)
class Measurement:
    """One evaluation of a run's last weights, without intervals; None is the default of `auglabel eval`."""

    on: str = "clean"
    suite: str | None = None
    images: int | None = None
    severities: tuple[int, ...] | None = None
    epsilon: float | None = None
    augmented: bool = False  # TA was once an evaluation of its own; those rows keep it in their digest
    copies: str | None = None  # folder of corrupted copies; where it lies is not part of the digest

    def request(self, cache: Path | None = None, workers: int | None = None) -> EvalRequest:
        """The evaluation; neither `cache`, a folder for corrupted images, nor `workers` changes a number."""
        attack, corruptions = Attack(), Corruptions()
        if self.epsilon is not None:
            attack = replace(attack, epsilon=self.epsilon)
        if self.suite is not None:
            corruptions = replace(corruptions, suite=self.suite)
        if self.severities is not None:
            corruptions = replace(corruptions, severities=self.severities)
        if self.copies is not None:
            corruptions = replace(corruptions, copies=self.copies)
        options = EvalOptions(on=self.on, images=self.images, resamples=0, workers=workers)
        return EvalRequest(options, attack, corruptions, cache)

    @property
    def without_copies(self) -> Measurement:
        """The same on images made here, which are as many: its cost can be counted without the folder."""
        return replace(self, copies=None)

    @property
    def words(self) -> str:
        """The flags of `auglabel eval` that say the same, in the order that digests have always had."""
        given = asdict(self) | {"severities": ",".join(map(str, self.severities or ())) or None}
        named = {key: f"--{key}={given[key]}" for key in asdict(self) if given[key] is not None}
        order = ["on", "suite", "images", "resamples", "epsilon", "severities"]
        if self.images is None:
            order = ["on", "suite", "epsilon", "resamples", "severities"]
        named["resamples"] = "--resamples=0"
        listed = [named[key] for key in order if key in named]
        return shlex.join([*listed, *(["--copies"] if self.copies is not None else [])])

    def as_dict(self) -> dict[str, object]:
        """What was asked for, as JSON."""
        given = asdict(self) | {"copies": self.copies is not None}
        return {key: value for key, value in given.items() if value is not None and value is not False}


def digest_words(measured: Iterable[Measurement]) -> list[str]:
    """What the digest of a job has of its measurements."""
    measured = list(measured)
    again = [f"{each.words} --temperature=augmented" for each in measured if each.augmented]
    return [each.words for each in measured] + again
