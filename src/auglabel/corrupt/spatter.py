"""Spatter: drops of water, or mud, on the lens. OpenCV finds the drops' edges and shades them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.corrupt.draws import Draws
from auglabel.corrupt.filters import blurred
from auglabel.corrupt.levels import as_bytes, grey
from auglabel.util.extras import extra_module

WATER, MUD = (175, 238, 238), (63, 42, 20)
EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], dtype=np.float32)


def spatter(images: Tensor, figures: tuple[float, float, float, float, float, int], draws: Draws) -> Tensor:
    mean, deviation, sigma, least, strength, mud = figures
    liquid = blurred(draws.normal(1, *images.shape[2:]).double() * deviation + mean, sigma)
    if mud:
        cover = blurred(liquid > least, strength)
        cover = torch.where(cover < 0.8, 0, cover)
        return as_bytes(images * (1 - cover) + _colour(images, MUD) * cover)
    # Above white the published code starts again at black.
    drops = as_bytes(torch.where(liquid < least, 0, liquid) * 255 % 256)
    shaded = torch.stack([_shaded(drop) for drop in drops[:, 0].numpy()])[:, None]
    return as_bytes(_colour(images, WATER) * shaded * strength + images)


def _colour(images: Tensor, colour: tuple[int, int, int]) -> Tensor:
    """(1, C, 1, 1), as grey where the pictures are."""
    levels = torch.tensor(colour, dtype=torch.float32)[None, :, None, None]
    return grey(levels) if images.shape[1] == 1 else levels


def _shaded(drop: npt.NDArray[np.uint8]) -> Tensor:
    """How much light the drops add, 0 to 1: more away from their edges, with a slope as of a low relief."""
    cv2 = opencv()
    away = cv2.distanceTransform(255 - cv2.Canny(drop, 50, 150), cv2.DIST_L2, 5)
    away = cv2.blur(np.minimum(away, 20), (3, 3)).astype(np.uint8)
    relief = cv2.filter2D(cv2.equalizeHist(away), cv2.CV_8U, EMBOSS)
    light = drop * cv2.blur(relief, (3, 3)).astype(np.float32)
    return torch.from_numpy(light / max(float(light.max()), 1.0))  # no drops: no light


def opencv() -> Any:
    return extra_module("cv2", "spatter needs OpenCV", "corrupt")
