"""Isotonic regression: the non-decreasing function of least squares, by pooling adjacent violators."""

from __future__ import annotations

import torch
from torch import Tensor


def rising(place: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Knots (places, values), in rising order, of the best non-decreasing fit to `value` at `place` (N,).

    Equal places share one value. The fit has equal values between the two knots of each pool.
    """
    level, index, count = place.double().unique(return_inverse=True, return_counts=True)
    total = torch.zeros(len(level), dtype=torch.float64).index_add_(0, index, value.double())
    mean = total / count
    # A pool can only begin where the mean rises: all that follows it without a rise is in one pool.
    begins = torch.cat([torch.ones(1, dtype=torch.bool), mean[1:] > mean[:-1]])
    part, parts = begins.cumsum(0) - 1, int(begins.sum())
    sums = torch.zeros(parts, dtype=torch.float64).index_add_(0, part, total)
    sizes = torch.zeros(parts, dtype=torch.float64).index_add_(0, part, count.double())
    means, pooled = _pools(sums.tolist(), sizes.tolist())
    width = torch.tensor(pooled).cumsum(0)  # parts up to the end of each pool
    ends = torch.cat([begins.nonzero().flatten()[1:], torch.tensor([len(level)])])[width - 1]
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])
    return level[torch.stack([starts, ends - 1], dim=1).flatten()], means.repeat_interleave(2)


def _pools(sums: list[float], sizes: list[float]) -> tuple[Tensor, list[int]]:
    """The mean of each pool, and how many parts it holds."""
    pools: list[tuple[float, float, int]] = []
    for total, size in zip(sums, sizes, strict=True):
        parts = 1
        while pools and pools[-1][0] * size >= total * pools[-1][1]:
            below, many, more = pools.pop()
            total, size, parts = total + below, size + many, parts + more
        pools.append((total, size, parts))
    means = torch.tensor([total / size for total, size, _ in pools], dtype=torch.float64)
    return means, [parts for _, _, parts in pools]


def interpolated(places: Tensor, values: Tensor, at: Tensor) -> Tensor:
    """Each row's function at `at` (K, N): knots (K, M), M >= 2; straight between knots, constant beyond."""
    right = torch.searchsorted(places, at).clamp(1, places.shape[1] - 1)
    low, high = places.gather(1, right - 1), places.gather(1, right)
    share = torch.where(high > low, (at - low) / (high - low), 1.0).clamp(0, 1)
    return torch.lerp(values.gather(1, right - 1), values.gather(1, right), share)
