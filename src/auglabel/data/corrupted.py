"""Corrupted copies on disk, official or made here: <type>.npy as in CIFAR-C, or folders as in ImageNet-C."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auglabel.data.corrupted_files import CHECKSUMS, FIVE, Mapped, pixels_of, whole_numbers
from auglabel.data.decode import OneSize, Streamed
from auglabel.data.download import blocks, md5
from auglabel.data.files import find_images
from auglabel.data.picture import Frame, opened
from auglabel.data.source import Source
from auglabel.errors import UserError
from auglabel.util.checks import entry, require_whole, shown
from auglabel.util.checksummed_json import OtherFormat, read_checksummed

FORMAT = "auglabel corrupted copies, version 1"  # of about.json
ABOUT = {"types": [str], "classes": [str], "shape": [int], "images": int, "md5?": {...: str}}  # of that
LARGEST_SIDE = 2**15  # of a picture
NUMBERS = tuple("12345")  # the folders of severities
GROUPS = ("noise", "blur", "weather", "digital", "extra")  # what ImageNet-C's archives unpack to
EXPECTED = "<type>.npy with labels.npy, as in CIFAR-C, or <type>/<severity>/<class>/, as in ImageNet-C"


def corrupted(root: str | os.PathLike[str]) -> Corrupted:
    """The corrupted copies in the folder `root`; one with the name of an official set must hold its files."""
    where = Path(root).expanduser()
    if where.is_file():
        raise UserError(f"{where} is a file, but a folder was expected: unpack it, and give {EXPECTED}.")
    if not where.is_dir():
        raise FileNotFoundError(f"{where} does not exist: expected a folder with {EXPECTED}.")
    arrays = [name.removesuffix(".npy") for name in _listed(where) if name.endswith(".npy")]
    if arrays and arrays != ["labels"]:
        return Arrays(where, arrays)
    folders = {place.name: place for top in (where, *_inside(where, GROUPS)) for place in _types(top)}
    if folders:
        return Folders(where, folders)
    below = [f"{name}/" for name in _listed(where) if name in CHECKSUMS]
    hint = f" It holds {below[0]}: give that." if below else ""
    raise FileNotFoundError(f"{where} holds no corrupted copies: expected {EXPECTED}.{hint}")


def read_about(where: Path) -> dict[str, Any] | None:
    """What `auglabel corrupt` wrote of its copies; None beside files from elsewhere."""
    file = where / "about.json"
    if not file.is_file():
        return None
    try:
        found = read_checksummed(file, FORMAT, what="what auglabel corrupt says of its copies", shape=ABOUT)
    except OtherFormat as error:
        if error.ours:
            raise
        return None
    if len(found["shape"]) != 3 or not all(0 < size <= LARGEST_SIDE for size in found["shape"]):
        raise UserError(f"{file} is damaged: it does not say the shape of the copies.")
    return found


def folder_name(name: str) -> str:
    """What the folder of a class is called: its name, without what a path cannot hold."""
    return re.sub(r"[/\\\0]|^\.", "_", name)


class Corrupted:
    """Copies of one set of images, by type of corruption and severity."""

    classes: tuple[str, ...] | None = None  # in the order of labels, where the files tell
    words = ""  # the layout

    def __init__(self, where: Path, names: Sequence[str]) -> None:
        self.where, self.names, self.about = where, tuple(sorted(names)), read_about(where)

    def require(self, name: str) -> None:
        """Stop if there are no copies of type `name`."""
        entry(f"corruption in {self.where}", dict.fromkeys(self.names), name)

    def source(self, name: str, severity: int) -> Source:
        """The copies of type `name`, severity 1..5, with their labels."""
        self.require(name)
        require_whole("severity", severity, 1, FIVE)
        return self._source(name, severity)

    def origin(self, names: Sequence[str]) -> str:
        """Whether the copies of `names` are official files, made by auglabel, or neither, for a result."""
        for name in names:
            self.require(name)
        if self.about is None:
            return self._origin(names)
        facts = {key: self.about.get(key, "unknown") for key in ("auglabel", "seed", "parameters")}
        made = shown("made by auglabel {auglabel}, seed {seed}, {parameters} parameters".format(**facts))
        if "frost" in names:
            photographs = str(self.about.get("frost")).startswith("photographs")
            made += ", frost photographs" if photographs else ", procedural frost"
        strange = [name for name in names if name not in self.about["types"]]
        return made + (f"; not made so: {', '.join(strange)}" if strange else "")

    def _source(self, name: str, severity: int) -> Source:
        raise NotImplementedError

    def _origin(self, names: Sequence[str]) -> str:
        return f"files in the layout of {self.words} whose checksums are unknown"


class Arrays(Corrupted):
    """<type>.npy, uint8 (5 N, H, W, C) or (5 N, H, W), severity 1 first, and labels.npy, (5 N,) or (N,)."""

    words = "CIFAR-C"

    def __init__(self, where: Path, names: Sequence[str]) -> None:
        super().__init__(where, [name for name in names if name != "labels"])
        if "labels" not in names:
            raise FileNotFoundError(f"{where} lacks labels.npy, the classes of the images: put it there.")
        self.labels = whole_numbers(where / "labels.npy")
        self._found: dict[str, str] = {}  # checksums

    def _source(self, name: str, severity: int) -> Source:
        self._require_sound(name, "labels")
        file = self.where / f"{name}.npy"
        count = len(pixels_of(file)) // FIVE
        return Mapped(file, (severity - 1) * count, self._labels_of(count, file))

    def _labels_of(self, count: int, file: Path) -> Tensor:
        labels, where = self.labels, self.where / "labels.npy"
        if len(labels) not in (count, FIVE * count):
            raise UserError(
                f"{where} must have {count} labels, or that five times, for the {FIVE * count} images "
                f"of {file.name}, got {len(labels)}: they do not belong together."
            )
        copied = labels.reshape(-1, count)  # once, or for every severity
        if not torch.equal(copied, copied[:1].expand_as(copied)):
            raise UserError(
                f"{where} is damaged: the labels must be the same for every severity, but they differ."
            )
        return copied[0].clone()

    def _origin(self, names: Sequence[str]) -> str:
        files = [*dict.fromkeys(names), "labels"]
        self._require_sound(*files)
        known = {kind: [n for n in files if self._md5(n) == of.get(n)] for kind, of in CHECKSUMS.items()}
        kind, same = max(known.items(), key=lambda each: len(each[1]))
        rest = [f"{name}.npy" for name in files if name not in same]
        if not same:
            return super()._origin(names)
        return f"official {kind} files (checksums match)" + (
            f", except {', '.join(rest)}, whose checksums are unknown" if rest else ""
        )

    def _require_sound(self, *names: str) -> None:
        """Stop at a file that is not what about.json says, or without that, what the folder's name says."""
        kind = self.where.resolve().name
        expected = CHECKSUMS.get(kind, {}) if self.about is None else self.about.get("md5", {})
        for name in names:
            if name not in expected or self._md5(name) == expected[name]:
                continue
            file, wanted, found = self.where / f"{name}.npy", shown(expected[name]), self._md5(name)
            if self.about is not None:
                raise UserError(
                    f"{file} is damaged: expected MD5 {wanted}, found {found}. auglabel corrupt, called as "
                    "before, makes it again."
                )
            raise UserError(
                f"{file} is not the official file of {kind}: expected MD5 {wanted}, found {found}. Fetch it "
                "again, or give the folder another name to use it."
            )

    def _md5(self, name: str) -> str:
        if name not in self._found:
            self._found[name] = md5(blocks(self.where / f"{name}.npy"))
        return self._found[name]


