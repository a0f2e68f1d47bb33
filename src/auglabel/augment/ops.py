"""Ten image operations on batches, each image with a magnitude of its own.

Geometric operations are one affine map and one resampling pass; posterize, solarize, autocontrast
and equalize work on 8-bit levels, so floating-point images are rounded to them first. Magnitudes
are whole numbers, 1 to 10.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Interpolation = Literal["bilinear", "nearest"]

GEOMETRIC = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
WITHOUT_MAGNITUDE = ("autocontrast", "equalize")
OPERATIONS = (*GEOMETRIC, "posterize", "solarize", "color", *WITHOUT_MAGNITUDE)

# The usual weights of red, green and blue, as the fractions that sum exactly in float32.
LUMA = (19595 / 65536, 38470 / 65536, 7471 / 65536)


def distort(
    images: Tensor,
    operation: Tensor,  # (B,) int64 index into OPERATIONS
    magnitude: Tensor,  # (B,) int64
    sign: Tensor,  # (B,) -1 or 1: the direction of geometric operations and color
    *,
    interpolation: Interpolation = "bilinear",
    fill: int = 128,
) -> Tensor:
    """Each image moved by its own operation at its own magnitude, in the dtype it came in."""
    out = torch.empty_like(images)

    def put(chosen: Tensor, function, *values: Tensor, **options) -> None:  # type: ignore[no-untyped-def]
        rows = chosen.nonzero().squeeze(1)
        if len(rows):
            out[rows] = function(images[rows], *(value[rows] for value in values), **options)

    matrix = geometry(operation, magnitude * sign, *images.shape[2:])
    put(operation < len(GEOMETRIC), affine, matrix, interpolation=interpolation, fill=fill)
    put(operation == OPERATIONS.index("posterize"), posterize, (4 - 4 * magnitude // 10).clamp(min=1))
    put(operation == OPERATIONS.index("solarize"), solarize, 256 - 256 * magnitude // 10)
    put(operation == OPERATIONS.index("color"), color, 1 + 0.09 * magnitude * sign)
    put(operation == OPERATIONS.index("autocontrast"), autocontrast)
    put(operation == OPERATIONS.index("equalize"), equalize)
    return out


def geometry(operation: Tensor, amount: Tensor, height: int, width: int) -> Tensor:
    """Maps (B, 2, 3) from output to source coordinates, pixel centres at x + 1/2, y + 1/2.

    `amount` is the signed magnitude: 3 degrees about the centre, a shear of 0.03 that fixes the top
    left corner, or a thirtieth of the side each. Rows of other operations hold the identity.
    """

    def share(name: str, unit: float) -> Tensor:
        return torch.where(operation == OPERATIONS.index(name), unit * amount, 0.0).float()

    angle = share("rotate", math.radians(3))
    cos, sin = angle.cos(), angle.sin()
    x, y = width / 2, height / 2
    top = [cos, share("shear_x", 0.03) - sin, x - cos * x + sin * y + share("translate_x", width / 30)]
    low = [share("shear_y", 0.03) + sin, cos, y - sin * x - cos * y + share("translate_y", height / 30)]
    return torch.stack([torch.stack(top, dim=1), torch.stack(low, dim=1)], dim=1)


def affine(images: Tensor, matrix: Tensor, *, interpolation: Interpolation, fill: int) -> Tensor:
    """Resample through `matrix` (B, 2, 3); what lies outside the source becomes `fill` of 255."""
    height, width = images.shape[2:]
    exact = images.to(_working_dtype(images.dtype))
    column = torch.arange(width, device=images.device) + 0.5
    row = torch.arange(height, device=images.device) + 0.5
    centres = torch.stack(
        [*torch.meshgrid(column, row, indexing="xy"), torch.ones_like(row[:, None] + column)], -1
    )
    unit = torch.tensor([2 / width, 2 / height], device=images.device)
    source = (centres.view(-1, 3) @ (matrix * unit[:, None]).mT - 1).view(-1, height, width, 2)
    inside = ((source >= -1) & (source < 1)).all(dim=3).unsqueeze(1)
    source = source.to(exact.dtype)
    moved = F.grid_sample(exact, source, mode=interpolation, padding_mode="border", align_corners=False)
    scale = 1 if images.dtype == torch.uint8 else 255
    return _as(torch.where(inside, moved, fill / scale), images.dtype)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest `bits` (B,) of 8."""
    mask = (256 - 2 ** (8 - bits)).to(torch.uint8)
    return _from_levels(_levels(images) & _per_image(mask), images.dtype)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the levels at or above `threshold` (B,), 0..255."""
    levels = _levels(images)
    inverted = torch.where(levels >= _per_image(threshold.to(torch.uint8)), 255 - levels, levels)
    return _from_levels(inverted, images.dtype)


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Scale the difference to grey by `factor` (B,); the identity on one channel."""
    if images.shape[1] == 1:
        return images
    exact = images.to(_working_dtype(images.dtype))
    weights = torch.tensor(LUMA, dtype=exact.dtype, device=images.device)
    grey = torch.einsum("bchw,c->bhw", exact, weights).unsqueeze(1)
    if images.dtype == torch.uint8:
        grey = (grey + 0.5).floor()
    top = 255 if images.dtype == torch.uint8 else 1
    return _as(torch.lerp(grey, exact, _per_image(factor).to(exact.dtype)).clamp(0, top), images.dtype)


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel's levels to 0..255, rounding down; the identity on a flat channel."""
    levels = _levels(images)
    low = levels.amin(dim=(2, 3), keepdim=True).flatten(2).double()
    high = levels.amax(dim=(2, 3), keepdim=True).flatten(2).double()
    ramp = torch.arange(256, device=images.device).double()
    scale = torch.full_like(high, 255) / (high - low)  # 255 / tensor would round twice
    table = (ramp * scale - low * scale).clamp(0, 255)
    table = torch.where(high > low, table, ramp).to(torch.uint8)
    return _from_levels(_look_up(levels, table), images.dtype)


