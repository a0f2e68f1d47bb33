"""Blur: values spread over their neighbours."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from auglabel.corrupt.draws import Draws
from auglabel.corrupt.filters import blurred, correlated, enlarged, gaussian_matrix, motion_blurred, zoom
from auglabel.corrupt.levels import as_bytes, rounded


def gaussian_blur(images: Tensor, sigma: float, draws: Draws) -> Tensor:
    return as_bytes(blurred(images, sigma))


def defocus_blur(images: Tensor, figures: tuple[float, float], draws: Draws) -> Tensor:
    """A disk of light in place of every point."""
    return as_bytes(correlated(images, disk(*figures)))


@lru_cache(maxsize=16)
def disk(radius: float, softness: float) -> Tensor:
    """A disk whose edge a small Gaussian of deviation `softness` softens; float64, odd by odd."""
    reach, soft = (8, 1) if radius <= 8 else (int(radius), 2)
    across = torch.arange(-reach, reach + 1)
    flat = (across[:, None] ** 2 + across**2 <= radius**2).double()
    side = 2 * reach + 1
    matrix = gaussian_matrix(side, softness, soft, "mirror")
    kernel = matrix @ (flat / flat.sum()) @ matrix.T
    spare = int(kernel.any(dim=0).int().argmax())  # columns of zeros
    return kernel[spare : side - spare, spare : side - spare]


def motion_blur(images: Tensor, figures: tuple[int, float], draws: Draws) -> Tensor:
    degrees = draws.uniform(1)[:, 0] * 90 - 45
    return rounded(motion_blurred(images.float(), *figures, degrees))


def zoom_blur(images: Tensor, figures: tuple[int, float], draws: Draws) -> Tensor:
    """The mean of the picture and of its zooms, the first of which is the picture again."""
    count, step = figures
    levels = images.double().contiguous(memory_format=torch.channels_last)  # twice as fast there
    factors = [1 + number * step for number in range(1, count)]
    same = Counter(tuple(zoom(side, factor) for side in images.shape[2:]) for factor in factors)
    total = levels * 2
    for (down, across), times in same.items():  # in small pictures, several factors come to the same
        total.add_(enlarged(levels, down, across), alpha=times)
    return as_bytes(total / (count + 1))


def glass_blur(images: Tensor, figures: tuple[float, int, int], draws: Draws) -> Tensor:
    """Blurred, pixels taken from near by, blurred again."""
    sigma, reach, times = figures
    softened = as_bytes(blurred(images, sigma))
    count, channels, height, width = images.shape
    source = torch.arange(count * height * width)
    for _ in range(times):
        source = source.gather(0, _taken(draws, reach, height, width))
    place = (source % (height * width)).view(count, 1, -1)
    pixels = softened.flatten(2).gather(2, place.expand(-1, channels, -1))
    return as_bytes(blurred(pixels.view_as(images), sigma))


def _taken(draws: Draws, reach: int, height: int, width: int) -> Tensor:
    """Where each pixel's value comes from after one pass, both counted through the batch: (N H W,).

    The pass goes from the last pixel to the first, and each takes the *present* value of a pixel near by. One
    that lies later in the picture has had its turn and holds what it took itself, so the question goes on to
    where that came from. Each round of asking doubles the way gone; who has an answer asks no more.
    """
    offset = (draws.uniform(2, height, width) * (2 * reach)).long() - reach
    pixel = torch.arange(height * width).view(height, width)
    asked = pixel.repeat(len(draws), 1, 1)
    middle = (slice(None), slice(reach + 1, height - reach + 1), slice(reach + 1, width - reach + 1))
    asked[middle] += offset[:, 0][middle] * width + offset[:, 1][middle]
    asked += torch.arange(len(draws))[:, None, None] * (height * width)
    places = asked.flatten().numpy()  # numpy picks by index several times faster than torch
    source = np.where(places > np.arange(len(places)), places, ~places)  # ~: the value it had before the pass
    asking = np.flatnonzero(source >= 0)
    while len(asking):
        found = source[source[asking]]
        source[asking] = found
        asking = asking[found >= 0]
    return torch.from_numpy(~source)
