"""corrupt(): one corruption at one severity on a batch of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auglabel.corrupt import blur, digital, noise, weather
from auglabel.corrupt.draws import Draws
from auglabel.corrupt.figures import PARAMETERS, SUITES
from auglabel.corrupt.frost import textures
from auglabel.corrupt.spatter import spatter
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import entry, kind_of, require_images, require_whole

SMALLEST = 16  # pixels of a side
SHRINK = {"cifar": 0.2, "imagenet": 1.0}  # of the frost
TOGETHER = 2**17  # values worked on at a time: memory stays small, and most of it in the cache

CORRUPTIONS: dict[str, Callable[[Tensor, Any, Draws], Tensor]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "fog": weather.fog,
    "brightness": digital.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": digital.saturate,
}


def corrupt(
    images: Tensor,
    name: str,
    severity: int,
    *,
    seed: int = 0,
    index: Tensor | Sequence[int] | None = None,
    parameters: str | None = None,
    frost: Path | str | None = None,
) -> Tensor:
    """`images` (N, C, H, W), bytes or in [0, 1], as the corruption leaves them, in the same type.

    Severity 1 to 5. A picture depends on (seed, name, severity, its index) alone, whatever else is in the
    batch; `index` (N,) is 0 .. N - 1 if not given. `parameters`: cifar, imagenet, or None for what fits the
    size. `frost` is the directory of the published frost photographs; without it textures of our own serve.

    Corrupted pictures are made of bytes: values in [0, 1] are rounded to bytes first, and come back as
    bytes / 255, without gradients. The work is done on the CPU, whatever the device of `images`.
    """
    images = require_images("images", images.detach() if isinstance(images, Tensor) else images)
    _require(name, severity, seed, images.shape)
    count, channels, height, width = images.shape
    parameters = parameters or parameters_for(height, width)
    figures = entry("set of parameters", PARAMETERS, parameters)[name][severity - 1]
    rows = list(range(count)) if index is None else _numbers(index, count)
    apply = _function(name, parameters, None if frost is None else Path(frost))
    pixels = images.cpu()
    pixels = (pixels if pixels.dtype == torch.uint8 else (pixels * 255).round().to(torch.uint8)).contiguous()
    done = torch.empty_like(pixels)
    most = max(1, TOGETHER // (channels * height * width))
    for start in range(0, count, most):
        some = slice(start, start + most)
        done[some] = apply(pixels[some], figures, Draws(seed, name, severity, rows[some]))
    done = done.to(images.device)
    return done if images.dtype == torch.uint8 else done.to(images.dtype) / 255


def _require(name: str, severity: int, seed: int, shape: Sequence[int]) -> None:
    suite([name])
    if name in SUITES:
        raise UserError(f'"{name}" is a suite of {len(SUITES[name])} corruptions: name one of them.')
    require_whole("severity", severity, 1, 5)
    require_whole("seed", seed, 0)
    _, channels, height, width = shape
    if channels not in (1, 3):
        raise UserError(f"corrupt takes pictures of 1 or 3 channels, got {channels}.")
    require_large(height, width)


def require_large(height: int, width: int) -> None:
    """The smallest picture that every corruption can be made of."""
    if min(height, width) < SMALLEST:
        raise UserError(
            f"corrupt needs pictures of at least {SMALLEST} x {SMALLEST} pixels, got {width} x {height}."
        )


def _numbers(index: Tensor | Sequence[int], count: int) -> list[int]:
    """One whole number per picture."""
    listed = torch.as_tensor(index)
    if listed.is_floating_point() or listed.is_complex() or listed.dtype == torch.bool:
        raise UserTypeError(f"index must hold whole numbers, got {kind_of(listed)}.")
    if listed.shape != (count,) or bool((listed < 0).any()):
        wrong = f"{kind_of(listed)}" if listed.shape != (count,) else f"{int(listed.min())}"
        raise UserError(f"index must have one number of at least 0 per picture, {count}, got {wrong}.")
    return [int(row) for row in listed.tolist()]


def _function(name: str, parameters: str, photographs: Path | None) -> Callable[[Tensor, Any, Draws], Tensor]:
    if name == "frost":
        return partial(weather.frost, textures=textures(photographs, SHRINK[parameters]))
    return CORRUPTIONS[name]


def parameters_for(height: int, width: int) -> str:
    """cifar for pictures with a side below 64 pixels, imagenet for others."""
    return "cifar" if min(height, width) < 64 else "imagenet"


def suite(names: str | Sequence[str]) -> tuple[str, ...]:
    """The corruptions meant by names of suites or corruptions, in a list or with commas between."""
    listed = [part.strip() for part in names.split(",")] if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise UserTypeError(f"names of corruptions or suites were expected, got {kind_of(names)}.")
    if not listed or "" in listed:
        raise UserError(f"at least one corruption was expected and no empty name, got {kind_of(names)}.")
    known = {name: (name,) for name in SUITES["all"]} | SUITES
    return tuple(dict.fromkeys(name for part in listed for name in entry("corruption", known, part)))
