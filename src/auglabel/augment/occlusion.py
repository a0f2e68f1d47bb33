"""Wide crops and random erasing: a part of the image is hidden, and the distance is how much of it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor

from auglabel.augment.base import Augmentation
from auglabel.distance import Distance, DistanceGrid
from auglabel.errors import UserError
from auglabel.util.checks import require_number, require_whole
from auglabel.util.randomness import drawing_device, to_device
from auglabel.view import View

Fill = Literal["zero", "mean"]


class WideCrop(Augmentation):
    """A crop of the image's own size that may lie mostly outside; `fill` comes in there.

    The share of the image that stays visible is v = (1 - |x|)(1 - |y|) with x, y ~ N(0, sigma), which are
    Soft Augmentation's offsets as parts of the sides; the strength is 1 - v. For a given v, in training as in
    validation, the visible part is v^u high and v^(1 - u) wide, as parts of the sides, u ~ U(0, 1), in whole
    pixels; it is a corner of the image, drawn at random. `fill` is black ("zero"), or its mean colour.
    """

    def __init__(self, sigma: float = 0.3, levels: int = 10, fill: Fill = "zero") -> None:
        require_number("sigma", sigma, 0)
        require_whole("levels", levels, 1)
        _require_fill(fill)
        self.sigma, self.fill = sigma, fill
        self.grid = DistanceGrid((levels,), ("hidden",))

    def draw(self, n: int, device: torch.device, generator: Generator | None) -> Distance:
        source = drawing_device(device, generator)
        offset = (self.sigma * torch.randn(2, n, device=source, generator=generator)).abs().clamp(max=1)
        strength = 1 - to_device((1 - offset).prod(dim=0), device)
        return self.grid.locate(torch.zeros(n, dtype=torch.int64, device=device), strength)

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        n, (height, width) = len(images), images.shape[2:]
        tall, wide = _sides(1 - distance.strength, height, width, torch.inf, generator)
        source = drawing_device(images.device, generator)
        drawn = torch.randint(2, (2, n), device=source, generator=generator)
        sign = 2 * to_device(drawn, images.device) - 1
        row = torch.arange(height, device=images.device) + (sign[0] * (height - tall))[:, None]
        column = torch.arange(width, device=images.device) + (sign[1] * (width - wide))[:, None]
        inside = _product((row >= 0) & (row < height), (column >= 0) & (column < width))
        pixel = row.clamp(0, height - 1)[:, :, None] * width + column.clamp(0, width - 1)[:, None, :]
        moved = images.flatten(2).gather(2, pixel.flatten(1)[:, None].expand(-1, images.shape[1], -1))
        cropped = torch.where(inside, moved.view_as(images), _colour(images, self.fill))
        return View(cropped, labels, distance.bucket, distance.strength, visible=_part(tall, wide, images))


class Erasing(Augmentation):
    """A rectangle somewhere in the image is erased; it has a share of up to `most` of the image's area.

    The strength is that share over `most`, uniform over (0, 1]. The rectangle's height over its width, as
    parts of the image's sides, is log-uniform over [1/ratio, ratio], as far as it fits inside; sides are
    whole pixels. `fill` is as in `WideCrop`.
    """

    def __init__(
        self, most: float = 1 / 3, ratio: float = 3.3, levels: int = 10, fill: Fill = "zero"
    ) -> None:
        require_number("most", most, 0, 1)
        require_number("ratio", ratio, 1)
        require_whole("levels", levels, 1)
        _require_fill(fill)
        self.most, self.ratio, self.fill = most, ratio, fill
        self.grid = DistanceGrid((levels,), ("erased",))

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        n, (height, width) = len(images), images.shape[2:]
        tall, wide = _sides(self.most * distance.strength, height, width, self.ratio, generator)
        source = drawing_device(images.device, generator)
        drawn = torch.rand(2, n, device=source, generator=generator, dtype=torch.float64)
        place = to_device(drawn, images.device)
        top, left = (place[0] * (height - tall + 1)).long(), (place[1] * (width - wide + 1)).long()
        row = torch.arange(height, device=images.device) - top[:, None]
        column = torch.arange(width, device=images.device) - left[:, None]
        inside = _product((row >= 0) & (row < tall[:, None]), (column >= 0) & (column < wide[:, None]))
        erased = torch.where(inside, _colour(images, self.fill), images)
        visible = 1 - _part(tall, wide, images)
        return View(erased, labels, distance.bucket, distance.strength, visible=visible)


def _sides(
    share: Tensor, height: int, width: int, ratio: float, generator: Generator | None
) -> tuple[Tensor, Tensor]:
    """Height and width (B,), in whole pixels, of rectangles over `share` (B,) of an image, or a pixel."""
    share = share.double().clamp(min=1 / (height * width))
    source = drawing_device(share.device, generator)
    drawn = torch.rand(len(share), device=source, generator=generator, dtype=torch.float64)
    u = to_device(drawn, share.device)
    longest = (1 / share).clamp(max=ratio)  # height over width, as parts of the image's, that fits inside
    pixels = share * height * width
    tall = (height * (share * longest ** (2 * u - 1)).sqrt()).round()
    tall = tall.clamp((pixels / width).ceil(), pixels.round().clamp(max=height))  # else `wide` would not fit
    wide = (pixels / tall).round().clamp(1, width)
    return tall.long(), wide.long()


def _product(rows: Tensor, columns: Tensor) -> Tensor:
    """Pixels (B, 1, H, W) that lie in both the rows (B, H) and the columns (B, W)."""
    return rows[:, None, :, None] & columns[:, None, None, :]


def _part(tall: Tensor, wide: Tensor, images: Tensor) -> Tensor:
    return (tall * wide).float() / (images.shape[2] * images.shape[3])


def _colour(images: Tensor, fill: Fill) -> Tensor:
    """What is seen where the image is not, (B, C, 1, 1) or a single number."""
    if fill == "zero":
        return torch.zeros((), dtype=images.dtype, device=images.device)
    mean = images.mean(dim=(2, 3), keepdim=True, dtype=torch.promote_types(images.dtype, torch.float32))
    return (mean.round() if images.dtype == torch.uint8 else mean).to(images.dtype)


def _require_fill(fill: str) -> None:
    if fill not in ("zero", "mean"):
        raise UserError(f'fill must be "zero" or "mean", got {fill!r}.')
