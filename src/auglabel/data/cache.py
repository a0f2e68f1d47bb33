"""Decoded images kept on disk, so that the next run does not decode them again.

An entry is a pair, `<key>.npy` and `<key>.json`, each written whole or not at all. A damaged entry is
as good as none, and a directory that cannot be written to only costs time.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from auglabel.util.atomic_write import write_atomically, write_text


def directory() -> Path:
    return Path(os.environ.get("AUGLABEL_CACHE") or "~/.cache/auglabel").expanduser() / "images"


def load(key: str) -> tuple[npt.NDArray[np.uint8], dict[str, Any]] | None:
    """What `store` kept under `key`, as far as shape and type can tell; None if there is nothing."""
    try:
        facts = json.loads((directory() / f"{key}.json").read_text(encoding="utf-8"))
        images = np.load(directory() / f"{key}.npy", allow_pickle=False)
        fits = images.dtype == np.uint8 and list(images.shape) == facts["shape"]
    except Exception:  # however it is damaged
        return None
    return (images, facts) if fits else None


def store(key: str, images: npt.NDArray[np.uint8], facts: dict[str, Any]) -> None:
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: there is no home directory
        directory().mkdir(parents=True, exist_ok=True)
        write_atomically(directory() / f"{key}.npy", lambda partial: _save(partial, images))
        write_text(directory() / f"{key}.json", json.dumps({**facts, "shape": images.shape}))


def _save(path: Path, images: npt.NDArray[np.uint8]) -> None:
    with path.open("wb") as file:  # np.save would add to a name
        np.save(file, images, allow_pickle=False)
