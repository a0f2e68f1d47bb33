"""RandAug: one of ten operations per image, at a magnitude drawn for that image."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from auglabel.augment import ops
from auglabel.augment.base import Augmentation
from auglabel.binning import cell
from auglabel.checks import require_whole
from auglabel.distance import DistanceGrid
from auglabel.view import View


class RandAug(Augmentation):
    """One operation per image, uniform over `operations`; magnitude uniform over 1..m_max.

    A bucket is one operation at one magnitude: 82 with the defaults, since autocontrast and equalize
    have no magnitude. `m_max` limits the magnitudes and rescales nothing: 3 is 9 degrees at any
    m_max. `fill` (0..255) is what geometric operations bring in from outside the image.
    """

    def __init__(
        self,
        m_max: int = 10,
        operations: Sequence[str] = ops.OPERATIONS,
        interpolation: ops.Interpolation = "bilinear",
        fill: int = 128,
    ) -> None:
        require_whole("m_max", m_max, 1, 10)
        require_whole("fill", fill, 0, 255)
        if interpolation not in ("bilinear", "nearest"):
            raise ValueError(f'interpolation must be "bilinear" or "nearest", but "{interpolation}" came.')
        unknown = [name for name in operations if name not in ops.OPERATIONS]
        if unknown or not operations or len(set(operations)) < len(operations):
            raise ValueError(
                f"operations must be different names out of {', '.join(ops.OPERATIONS)}, "
                f"but {list(operations)} came."
            )
        self.kinds = tuple(operations)
        self.interpolation: ops.Interpolation = interpolation
        self.fill = fill
        self.grid = DistanceGrid(tuple(1 if name in ops.WITHOUT_MAGNITUDE else m_max for name in self.kinds))
        self._operation = torch.tensor([ops.OPERATIONS.index(name) for name in self.kinds])

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        kind = distance.kind
        levels = torch.tensor(self.grid.levels, device=kind.device)[kind]
        magnitude = cell(distance.strength, levels) + 1
        source = images.device if generator is None else generator.device
        sign = 2 * torch.randint(2, (len(images),), device=source, generator=generator) - 1
        moved = ops.distort(
            images,
            self._operation.to(kind.device)[kind],
            magnitude,
            sign.to(images.device),
            interpolation=self.interpolation,
            fill=self.fill,
        )
        return View(moved, labels, distance.bucket, magnitude / levels)
