"""CIFAR in its three forms."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable
from pathlib import Path

from auglabel.data.cifar import cifar10
from hostile.archives import spoil_tar, tar_of
from hostile.pickles import BATCHES, pickle_cases, python_files
from hostile.spoil import Draw, Files, spoil_bytes


def packed() -> list[Files]:
    python = tar_of({f"cifar-10-batches-py/{name}": c for name, c in python_files().items()}, zipped=True)
    return [
        {"cifar-10-python.tar.gz": python},
        {"cifar-10-binary.tar.gz": tar_of(binary_files(), zipped=True)},
    ]


def binary_files() -> Files:
    records = b"".join(bytes([n]) + bytes(range(256)) * 12 for n in range(2))
    return {f"{name}.bin": records for name in BATCHES}


def spoil_packed(draw: Draw, files: Files) -> Files:
    name = next(iter(files))
    if draw.random() < 0.3:
        return {name: spoil_bytes(draw, files[name])}
    try:
        inner = gzip.decompress(files[name])
    except Exception:  # spoilt already
        return {name: spoil_bytes(draw, files[name])}
    return {name: gzip.compress(spoil_tar(draw, inner), 1, mtime=0)}


def read_cifar(place: Path) -> object:
    return cifar10(place, verify=False)


def python_cases() -> dict[str, Callable[[], Files]]:
    return {name: functools.partial(python_files, content) for name, content in pickle_cases().items()}


def binary_cases() -> dict[str, Callable[[], Files]]:
    odd = {
        "nothing": b"",
        "a class of 255": b"\xff" * 3073,
        "cut short": b"\0" * 3000,
        "text": b"<html>" * 999,
    }
    return {
        name: functools.partial(dict, {**binary_files(), "data_batch_3.bin": content})
        for name, content in odd.items()
    }
