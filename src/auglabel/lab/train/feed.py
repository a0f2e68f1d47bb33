"""Batches of a source for one process, in an order that the seed alone decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from auglabel.data.source import Source
from auglabel.errors import UserError
from auglabel.lab.process.memory import keep_memory

Batch = tuple[Tensor, Tensor]  # (B, C, H, W) uint8, (B,) int64
Change = Callable[[Tensor, Tensor], Tensor]  # of images, by their index in the whole data set


class Feed:
    """Batches of a source, pass after pass; one pass at a time.

    Where the source streams, or its images are changed, worker processes make batches ahead, and stay from
    one pass to the next.
    """

    def __init__(self, source: Source, workers: int = 0, changes: bool = False) -> None:
        self.source = source
        self._asked: list[_Asked] = []  # a batch of the pass each
        self._loader: DataLoader[Any] | None = None
        if (source.streams or changes) and workers:
            self._loader = DataLoader(
                _Rows(source),
                batch_size=None,
                sampler=self._asked,
                num_workers=workers,
                collate_fn=_as_it_is,
                worker_init_fn=_begin,
                pin_memory=torch.cuda.is_available(),
                persistent_workers=True,
                generator=torch.Generator(),  # it would take its workers' seed from the global stream
            )

    def batches(
        self, rows: Sequence[Tensor], draw: int | None = None, change: Change | None = None
    ) -> Iterator[Batch]:
        """Batches (images, labels), one for each of `rows`; images are those that `change` makes of them.

        It is called with the images and their index in the whole data set, and sent to the workers.
        """
        asked = [_Asked(some.tolist(), draw, change) for some in rows]
        if self._loader is None:
            for each in asked:
                yield each.fetched(self.source)
            return
        self._asked[:] = asked
        for batch in self._loader:
            if isinstance(batch, Exception):
                raise batch
            yield batch


def batches(source: Source, rows: Sequence[Tensor], *, workers: int = 0) -> Iterator[Batch]:
    """The batches of a single pass."""
    return Feed(source, workers).batches(rows)


def in_turn(source: Source, batch_size: int, rank: int = 0, world: int = 1) -> list[Tensor]:
    """This rank's share of all rows, in order, without padding: no batches where it is empty."""
    share = torch.arange(len(source))[rank::world]
    return _none_alone([rows for rows in share.split(batch_size) if len(rows)], 2)


def shuffled(count: int, batch_size: int, generator: torch.Generator, world: int = 1) -> list[Tensor]:
    """All rows shuffled into batches for all ranks; a last one of fewer than 2 per rank joins another."""
    if batch_size < world:
        raise UserError(f"batch_size {batch_size} leaves some of {world} processes without an image.")
    if count < world:
        raise UserError(f"{count} training images leave some of {world} processes without one.")
    order = torch.randperm(count, generator=generator)
    return _none_alone(list(order.split(batch_size)), 2 * world)


def _none_alone(rows: list[Tensor], least: int) -> list[Tensor]:
    """Join a last batch of fewer than `least` rows to the one before: mixup needs partners."""
    if len(rows) > 1 and len(rows[-1]) < min(least, len(rows[0])):
        return [*rows[:-2], torch.cat(rows[-2:])]
    return rows


class _Asked(NamedTuple):
    """What a batch is to be made of."""

    rows: list[int]
    draw: int | None
    change: Change | None

    def fetched(self, source: Source) -> Batch:
        some = torch.tensor(self.rows)
        images = source.fetch(some, self.draw)
        return images if self.change is None else self.change(images, source.index(some)), source.labels[some]


class _Rows(Dataset[Batch | Exception]):
    """Fetches in a worker, and returns an error as a value: raised there, it would arrive as a traceback."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getitem__(self, asked: _Asked) -> Batch | Exception:
        try:
            return asked.fetched(self.source)
        except (ValueError, OSError) as error:
            return error


def _begin(worker: int) -> None:
    keep_memory()


def _as_it_is(batch: Any) -> Any:
    return batch
