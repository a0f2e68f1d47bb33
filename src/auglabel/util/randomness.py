"""Random numbers are drawn on the generator's device, then sent to where they are needed."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def drawing_device(
    device: torch.device | str | None, generator: Generator | None
) -> torch.device | str | None:
    """The device to draw on for numbers that are needed on `device`."""
    return device if generator is None else generator.device


def to_device(tensor: Tensor, device: torch.device | str | None) -> Tensor:
    """`tensor` on `device`; what goes from the CPU to an accelerator is sent without waiting for it.

    CUDA does so from pinned memory alone. MPS may read the memory after it is gone, so there it waits.
    """
    if (
        device is None
        or tensor.device.type != "cpu"
        or (there := torch.device(device)).type in ("cpu", "mps")
    ):
        return tensor.to(device)
    pinned = tensor.pin_memory() if there.type in ("cuda", "xpu") else tensor
    return pinned.to(there, non_blocking=True)


def draw_whole(count: int, n: int, device: torch.device, generator: Generator | None) -> Tensor:
    """n whole numbers below `count`: drawn where the generator lives, then sent."""
    source = drawing_device(device, generator)
    return to_device(torch.randint(count, (n,), device=source, generator=generator), device)


def draw_sign(n: int, device: torch.device, generator: Generator | None) -> Tensor:
    """n random signs, -1 or 1."""
    return 2 * draw_whole(2, n, device, generator) - 1
