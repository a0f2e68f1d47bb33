"""mixup and CutMix: two images in one, the larger part giving the label."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from auglabel.augment import ops
from auglabel.augment.base import Augmentation
from auglabel.distance import Distance, DistanceGrid
from auglabel.util.binning import cell
from auglabel.util.checks import require_number, require_whole
from auglabel.util.randomness import drawing_device, to_device
from auglabel.view import View

# Below this both of the gamma draws that make up a beta draw may vanish, and their ratio means nothing.
SMALLEST_BETA = 0.01


class Mixing(Augmentation):
    """Mixes each image with a partner out of its batch; the strength is twice the partner's share.

    gamma ~ Beta(beta, beta) and the partner's share is min(gamma, 1 - gamma), so that the image itself
    is always the main one. Drawn per image, or once for the whole batch with `per_batch`.
    """

    def __init__(self, beta: float = 1.0, levels: int = 5, per_batch: bool = False) -> None:
        require_number("beta", beta, SMALLEST_BETA)
        require_whole("levels", levels, 1)
        self.beta = float(beta)
        self.per_batch = per_batch
        self.grid = DistanceGrid((levels,))

    def draw(self, n: int, device: torch.device, generator: Generator | None) -> Distance:
        source = drawing_device(device, generator)
        shape = torch.full((2, 1 if self.per_batch else n), self.beta, dtype=torch.float64, device=source)
        one, other = torch._standard_gamma(shape, generator=generator)
        gamma = one / (one + other)
        strength = 2 * to_device(torch.minimum(gamma, 1 - gamma).float().expand(n), device)
        bucket = cell(strength, self.grid.levels[0])
        return Distance(torch.zeros_like(bucket), strength, bucket)

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        """Mix every image with a partner; a batch of one image has none and stays as it is, at strength 0."""
        n = len(images)
        if n < 2:
            share = torch.zeros_like(distance.strength)
            return View(images.clone(), labels, torch.zeros_like(distance.bucket), share, labels, share)
        source = drawing_device(images.device, generator)
        order = to_device(torch.randperm(n, device=source, generator=generator), images.device)
        mixed, share = self.mix(images, order, distance.strength / 2, generator)
        return View(mixed, labels, distance.bucket, distance.strength, labels[order], share)

    def mix(
        self, images: Tensor, order: Tensor, share: Tensor, generator: Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Mix each image with `images[order]` by about `share` (B,); returns the mix and the exact share."""
        raise NotImplementedError(f"{type(self).__name__} must define mix(...).")


class Mixup(Mixing):
    """The weighted mean of two images."""

    def mix(self, images, order, share, generator) -> tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
        return ops.blend(images, images, order, share), share


class CutMix(Mixing):
    """A rectangle of the partner, anywhere inside, covering its share of the image.

    The rectangle has the image's proportions, to the nearest pixel. Bucket and strength are those of the
    share drawn; the labels go by what is really covered, which pixels round, at most one half.
    """

    def mix(self, images, order, share, generator) -> tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
        n, (height, width) = len(images), images.shape[2:]
        source = drawing_device(images.device, generator)
        place = to_device(torch.rand(2, n, device=source, generator=generator), images.device)
        wanted = share.double()
        tall = (height * wanted.sqrt()).round().clamp(min=1)
        wide = (width * height * wanted / tall).round()
        wide = torch.minimum(wide, (width * height / 2 / tall).floor())
        top = (place[0] * (height - tall + 1)).floor()
        left = (place[1] * (width - wide + 1)).floor()
        row = torch.arange(height, device=images.device)
        column = torch.arange(width, device=images.device)
        rows = (row >= top[:, None]) & (row < (top + tall)[:, None])
        columns = (column >= left[:, None]) & (column < (left + wide)[:, None])
        inside = rows[:, None, :, None] & columns[:, None, None, :]
        mixed = torch.where(inside, images.index_select(0, order), images)
        return mixed, (tall * wide / (height * width)).float()
