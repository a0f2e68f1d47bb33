"""The corrupted test images of an evaluation: made as they are needed, or read from copies on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
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
MARK = b"made"  # of a record without a checksum
OWN = "give the copies of its own data set"
RESEMBLES = {"color": "saturate"}  # an operation of training, and the corruption that it is much like


class CorruptedImages:
    """The corrupted test images that the options ask for: copies on disk, or else images made here.

    Images that are made are kept in the folder `cache`, if it is given.
    """

    def __init__(self, options: Corruptions, cache: Path | None = None) -> None:
        self.options, self.cache = options, cache
        self.copies = None if options.copies is None else corrupted(options.copies)
        self._required: set[str] = set()  # corruptions that will be asked for
        self._decoded: Kept | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of the decoded images

    def require(self, name: str) -> None:
        """Raise now, not after hours, if what this corruption needs is missing."""
        self._required.add(name)
        if self.copies is not None:
            self.copies.require(name)
        else:
            corrupt(torch.zeros(1, 3, 16, 16, dtype=torch.uint8), name, 1, **drawn_by(self.options))

    def source(self, name: str, severity: int, test: Source, data: DataSet | None = None) -> Source:
        """The test images, which are those of `data`, under a corruption."""
        if self.copies is not None:
            return _same_images(self.copies, name, severity, test, data)
        require_large(*test.shape[1:])
        made = Made(self._decoded_once(test), name, severity, self.options)
        if "frost" in self._required:  # its textures are drawn here, not by each worker again
            corrupt(torch.zeros(1, *test.shape, dtype=torch.uint8), "frost", 1, **drawn_by(self.options))
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
            self._decoded = Kept(test, Path(self._folder.name) / "decoded", checksums=False)
        return self._decoded

    def about(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, Any]:
        """What a result says of the corrupted images: among them who made them, in words."""
        options = self.options
        asked = {"suite": options.suite, "names": list(names), "severities": list(options.severities)}
        if self.copies is not None:
            return {**asked, "from": self.copies.origin(names), "copies": str(self.copies.where)}
        parameters = options.parameters or parameters_for(*shape[1:])
        frost = "procedural frost" if options.frost is None else "frost photographs"
        made = f"made here, seed {options.corruption_seed}, {parameters} parameters"
        return {**asked, "from": made + (f", {frost}" if "frost" in names else "")}


def drawn_by(options: Corruptions) -> dict[str, Any]:
    """The options that `corrupt` takes."""
    return {"seed": options.corruption_seed, "parameters": options.parameters, "frost": options.frost}


class Made(Source):
    """The images of a source, corrupted when they are fetched: by `change`, which knows no source."""

    streams = True

    def __init__(self, source: Source, name: str, severity: int, options: Corruptions) -> None:
        self.source, self.labels, self.shape = source, source.labels, source.shape
        self.change = partial(_corrupted, name=name, severity=severity, options=options)

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.change(self.source.fetch(rows, draw), self.index(rows))

    def index(self, rows: Tensor) -> Tensor:
        return self.source.index(rows)


def _corrupted(images: Tensor, index: Tensor, name: str, severity: int, options: Corruptions) -> Tensor:
    return corrupt(images, name, severity, index=index, **drawn_by(options))


class Kept(Source):
    """Images that are made (corrupted, decoded) once and then read from disk, by any number of processes.

    The file has a record for each image of the whole test set: its checksum and its pixels. A record that is
    missing or torn is made again, and two processes that make the same one write the same bytes. A file that
    cannot be written only costs time. Without `checksums`, which cost as much as a light corruption, a record
    has a mark in their place: for a file that does not outlive those who write it.
    """

    streams = True

    def __init__(self, made: Source, path: Path, checksums: bool = True) -> None:
        self.made, self.path, self.checksums = made, path, checksums
        self.labels, self.shape = made.labels, made.shape
        self.size = 4 + math.prod(self.shape)  # bytes of a record

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        index = self.index(rows).tolist()
        records = self._read(index)
        missing = [place for place, record in enumerate(records) if not self._sound(record)]
        if missing:
            for place, image in zip(missing, self.made.fetch(rows[missing], draw), strict=True):
                pixels = image.contiguous().numpy().tobytes()
                records[place] = self._mark(pixels) + pixels
            self._write({index[place]: records[place] for place in missing})
        images = np.empty((len(rows), self.size - 4), np.uint8)
        for image, record in zip(images, records, strict=True):
            image[:] = np.frombuffer(record, np.uint8, offset=4)
        return torch.from_numpy(images).view(len(rows), *self.shape)

    def index(self, rows: Tensor) -> Tensor:
        return self.made.index(rows)

    def _mark(self, pixels: bytes | memoryview) -> bytes:
        return zlib.crc32(pixels).to_bytes(4, "little") if self.checksums else MARK

    def _sound(self, record: bytes) -> bool:
        return len(record) == self.size and record[:4] == self._mark(memoryview(record)[4:])

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
                for part in (slice(4, None), slice(4)):  # a mark without its pixels would be believed
                    for at, record in records.items():
                        file.seek(at * self.size + (part.start or 0))
                        file.write(record[part])
                    file.flush()


class Reordered(Subset):
    """All images of a source, in another order than the data's."""


def overlaps(operations: Iterable[str], names: Iterable[str]) -> list[str]:
    """A sentence for each operation of the training that is much like a corruption of the test."""
    return [
        f"The training's operations have {operation}, which is much like {name}: the network knows it."
        for operation in operations
        if (name := RESEMBLES.get(operation)) in set(names)
    ]


def _same_images(copies: Corrupted, name: str, severity: int, test: Source, data: DataSet | None) -> Source:
    """Those of the copies that are copies of the test images."""
    if data is not None:
        _require_of(copies, data)
    source = copies.source(name, severity)
    if source.shape != test.shape:
        raise UserError(
            f"{copies.where} has images of {source.shape} (channels, height, width), but the run's "
            f"have {test.shape}: {OWN}."
        )
    index = test.index(torch.arange(len(test)))
    whole = test.source if isinstance(test, Subset) else test
    counted = [torch.bincount(each.labels, minlength=1000) for each in (source, whole)]
    if len(source) != len(whole) or not torch.equal(*counted):
        raise UserError(
            f"{copies.where} has copies of {len(source):,} images and the run {len(whole):,} of which it "
            f"tests {len(test):,}, with other classes: {OWN}."
        )
    if torch.equal(source.labels[index], test.labels) and _named_alike(source, whole):
        return Subset(source, index)
    if len(test) == len(whole):
        return Reordered(source, torch.arange(len(source)))
    raise UserError(
        f"{copies.where} has its images in another order than the run's data, of which only {len(test):,} of "
        f"{len(whole):,} are for testing: which they are cannot be told, so leave --copies out."
    )


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


def _named_alike(copies: Source, whole: Source) -> bool:
    """False where both know file names and these are not the same, row by row."""
    if not (isinstance(copies, Streamed) and isinstance(whole, Streamed)):
        return True
    pairs = ((Path(s.contents.path(row)).stem for s in (copies, whole)) for row in range(len(whole)))
    return all(len(set(pair)) == 1 for pair in pairs)
