"""AutoLabel read otherwise: what ablations compare with, and nobody should use.

Each option changes one thing of the method. `from_buckets` says whose calibration moves a bucket's label:

    own       its own, as in the paper
    all       that of all buckets together, as often as training meets them: one label for every distance
    shuffled  that of another bucket, drawn once: as many different labels, none tied to its distance
    next      that of the next stronger bucket of its kind, which U(n/N, (n + 1)/N), as printed, draws from
    previous  that of the next weaker one: the same for AugMix, whose n, as printed, grows with lambda
"""

from __future__ import annotations

import copy
from typing import Literal

import torch
from torch import Tensor

from auglabel.autolabel import AutoLabel
from auglabel.calibration import BucketCalibration, require_seen
from auglabel.distance import DistanceGrid
from auglabel.errors import UserError
from auglabel.util.checks import require_whole

CHOICES = ("own", "all", "shuffled", "next", "previous")
SHUFFLE = 0  # the seed of the one order that `shuffled` takes, so that runs of all seeds share it


class AutoLabelVariant(AutoLabel):
    """AutoLabel that learns from other buckets, or begins after `start` epochs."""

    epochs: Tensor  # that update was called, ()

    def __init__(
        self,
        num_classes: int,
        grid: DistanceGrid,
        alpha: float | Literal["auto"] = "auto",
        from_buckets: Literal["own", "all", "shuffled", "next", "previous"] = "own",
        start: int = 0,
        epochs: int | None = None,
    ) -> None:
        require_whole("start", start, 0)
        super().__init__(num_classes, len(grid), alpha, None if epochs is None else max(1, epochs - start))
        if from_buckets not in CHOICES:
            raise UserError(f"from_buckets must be one of {', '.join(CHOICES)}, got {from_buckets!r}.")
        self.grid, self.from_buckets, self.start = grid, from_buckets, start
        self.register_buffer("epochs", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, seen: BucketCalibration) -> None:
        """Apply Eqn (1) to the calibration that each bucket is to learn from."""
        require_seen("AutoLabelVariant.update", seen, len(self.table))
        self.epochs += 1
        if self.epochs <= self.start:
            return
        used = copy.copy(seen)
        used.sums = self._sums(seen.sums)
        self.move(used)

    def _sums(self, sums: Tensor) -> Tensor:
        """What each bucket learns from, out of what every bucket saw."""
        kinds = sums.split(list(self.grid.levels), dim=1)
        if self.from_buckets == "all":
            means = torch.stack([kind.mean(dim=1) for kind in kinds])  # each kind is met as often
            return means.sum(dim=0).unsqueeze(1).expand_as(sums)
        if self.from_buckets == "shuffled":
            return sums[:, self.order()]
        step = {"own": 0, "next": 1, "previous": -1}[self.from_buckets]
        places = [(torch.arange(count) + step).clamp(0, count - 1) for count in self.grid.levels]
        return torch.cat([kind[:, place] for kind, place in zip(kinds, places, strict=True)], dim=1)

    def order(self) -> Tensor:
        """Whose calibration each bucket takes when shuffled: along one circle through all, never its own."""
        circle = torch.randperm(len(self.table), generator=torch.Generator().manual_seed(SHUFFLE))
        order = torch.empty_like(circle)
        order[circle] = circle.roll(1)
        return order
