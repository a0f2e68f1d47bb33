"""JSON on disk, in one piece or line by line, and folders that one process holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auglabel.whole import write_text


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


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1) + "\n")


def append_line(path: Path, value: Any) -> None:
    """One more line of JSON, on the disk before this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that `append_line` wrote; one torn by a crash, the last, does not count."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                found.append(json.loads(line))
        except ValueError:
            if number == len(lines):
                break
            raise ValueError(f"{path}, line {number} is damaged: it is not JSON.") from None
    return found
