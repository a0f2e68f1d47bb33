"""Lines of JSON on disk, and folders that one process holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.util.checksummed_json import checksummed_line, parse_line

LARGEST = 2**28  # bytes of lines: those of 82 buckets reach it after 100,000 epochs


@contextmanager
def locked(folder: Path, otherwise: str) -> Iterator[None]:
    """Hold a folder, or say `otherwise`; the system lets go when this process ends, however it does."""
    import fcntl

    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(otherwise) from None
        yield


def append_line(path: Path, value: Any) -> None:
    """One more line of JSON, on the disk before this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(checksummed_line(value) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_bounded(path: Path) -> bytes:
    """All of a file of lines, unless it is far larger than a run makes them."""
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise UserError(f"{path} has more than {LARGEST:,} bytes, which no run of ours writes.")
    return content


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that `append_line` wrote; one torn by a crash, the last, does not count."""
    if not path.exists():
        return []
    lines = read_bounded(path).decode("utf-8", errors="replace").split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                found.append(parse_line(line))
        except ValueError as error:
            if number == len(lines):
                break
            raise UserError(f"{path}, line {number} is damaged: {error}") from None
    return found
