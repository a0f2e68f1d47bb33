"""How far a number might be off: the bootstrap over images.

Resampling adds noise, and a calibration error adds up noise, so its resamples lie above it: its interval is
the basic one, as far below the value as the resamples reach above, and never below 0. Near a perfectly
calibrated model it covers the truth less often than 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from auglabel.calibration import Calibration

CHUNK = 2**20  # draws at a time: bounds the memory, and changes no number


class Figure(NamedTuple):
    """A number and its 95 % interval; nan where none was asked for."""

    value: float
    low: float
    high: float


def resampled(logits: Tensor, labels: Tensor, resamples: int, bins: int, generator: Generator) -> Calibration:
    """One group per resample of the predictions, so that every reading has `resamples` entries.

    Each image's own sums are made by `Calibration`, with a group per image; a resample adds them up as
    often as the image was drawn.
    """
    count = len(labels)
    each = Calibration(count, bins)
    each.update_logits(logits, labels, torch.arange(count))
    endless = each.sums.isinf()  # an NLL: 0 times it would be nan in every resample
    finite = each.sums.masked_fill(endless, 0)
    total = Calibration(resamples, bins)
    for rows in torch.arange(resamples).split(max(1, CHUNK // count)):
        times = drawn(len(rows), count, generator)
        total.sums[:, rows] = times @ finite
        if endless.any():
            total.sums[:, rows] += torch.where(times @ endless.double() > 0, math.inf, 0)
    return total


def drawn(resamples: int, count: int, generator: Generator) -> Tensor:
    """How often each image is in each resample (resamples, count), as float64."""
    rows = torch.randint(count, (resamples, count), generator=generator)
    place = rows + count * torch.arange(resamples)[:, None]
    return torch.bincount(place.flatten(), minlength=resamples * count).view(resamples, count).double()


def interval(value: float, samples: Tensor, basic: bool = False) -> Figure:
    """`value` with the middle 95 % of `samples`, or, if `basic`, with that turned around the value."""
    samples, ends = samples.double(), torch.tensor([0.025, 0.975], dtype=torch.float64)
    found = torch.quantile(samples, ends)
    if found.isnan().any():  # an infinite sample cannot be interpolated
        found = torch.quantile(samples, ends, interpolation="higher")
    low, high = found.tolist()
    if basic:
        low, high = max(0.0, 2 * value - high), max(0.0, 2 * value - low)
    return Figure(value, low, high)


def bootstrapped(
    metric: Callable[[Tensor, Tensor], float],
    probs: Tensor,
    labels: Tensor,
    resamples: int,
    generator: Generator,
    basic: bool = False,
) -> Figure:
    """A metric that does not stream, computed again for each resample."""
    value = metric(probs, labels)
    if resamples == 0:
        return Figure(value, math.nan, math.nan)
    samples = []
    for _ in range(resamples):
        rows = torch.randint(len(labels), (len(labels),), generator=generator)
        samples.append(metric(probs[rows], labels[rows]))
    return interval(value, torch.tensor(samples), basic)
