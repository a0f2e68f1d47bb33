"""Linear filters: each direction of a separable one is a matrix that holds the border's rule too."""

from __future__ import annotations

import functools
import math
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Border = Literal["nearest", "reflect", "mirror"]  # aaa|abc, cba|abc, dcb|abc
BAND = 32  # rows of a banded matrix multiplied at a time
SMALL = 5  # a kernel's side up to which adding shifted pictures beats Fourier's way


def blurred(levels: Tensor, sigma: float, border: Border = "nearest", truncate: float = 4.0) -> Tensor:
    """A Gaussian of `sigma` pixels, cut after `truncate` sigmas, over the last two dimensions; float64."""
    radius = int(truncate * sigma + 0.5)
    down, across = (gaussian_matrix(side, sigma, radius, border) for side in levels.shape[-2:])
    return _banded(across, _banded(down, levels.double(), radius).mT, radius).mT


def _banded(matrix: Tensor, levels: Tensor, radius: int) -> Tensor:
    """matrix @ levels, where row i of the matrix is zero beyond `radius` of column i."""
    side = len(matrix)
    if 2 * radius + BAND >= side:
        return matrix @ levels
    rows = []
    for start in range(0, side, BAND):
        first, last = max(0, start - radius), min(side, start + BAND + radius)
        rows.append(matrix[start : start + BAND, first:last] @ levels[..., first:last, :])
    return torch.cat(rows, dim=-2)


@functools.lru_cache(maxsize=64)
def gaussian_matrix(side: int, sigma: float, radius: int, border: Border) -> Tensor:
    """(side, side) float64: row i holds the weights of the pixels that pixel i becomes the mean of."""
    reach = torch.arange(-radius, radius + 1)
    weights = torch.exp(-((reach.double() / sigma) ** 2) / 2)
    places = inside(torch.arange(side)[:, None] + reach, side, border)
    matrix = torch.zeros(side, side, dtype=torch.float64)
    return matrix.scatter_add_(1, places, (weights / weights.sum()).expand(side, -1))


def inside(places: Tensor, side: int, border: Border) -> Tensor:
    """Whole numbers brought into 0 .. side - 1 by the border's rule."""
    if border == "nearest":
        return places.clamp(0, side - 1)
    twice = 1 if border == "reflect" else 0  # whether the last pixel comes twice
    period = 2 * side - 2 + 2 * twice
    places = places % period
    return torch.where(places < side, places, period - twice - places)


def correlated(levels: Tensor, kernel: Tensor) -> Tensor:
    """Every picture with `kernel`, odd by odd and the same on all sides, mirrored at the border; float64."""
    side, (height, width) = kernel.shape[0], levels.shape[-2:]
    padded = F.pad(levels.double(), (side // 2,) * 4, mode="reflect")
    if side <= SMALL:
        return _summed(padded, kernel, height, width)
    size = [_smooth(length) for length in padded.shape[-2:]]
    found = torch.fft.irfft2(torch.fft.rfft2(padded, s=size) * torch.fft.rfft2(kernel, s=size), s=size)
    clear: Tensor = found[..., side - 1 : side - 1 + height, side - 1 : side - 1 + width]
    return clear


def _smooth(length: int) -> int:
    """The next number that 2, 3 and 5 make up, which a Fourier transform likes."""
    rest = length
    for factor in (2, 3, 5):
        while rest % factor == 0:
            rest //= factor
    return length if rest == 1 else _smooth(length + 1)


def _summed(padded: Tensor, kernel: Tensor, height: int, width: int) -> Tensor:
    """Shifted pictures of one weight are added up first: a symmetric kernel has few weights."""
    total = padded.new_zeros(())
    for weight in kernel.unique().tolist():
        places = (kernel == weight).nonzero().tolist()
        shifted = (padded[..., y : y + height, x : x + width] for y, x in places)
        total = total + functools.reduce(torch.add, shifted) * weight
    return total


def zoomed(levels: Tensor, factor: float) -> Tensor:
    """The centre, enlarged to the whole picture."""
    return enlarged(levels, *(zoom(side, factor) for side in levels.shape[-2:]))


class Zoom(NamedTuple):
    """Along one side of an image, the middle `part` pixels are enlarged to `size` pixels."""

    part: int
    size: int


def zoom(side: int, factor: float) -> Zoom:
    part = math.ceil(side / factor)
    return Zoom(part, round(part * factor))


def enlarged(levels: Tensor, down: Zoom, across: Zoom) -> Tensor:
    """The middle of pictures (N, C, H, W), bilinear between its corners as scipy's zoom does it."""
    height, width = levels.shape[-2:]
    top, left = (height - down.part) // 2, (width - across.part) // 2
    middle = levels[..., top : top + down.part, left : left + across.part]
    large = F.interpolate(middle, size=(down.size, across.size), mode="bilinear", align_corners=True)
    top, left = (down.size - height) // 2, (across.size - width) // 2
    return large[..., top : top + height, left : left + width]


def motion_blurred(levels: Tensor, radius: int, sigma: float, degrees: Tensor) -> Tensor:
    """ImageMagick's motion blur: half a Gaussian along a line of whole pixels, one direction per picture.

    The line has 2 radius + 1 pixels and leaves in the direction `degrees` (N,), clockwise from the right;
    the border's pixels go on outside.
    """
    height, width = levels.shape[-2:]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(steps**2 / (-2 * sigma * sigma))
    weights = (weights / weights.sum()).astype(np.float32)
    turned = np.deg2rad(degrees.double().numpy())[:, None]
    down, right = (
        np.ceil(steps * part - 0.5).astype(int) + 2 * radius for part in (np.sin(turned), np.cos(turned))
    )
    padded = F.pad(levels, (2 * radius,) * 4, mode="replicate").permute(0, 2, 3, 1).contiguous().numpy()
    moved = np.zeros((len(levels), height, width, levels.shape[1]), np.float32)
    for picture, sums, *line in zip(padded, moved, down.tolist(), right.tolist(), strict=True):
        for weight, y, x in zip(weights, *line, strict=True):
            sums += picture[y : y + height, x : x + width] * weight
    return torch.from_numpy(moved).permute(0, 3, 1, 2)
