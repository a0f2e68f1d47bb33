"""Where random numbers come from: the generator's device, from which they are then moved."""

from __future__ import annotations

import torch
from torch import Generator


def source_of(device: torch.device | str | None, generator: Generator | None) -> torch.device | str | None:
    """The device to draw on for numbers that are needed on `device`."""
    return device if generator is None else generator.device
