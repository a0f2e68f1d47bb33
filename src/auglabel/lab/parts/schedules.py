"""How the learning rate goes, as a part of its highest value; places are shares of the whole run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from auglabel.util.checks import require_number


def cosine(step: int, steps: int, warmup: float = 0.1) -> float:
    """Straight up during `warmup`, then half a cosine down to nothing."""
    require_number("warmup", warmup, 0, 1)
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising)))


def steps(
    step: int,
    steps: int,
    warmup: float = 0.005,
    drops: Sequence[float] = (0.3, 0.6, 0.8),
    factor: float = 0.2,
) -> float:
    """Straight up during `warmup`, then level, times `factor` at each of `drops`."""
    require_number("warmup", warmup, 0, 1)
    require_number("factor", factor, 0)
    for place in drops:
        require_number("drops", place, 0, 1)
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    return math.prod(factor for place in drops if step >= round(place * steps))


def one_cycle(step: int, steps: int, warmup: float = 0.25, start: float = 0.2, end: float = 0.0) -> float:
    """In a straight line from `start` up to 1 at `warmup`, then in another down to `end`."""
    for name, value in (("warmup", warmup), ("start", start), ("end", end)):
        require_number(name, value, 0, 1)
    peak = warmup * steps
    if step < peak:
        return start + (1 - start) * step / peak
    return 1 + (end - 1) * (step - peak) / max(1, steps - peak)


SCHEDULES: dict[str, Callable[..., float]] = {"cosine": cosine, "steps": steps, "one_cycle": one_cycle}
