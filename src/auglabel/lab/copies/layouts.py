"""The two layouts of corrupted copies, written block by block: arrays as CIFAR-C, folders as ImageNet-C.

A block is some images at one severity of one type. Any process may do any block, and what is done is known by
the files that are there.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.corrupt import SEVERITIES
from auglabel.data.corrupted import folder_name
from auglabel.data.corrupted_files import Mapped, mapped
from auglabel.data.decode import Streamed
from auglabel.data.download import blocks as blocks_of
from auglabel.data.download import md5
from auglabel.data.files import Files
from auglabel.data.picture import pillow
from auglabel.data.source import InMemory, Source
from auglabel.lab.process.workers import AGAIN
from auglabel.util.atomic_write import write_atomically

MOST = 500  # images in a block, and fewer of large ones
QUALITY = 85  # of JPEG, as in ImageNet-C


class ImageBlock(NamedTuple):
    """Rows first .. last - 1 at one severity of one type."""

    name: str
    severity: int
    first: int
    last: int


class Writer:
    """Writes blocks; it goes to every process once."""

    def __init__(
        self, out: Path, source: Source, count: int, classes: Sequence[str], move: Callable[..., Tensor]
    ) -> None:
        self.out, self.source, self.count, self.move = out, source, count, move
        self.size = min(MOST, max(16, 2**23 // math.prod(source.shape)))  # images of a block

    def blocks(self, name: str, severities: Sequence[int]) -> list[ImageBlock]:
        edges = [(first, min(first + self.size, self.count)) for first in range(0, self.count, self.size)]
        return [ImageBlock(name, severity, *edge) for severity in severities for edge in edges]

    def write(self, block: ImageBlock) -> int:
        """Make what is missing of a block; how many pictures that was."""
        raise NotImplementedError

    def finish(self, blocks: Sequence[ImageBlock]) -> None:
        """All blocks of a type are written."""

    def done(self, blocks: Sequence[ImageBlock]) -> bool:
        """Whether nothing is left to do of the blocks of a type."""
        raise NotImplementedError

    def md5(self, name: str) -> str | None:
        """The MD5 of the file of a corruption type or of "labels"; None for a layout of many files."""
        return None

    def share(self) -> None:
        """Put images in memory into a file, for processes that would otherwise each hold them all."""
        if not isinstance(self.source, InMemory):
            return
        file = self.out / ".parts" / "images.npy"
        images = self.source.images[: self.count].permute(0, 2, 3, 1)
        with writing(file):
            parts = (_contiguous(some) for some in images.split(256))
            write_atomically(file, lambda path: _save(path, tuple(images.shape), np.uint8, parts))
        self.source = Mapped(file, 0, self.source.labels[: self.count])

    def made(self, block: ImageBlock, rows: Sequence[int]) -> npt.NDArray[np.uint8]:
        """The copies (B, H, W, C) of `rows`."""
        index = torch.tensor(rows)
        return _contiguous(
            self.move(self.source.fetch(index), block.name, block.severity, index=index).permute(0, 2, 3, 1)
        )


class AsArrays(Writer):
    """<type>.npy, uint8 (5 N, H, W, C), joined from a file per block, and labels.npy, (5 N,)."""

    def __init__(self, out: Path, source: Source, count: int, *rest: Any) -> None:
        super().__init__(out, source, count, *rest)
        file, labels = out / "labels.npy", source.labels[:count].repeat(len(SEVERITIES)).numpy()
        if not (_whole(file, labels.shape, np.int64) and np.array_equal(mapped(file), labels)):
            with writing(file):
                write_atomically(file, lambda path: _save(path, labels.shape, np.int64, [labels]))

    def done(self, blocks: Sequence[ImageBlock]) -> bool:
        return _whole(self.out / f"{blocks[0].name}.npy", self._shape(len(SEVERITIES) * self.count), np.uint8)

    def write(self, block: ImageBlock) -> int:
        file = self._part(block)
        if _whole(file, self._shape(block.last - block.first), np.uint8):
            return 0
        images = self.made(block, range(block.first, block.last))
        with writing(file):
            write_atomically(file, lambda path: _save(path, images.shape, np.uint8, [images]))
        return len(images)

    def md5(self, name: str) -> str:
        return md5(blocks_of(self.out / f"{name}.npy"))

    def finish(self, blocks: Sequence[ImageBlock]) -> None:
        file, parts = self.out / f"{blocks[0].name}.npy", [self._part(block) for block in sorted(blocks)]
        shape = self._shape(len(SEVERITIES) * self.count)
        with writing(file):
            images = (np.load(part, allow_pickle=False) for part in parts)
            write_atomically(file, lambda path: _save(path, shape, np.uint8, images))
            for part in parts:
                part.unlink()

    def _shape(self, count: int) -> tuple[int, ...]:
        channels, height, width = self.source.shape
        return count, height, width, channels

    def _part(self, block: ImageBlock) -> Path:
        return self.out / ".parts" / f"{block.name}-{block.severity}-{block.first}-{block.last}.npy"


class AsFolders(Writer):
    """<type>/<severity>/<class>/<image>.JPEG, named as the image's file is, or by its row."""

    def __init__(self, out: Path, source: Source, count: int, classes: Sequence[str], *rest: Any) -> None:
        super().__init__(out, source, count, classes, *rest)
        within = [folder_name(classes[label]) for label in source.labels[:count].tolist()]
        stems = file_names(source, count) or [f"{row:0{len(str(count - 1))}d}" for row in range(count)]
        self.names = [f"{folder}/{stem}" for folder, stem in zip(within, stems, strict=True)]

    def done(self, blocks: Sequence[ImageBlock]) -> bool:
        return not any(self._missing(block) for block in blocks)

    def write(self, block: ImageBlock) -> int:
        missing = self._missing(block)
        if not missing:
            return 0
        torn = self.out / ".parts" / f".{os.getpid()}.partial"
        for path, image in zip(missing.values(), self.made(block, list(missing)), strict=True):
            content = io.BytesIO()
            pillow().fromarray(image[..., 0] if image.shape[2] == 1 else image).save(
                content, "JPEG", quality=QUALITY
            )
            with writing(path):
                torn.write_bytes(content.getbuffer())
                path.parent.mkdir(parents=True, exist_ok=True)
                torn.replace(path)
        return len(missing)

    def _missing(self, block: ImageBlock) -> dict[int, Path]:
        """The rows whose picture is not there, with its path."""
        top = self.out / block.name / str(block.severity)
        paths = {row: top / f"{self.names[row]}.JPEG" for row in range(block.first, block.last)}
        return {row: path for row, path in paths.items() if _empty(path)}


