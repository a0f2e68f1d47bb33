"""Calibration of every bucket from a few images in each.

A bucket that only some images visit in an epoch borrows from three places: from earlier epochs, whose sums
count less the older they are; from the other magnitudes of its kind, the less the further away they are, but
only as far as its own images leave open; and from `DOUBT` examples, made up, on which the model was neither
sure nor right.

Confidences are not binned, so the ECE is |confidence - accuracy|, and AutoLabel's rule moves labels by alpha
times the signed gap. Noise in the gap averages out over epochs; noise in the ECE of 15 bins only ever adds.
docs/cost.md has the whole argument and what it was measured against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration, require_seen
from auglabel.distance import DistanceGrid
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import kind_of, require_number, require_unit, shown

if TYPE_CHECKING:
    from typing_extensions import Self

RULE = "2"  # the form of the rule, which results name; in "1" neighbours counted with full weight
DOUBT = 20
LEEWAY = 0.7  # how far neighbours may move what a bucket's own images say, in standard errors of that


@dataclass(eq=False)
class PooledCalibration:
    """What a `Pool` knows of every bucket. A bucket of weight 0 is unknown: its readings are nan."""

    sums: Tensor  # (3, buckets) float64: weight, confidence, correct

    @property
    def weight(self) -> Tensor:
        """Images that the readings rest on: own, those of other levels by their part, and `DOUBT`."""
        return self.sums[COUNT]

    @property
    def count(self) -> Tensor:
        """The same without those of `DOUBT`, which nobody saw."""
        return (self.weight - DOUBT).clamp(min=0)

    @property
    def confidence(self) -> Tensor:
        return self.sums[CONFIDENCE] / self.weight

    @property
    def accuracy(self) -> Tensor:
        return self.sums[CORRECT] / self.weight

    @property
    def ece(self) -> Tensor:
        return (self.sums[CORRECT] - self.sums[CONFIDENCE]).abs() / self.weight


class Pool(nn.Module):
    """Pools what `calibrate` saw in each epoch; `policy.update(pool(calibrate(...), policy.table))`.

    `memory` is how much of the sums of earlier epochs is kept from one to the next.
    """

    sums: Tensor  # (3, buckets) float64, on the CPU: count, confidence, correct

    def __init__(self, grid: DistanceGrid, memory: float = 0.5) -> None:
        super().__init__()
        if not isinstance(grid, DistanceGrid):
            raise UserTypeError(f"Pool takes a DistanceGrid, such as RandAug().grid, got {kind_of(grid)}.")
        require_memory(memory)
        self.grid, self.memory = grid, memory
        self.register_buffer("sums", torch.zeros(3, len(grid), dtype=torch.float64, device="cpu"))

    def extra_repr(self) -> str:
        return f"buckets={len(self.grid)}, memory={self.memory}, images={float(self.sums[COUNT].sum()):.0f}"

    @torch.no_grad()
    def forward(self, seen: Calibration, table: Tensor | None = None) -> PooledCalibration:
        """Add what was seen in an epoch; returns what is known of every bucket from all epochs so far.

        `table` (num_buckets,), the labels so far, tells which are at 1 or at their accuracy and can go
        no further: the gap there may stay for good, and is not lent to neighbours. Gap and accuracy are
        the smaller for the made-up examples.
        """
        if not isinstance(seen, Calibration):
            raise UserTypeError(f"Pool takes a Calibration, got {kind_of(seen)}.")
        require_seen("Pool", seen, len(self.grid))
        self._require_table(table)
        self.sums.mul_(self.memory).add_(seen.sums[[COUNT, CONFIDENCE, CORRECT]].sum(dim=2))
        own_count, own_confidence, own_correct = self.sums
        most = LEEWAY * _standard_error(own_count, own_correct)
        count, _, correct = self._with_neighbours()
        accuracy = _towards(own_correct / own_count, correct / count, most)
        free = None if table is None else _between(accuracy * count / (count + DOUBT), table.cpu().double())
        lenders, confidence, correct = self._with_neighbours(free)
        gap = _towards((own_confidence - own_correct) / own_count, (confidence - correct) / lenders, most)
        weight = torch.where(count > 0, count + DOUBT, 0)
        return PooledCalibration(torch.stack([weight, count * (accuracy + gap), count * accuracy]))

    def _require_table(self, table: Tensor | None) -> None:
        if table is not None:
            require_unit("table", table)
            if len(table) != len(self.grid):
                raise UserError(f"the grid has {len(self.grid)} buckets, but the table has {len(table)}.")

    def _with_neighbours(self, lends: Tensor | None = None) -> Tensor:
        """Each bucket's sums, half of those a level away in its kind, a quarter of those two levels away, ...

        Only of those that lend theirs, if `lends` (num_buckets,) is given.
        """
        lent = self.sums if lends is None else self.sums * lends
        near = [_spread(part) for part in lent.split(list(self.grid.levels), dim=1)]
        return self.sums + torch.cat(near, dim=1)

    def get_extra_state(self) -> Tensor:
        """The grid's kinds and levels as text in bytes, so that a state says which grid it belongs to."""
        kinds = zip(self.grid.kinds, self.grid.levels, strict=True)
        words = ", ".join(f"{kind} {levels}" for kind, levels in kinds)
        return torch.frombuffer(bytearray(words.encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Raise an error if the state belongs to another grid, even one with as many buckets."""
        theirs, ours = (bytes(text.cpu().tolist()).decode() for text in (state, self.get_extra_state()))
        if theirs != ours:
            raise UserError(
                "the state was saved for other distances (kind and number of levels of each): "
                f"{shown(theirs)}; here they are {shown(ours)}."
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if (state := state_dict.get(f"{prefix}_extra_state")) is not None:
            self.set_extra_state(state)  # before anything is loaded
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Keep the sums in float64 on the CPU under `.to()`, `.half()` and the like."""
        return self


def _spread(lent: Tensor) -> Tensor:
    """Sums that each level borrows from weaker and stronger levels of its kind; `lent` is (3, levels)."""
    weaker, stronger = torch.zeros_like(lent), torch.zeros_like(lent)
    for level in range(1, lent.shape[1]):
        weaker[:, level] = (weaker[:, level - 1] + lent[:, level - 1]) / 2
        stronger[:, -1 - level] = (stronger[:, -level] + lent[:, -level]) / 2
    return weaker + stronger


def _between(floor: Tensor, table: Tensor) -> Tensor:
    """Which labels are strictly between their floor and 1, up to float32 error of the table."""
    return (table < 1) & (table > floor + 1e-6)


def _standard_error(count: Tensor, correct: Tensor) -> Tensor:
    """Standard error of an accuracy or gap measured on `count` images; infinite for none."""
    share = (correct + 1) / (count + 2)
    return (share * (1 - share) / count).sqrt()


def _towards(own: Tensor, pooled: Tensor, most: Tensor) -> Tensor:
    """`own` moved towards `pooled` by at most `most`; 0 where bucket and neighbours saw no image.

    So neighbours take away noise, but not what a bucket's own images have shown: with many of these `most`
    vanishes, and labels go where each bucket's own gap sends them.
    """
    return torch.where(most.isfinite(), pooled.clamp(own - most, own + most), pooled).nan_to_num(nan=0.0)


def require_memory(memory: float) -> None:
    require_number("memory", memory, 0, 1)
    if memory == 1:
        raise UserError("memory must be below 1, which would never forget the first epoch.")
