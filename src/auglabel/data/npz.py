"""Arrays in one `.npz` file, under the names that Keras, MedMNIST and many others use."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Container
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from auglabel.data.source import MOST_CLASSES, DataSet, InMemory, in_memory
from auglabel.errors import UserError
from auglabel.util.checks import shown

UNPACKED = 2**28, 100  # no more than this many bytes, or this many times the file's: a bomb has a thousand

KEYS = (  # training images and labels, test images and labels, validation images and labels
    ("train_images", "train_labels", "test_images", "test_labels", "val_images", "val_labels"),
    ("x_train", "y_train", "x_test", "y_test"),
    ("images", "labels"),
)


def npz(path: str | os.PathLike[str]) -> DataSet:
    """Images uint8 (N, H, W), (N, H, W, C) or (N, C, H, W) and labels (N,) or (N, 1); never unpickled.

    MedMNIST's validation images join the training images. Classes are called "0", "1", ...
    """
    file = Path(path).expanduser()
    arrays = arrays_of(file, {key for keys in KEYS for key in keys})
    keys = next((keys for keys in KEYS if set(keys[:2]) <= set(arrays)), None)
    if keys is None:
        wanted = " or ".join(f"{keys[0]} and {keys[1]}" for keys in KEYS)
        raise UserError(f"{file} lacks {wanted}: it holds {_names(arrays) or 'nothing'}.")
    pairs = [pair for pair in zip(keys[::2], keys[1::2], strict=True) if set(pair) & set(arrays)]
    parts = [_part(file, arrays, *pair) for pair in pairs]
    train, rest = parts[0], parts[1:]
    names = [pair[0] for pair in pairs[1:]]
    for name, other in zip(names, rest, strict=True):
        if other.shape != train.shape:
            raise UserError(f"{file}: {keys[0]} has images of {train.shape}, but {name} of {other.shape}.")
    notes = [f"{keys[0]}, {keys[1]}" + (f" and {', '.join(names)}" if names else ", no test part")]
    if "val_images" in names:
        extra = rest.pop(names.index("val_images"))
        train = InMemory(
            torch.cat([train.images, extra.images]),
            torch.cat([train.labels, extra.labels]),
        )
        notes.append(f"the {len(extra)} images of val_images were added to those of train_images")
    count = 1 + max(int(part.labels.max()) for part in (train, *rest))
    if count < 2:
        raise UserError(f"{file} has one class only: telling classes apart takes two.")
    classes = [str(label) for label in range(count)]
    return in_memory(file.stem, classes, train, rest[0] if rest else None, notes=notes)


def arrays_of(file: Path, wanted: Container[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file by name; of those that are not `wanted`, the name alone."""
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: expected an .npz file.")
    with file.open("rb") as opened:
        start = opened.read(6)
    if start == b"\x93NUMPY":
        raise UserError(f"{file} is a single array: save the arrays together, with numpy.savez.")
    try:
        if not zipfile.is_zipfile(file):
            raise UserError("it is not a zip archive, or cut short")
        with np.load(file, allow_pickle=False) as found:
            require_small(file, found.zip)
            return {
                key: _array(found[key]) if wanted is None or key in wanted else np.empty(0)
                for key in found.files
            }
    except Exception as error:  # a damaged archive, header or array each fail in their own ways
        if "Object arrays" in str(error):
            raise UserError(
                f"{file} holds pickled objects, which could run code and are not read: save plain arrays."
            ) from None
        raise UserError(
            f"{file} is not an .npz file that can be read ({shown(error)}): write or fetch it again."
        ) from None


def require_small(file: Path, archive: zipfile.ZipFile) -> None:
    """A zip cannot unpack to more than it says, but it may say anything."""
    size, most = sum(entry.file_size for entry in archive.infolist()), UNPACKED[0]
    if size > max(most, UNPACKED[1] * file.stat().st_size):
        raise UserError(f"it unpacks to {size:,} bytes, {UNPACKED[1]} times its own size or more")


def _array(found: Any) -> npt.NDArray[Any]:
    if not isinstance(found, np.ndarray):  # numpy hands over what is no array as bytes
        raise UserError("it holds something else than arrays")
    return found


def _names(arrays: dict[str, npt.NDArray[Any]]) -> str:
    return shown(", ".join(sorted(arrays)))


def _part(file: Path, arrays: dict[str, npt.NDArray[Any]], images: str, labels: str) -> InMemory:
    for name in (images, labels):
        if name not in arrays:
            raise UserError(f"{file} lacks {name}: it holds {_names(arrays)}.")
    pixels, ids = _images(file, images, arrays[images]), _labels(file, labels, arrays[labels])
    if len(pixels) != len(ids):
        raise UserError(f"{file}: {images} has {len(pixels)} rows, but {labels} has {len(ids)}.")
    if len(ids) == 0:
        raise UserError(f"{file}: {images} is empty.")
    return InMemory(torch.from_numpy(pixels), torch.from_numpy(ids))


def _images(file: Path, name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype != np.uint8:
        raise UserError(
            f"{file}: {name} must be uint8 in 0..255, got {array.dtype}. "
            "Floats in [0, 1] are converted with (images * 255).round().astype('uint8')."
        )
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4:
        last, first = array.shape[3] in (1, 3), array.shape[1] in (1, 3)
        if last == first:
            raise UserError(
                f"{file}: {name} must have 1 or 3 channels, either second or last, got {array.shape}."
            )
        array = array.transpose(0, 3, 1, 2) if last else array
    else:
        raise UserError(
            f"{file}: {name} must have shape (N, H, W), (N, H, W, C) or (N, C, H, W), got {array.shape}."
        )
    return np.ascontiguousarray(array)


def _labels(file: Path, name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UserError(
            f"{file}: {name} must be whole numbers of shape (N,) or (N, 1), got {array.dtype} {array.shape}."
        )
    if array.size and (array.min() < 0 or array.max() >= MOST_CLASSES):
        wrong = array.min() if array.min() < 0 else array.max()
        raise UserError(
            f"{file}: {name} must be 0 or more, one number per class and at most {MOST_CLASSES:,} of them, "
            f"got {wrong}."
        )
    return array.astype(np.int64)
