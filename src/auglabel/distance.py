"""How far an image was moved: a kind and a strength, cut into buckets by a grid."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from auglabel.errors import UserError
from auglabel.util.binning import cell
from auglabel.util.checks import (
    kind_of,
    require_range,
    require_same_length,
    require_unit,
    require_whole,
)
from auglabel.util.randomness import drawing_device, to_device

# `draw_in` keeps 1/1000 of a cell clear of its lower edge, which is more than float error up to here.
MOST_LEVELS = 1000


class Distance(NamedTuple):
    kind: Tensor  # (B,) int64
    strength: Tensor  # (B,) float in [0, 1]
    bucket: Tensor  # (B,) int64

    def to(self, device: torch.device) -> Distance:
        return Distance(*(to_device(part, device) for part in self))


@dataclass(frozen=True)
class DistanceGrid:
    """Cuts distance into buckets: kind k has `levels[k]` equal intervals of strength.

    Bucket n of N covers ((n - 1)/N, n/N] in training and in validation alike; zero joins the first.
    Buckets are numbered kind by kind, from weak to strong. `kinds` names the kinds for people and
    files; left out, they are numbered.
    """

    levels: tuple[int, ...]
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.levels, tuple | list) or not self.levels:
            raise UserError(
                "DistanceGrid takes the number of levels of each kind, such as (10, 10, 1), "
                f"got {kind_of(self.levels)}."
            )
        for level in self.levels:
            require_whole("each of DistanceGrid's levels", level, 1, MOST_LEVELS)
        kinds = self.kinds or tuple(str(k) for k in range(1, len(self.levels) + 1))
        if len(kinds) != len(self.levels) or len(set(kinds)) < len(kinds):
            raise UserError(
                f"DistanceGrid takes a name of its own for each of {len(self.levels)} kinds, "
                f"got {kind_of(kinds)}."
            )
        object.__setattr__(self, "levels", tuple(self.levels))
        object.__setattr__(self, "kinds", tuple(kinds))

    def __len__(self) -> int:
        return sum(self.levels)

    def locate(self, kind: Tensor, strength: Tensor) -> Distance:
        """The distance of this kind and strength, with its bucket."""
        require_same_length("DistanceGrid.locate", kind=kind, strength=strength)
        require_range("kind", kind, len(self.levels), "kinds")
        require_unit("strength", strength)
        levels, start = self._tables(kind.device)
        return Distance(kind, strength, start[kind] + cell(strength, levels[kind]))

    def draw(
        self, n: int, device: torch.device | str | None = None, generator: Generator | None = None
    ) -> Distance:
        """Kinds uniform over the grid's, strengths uniform over (0, 1]."""
        source = drawing_device(device, generator)
        kind = torch.randint(len(self.levels), (n,), device=source, generator=generator)
        strength = 1 - torch.rand(n, device=source, generator=generator)
        return self.locate(to_device(kind, device), to_device(strength, device))

    def draw_in(self, bucket: Tensor, generator: Generator | None = None) -> Distance:
        """A distance inside each example's bucket, s ~ U(S_n)."""
        require_range("bucket", bucket, len(self), "buckets")
        levels, start = self._tables(bucket.device)
        kind = torch.searchsorted(start, bucket, right=True) - 1
        source = drawing_device(bucket.device, generator)
        # The lower edge belongs to the cell below, so keep clear of it by more than float error.
        within = (1 - torch.rand(len(bucket), device=source, generator=generator)).clamp(min=1e-3)
        strength = (bucket - start[kind] + to_device(within, bucket.device)) / levels[kind]
        return Distance(kind, strength, bucket)

    def level(self, distance: Distance) -> Tensor:
        """Level of each distance within its kind, counted from 1."""
        return distance.bucket - self._tables(distance.bucket.device)[1][distance.kind] + 1

    def _tables(self, device: torch.device) -> tuple[Tensor, Tensor]:
        levels, start = self._cpu_tables
        return to_device(levels, device), to_device(start, device)

    @functools.cached_property
    def _cpu_tables(self) -> tuple[Tensor, Tensor]:
        """Number of levels and first bucket of each kind."""
        levels = torch.tensor(self.levels, device="cpu")
        return levels, levels.cumsum(0) - levels
