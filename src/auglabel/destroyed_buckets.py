"""Buckets in which the network no longer sees the class: skip them, or give them uniform labels."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from auglabel.autolabel import AutoLabel
from auglabel.calibration import CORRECT, BucketCalibration, Calibration, require_clean, require_seen
from auglabel.errors import UserError
from auglabel.util.checks import require_number

Z = 1.959964  # of a 95 % interval
KNOWN = 0.2  # of what there is to know beyond chance: with less, a network cannot say what is destroyed


class DestroyedAutoLabel(AutoLabel):
    """AutoLabel, except in buckets whose images are destroyed.

    With K classes and the accuracy `clean` on images as they are, a bucket is destroyed once the 95 %
    interval (Wilson's) of its accuracy lies wholly below

        1/K + share (clean - 1/K)

    and no longer once that lies wholly above. Nothing is judged before the interval of `clean` lies above
    1/K + 0.2 (1 - 1/K): early in training all accuracies are at chance. `treat` says what becomes of
    destroyed buckets: "skip" draws other distances in training instead, so that batches stay as large;
    "uniform" labels them 1/K. Both go on being measured, and come back if accuracy does.
    """

    needs_clean = True
    destroyed: Tensor  # (num_buckets,) bool
    learned: Tensor  # (num_buckets,) float32: AutoLabel's table, also where it is not in use

    def __init__(
        self,
        num_classes: int,
        num_buckets: int,
        alpha: float | Literal["auto"] = "auto",
        treat: Literal["skip", "uniform"] = "skip",
        share: float = 0.1,
        epochs: int | None = None,
    ) -> None:
        super().__init__(num_classes, num_buckets, alpha, epochs)
        if treat not in ("skip", "uniform"):
            raise UserError(f'treat must be "skip" or "uniform", got {treat!r}.')
        require_number("share", share, 0, 1)
        self.treat, self.share = treat, share
        self.register_buffer("destroyed", torch.zeros(num_buckets, dtype=torch.bool))
        self.register_buffer("learned", self.table.clone())

    @property
    def learned_table(self) -> Tensor:
        return self.learned

    @property
    def drawn(self) -> Tensor | None:
        """All but the destroyed; all if none would be left."""
        skipped = self.treat == "skip" and self.destroyed.any() and not self.destroyed.all()
        return ~self.destroyed if skipped else None

    @torch.no_grad()
    def update(self, seen: BucketCalibration, clean: Calibration | None = None) -> None:
        """Move labels, and judge every bucket, by what was seen in it and on the images as they are."""
        require_seen("DestroyedAutoLabel.update", seen, len(self.table))
        clean = require_clean("DestroyedAutoLabel.update", clean)
        self.table.copy_(self.learned)
        super().update(seen)
        self.learned.copy_(self.table)
        self._judge(seen, clean)
        if self.treat == "uniform":
            self.table[self.destroyed] = 1 / self.num_classes

    def _judge(self, seen: BucketCalibration, clean: Calibration) -> None:
        chance = 1 / self.num_classes
        if _interval(clean.accuracy, clean.count)[0] <= chance + KNOWN * (1 - chance):
            return
        lowest = chance + self.share * (clean.accuracy - chance)
        correct = seen.sums[CORRECT].reshape(len(self.table), -1).sum(dim=1)
        low, high = (edge.to(self.destroyed.device) for edge in _interval(correct / seen.count, seen.count))
        lowest = lowest.to(low)
        self.destroyed.copy_((high < lowest) | (self.destroyed & ~(low > lowest)))


def _interval(share: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Wilson's 95 % interval of a share of `count` images."""
    middle = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z / (1 + Z**2 / count) * (share * (1 - share) / count + Z**2 / (4 * count**2)).sqrt()
    return middle - half, middle + half
