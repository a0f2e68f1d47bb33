"""Pad, crop and flip: all that plain training does, and what comes before every other augmentation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from auglabel.augment.base import Augmentation
from auglabel.distance import DistanceGrid
from auglabel.util.checks import require_whole
from auglabel.util.randomness import drawing_device, to_device
from auglabel.view import View


class Clean(Augmentation):
    """Zero-pad, crop back to size at random, flip half of the images; the distance is zero.

    The defaults are the paper's for CIFAR. `images = Clean()(images, labels).images` serves before
    another augmentation in training; validation images are neither cropped nor flipped.
    """

    def __init__(self, pad: int = 2, flip: bool = True) -> None:
        require_whole("pad", pad, 0)
        self.pad = pad
        self.flip = flip
        self.grid = DistanceGrid((1,))

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        moved = crop_and_flip(images, self.pad, self.flip, generator)
        return View(moved, labels, distance.bucket, torch.zeros_like(distance.strength))


def crop_and_flip(images: Tensor, pad: int, flip: bool, generator: Generator | None = None) -> Tensor:
    """Each image shifted by up to `pad` pixels either way, zeros coming in, and mirrored at random."""
    n, (height, width) = len(images), images.shape[2:]
    source = drawing_device(images.device, generator)
    if pad:
        shift = torch.randint(2 * pad + 1, (2, n), device=source, generator=generator)
        top, left = to_device(shift, images.device)
        padded = F.pad(images, (pad, pad, pad, pad))
        windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # a view: every place a crop may start
        images = windows[torch.arange(n, device=images.device), :, top, left]
    if flip:
        mirrored = torch.randint(2, (n, 1, 1, 1), device=source, generator=generator) == 1
        images = torch.where(to_device(mirrored, images.device), images.flip(3), images)
    return images if pad or flip else images.clone()
