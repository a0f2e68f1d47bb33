"""Colour, geometry and coding."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from auglabel.corrupt.draws import Draws
from auglabel.corrupt.filters import blurred
from auglabel.corrupt.levels import as_bytes, rounded
from auglabel.util.extras import extra_module


def brightness(images: Tensor, added: float, draws: Draws) -> Tensor:
    """HSV's V, the largest channel, moves up; hue and saturation stay: all channels grow by one factor."""
    value = images.amax(dim=1, keepdim=True)
    raised = (value + 255 * added).clamp_(max=255)
    grown = images * (raised / value.clamp(min=1))
    return as_bytes(torch.where(value > 0, grown, raised))  # black becomes grey


def contrast(images: Tensor, left: float, draws: Draws) -> Tensor:
    """Towards the mean of each channel."""
    levels = images.double()
    mean = levels.mean(dim=(2, 3), keepdim=True)
    return as_bytes((levels - mean) * left + mean)


def saturate(images: Tensor, figures: tuple[float, float], draws: Draws) -> Tensor:
    """HSV's S times and plus something; grey pixels take the hue of red. One channel has no saturation."""
    if images.shape[1] == 1:
        return images.clone()
    times, plus = figures
    value = images.amax(dim=1, keepdim=True).float()
    spread = value - images.amin(dim=1, keepdim=True)
    saturation = spread / value.clamp(min=1)
    wanted = (saturation * times + plus).clamp_(0, 1) * value
    below = (value - images) / spread.clamp(min=1)  # 0 for the largest channel, 1 for the smallest
    below = torch.where(spread > 0, below, torch.tensor([0.0, 1.0, 1.0])[:, None, None])
    return as_bytes(value - below * wanted)


def elastic_transform(images: Tensor, figures: tuple[float, float, float], draws: Draws) -> Tensor:
    """Three points are moved and the picture with them, then every pixel a little on its own."""
    height, width = images.shape[2:]
    strength, sigma, shift = (part * min(height, width) for part in figures)
    levels = _sampled(images.double(), *_moved_back(draws, shift, height, width), mirror=True)
    if strength:
        across, down = (
            blurred(draws.uniform(height, width).double() * 2 - 1, sigma, "reflect", 3.0) * strength
            for _ in range(2)
        )
        rows, columns = _pixels(height, width)
        levels = _sampled(levels, rows + down, columns + across, mirror=False)
    return as_bytes(levels)


def _pixels(height: int, width: int) -> tuple[Tensor, Tensor]:
    rows, columns = (torch.arange(side, dtype=torch.float64) for side in (height, width))
    return rows[:, None], columns


def _moved_back(draws: Draws, shift: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Where each pixel comes from if three points near the corners move by up to `shift` pixels."""
    reach = min(height, width) // 3
    y, x = height // 2, width // 2
    points = torch.tensor([[x + reach, y + reach], [x + reach, y - reach], [x - reach, y - reach]]).double()
    moved = points + (draws.uniform(3, 2).double() * 2 - 1) * shift
    from_moved = torch.linalg.solve(F.pad(moved, (0, 1), value=1.0), points.expand(len(moved), -1, -1))
    rows, columns = _pixels(height, width)
    a, b, c = from_moved[:, :, :, None, None].unbind(1)
    place = a * columns + b * rows + c
    return place[:, 1], place[:, 0]


def _sampled(levels: Tensor, rows: Tensor, columns: Tensor, mirror: bool) -> Tensor:
    """Bilinear values at (rows, columns); outside, the picture is mirrored at or beside its last pixel."""
    height, width = levels.shape[2:]
    if mirror:
        grid = torch.stack([columns * 2 / (width - 1) - 1, rows * 2 / (height - 1) - 1], dim=3)
    else:
        grid = torch.stack([(columns * 2 + 1) / width - 1, (rows * 2 + 1) / height - 1], dim=3)
    return F.grid_sample(levels, grid, mode="bilinear", padding_mode="reflection", align_corners=mirror)


def pixelate(images: Tensor, part: float, draws: Draws) -> Tensor:
    """Means over boxes, of which `part` of the side has room, shown as boxes again."""
    height, width = images.shape[2:]
    rows, columns = (_members(side, int(side * part)) for side in (height, width))
    means = rounded((images.float() @ columns) / columns.sum(dim=0))  # sums of few bytes: exact in any order
    means = rounded((rows.T @ means.float()) / rows.sum(dim=0)[:, None])  # Pillow's order, rounded each time
    down, across = (_members(int(side * part), side).argmax(dim=0) for side in (height, width))
    return means.index_select(3, across).index_select(2, down)


@lru_cache(maxsize=64)
def _members(pixels: int, boxes: int) -> Tensor:
    """Which pixels Pillow's BOX filter puts into which box, 0 or 1: (pixels, boxes).

    Those with their centre inside, or the nearest where boxes are smaller than pixels. A centre on a border
    falls to the side that double precision gives it in Pillow, so the formula is Pillow's.
    """
    member, scale = torch.zeros(pixels, boxes), pixels / boxes
    large = max(scale, 1.0)
    for box in range(boxes):
        centre = (box + 0.5) * scale
        first, after = int(centre - 0.5 * large + 0.5), int(centre + 0.5 * large + 0.5)
        for pixel in range(max(first, 0), min(after, pixels)):
            member[pixel, box] = -0.5 < (pixel - centre + 0.5) * (1.0 / large) <= 0.5
    return member


def jpeg_compression(images: Tensor, quality: int, draws: Draws) -> Tensor:
    """Through Pillow's encoder and back."""
    pillow, channels = _pillow(), images.shape[1]
    pictures = images.permute(0, 2, 3, 1).contiguous().numpy()
    coded = np.empty_like(pictures)
    for picture, after in zip(pictures, coded, strict=True):
        file = io.BytesIO()
        pillow.fromarray(picture if channels == 3 else picture[:, :, 0]).save(file, "JPEG", quality=quality)
        after.reshape(after.shape if channels == 3 else after.shape[:2])[:] = pillow.open(file)
    return torch.from_numpy(coded).permute(0, 3, 1, 2)


def _pillow() -> Any:
    return extra_module("PIL.Image", "jpeg_compression needs Pillow", "corrupt")
