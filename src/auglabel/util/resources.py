"""Data files of the package: recipes, embedded images, parts of the report's page."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any


@functools.cache
def resource_folder(folder: str) -> Path:
    """A folder of the package on disk; for a zipped package, a copy that is deleted at exit."""
    inside = resources.files("auglabel").joinpath(folder)
    if isinstance(inside, Path):
        return inside
    copy = Path(tempfile.mkdtemp(prefix="auglabel-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    _copy(inside, copy)
    return copy


def _copy(folder: Any, to: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            (to / each.name).mkdir()
            _copy(each, to / each.name)
        else:
            (to / each.name).write_bytes(each.read_bytes())
