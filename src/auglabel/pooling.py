"""Calibration of every bucket from a few images in each.

A bucket that only some images visit in an epoch borrows from three places: from earlier epochs, whose sums
count less the older they are; from the neighbouring magnitudes of its kind, at half weight; and from
`DOUBT` examples, made up, on which the model was as sure as it was right.

Only the signed gap between confidence and accuracy is kept, as a Calibration with a single bin: there the
ECE is |confidence - accuracy|, so that AutoLabel's rule moves labels by alpha times the gap itself. Noise in
the gap averages out over epochs; noise in the ECE of 15 bins only ever adds. docs/cost.md has the whole
argument and what it was measured against.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration
from auglabel.checks import kind_of, require_number
from auglabel.distance import DistanceGrid

DOUBT = 20


class Pool(nn.Module):
    """Pools what `calibrate` saw in each epoch; `policy.update(pool(calibrate(...)))`.

    `memory` is how much of the sums of earlier epochs is kept from one to the next.
    """

    sums: Tensor  # (3, buckets) float64: count, confidence, correct

    def __init__(self, grid: DistanceGrid, memory: float = 0.5) -> None:
        super().__init__()
        require_memory(memory)
        self.grid, self.memory = grid, memory
        self.register_buffer("sums", torch.zeros(3, len(grid), dtype=torch.float64))

    @torch.no_grad()
    def forward(self, seen: Calibration) -> Calibration:
        """Add what was seen in an epoch; the calibration of every bucket by all that is known."""
        if not isinstance(seen, Calibration):
            raise TypeError(f"Pool takes a Calibration, but {kind_of(seen)} came.")
        if seen.groups != len(self.grid):
            raise ValueError(
                f"Pool takes one group per bucket: the grid has {len(self.grid)} buckets, "
                f"but the Calibration has {seen.groups} groups. Pass calibrate(model, augment, loader)."
            )
        fresh = seen.sums[[COUNT, CONFIDENCE, CORRECT]].sum(dim=2)
        if not bool(fresh.isfinite().all()):
            raise ValueError("Pool takes finite sums, but the Calibration holds nan or infinity.")
        self.sums.mul_(self.memory).add_(fresh.to(self.sums.device))
        count, confidence, correct = self._with_neighbours(self.sums.cpu())
        right = torch.where(count > 0, correct / count, 0)
        known = Calibration(len(self.grid), bins=1)
        known.sums.fill_(torch.nan)  # what is not pooled is not known
        known.sums[COUNT, :, 0] = torch.where(count > 0, count + DOUBT, 0)
        known.sums[CONFIDENCE, :, 0] = confidence + DOUBT * right
        known.sums[CORRECT, :, 0] = correct + DOUBT * right
        return known

    def _with_neighbours(self, sums: Tensor) -> Tensor:
        """Each bucket's sums, and half of those one level weaker and one level stronger."""
        pooled, start = sums.clone(), 0
        for levels in self.grid.levels:
            mine, own = pooled[:, start : start + levels], sums[:, start : start + levels]
            mine[:, 1:] += own[:, :-1] / 2
            mine[:, :-1] += own[:, 1:] / 2
            start += levels
        return pooled


def require_memory(memory: float) -> None:
    require_number("memory", memory, 0, 1)
    if memory == 1:
        raise ValueError("memory must be below 1, which would never forget the first epoch.")