class Folders(Corrupted):
    """<type>/<severity>/<class>/<image>, decoded as they are fetched."""

    words = "ImageNet-C"

    def __init__(self, where: Path, places: dict[str, Path]) -> None:
        super().__init__(where, list(places))
        self.places = places
        if self.about is not None:
            self.classes = tuple(self.about["classes"])
        else:
            first = _inside(places[self.names[0]], NUMBERS)[0]
            self.classes = tuple(place.name for place in _inside(first))
        self._first: tuple[Path, list[str]] | None = None  # the images of the first place read

    def _source(self, name: str, severity: int) -> Source:
        place = self.places[name] / str(severity)
        if not place.is_dir():
            there = ", ".join(one.name for one in _inside(self.places[name], NUMBERS))
            raise FileNotFoundError(f"{place} does not exist: {name} has severity {there} only.")
        assert self.classes is not None
        numbers = {folder_name(each): label for label, each in enumerate(self.classes)}
        self._require_classes(place, set(numbers))
        files = find_images(place)
        files = files.take([row for row, file in enumerate(files.names) if "/" in file])
        self._require_same(place, files.names)
        if self.about is not None and self.about.get("named") == "rows":  # in the order of the data set
            files = files.take(sorted(range(len(files)), key=lambda row: Path(files.names[row]).stem))
        labels = torch.tensor([numbers[file.partition("/")[0]] for file in files.names], dtype=torch.int64)
        if self.about is not None:
            channels, height, width = self.about["shape"]
        else:
            channels, (width, height) = 3, opened(files.read(0), files.path(0)).size
        wanted = _Wanted((channels, height, width), "")
        source = Streamed(files, labels, Frame(channels), wanted, crops=None)
        source.fetch(torch.tensor([0]))  # says now, not after minutes, that the size is another
        return source

    def _require_classes(self, place: Path, expected: set[str]) -> None:
        found = {one.name for one in _inside(place)}
        strange = found - expected if self.about else found ^ expected  # few images may miss a class
        if strange:
            raise UserError(
                f"{place} must have the class folders that the others have, but differs in "
                f"{shown(', '.join(sorted(strange)[:3]))}: unpack it again."
            )

    def _require_same(self, place: Path, names: list[str]) -> None:
        """The same images in every place, and all of them."""
        wanted = self.about["images"] if self.about else len(names)
        if not names or len(names) != wanted:
            again = "auglabel corrupt, called as before, completes it" if self.about else "unpack it again"
            raise UserError(f"{place} holds {len(names)} images, not {wanted or 'any'}: {again}.")
        first, expected = self._first = self._first or (place, names)
        if names != expected:
            raise UserError(
                f"{place} ({len(names)} images) and {first} ({len(expected)}) must hold the same images, but "
                "their names differ: unpack them again."
            )


class _Wanted(OneSize):
    def require(self, shape: Sequence[int], path: str) -> None:
        if tuple(shape) != self.shape:
            came, wanted = (f"{width} x {height}" for _, height, width in (shape, self.shape))
            raise UserError(
                f"{path} has {came} pixels, but {wanted} were expected: copies of a data set have one size."
            )


def _types(top: Path) -> list[Path]:
    """The folders that hold severities."""
    return [place for place in _inside(top) if any(_inside(place, NUMBERS))]


def _inside(place: Path, names: Container[str] | None = None) -> list[Path]:
    """The folders in a folder, of these `names`, sorted."""
    return [
        place / name
        for name in _listed(place)
        if (names is None or name in names) and (place / name).is_dir()
    ]


def _listed(place: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(place) if not name.startswith("."))
    except OSError as error:
        raise OSError(f"{place} cannot be listed: {error.strerror}.") from None
