"""RandAug: one of ten operations per image, at a magnitude drawn for that image."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from auglabel.augment import ops
from auglabel.augment.base import Augmentation
from auglabel.augment.magnitudes import Interpolation, magnitudes_for
from auglabel.distance import DistanceGrid
from auglabel.util.checks import require_whole
from auglabel.util.randomness import draw_sign, draw_whole, to_device
from auglabel.view import View


class RandAug(Augmentation):
    """One operation per image, uniform over `operations`; magnitude uniform over 1..m_max.

    A bucket is one operation at one magnitude: 82 with the defaults, since autocontrast and equalize
    have no magnitude. `m_max` limits the magnitudes and rescales nothing: 3 is 9 degrees at any
    m_max. `fill` (0..255) is what geometric operations bring in from outside the image.
    `magnitudes` says what a magnitude is worth: "mild", "wide", "codebase", or ranges of your own such as
    `{"rotate": (0, 60)}`; see magnitudes.py. Geometric operations resample by `interpolation`, or as that set
    does.

    color resembles the corruption `saturate`: `ops.WITHOUT_COLOR` is the set to use where that would
    flatter a comparison.

    With `num_ops` above 1, as RandAugment is often run, each image gets that many operations, drawn
    anew, all at its one magnitude; a bucket is then a magnitude.
    """

    level_name = "magnitude"
    distance_on_host = True

    def __init__(
        self,
        m_max: int = 10,
        operations: Sequence[str] = ops.OPERATIONS,
        num_ops: int = 1,
        interpolation: Interpolation | None = None,
        fill: int = 128,
        magnitudes: str | dict[str, tuple[float, float]] = "mild",
    ) -> None:
        require_whole("m_max", m_max, 1, 10)
        require_whole("num_ops", num_ops, 1)
        ops.require_options(interpolation, fill)
        self.operations = ops.require_operations(operations)
        self.num_ops = num_ops
        self.magnitudes = magnitudes_for(magnitudes)
        self.interpolation: Interpolation = interpolation or self.magnitudes.interpolation
        self.fill = fill
        self._operation = ops.operation_ids(self.operations)
        kinds = self.operations if num_ops == 1 else ("magnitude",)
        self.grid = DistanceGrid(
            tuple(1 if kind in ops.WITHOUT_MAGNITUDE else m_max for kind in kinds), kinds
        )
        self._levels = torch.tensor(self.grid.levels, device="cpu")

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        magnitude = self.grid.level(distance)
        moved = images
        for _ in range(self.num_ops):
            kind = distance.kind
            if self.num_ops > 1:
                kind = draw_whole(len(self.operations), len(images), kind.device, generator)
            sign = draw_sign(len(images), kind.device, generator)
            operation = self._operation.to(kind.device)[kind]
            moved = ops.distort(
                moved,
                operation,
                magnitude,
                sign,
                magnitudes=self.magnitudes,
                interpolation=self.interpolation,
                fill=self.fill,
            )
        strength = magnitude / self._levels.to(magnitude.device)[distance.kind]
        bucket, strength = (to_device(part, images.device) for part in (distance.bucket, strength))
        return View(moved, labels, bucket, strength)
