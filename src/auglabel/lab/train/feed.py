"""Batches of a source for one process, in an order that the seed alone decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from auglabel.data.source import Source
from auglabel.errors import UserError

Batch = tuple[Tensor, Tensor]  # (B, C, H, W) uint8, (B,) int64


class Feed:
    """Batches of a source, pass after pass; one pass at a time.

    Where the source streams, worker processes make batches ahead, and stay from one pass to the next.
    """

    def __init__(self, source: Source, workers: int = 0) -> None:
        self.source = source
        self._asked: list[tuple[list[int], int | None]] = []  # rows and draw of each batch of the pass
        self._loader: DataLoader[Any] | None = None
        if source.streams and workers:
            self._loader = DataLoader(
                _Rows(source),
                batch_size=None,
                sampler=self._asked,
                num_workers=workers,
                collate_fn=_as_it_is,
                pin_memory=torch.cuda.is_available(),
                persistent_workers=True,
                generator=torch.Generator(),  # it would take its workers' seed from the global stream
            )

    def batches(self, rows: Sequence[Tensor], draw: int | None = None) -> Iterator[Batch]:
        """Batches (images, labels), one for each of `rows`."""
        if self._loader is None:
            for some in rows:
                yield self.source.fetch(some, draw), self.source.labels[some]
            return
        self._asked[:] = [(some.tolist(), draw) for some in rows]
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


class _Rows(Dataset[Batch | Exception]):
    """Fetches in a worker, and returns an error as a value: raised there, it would arrive as a traceback."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getitem__(self, asked: tuple[list[int], int | None]) -> Batch | Exception:
        some = torch.tensor(asked[0])
        try:
            return self.source.fetch(some, asked[1]), self.source.labels[some]
        except (ValueError, OSError) as error:
            return error


def _as_it_is(batch: Any) -> Any:
    return batch
