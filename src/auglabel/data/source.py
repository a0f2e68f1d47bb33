"""What every data set looks like to a training loop: labelled images that are fetched by row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from auglabel.errors import UserTypeError
from auglabel.util.checks import kind_of, require_integers, require_range, require_same_length

MOST_CLASSES = 2**20  # where they are counted off a file's labels: one wrong number would make billions


class Source:
    """Labelled images, all of one shape."""

    labels: Tensor  # (N,) int64
    shape: tuple[int, int, int]  # channels, height, width
    streams = False  # True: fetch decodes files, so worker processes pay

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        """The images (B, C, H, W) uint8 of `rows` (B,).

        `draw` names a random stream: a source with random crops takes those of row r from (draw, r) alone,
        so the same picture comes whatever the batch, worker or process. None: the plain picture.
        """
        raise NotImplementedError

    def index(self, rows: Tensor) -> Tensor:
        """What the rows of a part are called in the source that it is a part of."""
        return rows


class InMemory(Source):
    """Images that are there already; `draw` changes nothing."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        require_same_length("InMemory", images=images, labels=labels)
        require_integers("labels", labels)
        if images.dim() != 4 or images.dtype != torch.uint8:
            raise UserTypeError(f"images must be uint8 of shape (N, C, H, W), got {kind_of(images)}.")
        self.images, self.labels = images, labels
        channels, height, width = images.shape[1:]
        self.shape = (channels, height, width)

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.images[rows]


class Subset(Source):
    """The given rows of another source, which keep their random streams."""

    def __init__(self, source: Source, rows: Tensor) -> None:
        require_range("rows", rows, len(source), "images")
        self.source, self.rows = source, rows
        self.labels = source.labels[rows]
        self.shape, self.streams = source.shape, source.streams

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.source.fetch(self.rows[rows], draw)

    def index(self, rows: Tensor) -> Tensor:
        return self.source.index(self.rows[rows])


@dataclass(frozen=True)
class DataSet:
    """A training source, its test source if there is one, and what is known of both."""

    name: str
    classes: tuple[str, ...]
    train: Source
    test: Source | None
    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    checksum: str  # of images and labels in order: tells a run that its data changed
    notes: tuple[str, ...] = ()  # what a user should know


def in_memory(
    name: str,
    classes: Sequence[str],
    train: InMemory,
    test: InMemory | None,
    *,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    notes: Sequence[str] = (),
) -> DataSet:
    """A data set that is in memory whole; without a mean and std they are measured on the training images."""
    measured = statistics(train.images) if mean is None or std is None else (mean, std)
    parts = [train] if test is None else [train, test]
    return DataSet(
        name,
        tuple(classes),
        train,
        test,
        tuple(measured[0]),
        tuple(measured[1]),
        checksum(parts),
        tuple(notes),
    )


def checksum(parts: Sequence[InMemory]) -> str:
    """SHA-256 over the shapes, images and labels of all parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(tuple(part.images.shape)).encode())
        digest.update(np.ascontiguousarray(part.images.numpy()).data)
        digest.update(part.labels.numpy().astype("<i8").data)
    return digest.hexdigest()


def statistics(images: Tensor, most: int = 10_000) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel, pixels in [0, 1], of at most `most` evenly spaced images."""
    rows = torch.linspace(0, len(images) - 1, min(most, len(images))).round().long()
    counts = torch.zeros(images.shape[1], 256, dtype=torch.float64)
    for chunk in rows.split(256):  # a histogram: exact, and small whatever the images' size
        for channel, pixels in enumerate(images[chunk].transpose(0, 1)):
            counts[channel] += torch.bincount(pixels.reshape(-1).int(), minlength=256)
    values = torch.arange(256, dtype=torch.float64) / 255
    share = counts / counts.sum(dim=1, keepdim=True)
    mean = share @ values
    std = (share * (values - mean[:, None]) ** 2).sum(dim=1).sqrt()
    return tuple(mean.tolist()), tuple(std.clamp(min=1 / 255).tolist())  # one colour: no division by zero