def equalize(images: Tensor) -> Tensor:
    """Spread each channel's levels evenly, by the integer rule of the usual histogram equalisation."""
    levels = _levels(images)
    batch, channels = levels.shape[:2]
    plane = torch.arange(batch * channels, device=images.device) * 256
    index = (levels.view(batch * channels, -1) + plane[:, None]).flatten()
    count = torch.bincount(index, minlength=batch * channels * 256).view(batch, channels, 256)
    ramp = torch.arange(256, device=images.device)
    last = (ramp * (count > 0)).amax(dim=2, keepdim=True)  # the highest level in use does not count
    step = (count.sum(dim=2, keepdim=True) - count.gather(2, last)) // 255
    below = count.cumsum(dim=2) - count
    table = ((below + step // 2) // step.clamp(min=1)).clamp(max=255)
    table = torch.where(step > 0, table, ramp).to(torch.uint8)
    return _from_levels(_look_up(levels, table), images.dtype)


def _look_up(levels: Tensor, table: Tensor) -> Tensor:
    """`table` (B, C, 256) at every level of every channel."""
    return table.gather(2, levels.flatten(2).long()).view_as(levels)


def _levels(images: Tensor) -> Tensor:
    return images if images.dtype == torch.uint8 else _as(images.float() * 255, torch.uint8)


def _from_levels(levels: Tensor, dtype: torch.dtype) -> Tensor:
    return levels if dtype == torch.uint8 else levels.to(dtype) / 255


def _as(values: Tensor, dtype: torch.dtype) -> Tensor:
    return (values + 0.5).to(torch.uint8) if dtype == torch.uint8 else values.to(dtype)


def _per_image(value: Tensor) -> Tensor:
    return value[:, None, None, None]


def _working_dtype(dtype: torch.dtype) -> torch.dtype:
    """What the arithmetic is done in: float32, or float64 for float64 images."""
    return torch.float64 if dtype == torch.float64 else torch.float32
