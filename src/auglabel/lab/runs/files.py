"""Files of JSON lines, and folders that one process locks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.util.checksummed_json import checksummed_line, mismatch, parse_line

LARGEST = 2**28  # bytes of lines: those of 82 buckets reach it after 100,000 epochs


@contextmanager
def locked(folder: Path, otherwise: str) -> Iterator[None]:
    """Lock a folder, or raise `otherwise`; the lock ends with this process, even if it is killed."""
    import fcntl

    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(otherwise) from None
        yield


def append_line(path: Path, value: Any) -> None:
    """Append one line of JSON, which is on the disk when this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(checksummed_line(value) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path, shape: Mapping[str, Any] | None = None) -> dict[int, dict[str, Any]]:
    """The lines of JSON in a file, by number; a last line that a crash cut off does not count.

    Each must have `shape`, which `mismatch` explains.
    """
    if not path.exists():
        return {}
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise UserError(f"{path} has more than {LARGEST:,} bytes, which no run of ours writes.")
    lines = content.split(b"\n")
    found = {}
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                found[number] = parse_line(line)
        except UserError as error:
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number} is damaged: {error}") from None
    for number, each in found.items() if shape else ():
        if wrong := mismatch(each, shape):
            raise UserError(f"{path}, line {number} is damaged or of another version: {wrong}.")
    return found
