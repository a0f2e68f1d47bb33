"""Data sets of the Hugging Face hub, or saved to disk by its `datasets` package; code in them never runs."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auglabel.data.decode import OneSize, Streamed, decode_all, first_size
from auglabel.data.folder import Crop, framed, usual_statistics
from auglabel.data.picture import Frame
from auglabel.data.source import MOST_CLASSES, DataSet, InMemory, in_memory
from auglabel.errors import UserError
from auglabel.util.checks import require_number, shown
from auglabel.util.extras import extra_module

CACHES = (
    "HF_CACHE_HOME",
    "HF_DATASETS_CACHE",
    "DOWNLOADED_DATASETS_PATH",
    "EXTRACTED_DATASETS_PATH",
    "HF_HUB_CACHE",
)
TEST_SPLITS = ("test", "validation", "val", "valid")


class Rows:
    """The encoded images of a column, by row; those that are files of their own lie below one of `roots`."""

    def __init__(self, table: Any, column: str, words: str, roots: Sequence[Path]) -> None:
        self.table, self.column, self.words = table, column, words
        self.roots = [root.resolve() for root in roots]

    def __len__(self) -> int:
        return len(self.table)

    def path(self, row: int) -> str:
        return f"image {row} of {self.words}"

    def read(self, row: int) -> bytes:
        image = self.table[row][self.column]
        if image and image.get("bytes"):
            return bytes(image["bytes"])
        if image and image.get("path"):
            return self._file(row, Path(image["path"]))
        return b""  # no picture: told as a broken one

    def _file(self, row: int, file: Path) -> bytes:
        """The bytes of an image file; refused outside the data set, since its table could name any file."""
        if not any(file.resolve().is_relative_to(root) for root in self.roots):
            raise UserError(
                f"{self.path(row)} is the file {shown(file)}, which lies outside the data set. "
                "Save the data set with save_to_disk, which puts the images in it."
            )
        try:
            if file.exists() and not file.is_file():
                raise UserError(f"{self.path(row)} must be a regular file, got {shown(file)}.")
            return file.read_bytes()
        except OSError as error:
            raise OSError(f"{self.path(row)} cannot be read: {error.strerror}: {file}.") from None


def huggingface(
    path: str,
    config: str | None = None,
    image: str = "image",
    label: str = "label",
    size: int | None = None,
    resize: int | None = None,
    channels: int | None = None,
    train_crop: Crop = "none",
    revision: str | None = None,
    train_split: str = "train",
    test_split: str | None = None,
    skip_broken: bool = False,
    memory_gb: float = 4.0,
) -> DataSet:
    """The columns `image` and `label` of a data set; `path` is its name on the hub or a saved directory.

    `test_split` None takes the first of test, validation, val, valid that is there. Sizes, channels, crops
    and memory are as for image folders.
    """
    frame = framed(size, resize, channels, train_crop)
    require_number("memory_gb", memory_gb, 0)
    splits = _splits(path, config, revision)
    tables = {train_split: _split(path, splits, train_split)}
    test_split = test_split or next(
        (one for one in TEST_SPLITS if one in splits and one != train_split), None
    )
    if test_split is not None:
        tables[test_split] = _split(path, splits, test_split)
    classes, labels = _labels(path, tables, label)
    rows = {split: _rows(path, split, table, image) for split, table in tables.items()}
    one_size = first_size(rows[train_split], frame, skip_broken)
    notes = [
        f"splits {' and '.join(tables)}; unused: {', '.join(sorted(set(splits) - set(tables))) or 'none'}"
    ]
    crops = train_crop == "random_resized"
    if crops or sum(map(len, rows.values())) * math.prod(one_size.shape) > memory_gb * 2**30:
        return _streamed(path, tables, rows, labels, classes, frame, one_size, crops, notes)
    parts = []
    either = channels is None
    for split, content in rows.items():
        done = decode_all(content, frame, one_size, skip_broken=skip_broken, either=either)
        if done.images.shape[1] != one_size.shape[0]:  # all training images are grey: so must the test's be
            frame, one_size = (
                Frame(1, frame.size, frame.resize),
                OneSize((1, *one_size.shape[1:]), one_size.path),
            )
        either = False
        notes += [f"{split}: {note}" for note in done.notes]
        parts.append(InMemory(torch.from_numpy(done.images), labels[split][done.rows]))
    return in_memory(path, classes, parts[0], parts[1] if len(parts) > 1 else None, notes=notes)


def _streamed(
    path: str,
    tables: dict[str, Any],
    rows: dict[str, Rows],
    labels: dict[str, Tensor],
    classes: tuple[str, ...],
    frame: Frame,
    one_size: OneSize,
    crops: bool,
    notes: list[str],
) -> DataSet:
    digest = hashlib.sha256()
    for split, table in tables.items():
        digest.update(f"{split}\0{table._fingerprint}\0{len(table)}\n".encode())
        digest.update(labels[split].numpy().astype("<i8").data)
    parts = [
        Streamed(content, labels[split], frame, one_size, "exact" if crops and place == 0 else None)
        for place, (split, content) in enumerate(rows.items())
    ]
    mean, std = usual_statistics(frame.channels)
    notes = [*notes, "streamed: images are decoded as they are needed"]
    test = parts[1] if len(parts) > 1 else None
    return DataSet(path, classes, parts[0], test, mean, std, digest.hexdigest(), tuple(notes))


def _datasets() -> Any:
    return extra_module("datasets", "Hugging Face data sets need the datasets package", "huggingface")


def _splits(path: str, config: str | None, revision: str | None) -> dict[str, Any]:
    module = _datasets()
    try:
        if os.path.isdir(path) and any(
            os.path.isfile(os.path.join(path, mark)) for mark in ("dataset_dict.json", "state.json")
        ):
            found = module.load_from_disk(path)
        else:
            found = module.load_dataset(path, config, revision=revision)
    except Exception as error:  # the hub, the network, the file formats: each has its own
        reason = " ".join(str(error).split()).rstrip(".")
        raise OSError(
            f"the data set {path} could not be loaded ({type(error).__name__}: {reason}): check its name, "
            "its configuration (--data.config) and the network, or give a directory that save_to_disk wrote."
        ) from None
    return dict(found) if isinstance(found, dict) else {"train": found}


def _split(path: str, splits: dict[str, Any], wanted: str) -> Any:
    if wanted not in splits:
        raise UserError(f"{path} has no split {wanted}: it has {', '.join(splits)}.")
    return splits[wanted]


def _column(path: str, split: str, table: Any, column: str, option: str) -> None:
    if column not in table.column_names:
        raise UserError(
            f"{path}: the split {split} has no column {column}, but {', '.join(table.column_names)}: "
            f"name it with --data.{option}."
        )


def _rows(path: str, split: str, table: Any, column: str) -> Rows:
    _column(path, split, table, column, "image")
    module = _datasets()
    kind = module.Image
    if not isinstance(table.features[column], kind):
        raise UserError(
            f"{path}: the column {column} must hold images, but it holds {table.features[column]}: "
            "name another with --data.image."
        )
    only = table.cast_column(column, kind(decode=False)).select_columns([column])
    return Rows(only, column, f"{path}/{split}", _roots(path, module.config))


def _roots(path: str, config: Any) -> list[Path]:
    """Where the files of a data set may lie: its own folder, or the caches of what is on the hub."""
    if os.path.isdir(path):
        return [Path(path)]
    caches = (getattr(config, name, None) for name in CACHES)
    return [Path(cache) for cache in caches if cache is not None]


def _labels(path: str, tables: dict[str, Any], column: str) -> tuple[tuple[str, ...], dict[str, Tensor]]:
    """Class names, and each split's labels."""
    values = {}
    for split, table in tables.items():
        _column(path, split, table, column, "label")
        values[split] = list(table[column])
    feature = next(iter(tables.values())).features[column]
    every = [value for split in values.values() for value in split]
    if all(isinstance(value, str) for value in every):
        classes = tuple(sorted(set(every)))
        place = {word: index for index, word in enumerate(classes)}
        return _several(path, classes), {s: torch.tensor([place[v] for v in vs]) for s, vs in values.items()}
    wrong = next((v for v in every if type(v) is not int or not 0 <= v < MOST_CLASSES), None)
    if wrong is not None or not every:
        raise UserError(
            f"{path}: the column {column} must hold a class for every image, got {wrong!r}: "
            "name another with --data.label, or another split with --data.test_split."
        )
    names = getattr(feature, "names", None) or [str(index) for index in range(max(every) + 1)]
    return _several(path, tuple(names)), {s: torch.tensor(vs, dtype=torch.int64) for s, vs in values.items()}


def _several(path: str, classes: tuple[str, ...]) -> tuple[str, ...]:
    if len(classes) < 2:
        raise UserError(f"{path} has one class only, {classes[0]}: telling classes apart takes two.")
    return classes