def file_names(source: Source, count: int) -> list[str] | None:
    """What the images' files are called, without their endings; None if they have none, or share some."""
    if not (isinstance(source, Streamed) and isinstance(source.contents, Files)):
        return None
    stems = [PurePosixPath(name).stem for name in source.contents.names[:count]]
    each = set(zip(source.labels.tolist(), stems, strict=False))
    return stems if len(each) == count else None


@contextmanager
def writing(path: Path, way_out: str = AGAIN) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(f"{path} cannot be written ({error.strerror or error}): {way_out}.") from None


def _whole(file: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> bool:
    """Whether an .npy file is there as `_save` leaves it: by its header and its size, not its values."""
    if not file.exists():
        return False
    try:
        found = mapped(file)
    except ValueError:
        return False
    size = getattr(found, "offset", 0) + found.nbytes  # the header's and the values'
    alike = found.dtype == dtype and found.shape == shape and found.flags.c_contiguous
    return alike and file.stat().st_size == size


def _empty(path: Path) -> bool:
    """Not there, or without content, as the name of a new file may be after a power loss."""
    try:
        return path.stat().st_size == 0
    except OSError:
        return True


def _contiguous(images: Tensor) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(images.numpy())


def _save(
    path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, parts: Iterable[npt.NDArray[Any]]
) -> None:
    """An .npy file of `parts` one after the other, one in memory at a time."""
    with path.open("wb") as file:
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(part.data)
