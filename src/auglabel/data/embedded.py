"""A small Fashion-MNIST that ships with the package: 6,000 images, no download.

`scripts/make_embedded.py` cuts it from the full set; `LICENSE.fashion-mnist` is its licence.
"""

import hashlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from auglabel.data.source import DataSet, InMemory, in_memory
from auglabel.errors import UserError
from auglabel.util.resources import resource_folder

FILE = resource_folder("data") / "fashion.npz"
SHA256 = "4353abb7c5ea07f02a70e5c64d8b05e330c1d641caf55db4034360533dd1fac9"
CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class Split(NamedTuple):
    """Images and the index of each one's class in `CLASSES`, in random order."""

    images: Tensor  # (N, 1, 28, 28) uint8
    labels: Tensor  # (N,) int64


class Embedded(NamedTuple):
    """3,000 and 1,000 images of the official training set, 2,000 of the official test set."""

    train: Split
    validation: Split
    test: Split


def load_embedded(path: Path = FILE) -> Embedded:
    """All three splits, each with as many images of every class; the file's checksum must match."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise UserError(
            f"{path} is damaged: expected SHA-256 {SHA256}, found {found}. "
            "Reinstall: pip install --force-reinstall --no-deps auglabel."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return Embedded(*(_split(arrays, name) for name in Embedded._fields))


def embedded() -> DataSet:
    """All of it: 4,000 images to train and validate on, 2,000 to test on."""
    parts = load_embedded()
    images = torch.cat([parts.train.images, parts.validation.images])
    train = InMemory(images, torch.cat([parts.train.labels, parts.validation.labels]))
    notes = ["3,000 training and 1,000 validation images of Fashion-MNIST come as one"]
    test = InMemory(*parts.test)
    return in_memory(
        "embedded Fashion-MNIST", CLASSES, train, test, mean=(0.2860,), std=(0.3530,), notes=notes
    )


def _split(arrays: np.lib.npyio.NpzFile, name: str) -> Split:
    images = torch.from_numpy(arrays[f"{name}_images"])[:, None]
    labels = torch.from_numpy(arrays[f"{name}_labels"]).long()
    return Split(images, labels)
