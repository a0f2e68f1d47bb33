"""Pictures as levels 0 to 255 in floating point, and back to bytes."""

from __future__ import annotations

import torch
from torch import Tensor

# The published code cuts off the fraction of a level. Where a level is whole, an error in the last bits of
# our sums must not make it the one below.
GUARD = {torch.float32: 2.0**-12, torch.float64: 2.0**-20}


def as_bytes(levels: Tensor) -> Tensor:
    """Cut to 0 .. 255, without the fraction."""
    return (levels + GUARD[levels.dtype]).clamp_(0, 255).to(torch.uint8)


def rounded(levels: Tensor) -> Tensor:
    """The nearest byte."""
    return (levels + 0.5).clamp_(0, 255).to(torch.uint8)


def grey(levels: Tensor) -> Tensor:
    """Luma (N, 1, H, W) of colour; grey pictures as they are."""
    if levels.shape[1] == 1:
        return levels
    red, green, blue = levels.unbind(dim=1)
    return (red * 0.299 + green * 0.587 + blue * 0.114)[:, None]
