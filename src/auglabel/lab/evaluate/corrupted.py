"""The corrupted test images of an evaluation: made as they are needed, or read from copies on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auglabel import __version__
from auglabel.corrupt import corrupt, parameters_for, require_large
from auglabel.data.corrupted import Corrupted, corrupted
from auglabel.data.decode import Streamed
from auglabel.data.source import DataSet, Source, Subset
from auglabel.errors import UserError
from auglabel.lab.evaluate.options import Corruptions

LARGEST_KEPT = 3 * 64 * 64  # bytes of an image; larger ones would fill the disk
OWN = "give the copies of its own data set"
RESEMBLES = {"color": "saturate"}  # an operation of training, and the corruption that it is much like


class CorruptedImages(ABC):
    """Where the corrupted test images of an evaluation come from."""

    def __init__(self, options: Corruptions) -> None:
        self.options = options

    @abstractmethod
    def require(self, name: str) -> None:
        """Raise now, not after hours, if what this corruption needs is missing."""

    @abstractmethod
    def source(self, name: str, severity: int, test: Source, data: DataSet | None = None) -> Source:
        """The test images, which are those of `data`, under a corruption."""

    @abstractmethod
    def origin(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, str]:
        """Who made the images, in words; for copies also the directory."""

    def about(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, Any]:
        """What a result says of the corrupted images."""
        asked = {"suite": self.options.suite, "names": list(names)}
        return {**asked, "severities": list(self.options.severities), **self.origin(names, shape)}


def corrupted_images(options: Corruptions, cache: Path | None = None) -> CorruptedImages:
    """Copies from disk if the options name them; else images made here, kept in `cache` if it is given."""
    return MadeImages(options, cache) if options.copies is None else CopiedImages(options)


class MadeImages(CorruptedImages):
    """Images corrupted here, as they are needed."""

    def __init__(self, options: Corruptions, cache: Path | None = None) -> None:
        super().__init__(options)
        self.cache = cache
        self._decoded: Kept | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of the decoded images

    def require(self, name: str) -> None:
        self.made(name, 1, torch.zeros(1, 3, 16, 16, dtype=torch.uint8), torch.arange(1))

    def source(self, name: str, severity: int, test: Source, data: DataSet | None = None) -> Source:
        require_large(*test.shape[1:])
        if name == "frost":  # its textures are drawn here, not by each worker again
            self.made(name, severity, torch.zeros(1, *test.shape, dtype=torch.uint8), torch.arange(1))
        made = Made(self._decoded_once(test), partial(self.made, name, severity))
        if self.cache is None or data is None or math.prod(test.shape) > LARGEST_KEPT:
            return made
        if test.streams:  # its checksum is of files, not of the pixels that `resize` and crops make of them
            return made
        keys = [data.checksum, name, severity, self.options.corruption_seed, self.options.parameters]
        words = json.dumps([*keys, self.options.frost, __version__, torch.__version__])
        key = hashlib.blake2b(words.encode(), digest_size=8).hexdigest()
        return Kept(made, self.cache / f"{name}-{severity}-{key}")

    def _decoded_once(self, test: Source) -> Source:
        """The test images; those of files are decoded for the first corruption, and then read."""
        if not test.streams:
            return test
        if self._decoded is None or self._decoded.made is not test:
            self._folder = tempfile.TemporaryDirectory(prefix="auglabel-")
            if shutil.disk_usage(self._folder.name).free < 2 * len(test) * math.prod(test.shape):
                return test
            self._decoded = Kept(test, Path(self._folder.name) / "decoded")
        return self._decoded

    def made(self, name: str, severity: int, images: Tensor, index: Tensor) -> Tensor:
        """`images` under a corruption, drawn for their `index`."""
        given: dict[str, Any] = {"parameters": self.options.parameters, "frost": self.options.frost}
        return corrupt(images, name, severity, seed=self.options.corruption_seed, index=index, **given)

    def origin(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, str]:
        parameters = self.options.parameters or parameters_for(*shape[1:])
        frost = "procedural frost" if self.options.frost is None else "frost photographs"
        made = f"made here, seed {self.options.corruption_seed}, {parameters} parameters"
        return {"from": made + (f", {frost}" if "frost" in names else "")}


class CopiedImages(CorruptedImages):
    """Copies on disk."""

    def __init__(self, options: Corruptions) -> None:
        super().__init__(options)
        assert options.copies is not None
        self.copies = corrupted(options.copies)

    def require(self, name: str) -> None:
        self.copies.require(name)

    def source(self, name: str, severity: int, test: Source, data: DataSet | None = None) -> Source:
        if data is not None:
            _require_of(self.copies, data)
        copies = self.copies.source(name, severity)
        if copies.shape != test.shape:
            raise UserError(
                f"{self.copies.where} has images of {copies.shape} (channels, height, width), but the run's "
                f"have {test.shape}: {OWN}."
            )
        return _same_images(copies, test, self.copies)

    def origin(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, str]:
        return {"from": self.copies.origin(names), "copies": str(self.copies.where)}


class Made(Source):
    """The images of a source, corrupted when they are fetched."""

    streams = True

    def __init__(self, source: Source, make: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.source, self.make = source, make
        self.labels, self.shape = source.labels, source.shape

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.make(self.source.fetch(rows, draw), self.index(rows))

    def index(self, rows: Tensor) -> Tensor:
        return self.source.index(rows)


class Kept(Source):
    """Images that are made (corrupted, decoded) once and then read from disk, by any number of processes.

    The file has a record for each image of the whole test set: its checksum and its pixels. A record that is
    missing or torn is made again, and two processes that make the same one write the same bytes. A file that
    cannot be written only costs time.
    """

    streams = True

    def __init__(self, made: Source, path: Path) -> None:
        self.made, self.path = made, path
        self.labels, self.shape = made.labels, made.shape
        self.size = 4 + math.prod(self.shape)  # bytes of a record

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        index = self.index(rows)
        records = self._read(index.tolist())
        missing = torch.tensor([not _sound(record) for record in records])
        if missing.any():
            made = self.made.fetch(rows[missing], draw)
            new = iter(_record(image) for image in made)
            records = [next(new) if gone else old for gone, old in zip(missing, records, strict=True)]
            self._write({at: records[n] for n, at in enumerate(index.tolist()) if missing[n]})
        images = np.empty((len(rows), self.size - 4), np.uint8)
        for image, record in zip(images, records, strict=True):
            image[:] = np.frombuffer(record, np.uint8, offset=4)
        return torch.from_numpy(images).view(len(rows), *self.shape)

    def index(self, rows: Tensor) -> Tensor:
        return self.made.index(rows)

    def _read(self, index: Sequence[int]) -> list[bytes]:
        try:
            with self.path.open("rb", buffering=0) as file:
                return [file.read(self.size) for at in index if file.seek(at * self.size) >= 0]
        except OSError:
            return [b""] * len(index)

    def _write(self, records: Mapping[int, bytes]) -> None:
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("ab").close()
            with self.path.open("r+b") as file:
                for at, record in records.items():
                    file.seek(at * self.size)
                    file.write(record)


def _record(image: Tensor) -> bytes:
    pixels = image.contiguous().numpy().tobytes()
    return zlib.crc32(pixels).to_bytes(4, "little") + pixels


def _sound(record: bytes) -> bool:
    return len(record) > 4 and zlib.crc32(record[4:]).to_bytes(4, "little") == record[:4]


class Reordered(Source):
    """All images of a source, in another order than the data's."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.labels, self.shape, self.streams = source.labels, source.shape, source.streams

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.source.fetch(rows, draw)


