"""Random numbers of a batch, each image's from a stream of its own."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor


class Draws:
    """Numbers that depend on (seed, name, severity, index of the image) and on nothing else.

    The k-th call has its own stream, so a call's shape shifts no later one. Numbers are drawn on the CPU.
    """

    def __init__(self, seed: int, name: str, severity: int, index: Sequence[int]) -> None:
        self._streams = [_streams(f"{seed}/{name}/{severity}/{row}") for row in index]
        self._generator, self._calls = Generator(), 0

    def __len__(self) -> int:
        return len(self._streams)

    def normal(self, *shape: int) -> Tensor:
        """(N, *shape) float32, standard normal."""
        return self._filled(shape, lambda row: row.normal_(generator=self._generator))

    def uniform(self, *shape: int) -> Tensor:
        """(N, *shape) float32 in [0, 1)."""
        return self._filled(shape, lambda row: row.uniform_(generator=self._generator))

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        """(N, *shape) int64 in low .. high - 1."""
        draw = lambda row: row.random_(low, high, generator=self._generator)  # noqa: E731
        return self._filled(shape, draw, torch.int64)

    def _filled(
        self, shape: tuple[int, ...], draw: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float32
    ) -> Tensor:
        numbers = torch.empty(len(self), *shape, dtype=dtype)
        for row, streams in zip(numbers.unbind(), self._streams, strict=True):
            self._generator.manual_seed(streams[self._calls])
            draw(row)
        self._calls += 1
        return numbers


def _streams(words: str) -> tuple[int, ...]:
    """Eight seeds of 32 bits, as many as the generator looks at."""
    return struct.unpack("<8I", hashlib.blake2b(words.encode(), digest_size=32).digest())
