"""Image folders, one directory per class, or the same in a tar; ImageNet is one of them."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from auglabel.data import cache as kept
from auglabel.data.decode import Crops, OneSize, Streamed, decode_all, first_size
from auglabel.data.files import Files, find_images
from auglabel.data.layout import Layout, arrange
from auglabel.data.picture import Frame, pillow
from auglabel.data.source import DataSet, InMemory, in_memory
from auglabel.errors import UserError
from auglabel.util.checks import kind_of, require_number, require_whole

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean, std
GREY = ((0.449,), (0.226,))  # their averages
VERSION = 1  # of what a cache entry holds
NO_NAMES = ("data", "dataset", "datasets", "images", "photos", "pictures", "train", "training")

Crop = Literal["none", "random_resized"]


def folder(
    root: str | os.PathLike[str],
    size: int | None = None,
    resize: int | None = None,
    channels: int | None = None,
    train_crop: Crop = "none",
    skip_broken: bool = False,
    memory_gb: float = 4.0,
    cache: bool = True,
    decode: Crops = "exact",
) -> DataSet:
    """Images of `root`/class/, or `root`/train/class/ and `root`/test/class/ (or val/, validation/).

    Pictures have their shorter side resized to `resize` and their centre of `size` by `size` cut out;
    without a `size` all must have one. `channels` None: 3, or 1 where every image is grey. Up to
    `memory_gb` GiB of pixels are decoded at once and cached; more, or random crops, are streamed, and then
    `channels` None is 3. `decode` "fast" makes random crops of JPEG files in half the time, from pixels that
    differ a little; all other pictures are always exact.
    """
    frame = framed(size, resize, channels, train_crop)
    crops = _crops(decode) if train_crop == "random_resized" else None
    require_number("memory_gb", memory_gb, 0)
    pillow()
    where = Path(root).expanduser()
    options = [VERSION, size, frame.resize, channels, skip_broken]
    limit = memory_gb * 2**30 if train_crop == "none" else -1.0
    files = None if where.is_file() else find_images(where)  # a tar in the cache is not even listed
    key = _key(where, files, options)
    found = _recalled(where, key, limit) if cache else None
    if found is not None:
        return found
    layout = arrange(files or find_images(where))
    one_size = first_size(layout.files, frame, skip_broken)
    if len(layout.files) * math.prod(one_size.shape) > limit:
        warning = "skip_broken changes nothing here: a broken image stops the run with its name"
        return _streamed(layout, frame, one_size, crops, [warning] if skip_broken else [])
    return _decoded(layout, frame, one_size, skip_broken, channels is None, key if cache else None)


def imagenet(
    root: str | os.PathLike[str], size: int = 224, resize: int = 256, decode: Crops = "exact"
) -> DataSet:
    """ImageNet as train/<wnid>/ and val/<wnid>/: streamed, random resized crops for training.

    `decode` is that of `folder`.
    """
    crops = _crops(decode)
    frame = framed(size, resize, 3, "random_resized")
    pillow()
    where = Path(root).expanduser()
    files = find_images(where)
    for part in ("train", "val"):
        names = [name for name in files.names if name.startswith(f"{part}/")]
        if not any(name.count("/") >= 2 for name in names):
            came = f"{len(names)} images but no class folders" if names else "no images"
            raise FileNotFoundError(
                f"{where} is not in ImageNet's layout: expected images in {part}/<class>/, such as "
                f"{part}/n01440764/, but {part}/ has {came}."
            )
    return _streamed(arrange(files, ("val",)), frame, OneSize((3, size, size), ""), crops)


def framed(size: int | None, resize: int | None, channels: int | None, train_crop: str) -> Frame:
    """What the options ask for, once they fit together."""
    if channels not in (None, 1, 3):
        raise UserError(f"channels must be 1 (grey) or 3 (colour), got {kind_of(channels)}.")
    if train_crop not in ("none", "random_resized"):
        raise UserError(f'train_crop must be "none" or "random_resized", got {kind_of(train_crop)}.')
    if size is None:
        if resize is not None or train_crop != "none":
            what = "resize" if resize is not None else f"train_crop {train_crop}"
            raise UserError(f"{what} needs a size to crop to: give --data.size as well.")
        return Frame(channels or 3)
    require_whole("size", size, 1)
    if resize is None:
        resize = round(size * 256 / 224) if train_crop == "random_resized" else size
    require_whole("resize", resize, size)
    return Frame(channels or 3, size, resize)


def _crops(decode: Crops) -> Crops:
    if decode not in ("exact", "fast"):
        raise UserError(f'decode must be "exact" or "fast", got {kind_of(decode)}.')
    return decode


def _key(where: Path, files: Files | None, options: list[Any]) -> str:
    """A fingerprint of the files, or of the tar as a whole, and of what is made of them."""
    if files is None:
        status = where.stat()
        told = [where.name, status.st_size, status.st_mtime_ns, options]
    else:
        told = [str(where.resolve()), files.names, files.sizes, files.times, options]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _recalled(where: Path, key: str, limit: float) -> DataSet | None:
    found = kept.load(key)
    if found is None or found[0].size > limit:
        return None
    images, facts = found
    try:
        labels, count = torch.tensor(facts["labels"], dtype=torch.int64), int(facts["train"])
        data = _halves(
            where, images, labels, count, facts["classes"], facts["mean"], facts["std"], facts["notes"]
        )
        return data if data.checksum == facts["checksum"] else None
    except (KeyError, TypeError, ValueError):
        return None


def _decoded(
    layout: Layout,
    frame: Frame,
    one_size: OneSize,
    skip_broken: bool,
    either: bool,
    key: str | None,
) -> DataSet:
    done = decode_all(layout.files, frame, one_size, skip_broken=skip_broken, either=either)
    labels = torch.tensor([layout.labels[row] for row in done.rows], dtype=torch.int64)
    count = sum(row < layout.train for row in done.rows)
    if len(labels[:count].unique()) < len(layout.classes):
        gone = next(n for i, n in enumerate(layout.classes) if not (labels[:count] == i).any())
        raise UserError(f"{layout.files.where}: every training image of class {gone} is broken.")
    notes = [*layout.notes, *done.notes]
    data = _halves(layout.files.where, done.images, labels, count, layout.classes, None, None, notes)
    if key:
        facts = {
            **{"labels": labels.tolist(), "train": count, "classes": data.classes, "notes": data.notes},
            **{"mean": data.mean, "std": data.std, "checksum": data.checksum},
        }
        kept.store(key, done.images, facts)
    return data


def _halves(
    where: Path,
    images: Any,
    labels: torch.Tensor,
    count: int,
    classes: Sequence[str],
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    notes: Sequence[str],
) -> DataSet:
    pixels = torch.from_numpy(images)
    train = InMemory(pixels[:count], labels[:count])
    test = InMemory(pixels[count:], labels[count:]) if count < len(labels) else None
    return in_memory(_name(where), classes, train, test, mean=mean, std=std, notes=notes)


def _streamed(
    layout: Layout, frame: Frame, one_size: OneSize, crops: Crops | None, more: Sequence[str] = ()
) -> DataSet:
    files, labels, count = layout.files, torch.tensor(layout.labels, dtype=torch.int64), layout.train
    digest = hashlib.sha256()
    for name, size, label in zip(files.names, files.sizes, layout.labels, strict=True):
        digest.update(f"{name}\0{size}\0{label}\n".encode("utf-8", "surrogateescape"))
    train = Streamed(files.take(range(count)), labels[:count], frame, one_size, crops)
    test = None
    if count < len(files):
        test = Streamed(files.take(range(count, len(files))), labels[count:], frame, one_size, crops=None)
    mean, std = usual_statistics(frame.channels)
    notes = (*layout.notes, "streamed: images are decoded as they are needed", *more)
    return DataSet(_name(files.where), layout.classes, train, test, mean, std, digest.hexdigest(), notes)


def _name(where: Path) -> str:
    """Name of the folder or tar, behind that of the folder around it where it says nothing: digits/images."""
    where = Path(os.path.abspath(where))
    name = where.stem if where.is_file() else where.name
    return f"{where.parent.name}/{name}" if name.lower() in NO_NAMES else name


def usual_statistics(channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """ImageNet's mean and std, for images that are too many to measure."""
    return IMAGENET if channels == 3 else GREY
