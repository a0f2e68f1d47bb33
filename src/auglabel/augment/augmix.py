"""AugMix: mix an image with what a short chain of operations makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from auglabel.augment import ops
from auglabel.augment.base import Augmentation
from auglabel.augment.magnitudes import Interpolation, magnitudes_for
from auglabel.distance import MOST_LEVELS, DistanceGrid
from auglabel.util.checks import require_whole
from auglabel.util.randomness import draw_sign, draw_whole, drawing_device, to_device
from auglabel.view import View


class AugMix(Augmentation):
    """lambda * image + (1 - lambda) * chain(image), lambda uniform over [0, 1].

    A chain applies as many operations as the image's depth, 1..max_depth, each drawn for that image
    alone at `magnitude`. The kind is the depth and the strength is 1 - lambda, so that buckets grow
    with distortion. Several `chains` are averaged with weights uniform over the simplex. `magnitudes` and
    `interpolation` are those of RandAug.
    """

    distance_on_host = True

    def __init__(
        self,
        max_depth: int = 3,
        levels: int = 5,
        magnitude: int = 3,
        chains: int = 1,
        operations: Sequence[str] = ops.OPERATIONS,
        interpolation: Interpolation | None = None,
        fill: int = 128,
        magnitudes: str | dict[str, tuple[float, float]] = "mild",
    ) -> None:
        require_whole("max_depth", max_depth, 1, MOST_LEVELS)
        require_whole("levels", levels, 1)
        require_whole("magnitude", magnitude, 1, 10)
        require_whole("chains", chains, 1)
        ops.require_options(interpolation, fill)
        self.operations = ops.require_operations(operations)
        self._operation = ops.operation_ids(self.operations)
        kinds = tuple(f"depth {depth}" for depth in range(1, max_depth + 1))
        self.grid = DistanceGrid((levels,) * max_depth, kinds)
        self.magnitude = magnitude
        self.chains = chains
        self.magnitudes = magnitudes_for(magnitudes)
        self.interpolation: Interpolation = interpolation or self.magnitudes.interpolation
        self.fill = fill

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        depth = distance.kind + 1
        mixed = self._chain(images, depth, generator)
        if self.chains > 1:
            mixed = self._mean_of_chains(mixed, images, depth, generator)
        _, strength, bucket = distance.to(images.device)
        return View(ops.blend(images, mixed, None, strength), labels, bucket, strength)

    def _chain(self, images: Tensor, depth: Tensor, generator: Generator | None) -> Tensor:
        """Each image after `depth` (B,) operations of its own."""
        ids = self._operation.to(depth.device)
        out = images
        for step in range(len(self.grid.levels)):
            kind = draw_whole(len(self.operations), len(images), depth.device, generator)
            sign = draw_sign(len(images), depth.device, generator)
            rows = (depth > step).nonzero().squeeze(1)
            there = to_device(rows, images.device)
            moved = ops.distort(
                out if step == 0 else out.index_select(0, there),
                ids[kind[rows]],
                torch.full_like(rows, self.magnitude),
                sign[rows],
                magnitudes=self.magnitudes,
                interpolation=self.interpolation,
                fill=self.fill,
            )
            out = moved if step == 0 else out.index_copy_(0, there, moved)
        return out

    def _mean_of_chains(
        self, first: Tensor, images: Tensor, depth: Tensor, generator: Generator | None
    ) -> Tensor:
        """`first` and the other chains, weighted by Dirichlet(1, ..., 1), as floating point."""
        source = drawing_device(images.device, generator)
        parts = torch.empty(self.chains, len(images), device=source).exponential_(generator=generator)
        weights = to_device(parts / parts.sum(dim=0), images.device)[:, :, None, None, None]
        total = weights[0] * first
        for weight in weights[1:]:
            total += weight * self._chain(images, depth, generator)
        return total.clamp_(max=255 if images.dtype == torch.uint8 else 1)  # weights add up to 1 and a little
