"""Noise: every value changes on its own."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from auglabel.corrupt.draws import Draws
from auglabel.corrupt.levels import as_bytes


def gaussian_noise(images: Tensor, deviation: float, draws: Draws) -> Tensor:
    return as_bytes(draws.normal(*images.shape[1:]) * (255 * deviation) + images)


def speckle_noise(images: Tensor, deviation: float, draws: Draws) -> Tensor:
    """Noise in proportion to the value."""
    return as_bytes(draws.normal(*images.shape[1:]) * deviation * images + images)


def impulse_noise(images: Tensor, share: float, draws: Draws) -> Tensor:
    """A `share` of the values becomes black or white, as many the one as the other."""
    drawn = draws.uniform(*images.shape[1:])
    return images.masked_fill(drawn < share, 255).masked_fill(drawn < share / 2, 0)


def shot_noise(images: Tensor, photons: int, draws: Draws) -> Tensor:
    """Poisson counts, a white pixel having `photons` on average."""
    keep, other = _poisson(photons)
    drawn = draws.uniform(*images.shape[1:]) * 256
    column = drawn.to(torch.uint8)
    cell = (images.int() * 256 + column).reshape(-1)
    kept = (drawn - column).reshape(-1) < keep.index_select(0, cell)
    return torch.where(kept, column.reshape(-1), other.index_select(0, cell)).view_as(images)


@lru_cache(maxsize=16)
def _poisson(photons: int) -> tuple[Tensor, Tensor]:
    """For every byte, the alias table of the bytes that its Poisson count may give.

    One uniform number of 24 bits then picks a byte: 8 bits a column, 16 whether that column's own byte is
    kept or the other one taken. Chances are whole numbers of 2 ** -24, so that no last bit of an exponential
    changes the table from machine to machine.
    """
    counts = torch.arange(photons, dtype=torch.float64)
    rates = torch.arange(256, dtype=torch.float64)[:, None] * (photons / 255)
    chances = torch.exp(torch.xlogy(counts, rates) - rates - torch.lgamma(counts + 1))
    byte = as_bytes(255 * counts / photons).long().expand(256, -1)
    table = torch.zeros(256, 256, dtype=torch.float64).scatter_add_(1, byte, chances)
    table[:, 255] += (1 - table.sum(dim=1)).clamp_(min=0)  # as many photons or more
    shares = (table * 2**24).round().long()
    rest = 2**24 - shares.sum(dim=1, keepdim=True)  # a few, to the likeliest byte
    keep, other = _alias(shares.scatter_add_(1, shares.argmax(dim=1, keepdim=True), rest))
    return keep.float().reshape(-1) / 2**16, other.to(torch.uint8).reshape(-1)


def _alias(shares: Tensor) -> tuple[Tensor, Tensor]:
    """Walker's tables, row by row: the scarcest column is filled up from the richest, until all are even."""
    rows, columns = shares.shape
    every, number = torch.arange(rows), torch.arange(columns)
    even, most = int(shares[0].sum()) // columns, torch.iinfo(torch.int64).max
    left = shares * columns + number  # the column's number decides between equals
    keep, other = torch.full_like(left, even), number.repeat(rows, 1)
    done = torch.zeros_like(left, dtype=torch.bool)
    for _ in range(columns - 1):
        scarce = left.masked_fill(done, most).argmin(dim=1)
        rich = left.masked_fill(done, -most).argmax(dim=1)
        keep[every, scarce], other[every, scarce] = left[every, scarce] // columns, rich
        left[every, rich] -= (even - keep[every, scarce]) * columns
        done[every, scarce] = True
    return keep, other
