"""Cut a data set into training, validation and test images: seeded, disjoint, recorded by row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from auglabel.data.source import DataSet, Source, Subset
from auglabel.errors import UserError
from auglabel.util.checks import kind_of, require_whole

TEST_SHARE = 0.2  # of data that come without a test part

Size = int | float  # so many images, or this share of them


@dataclass(frozen=True)
class Parts:
    """Three sets of rows without a common image; each names its source and its `rows`."""

    train: Subset
    validation: Subset
    test: Subset

    def joined(self) -> Subset:
        """The training and the validation images, to be trained on together."""
        if self.train.source is not self.validation.source:
            raise UserError(
                "validation images of the test part cannot be trained on, as they are not read like training "
                'images: use validation_from "train", or leave out give_back.'
            )
        return Subset(self.train.source, torch.cat([self.train.rows, self.validation.rows]))


def split(
    data: DataSet,
    *,
    train: Size | None = None,
    validation: Size = 0.1,
    test: Size | None = None,
    validation_from: Literal["train", "test"] = "train",
    stratified: bool = False,
    seed: int | None = None,
    generator: torch.Generator,
) -> Parts:
    """Random parts of `data`: sizes are whole numbers, or shares of the images they are cut from.

    Args:
        train: training images; if not given, all that are left
        validation: validation images
        test: test images; if not given, all that the data have as such, or a fifth of data that have none
        validation_from: cut validation images from the training or from the test images
        stratified: every class has its proportional count in each part, rounded up or down
        seed: which images validate and test is drawn by this seed, not by the run's own
    """
    if seed is not None:
        require_whole("seed", seed, 0)
    drawn = generator if seed is None else torch.Generator().manual_seed(seed)
    if validation_from not in ("train", "test"):
        raise UserError(f'validation_from must be "train" or "test", got {kind_of(validation_from)}.')
    if data.test is None and validation_from == "test":
        raise UserError(
            f'{data.name} has no test images to cut validation from: use validation_from "train", '
            "which sets test images aside as well."
        )
    wanted: dict[str, Size | None] = {"validation": validation, "train": train}
    if data.test is None:  # test first: its rows then depend on nothing but its own size
        wanted = {"test": TEST_SHARE if test is None else test, **wanted}
        rows = cut(data.train, wanted, f"{data.name}'s", stratified, drawn)
        return Parts(**{name: Subset(data.train, part) for name, part in rows.items()})
    if validation_from == "train":
        rows = cut(data.train, wanted, f"{data.name}'s training", stratified, drawn)
        tested = _whole(data.test) if test is None else None
        if tested is None:
            tested = cut(data.test, {"test": test}, f"{data.name}'s test", stratified, drawn)["test"]
        return Parts(
            Subset(data.train, rows["train"]),
            Subset(data.train, rows["validation"]),
            Subset(data.test, tested),
        )
    trained = _whole(data.train)
    if train is not None:
        trained = cut(data.train, {"train": train}, f"{data.name}'s training", stratified, generator)["train"]
    wanted = {"validation": validation, "test": test}
    rows = cut(data.test, wanted, f"{data.name}'s test", stratified, drawn)
    return Parts(
        Subset(data.train, trained), Subset(data.test, rows["validation"]), Subset(data.test, rows["test"])
    )


def cut(
    source: Source, wanted: dict[str, Size | None], whose: str, stratified: bool, generator: torch.Generator
) -> dict[str, Tensor]:
    """Random disjoint rows for each part, in random order; None takes what is left."""
    count = len(source)
    sizes = {name: _images(name, size, count, whose) for name, size in wanted.items() if size is not None}
    left = count - sum(sizes.values())
    told = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    if left < 0:
        raise UserError(f"{whose} {count:,} images cannot be cut into {told}: {-left:,} are missing.")
    for name, size in wanted.items():
        if size is None:
            if left == 0:
                raise UserError(f"{whose} {count:,} images leave none for {name} after {told}.")
            sizes[name], left = left, 0
    sizes = {name: sizes[name] for name in wanted}
    if not stratified:
        rows = torch.randperm(count, generator=generator).split([*sizes.values(), left])
        return dict(zip(sizes, rows, strict=False))
    return dict(zip(sizes, _stratified(source.labels, [*sizes.values(), left], generator), strict=False))


def _images(name: str, size: Size, count: int, whose: str) -> int:
    if isinstance(size, bool) or not isinstance(size, int | float) or not (size >= 0):
        raise UserError(f"{name} must be a number of images or a share in (0, 1), got {kind_of(size)}.")
    least = 1 if name == "train" else 0
    if isinstance(size, int):
        if size < least:
            raise UserError("train must be at least 1 image, got 0.")
        return size
    if not 0 < size < 1:
        raise UserError(
            f"{name} must be a whole number of images or a share in (0, 1), got {size}, which is neither."
        )
    images = math.floor(size * count + 1e-9)
    if images == 0:
        raise UserError(f"{name} {size} of {whose} {count:,} images is not one image.")
    return images


def _whole(source: Source) -> Tensor:
    return torch.arange(len(source))


def _stratified(labels: Tensor, sizes: list[int], generator: torch.Generator) -> list[Tensor]:
    """Rows for each size, each class's rows dealt out by `proportional`."""
    present, counts = labels.unique(return_counts=True)
    dealt: list[list[Tensor]] = [[] for _ in sizes]
    for label, row in zip(present, proportional(counts.tolist(), sizes), strict=True):
        rows = (labels == label).nonzero().squeeze(1)
        rows = rows[torch.randperm(len(rows), generator=generator)]
        for part, piece in zip(dealt, rows.split(row), strict=True):
            part.append(piece)
    joined = [torch.cat(part) for part in dealt]
    return [part[torch.randperm(len(part), generator=generator)] for part in joined]


def proportional(counts: list[int], sizes: list[int]) -> list[list[int]]:
    """Whole numbers with row sums `counts` and column sums `sizes`, each at most one from its exact share.

    Starts from the exact table, size * count / total, and shifts fractions around closed loops of cells
    that are not whole until none is left: sums never change, and no cell passes a whole number.
    """
    total = sum(counts)
    cells = [[size * count for size in sizes] for count in counts]  # in units of 1 / total: exact
    parts = len(sizes)
    for column in (*reversed(range(parts - 1)), parts - 1):  # training first: rare classes go there
        for row in range(len(counts)):
            while cells[row][column] % total:
                loop = _loop(cells, row, column, total)
                room = [cells[r][c] % total for r, c in loop]
                step = min(part if place % 2 else total - part for place, part in enumerate(room))
                for place, (r, c) in enumerate(loop):
                    cells[r][c] += -step if place % 2 else step
    return [[cell // total for cell in row] for row in cells]


def _loop(cells: list[list[int]], row: int, column: int, total: int) -> list[tuple[int, int]]:
    """A closed loop of cells that are not whole, turning at each: along a row, then along a column.

    A row or column with one such cell has another, because its sum is whole.
    """
    path = [(row, column)]
    entered = {column: 0}  # where on the path each column was entered
    while True:
        column = next(c for c, cell in enumerate(cells[row]) if c != column and cell % total)
        path.append((row, column))
        if column in entered:
            loop = path[entered[column] :]
            return loop[-2:0:-1] if loop[0] == loop[-1] else loop  # a cell met twice is passed by
        row = next(r for r, line in enumerate(cells) if r != row and line[column] % total)
        entered[column] = len(path)
        path.append((row, column))
