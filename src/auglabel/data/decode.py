"""Image files as sources: decoded into memory at once, or one by one as they are fetched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.data.fast_crop import fast_crop
from auglabel.data.picture import BrokenImage, Frame, Pixels, decoding, has_alpha, is_grey, opened, pillow
from auglabel.data.source import Source
from auglabel.errors import UserError

CHUNK = 128  # images per task of a thread
SHOWN = 3  # names in a note
Crops = Literal["exact", "fast"]
SKIP = "--data.skip_broken true leaves such images out"


class Contents(Protocol):
    """Image files by row."""

    def __len__(self) -> int: ...

    def path(self, row: int) -> str: ...

    def read(self, row: int) -> bytes: ...


@dataclass(frozen=True)
class Decoded:
    """All readable images of `rows`, and what a user should know of them."""

    images: npt.NDArray[np.uint8]  # (N, C, H, W)
    rows: list[int]
    notes: list[str]


@dataclass
class _Seen:
    """What one thread met."""

    grey: list[int] = field(default_factory=list)
    alpha: list[int] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OneSize:
    """The shape all images must have, and the image it was taken from."""

    shape: tuple[int, int, int]  # channels, height, width
    path: str

    def require(self, shape: Sequence[int], path: str) -> None:
        if tuple(shape) != self.shape:
            first, other = (f"{width} x {height}" for _, height, width in (self.shape, shape))
            raise UserError(
                f"images must be of one size, but {self.path} has {first} pixels and {path} has {other}: "
                "--data.size 32, for example, brings all to 32 x 32."
            )


class Streamed(Source):
    """Images decoded when they are fetched; with `crops`, a draw gives random resized ones.

    "fast" crops are those of `fast_crop`. Images without a draw are exact, whatever the crops.
    """

    streams = True

    def __init__(
        self, contents: Contents, labels: Tensor, frame: Frame, one_size: OneSize, crops: Crops | None
    ) -> None:
        self.contents, self.labels = contents, labels
        self.frame, self.one_size, self.shape, self.crops = frame, one_size, one_size.shape, crops

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        images = np.empty((len(rows), *self.shape), np.uint8)
        for image, row in zip(images, rows.tolist(), strict=True):
            path = self.contents.path(row)
            try:
                pixels = self._pixels(self.contents.read(row), path, draw, row)
            except BrokenImage as error:
                raise _ending(error, "remove it, since streamed images are not skipped") from None
            self.one_size.require(pixels.shape, path)
            image[:] = pixels
        return torch.from_numpy(images)

    def _pixels(self, content: bytes, path: str, draw: int | None, row: int) -> Pixels:
        if draw is not None and self.crops == "fast":
            return fast_crop(content, path, self.frame, draw, row)
        picture = opened(content, path)
        with decoding(path):
            if draw is not None and self.crops is not None:
                return self.frame.random(picture, draw, row)
            return self.frame.plain(picture)


def first_size(contents: Contents, frame: Frame, skip_broken: bool) -> OneSize:
    """The shape of the first image that can be read."""
    if frame.size is not None:
        return OneSize((frame.channels, frame.size, frame.size), "")
    broken: BrokenImage | None = None
    for row in range(len(contents)):
        try:
            width, height = opened(contents.read(row), contents.path(row)).size
        except BrokenImage as error:
            if not skip_broken:
                raise _ending(error, SKIP) from None
            broken = broken or error
            continue
        return OneSize((frame.channels, height, width), contents.path(row))
    raise UserError(f"none of the {len(contents)} images can be read: {broken}")


def decode_all(
    contents: Contents, frame: Frame, one_size: OneSize, *, skip_broken: bool, either: bool
) -> Decoded:
    """All images in one array; `either` drops to one channel if every image turns out grey."""
    images = np.empty((len(contents), *one_size.shape), np.uint8)

    def work(first: int) -> _Seen:
        seen = _Seen()
        for row in range(first, min(first + CHUNK, len(contents))):
            try:
                picture = opened(contents.read(row), contents.path(row))
                with decoding(contents.path(row)):
                    pixels = frame.plain(picture)
            except BrokenImage as error:
                if not skip_broken:
                    raise _ending(error, SKIP) from None
                seen.broken[row] = contents.path(row)
                continue
            one_size.require(pixels.shape, contents.path(row))
            images[row] = pixels
            if is_grey(picture):
                seen.grey.append(row)
            if has_alpha(picture):
                seen.alpha.append(row)
        return seen

    pillow().init()  # all formats now: threads that load them at once miss some
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None)
    try:
        seen = list(pool.map(work, range(0, len(contents), CHUNK)))
    finally:
        pool.shutdown(cancel_futures=True)
    grey = sum(len(one.grey) for one in seen)
    alpha = sum(len(one.alpha) for one in seen)
    broken = {row: path for one in seen for row, path in one.broken.items()}
    rows = [row for row in range(len(contents)) if row not in broken]
    if broken:
        images = images[rows]
    if either and grey == len(rows):
        images, frame = np.ascontiguousarray(images[:, :1]), replace(frame, channels=1)
    return Decoded(images, rows, _notes(len(rows), grey, alpha, list(broken.values()), frame.channels))


def _notes(count: int, grey: int, alpha: int, broken: Sequence[str], channels: int) -> list[str]:
    notes = []
    if broken:
        more = ", ..." if len(broken) > SHOWN else ""
        images = "image" if len(broken) == 1 else "images"
        notes.append(f"{len(broken)} broken {images} skipped: {', '.join(broken[:SHOWN])}{more}")
    if channels == 3 and grey:
        notes.append(f"{grey} of {count} images are grey and were given three equal channels")
    if channels == 1 and grey < count:
        notes.append(f"{count - grey} of {count} images are in colour and were turned grey")
    if alpha:
        notes.append(f"{alpha} of {count} images are transparent in places, which was dropped")
    return notes


def _ending(error: BrokenImage, way_out: str) -> BrokenImage:
    return BrokenImage(f"{str(error).rstrip('.')}; {way_out}.")
