"""The corrupted test images of an evaluation: made as they are needed, or read from copies on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from auglabel.corrupt import SEVERITIES, corrupt, parameters_for, require_large, suite
from auglabel.data.corrupted import Corrupted, corrupted
from auglabel.data.decode import Streamed
from auglabel.data.source import DataSet, Source, Subset
from auglabel.errors import UserError
from auglabel.util.checks import require_whole

OWN = "give the copies of its own data set"
RESEMBLES = {"color": "saturate"}  # an operation of training, and the corruption that it is much like


@dataclass(frozen=True)
class Corruptions:
    """What `corrupted` stands for in --on"""

    suite: str = "paper"
    """standard (15), paper (17), extra (4), all (19), or names with commas between"""
    severities: tuple[int, ...] = SEVERITIES
    """of every corruption"""
    parameters: Literal["cifar", "imagenet"] | None = None
    """whose figures to use; cifar below 64 pixels, imagenet from there on, if not given"""
    frost: str | None = None
    """directory of the published frost photographs; a texture of our own if not given"""
    corruption_seed: int = 0
    """of what the corruptions draw: the same pictures for every run"""
    copies: str | None = None
    """directory of CIFAR-10-C, CIFAR-100-C, ImageNet-C or of `auglabel corrupt`, to read instead"""

    def __post_init__(self) -> None:
        suite(self.suite)
        require_severities(self.severities)
        require_whole("corruption_seed", self.corruption_seed, 0)
        given = [name for name in ("parameters", "frost", "corruption_seed") if getattr(self, name)]
        if self.copies is not None and given:
            raise UserError(f"copies are read as they are: --{given[0]} changes nothing in them.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return suite(self.suite)

    def require(self, name: str) -> None:
        """Say now, not after hours, that something is missing."""
        if self.read is None:
            self.made(name, 1, torch.zeros(1, 3, 16, 16, dtype=torch.uint8), torch.arange(1))
        else:
            self.read.require(name)

    @cached_property
    def read(self) -> Corrupted | None:
        """The copies on disk, if that is where the pictures come from."""
        return None if self.copies is None else corrupted(self.copies)

    def source(self, name: str, severity: int, test: Source, data: DataSet | None = None) -> Source:
        """The test images, which are those of `data`, under a corruption."""
        if self.read is None:
            require_large(*test.shape[1:])
            return Made(test, partial(self.made, name, severity))
        if data is not None:
            _require_of(self.read, data)
        copies = self.read.source(name, severity)
        if copies.shape != test.shape:
            raise UserError(
                f"{self.read.where} has images of {copies.shape} (channels, height, width), but the run's "
                f"have {test.shape}: {OWN}."
            )
        return _same_images(copies, test, self.read)

    def made(self, name: str, severity: int, images: Tensor, index: Tensor) -> Tensor:
        """`images` under a corruption, drawn for their `index`."""
        options: dict[str, Any] = {"parameters": self.parameters, "frost": self.frost}
        return corrupt(images, name, severity, seed=self.corruption_seed, index=index, **options)

    def about(self, names: Sequence[str], shape: tuple[int, int, int]) -> dict[str, Any]:
        """Where the pictures came from, for a result."""
        facts = {"suite": self.suite, "names": list(names), "severities": list(self.severities)}
        if self.read is not None:
            return {**facts, "from": self.read.origin(names), "copies": str(self.read.where)}
        parameters = self.parameters or parameters_for(*shape[1:])
        frost = "procedural frost" if self.frost is None else "frost photographs"
        made = f"made here, seed {self.corruption_seed}, {parameters} parameters"
        return {**facts, "from": made + (f", {frost}" if "frost" in names else "")}


def require_severities(severities: Sequence[int]) -> None:
    for severity in severities:
        require_whole("severities", severity, 1, 5)
    if not severities or len(set(severities)) < len(severities):
        raise UserError(f"severities must name some of 1..5 once each, got {severities}.")


class Made(Source):
    """The images of a source, corrupted when they are fetched."""

    streams = True

    def __init__(self, source: Source, make: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.source, self.make = source, make
        self.labels, self.shape = source.labels, source.shape

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        return self.make(self.source.fetch(rows, draw), self.source.index(rows))


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
