"""Weather: something between the camera and the picture."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from auglabel.corrupt.draws import Draws
from auglabel.corrupt.filters import motion_blurred, zoomed
from auglabel.corrupt.frost import frost_crops
from auglabel.corrupt.levels import as_bytes, grey, rounded


def snow(
    images: Tensor, figures: tuple[float, float, float, float, int, float, float], draws: Draws
) -> Tensor:
    """Flakes drawn out by the wind, and again turned by half a turn, before a paler picture."""
    mean, deviation, zoom, least, radius, sigma, share = figures
    flakes = zoomed(draws.normal(1, *images.shape[2:]) * deviation + mean, zoom)
    flakes = as_bytes(torch.where(flakes < least, 0, flakes) * 255).float()
    degrees = draws.uniform(1)[:, 0] * 90 - 135
    flakes = rounded(motion_blurred(flakes, radius, sigma, degrees)).float()
    levels = images.float()
    pale = torch.maximum(levels, grey(levels) * 1.5 + 127.5)
    return as_bytes(levels * share + pale * (1 - share) + flakes + flakes.rot90(2, (2, 3)))


def frost(images: Tensor, figures: tuple[float, float], draws: Draws, textures: Sequence[Tensor]) -> Tensor:
    """A random part of one of the textures, laid over."""
    which, place = draws.whole(0, len(textures), 1)[:, 0], draws.uniform(2)
    height, width = images.shape[2:]
    ice = frost_crops(textures, height, width, which, place)
    ice = grey(ice.float()) if images.shape[1] == 1 else ice
    return as_bytes(images * figures[0] + ice * figures[1])


def fog(images: Tensor, figures: tuple[float, float], draws: Draws) -> Tensor:
    """A cloud is added, and the picture dimmed so that it stays in range."""
    amount, decay = figures
    height, width = images.shape[2:]
    cloud = _plasma(draws, 1 << (max(height, width) - 1).bit_length(), decay)[:, :height, :width]
    brightest = images.amax(dim=(1, 2, 3), keepdim=True).float()
    misty = cloud[:, None] * (255 * amount) + images
    return as_bytes(misty * (brightest / (brightest + 255 * amount)))


def _plasma(draws: Draws, side: int, decay: float) -> Tensor:
    """Diamond-square clouds (N, side, side) in [0, 1], which go on at the opposite edge."""
    cloud = torch.zeros(len(draws), side, side)
    noise = draws.uniform(side, side) * 2 - 1
    step, wobble = side, 100.0
    while step > 1:
        half, swing = step // 2, wobble * wobble
        corners, centres = cloud[:, ::step, ::step], cloud[:, half::step, half::step]
        pairs = corners + corners.roll(-1, 1)
        _settle(centres, pairs + pairs.roll(-1, 2), noise[:, half::step, half::step], swing)
        beside = corners + corners.roll(-1, 2) + centres + centres.roll(1, 1)
        _settle(cloud[:, ::step, half::step], beside, noise[:, ::step, half::step], swing)
        above = corners + corners.roll(-1, 1) + centres + centres.roll(1, 2)
        _settle(cloud[:, half::step, ::step], above, noise[:, half::step, ::step], swing)
        step, wobble = half, wobble / decay
    cloud -= cloud.amin(dim=(1, 2), keepdim=True)
    return cloud / cloud.amax(dim=(1, 2), keepdim=True)


def _settle(points: Tensor, four: Tensor, noise: Tensor, swing: float) -> None:
    """Set `points` to the mean of the four around each, moved by up to `swing`."""
    points.copy_(four / 4 + noise * swing)
