"""Random numbers are drawn on the generator's device, then moved to where they are needed."""

from __future__ import annotations

import torch
from torch import Generator


def drawing_device(
    device: torch.device | str | None, generator: Generator | None
) -> torch.device | str | None:
    """The device to draw on for numbers that are needed on `device`."""
    return device if generator is None else generator.device
