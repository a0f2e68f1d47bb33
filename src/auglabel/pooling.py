"""Calibration of every bucket from a few images in each.

A bucket that only some images visit in an epoch borrows from three places: from earlier epochs, whose sums
count less the older they are; from the neighbouring magnitudes of its kind, at half weight; and from `DOUBT`
examples, made up, on which the model was neither sure nor right.

Only the signed gap between confidence and accuracy is kept, as a Calibration with a single bin: there the
ECE is |confidence - accuracy|, so that AutoLabel's rule moves labels by alpha times the gap itself. Noise in
the gap averages out over epochs; noise in the ECE of 15 bins only ever adds. docs/cost.md has the whole
argument and what it was measured against.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration, require_seen
from auglabel.checks import kind_of, require_number
from auglabel.distance import DistanceGrid

if TYPE_CHECKING:
    from typing_extensions import Self

DOUBT = 20


class Pool(nn.Module):
    """Pools what `calibrate` saw in each epoch; `policy.update(pool(calibrate(...)))`.

    `memory` is how much of the sums of earlier epochs is kept from one to the next.
    """

    sums: Tensor  # (3, buckets) float64, on the CPU: count, confidence, correct

    def __init__(self, grid: DistanceGrid, memory: float = 0.5) -> None:
        super().__init__()
        if not isinstance(grid, DistanceGrid):
            raise TypeError(f"Pool takes a DistanceGrid, such as RandAug().grid, but {kind_of(grid)} came.")
        require_memory(memory)
        self.grid, self.memory = grid, memory
        self.register_buffer("sums", torch.zeros(3, len(grid), dtype=torch.float64, device="cpu"))

    @torch.no_grad()
    def forward(self, seen: Calibration) -> Calibration:
        """Add what was seen in an epoch; what is known of every bucket, in one bin, by all that was seen.

        Its count includes the made-up examples, and its gap and accuracy are the smaller for them.
        """
        require_seen("Pool", seen, len(self.grid))
        self.sums.mul_(self.memory).add_(seen.sums[[COUNT, CONFIDENCE, CORRECT]].sum(dim=2))
        count, confidence, correct = self._with_neighbours()
        known = Calibration(len(self.grid), bins=1)
        known.sums.fill_(torch.nan)  # what is not pooled is not known
        known.sums[COUNT, :, 0] = torch.where(count > 0, count + DOUBT, 0)
        known.sums[CONFIDENCE, :, 0] = confidence
        known.sums[CORRECT, :, 0] = correct
        return known

    def _with_neighbours(self) -> Tensor:
        """Each bucket's sums, and half of those one level weaker and one level stronger."""
        pooled, start = self.sums.clone(), 0
        for levels in self.grid.levels:
            mine, own = (sums[:, start : start + levels] for sums in (pooled, self.sums))
            mine[:, 1:] += own[:, :-1] / 2
            mine[:, :-1] += own[:, 1:] / 2
            start += levels
        return pooled

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Sums stay as they are and where they are, whatever `.to()` or `.half()` is asked of."""
        return self


def require_memory(memory: float) -> None:
    require_number("memory", memory, 0, 1)
    if memory == 1:
        raise ValueError("memory must be below 1, which would never forget the first epoch.")