def overlaps(operations: Iterable[str], names: Iterable[str]) -> list[str]:
    """A sentence for each operation of the training that is much like a corruption of the test."""
    return [
        f"The training's operations have {operation}, which is much like {name}: the network knows it."
        for operation in operations
        if (name := RESEMBLES.get(operation)) in set(names)
    ]


def _require_of(copies: Corrupted, data: DataSet) -> None:
    """Copies made here say of which images; others may say of which classes."""
    known = (copies.about or {}).get("data", {}).get("checksum", data.checksum)
    if known != data.checksum:
        raise UserError(
            f"{copies.where} was made of other images: their checksum is {known[:12]}..., but that of "
            f"{data.name} is {data.checksum[:12]}...: {OWN}."
        )
    if copies.classes is not None and tuple(copies.classes) != data.classes:
        first = next((n for n in copies.classes if n not in data.classes), None) or "their order"
        raise UserError(
            f"{copies.where} has {len(copies.classes)} classes and {data.name} {len(data.classes)}, which "
            f"must be the same, but differ in {first}: {OWN}."
        )


def _same_images(copies: Source, test: Source, read: Corrupted) -> Source:
    """Those of the copies that are copies of the test images."""
    index = test.index(torch.arange(len(test)))
    whole = test.source if isinstance(test, Subset) else test
    if len(copies) != len(whole) or not torch.equal(*(_counted(s) for s in (copies, whole))):
        raise UserError(
            f"{read.where} has copies of {len(copies):,} images and the run {len(whole):,} of which it tests "
            f"{len(test):,}, with other classes: {OWN}."
        )
    if torch.equal(copies.labels[index], test.labels) and _named_alike(copies, whole):
        return Subset(copies, index)
    if len(test) == len(whole):
        return Reordered(copies)
    raise UserError(
        f"{read.where} has its images in another order than the run's data, of which only {len(test):,} of "
        f"{len(whole):,} are for testing: which they are cannot be told, so leave --copies out."
    )


def _counted(source: Source) -> Tensor:
    return torch.bincount(source.labels, minlength=1000)


def _named_alike(copies: Source, whole: Source) -> bool:
    """False where both know file names and these are not the same, row by row."""
    if not (isinstance(copies, Streamed) and isinstance(whole, Streamed)):
        return True
    pairs = ((Path(s.contents.path(row)).stem for s in (copies, whole)) for row in range(len(whole)))
    return all(len(set(pair)) == 1 for pair in pairs)
