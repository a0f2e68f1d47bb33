"""Which of N equal intervals of (0, 1] holds a value: shared by distance buckets and ECE bins."""

import torch
from torch import Tensor

# Distance of a float32 value from an edge that still counts as lying on it, relative to the edge.
EDGE_ERROR = 3e-7


def cell(value: Tensor, count: Tensor | int) -> Tensor:
    """Index (int64) of the interval ((n - 1)/count, n/count] that holds `value`; zero joins the first.

    A value within float error of an edge lies on it: 0.07 of 100 is the seventh cell, not the eighth.
    """
    scaled = value.to(torch.promote_types(value.dtype, torch.float32)) * count
    place = (scaled * (1 - EDGE_ERROR)).ceil_().clamp_(min=1).long()
    return (place.clamp_(max=count) if isinstance(count, int) else torch.minimum(place, count)) - 1
