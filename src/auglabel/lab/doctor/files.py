"""Where files are: the cache, the disk that runs go to, and the data sets that can be found."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auglabel.data.cifar_files import CIFAR10, CIFAR100, Cifar, official_files


def describe_cache() -> dict[str, Any]:
    """Where decoded images are kept, and how much they take; no path if there is no home directory."""
    found = {"path": None, "error": None, "writable": False, "free": None, "files": 0, "bytes": 0}
    try:
        from auglabel.data import cache

        directory = cache.directory()
    except Exception as error:  # pathlib's, or numpy's if that is broken
        return {**found, "error": private(error)}
    sizes = []
    with contextlib.suppress(OSError):
        sizes = [path.stat().st_size for path in directory.iterdir()]
    kept = {"files": len(sizes), "bytes": sum(sizes)}
    return {**found, "path": private(directory), **describe_place(directory), **kept}


def describe_place(path: Path) -> dict[str, Any]:
    """Whether files could be written there, and the bytes that are free; nothing stays behind."""
    path = path.absolute()
    there = next(place for place in (path, *path.parents) if place.exists())
    writable = False
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=there):
        writable = True
    return {"writable": writable, "free": shutil.disk_usage(there).free}


def describe_data(root: str | None) -> dict[str, Any]:
    """Which of the known data sets are there, judged by the names of their files."""
    places = [Path(root).expanduser()] if root is not None else [Path(), Path("data")]
    sought = " or ".join(private(place) for place in places)
    found = {
        "embedded": _embedded(),
        "cifar10": _cifar(CIFAR10, places),
        "cifar100": _cifar(CIFAR100, places),
        "imagenet": _imagenet(places),
    }
    return {name: each or {"where": None, "sought": sought} for name, each in found.items()}


def _embedded() -> dict[str, Any]:
    try:
        from auglabel.data.embedded import load_embedded

        load_embedded()
    except Exception as error:  # torch may be broken, too
        return {"where": None, "error": private(error)}
    return {"where": "inside the package"}


def _cifar(kind: Cifar, places: Sequence[Path]) -> dict[str, Any] | None:
    for place in places:
        layout, where = official_files(kind, place) or (None, place)
        if layout is None or (where.is_file() and where.name != layout.archive):  # some other archive
            continue
        names = [] if where.is_file() else [*layout.train, *layout.test]
        missing = [name for name in names if not (where / name).is_file()]
        return {"where": private(where), "missing": missing, "archive": layout.archive}
    return None


def _imagenet(places: Sequence[Path]) -> dict[str, Any] | None:
    """The first place with folders in train/ and val/ that are named as ImageNet's classes, n01440764."""
    for place in places:
        with contextlib.suppress(OSError):
            parts = [os.listdir(place / part) for part in ("train", "val")]
            if all(any(re.fullmatch(r"n\d{8}", name) for name in part) for part in parts):
                return {"where": private(place)}
    return None


def private(words: object) -> str:
    """One line without the names of the user's folders: ~ for home, and where Python is, in a word."""
    text = " ".join(str(words).split())
    for folder, name in ((sys.prefix, "PYTHON"), (os.path.expanduser("~"), "~")):
        if len(folder) > 1:
            text = text.replace(folder, name)
    return text
