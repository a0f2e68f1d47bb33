"""CIFAR-10 and CIFAR-100: the official python and binary files, packed or not, or as image folders.

https://www.cs.toronto.edu/~kriz/cifar.html describes the files and gives the archives' checksums.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from auglabel.data.cifar_files import CIFAR10, CIFAR100, Cifar, OfficialFiles, official_files
from auglabel.data.download import blocks, fetched, md5, require_md5
from auglabel.data.files import tar_contents
from auglabel.data.folder import folder
from auglabel.data.pickles import unpickle
from auglabel.data.source import DataSet, InMemory, in_memory
from auglabel.errors import UserError

ADDRESS = "https://www.cs.toronto.edu/~kriz/"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # SPEC.md, section 4: CIFAR-100 too
PIXELS = 3 * 32 * 32

Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]  # images (N, PIXELS), labels (N,)


def cifar10(root: str | os.PathLike[str], download: bool = False, verify: bool = True) -> DataSet:
    """CIFAR-10 from the official files, packed or not, or from train/<class>/ and test/<class>/ images.

    `root` is the file or folder, or the directory that holds it. `verify` compares official files with
    their checksums; `download` fetches them if `root` has nothing.
    """
    return _load(CIFAR10, Path(root).expanduser(), download, verify)


def cifar100(root: str | os.PathLike[str], download: bool = False, verify: bool = True) -> DataSet:
    """CIFAR-100 with its 100 fine classes; see `cifar10`."""
    return _load(CIFAR100, Path(root).expanduser(), download, verify)


def _load(kind: Cifar, root: Path, download: bool, verify: bool) -> DataSet:
    found = official_files(kind, root)
    pictures = (root / "train").is_dir() and (root / "test").is_dir()
    if found is None and (pictures or (root.suffix == ".tar" and root.is_file())):
        return _pictures(kind, root)
    layout, place = found or _downloaded(kind, root, download)
    if verify and place.is_file():
        require_md5(str(place), md5(blocks(place)), layout.md5)
    files = {**layout.train, **layout.test}
    contents = tar_contents(place, files) if place.is_file() else _read(place, files)
    _require_sound(layout, place, contents, verify)
    read = _from_python if layout is kind.python else _from_binary
    batches = {
        name: read(kind, contents[name], str(place / name) if place.is_dir() else f"{name} in {place}")
        for name in files
    }
    parts = []
    for names in (layout.train, layout.test):
        images, labels = (np.concatenate([batches[name][n] for name in names]) for n in (0, 1))
        parts.append(InMemory(torch.from_numpy(images).view(-1, 3, 32, 32), torch.from_numpy(labels)))
    checked = verify and (place.is_file() or all(layout.train.values()))
    note = f"{layout.words} in {place}; {'their checksums match' if checked else 'no checksum was compared'}"
    return in_memory(kind.name, kind.classes, parts[0], parts[1], mean=MEAN, std=STD, notes=[note])


def _downloaded(kind: Cifar, root: Path, download: bool) -> tuple[OfficialFiles, Path]:
    if not download:
        raise FileNotFoundError(
            f"{root} does not hold {kind.name}: put {kind.python.archive} from {ADDRESS} there, "
            "or let --data.download true fetch it."
        )
    archive = root / kind.python.archive
    return kind.python, fetched(ADDRESS + archive.name, archive, kind.python.md5)


def _read(place: Path, names: Iterable[str]) -> dict[str, bytes]:
    path = place
    try:
        return {path.name: path.read_bytes() for name in names if (path := place / name).is_file()}
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror}.") from None


def _require_sound(layout: OfficialFiles, place: Path, contents: dict[str, bytes], verify: bool) -> None:
    """All files are there, and with `verify` those of a folder are as they were published."""
    files = {**layout.train, **layout.test}
    if missing := [name for name in files if name not in contents]:
        raise FileNotFoundError(
            f"{place} lacks {', '.join(missing)}: fetch {layout.archive} from {ADDRESS} again."
        )
    for name, expected in files.items():
        if verify and expected and not place.is_file():
            require_md5(str(place / name), md5([contents[name]]), expected)


def _from_python(kind: Cifar, content: bytes, path: str) -> Batch:
    batch = unpickle(content, path)
    if not isinstance(batch, dict):
        raise UserError(f"{path} is not a batch of {kind.name}: expected a dict, got {type(batch).__name__}.")
    named: dict[Any, Any] = {
        key.encode() if isinstance(key, str) else key: value for key, value in batch.items()
    }
    if not {b"data", kind.key} <= set(named):
        raise UserError(f'{path} is not a batch of {kind.name}: it lacks "data" or "{kind.key.decode()}".')
    images, labels = named[b"data"], named[kind.key]
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (PIXELS,):
        came = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise UserError(f"{path}: expected uint8 images of shape (N, {PIXELS}), got {came}.")
    if not isinstance(labels, list) or not all(type(label) is int and abs(label) < 2**31 for label in labels):
        raise UserError(f"{path}: the labels must be a list of whole numbers, one per image.")
    if len(labels) != len(images):
        raise UserError(f"{path} is damaged: it has {len(images)} images but {len(labels)} labels.")
    return _batch(kind, images, np.array(labels, dtype=np.int64), path)


def _from_binary(kind: Cifar, content: bytes, path: str) -> Batch:
    record = kind.bytes_before + PIXELS
    if not content or len(content) % record:
        raise UserError(
            f"{path} is cut short or not {kind.name}: expected a multiple of {record} bytes, "
            f"got {len(content)}."
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return _batch(kind, rows[:, kind.bytes_before :], rows[:, kind.bytes_before - 1].astype(np.int64), path)


def _batch(kind: Cifar, images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], path: str) -> Batch:
    if len(labels) == 0:
        raise UserError(f"{path} is damaged: it holds no images.")
    if not (labels.min() >= 0 and labels.max() < len(kind.classes)):
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise UserError(f"{path} is damaged: labels must be in 0..{len(kind.classes) - 1}, got {wrong}.")
    return images, labels


def _pictures(kind: Cifar, root: Path) -> DataSet:
    """An image folder whose classes are put in the official order."""
    data = folder(root)
    strange = sorted(set(data.classes) - set(kind.classes))
    if strange:
        raise UserError(
            f"{root} is not {kind.name}, which has no class {strange[0]}: load other images as a folder."
        )
    if data.train.shape != (3, 32, 32):
        channels, height, width = data.train.shape
        raise UserError(
            f"{root} is not {kind.name}, whose images have 3 channels of 32 x 32, got {channels} of "
            f"{width} x {height}."
        )
    official = torch.tensor([kind.classes.index(name) for name in data.classes])
    for part in (data.train, data.test):
        if part is not None:
            part.labels = official[part.labels]
    return replace(
        data,
        name=kind.name,
        classes=kind.classes,
        mean=MEAN,
        std=STD,
        notes=(f"image folder {root}: {len(data.train):,} training images", *data.notes),
    )
