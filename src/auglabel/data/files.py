"""The image files of a directory, or of a tar that is read in place and never unpacked."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import tarfile
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from auglabel.errors import UserError
from auglabel.util.checks import shown

EXTENSIONS = (
    *(".png", ".jpg", ".jpeg", ".webp", ".bmp"),
    *(".gif", ".tif", ".tiff", ".ppm", ".pgm"),
)
BLOCK = 512  # tar's unit
LARGEST_IMAGE = 2**28  # bytes of a file
LARGEST_HEADER = 2**20  # bytes of one of a tar's
MOST_UNPACKED = 2**29  # bytes of a compressed tar: CIFAR's has less than half


@dataclass(frozen=True)
class Files:
    """Files by row: names relative to `where` with "/" between their parts, sorted."""

    where: Path
    names: list[str]
    sizes: list[int]
    times: list[int]  # of the last change, in ns
    offsets: list[int] | None  # into the tar; None: `where` is a directory
    folders: tuple[str, ...] = ()  # those of a directory, also if they are empty

    def __len__(self) -> int:
        return len(self.names)

    def path(self, row: int) -> str:
        """How to call the file in a message."""
        name = shown(self.names[row])
        return f"{self.where}{os.sep}{name}" if self.offsets is None else f"{name} in {self.where}"

    def read(self, row: int) -> bytes:
        if self.sizes[row] > LARGEST_IMAGE:
            raise OSError(f"{self.path(row)} is not read: it has more than {LARGEST_IMAGE:,} bytes.")
        try:
            if self.offsets is None:
                with open(os.path.join(self.where, self.names[row]), "rb", buffering=0) as file:
                    return file.read()
            with open(self.where, "rb", buffering=0) as tar:
                tar.seek(self.offsets[row])
                content = tar.read(self.sizes[row])
        except OSError as error:
            raise OSError(f"{self.path(row)} cannot be read: {error.strerror or error}.") from None
        if len(content) != self.sizes[row]:
            raise OSError(f"{self.path(row)} cannot be read: the tar ends before it does.")
        return content

    def take(self, rows: Sequence[int]) -> Files:
        def pick(values: list[int]) -> list[int]:
            return [values[row] for row in rows]

        return replace(
            self,
            names=[self.names[row] for row in rows],
            sizes=pick(self.sizes),
            times=pick(self.times),
            offsets=None if self.offsets is None else pick(self.offsets),
        )


def find_images(where: Path) -> Files:
    """All images below a directory or in a tar; hidden ones and other kinds of files are passed by."""
    if where.is_dir():
        return _in_directory(where)
    if where.is_file():
        return _in_tar(where)
    raise FileNotFoundError(f"{where} does not exist: expected a folder of images, or a tar of one.")


def _is_image(name: str) -> bool:
    return name.lower().endswith(EXTENSIONS)


def _in_directory(where: Path) -> Files:
    found: list[tuple[list[str], int, int]] = []
    folders: list[str] = []

    def scan(folder: str, parts: list[str], above: tuple[tuple[int, int], ...]) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                here = [*parts, entry.name]
                if entry.is_dir():
                    status = entry.stat()
                    place = (status.st_dev, status.st_ino)
                    if place not in above:  # a link to a folder above would never end
                        folders.append("/".join(here))
                        scan(entry.path, here, (*above, place))
                elif _is_image(entry.name) and entry.is_file():
                    status = entry.stat()
                    found.append((here, status.st_size, status.st_mtime_ns))

    top = where.stat()
    try:
        scan(str(where), [], ((top.st_dev, top.st_ino),))
    except OSError as error:
        raise OSError(f"{error.filename} cannot be listed: {error.strerror}.") from None
    found.sort()
    names = ["/".join(parts) for parts, _, _ in found]
    sizes, times = [size for _, size, _ in found], [time for _, _, time in found]
    return Files(where, names, sizes, times, None, tuple(sorted(folders)))


def _in_tar(where: Path) -> Files:
    found = sorted(
        (parts, member.size, int(member.mtime * 1e9), member.offset_data)
        for parts, member in tar_members(where)
        if _is_image(parts[-1]) and not any(part.startswith(".") for part in parts)
    )
    names = ["/".join(parts) for parts, *_ in found]
    return Files(
        where,
        names,
        sizes=[size for _, size, _, _ in found],
        times=[time for _, _, time, _ in found],
        offsets=[offset for _, _, _, offset in found],
    )


def tar_members(where: Path) -> list[tuple[list[str], tarfile.TarInfo]]:
    """The regular files of a plain tar with the parts of their names; anything unsafe is refused."""
    with _translated(where), open(where, "rb") as file:
        if file.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7"):
            raise _RefusedTar("is a compressed tar, which can only be read in order: unpack it first.")
        file.seek(0)
        with tarfile.open(fileobj=_bounded(file), mode="r:", tarinfo=_Member) as tar:
            found = list(_safe(tar))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - BLOCK))
        if size % BLOCK or any(file.read()):
            raise _RefusedTar("is cut short: a tar ends in a block of zeros.")
    return found


def tar_contents(where: Path, wanted: Container[str]) -> dict[str, bytes]:
    """What the files of a tar, compressed or not, hold whose last name is `wanted`; nothing is unpacked."""
    found: dict[str, bytes] = {}
    with (
        _translated(where),
        open(where, "rb") as packed,
        _unpacked(packed) as file,
        tarfile.open(fileobj=_bounded(file, MOST_UNPACKED), mode="r:", tarinfo=_Member) as tar,
    ):
        for parts, member in _safe(tar):
            if member.offset_data + member.size > MOST_UNPACKED:
                raise _RefusedTar(f"is refused: it unpacks to more than {MOST_UNPACKED:,} bytes.")
            content = tar.extractfile(member) if parts[-1] in wanted else None
            if content:
                found[parts[-1]] = content.read()
    return found


def _unpacked(file: IO[bytes]) -> Any:
    """The file itself, or what it unpacks to bit by bit."""
    start = file.read(2)
    file.seek(0)
    kinds: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
    return kinds[start](file) if start in kinds else contextlib.nullcontext(file)


class _Bounded:
    """A tar's file, of whose headers none is read that is enormous, and nothing beyond `most` bytes.

    tarfile takes as much memory as a header says that it is long.
    """

    def __init__(self, file: Any, most: float) -> None:
        self.file, self.most = file, most

    def read(self, size: int) -> bytes:
        self._require(self.file.tell() + size)
        content: bytes = self.file.read(size)
        return content

    def seek(self, place: int) -> int:
        self._require(place)
        found: int = self.file.seek(place)
        return found

    def tell(self) -> int:
        place: int = self.file.tell()
        return place

    def _require(self, place: int) -> None:
        if place > self.most:
            raise _RefusedTar(f"is refused: it unpacks to more than {int(self.most):,} bytes.")


def _bounded(file: Any, most: float = float("inf")) -> Any:
    return _Bounded(file, most)


class _Member(tarfile.TarInfo):
    """A member whose name, if it has a header of its own, is of a sensible length."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if not self.isreg() and self.size > LARGEST_HEADER:
            raise _RefusedTar(f"is refused: it has a header of more than {LARGEST_HEADER:,} bytes.")
        return super()._proc_member(tar)  # type: ignore[misc]


def _safe(tar: tarfile.TarFile) -> Iterator[tuple[list[str], tarfile.TarInfo]]:
    for member in tar:
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if member.name.startswith("/") or ".." in parts:
            raise _RefusedTar(f"is refused: its {shown(repr(member.name))} points outside the tar.")
        if not (member.isdir() or (member.isreg() and not member.issparse())):
            raise _RefusedTar(
                f"is refused: its {shown(repr(member.name))} is a link or a special file, not a plain one."
            )
        if parts and not member.isdir():
            yield parts, member


class _RefusedTar(Exception):
    """What is wrong with a tar, as the end of a sentence."""


@contextlib.contextmanager
def _translated(where: Path) -> Iterator[None]:
    try:
        yield
    except _RefusedTar as error:
        raise UserError(f"{where} {error}") from None
    except Exception as error:  # damaged ones fail in many ways
        raise UserError(
            f"{where} is not a tar that can be read ({shown(error) or type(error).__name__}): "
            "copy or fetch it again."
        ) from None
