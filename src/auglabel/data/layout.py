"""Which directory names a class, and which images are for training: read off the names of the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from auglabel.data.files import Files
from auglabel.errors import UserError

TEST_NAMES = ("test", "val", "validation")  # the first that is there holds the test images


@dataclass(frozen=True)
class Layout:
    """Which file is an image of which class: the training images first, then the test images."""

    files: Files
    labels: list[int]
    train: int  # how many of the files are training images
    classes: tuple[str, ...]
    notes: tuple[str, ...]


def arrange(files: Files, tests: Sequence[str] = TEST_NAMES) -> Layout:
    """Find out which directories are classes; their sorted names are the class order."""
    parts = _unwrapped([name.split("/") for name in files.names], files)
    where = files.where
    if not parts:
        raise FileNotFoundError(
            f"{where} holds no images: expected class folders with png, jpg, ... in them."
        )
    halves = {one[0] for one in parts if len(one) >= 3}
    if "train" not in halves:
        if halves & set(TEST_NAMES) and halves <= set(TEST_NAMES):
            raise FileNotFoundError(
                f"{where} has {sorted(halves)[0]}/ but no train/ with class folders in it."
            )
        train = _classes(parts, range(len(parts)), 0, where)
        return _joined(files, train, {}, ["class folders, no test part", *_loose(parts, 0)], 0)
    by_half: dict[str, list[int]] = defaultdict(list)
    for row, one in enumerate(parts):
        by_half[one[0]].append(row)
    train = _classes(parts, by_half["train"], 1, where / "train")
    there = [name for name in tests if name in by_half]
    notes = ["class folders in " + " and ".join(f"{name}/" for name in ("train", *there[:1]))]
    test = _classes(parts, by_half[there[0]], 1, where / there[0]) if there else {}
    for extra in there[1:]:  # the lab cuts its own validation images
        for label, rows_of in _classes(parts, by_half[extra], 1, where / extra).items():
            train.setdefault(label, []).extend(rows_of)
        notes.append(f"the {len(by_half[extra])} images of {extra}/ were added to those of train/")
    unused = sorted(set(by_half) - {"train", *there})
    if unused:
        notes.append(f"not used: {', '.join(unused[:5])}")
    return _joined(files, train, test, notes + _loose(parts, 1, {"train", *there}), 1)


def _unwrapped(parts: list[list[str]], files: Files) -> list[list[str]]:
    """Without the one directory that tars are often packed with."""
    tops = {one[0] for one in parts}
    wrapped = files.offsets is not None and len(tops) == 1 and not tops & {"train", *TEST_NAMES}
    return [one[1:] for one in parts] if wrapped and min(map(len, parts)) >= 3 else parts


def _classes(parts: list[list[str]], rows: Sequence[int], depth: int, where: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if len(parts[row]) > depth + 1:
            found[parts[row][depth]].append(row)
    if not found:
        raise FileNotFoundError(
            f"{where} holds {len(rows)} images but no class folders: expected one folder per class."
        )
    return found


def _loose(parts: list[list[str]], depth: int, halves: Container[str] = ()) -> list[str]:
    count = sum(len(one) == depth + 1 and (depth == 0 or one[0] in halves) for one in parts)
    return [f"images that lie in no class folder and are left out: {count}"] if count else []


def _joined(
    files: Files, train: dict[str, list[int]], test: dict[str, list[int]], notes: list[str], depth: int
) -> Layout:
    where, classes = files.where, sorted(train)
    if len(classes) == 1:
        raise UserError(f"{where} has one class only, {classes[0]}: telling classes apart takes two folders.")
    strange = sorted(set(test) - set(classes))
    if strange:
        raise UserError(f"{where}: the test images have classes that train/ lacks: {', '.join(strange[:5])}.")
    rows: list[int] = []
    labels: list[int] = []
    for half in (train, test):
        for label, name in enumerate(classes):
            rows.extend(half.get(name, ()))
            labels.extend([label] * len(half.get(name, ())))
    holding = {"/".join(name.split("/", depth + 1)[: depth + 1]) for name in files.names}
    empty = [one for one in files.folders if one.count("/") == depth and one not in holding]
    if empty:
        notes.append(f"folders without images: {', '.join(empty[:5])}")
    return Layout(files.take(rows), labels, sum(map(len, train.values())), tuple(classes), tuple(notes))
