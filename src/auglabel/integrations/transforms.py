"""Transforms of other libraries as kinds of one augmentation: torchvision, albumentations, any function.

    Transforms({"darken": lambda image, strength: image * (1 - strength)})
    TorchvisionTransforms({"blur": lambda strength: v2.GaussianBlur(5, 0.1 + 2 * strength)})
    AlbumentationsTransforms({"noise": lambda strength: A.GaussNoise((strength / 5, strength / 5), p=1)})

Images are moved one by one, as these libraries do. Nothing of them is imported here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auglabel.augment.base import Augmentation
from auglabel.distance import DistanceGrid
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import kind_of, require_whole
from auglabel.util.randomness import drawing_device
from auglabel.view import View

Functions = Mapping[str, Callable[..., Any]]


class Transforms(Augmentation):
    """Functions of an image (C, H, W) and a strength: one per image, uniform over them, as is the level.

    A function gets the strength level / levels, from 1 / levels to 1; `levels` may differ by name, and is 1
    for what has no strength. Bytes come as bytes, numbers in [0, 1] as float32 or float64, and results are
    cut to that range. Whatever a function draws from torch, numpy or random is decided by the generator.
    """

    def __init__(self, functions: Functions, levels: int | Mapping[str, int] = 10) -> None:
        if not isinstance(functions, Mapping) or not functions:
            raise UserTypeError(
                f"{type(self).__name__} takes names with functions, got {kind_of(functions)}."
            )
        for name, function in functions.items():
            if not callable(function):
                raise UserTypeError(f'"{name}" must be a function, got {kind_of(function)}.')
        if isinstance(levels, Mapping):
            if levels.keys() != functions.keys():
                raise UserError(
                    f"levels must be for {', '.join(functions)}, but are for {', '.join(levels)}."
                )
        else:
            require_whole("levels", levels, 1)
            levels = dict.fromkeys(functions, levels)
        self.functions = dict(functions)
        self.grid = DistanceGrid(tuple(levels[name] for name in functions), tuple(functions))

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        source = drawing_device(images.device, generator)
        seeds = torch.randint(2**31, (len(images),), device=source, generator=generator).tolist()
        levels = torch.tensor(self.grid.levels, device=images.device)[distance.kind]
        strength = self.grid.level(distance) / levels
        moved = torch.empty_like(images)
        with _own_streams(images.device):
            rows = zip(images, distance.kind.tolist(), strength.double().tolist(), seeds, strict=True)
            for row, (image, kind, strong, seed) in enumerate(rows):
                moved[row] = self._move(image, self.grid.kinds[kind], strong, seed)
        return View(moved, labels, distance.bucket, strength)

    def _move(self, image: Tensor, name: str, strength: float, seed: int) -> Tensor:
        _start_streams(seed, image.device)
        half = image.dtype in (torch.float16, torch.bfloat16)
        moved = self._call(image.float() if half else image.clone(), name, strength, seed)
        if not isinstance(moved, Tensor) or moved.shape != image.shape:
            raise UserError(
                f'"{name}" must keep the image\'s shape {tuple(image.shape)}, got {kind_of(moved)}.'
            )
        return moved if image.dtype == torch.uint8 else moved.clamp(0, 1)

    def _call(self, image: Tensor, name: str, strength: float, seed: int) -> Tensor:
        moved: Tensor = self.functions[name](image, strength)
        return moved


class TorchvisionTransforms(Transforms):
    """Functions of a strength that build a transform, which takes an image (C, H, W) as a tensor.

    A transform is built once per level. One with a probability must have 1: the bucket says it was applied.
    """

    def __init__(self, factories: Functions, levels: int | Mapping[str, int] = 10) -> None:
        super().__init__(factories, levels)
        self._built: dict[tuple[str, float], Any] = {}

    def _transform(self, name: str, strength: float) -> Any:
        if (name, strength) not in self._built:
            built: Any = self.functions[name](strength)
            if not callable(built):
                raise UserTypeError(f'"{name}" must build a transform, got {kind_of(built)}.')
            if getattr(built, "p", 1) != 1:
                raise UserError(
                    f'"{name}" builds a transform that is applied with probability {built.p}, but its bucket '
                    "says that it was: pass p=1."
                )
            self._built[name, strength] = built
        return self._built[name, strength]

    def _call(self, image: Tensor, name: str, strength: float, seed: int) -> Tensor:
        moved: Tensor = self._transform(name, strength)(image)
        return moved


class AlbumentationsTransforms(TorchvisionTransforms):
    """The same for transforms of albumentations, which get bytes (H, W, C); numbers are rounded to bytes."""

    def _call(self, image: Tensor, name: str, strength: float, seed: int) -> Tensor:
        transform = self._transform(name, strength)
        transform.set_random_seed(seed)
        pixels = image if image.dtype == torch.uint8 else (255 * image).round().to(torch.uint8)
        array = np.ascontiguousarray(pixels.permute(1, 2, 0).cpu().numpy())
        found = np.ascontiguousarray(transform(image=array)["image"])
        if found.size != array.size:
            raise UserError(f'"{name}" must keep the image\'s shape {array.shape}, got one of {found.shape}.')
        moved = torch.from_numpy(found.reshape(array.shape)).permute(2, 0, 1).to(image.device)
        return moved if image.dtype == torch.uint8 else moved.to(image.dtype) / 255


@contextmanager
def _own_streams(device: torch.device) -> Iterator[None]:
    """Restore the random states of torch, numpy and random afterwards."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    accelerators = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=accelerators):
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def _start_streams(seed: int, device: torch.device) -> None:
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
