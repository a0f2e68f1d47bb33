"""How far each operation goes at magnitudes 1 to 10: three named sets, and ranges of one's own.

- `mild`: geometric moves that leave most of the image in it.
- `codebase`: the values of the code that the paper trained with (google/uncertainty-baselines), where
  posterize and solarize distort less at higher magnitudes, and translation is in pixels.
- `wide`: mild, but translates by up to 100/32 of the side, which leaves nothing of the image from 4 on, and
  takes the nearest pixel instead of interpolating.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from auglabel.errors import UserError
from auglabel.util.checks import brief, entry, require_number

Interpolation = Literal["bilinear", "nearest"]
Values = tuple[float, ...]  # at magnitudes 0 to 10

# Between what the range of an operation may lie.
LIMITS = {
    "rotate": (0, 180),  # degrees
    "shear_x": (0, 10),
    "shear_y": (0, 10),
    "translate_x": (0, 10),  # sides of the image
    "translate_y": (0, 10),
    "posterize": (0, 8),  # bits that stay
    "solarize": (0, 256),  # threshold from which levels are inverted
    "color": (0, 1),  # how far the saturation moves from 1, up or down
}
WHOLE = ("posterize", "solarize")


@dataclass(frozen=True)
class Magnitudes:
    """The value of each operation at every magnitude, and how geometric ones resample by default."""

    rotate: Values
    shear_x: Values
    shear_y: Values
    translate_x: Values
    translate_y: Values
    posterize: Values
    solarize: Values
    color: Values  # saturation is 1 + value or 1 - value; the value itself if not `color_signed`
    color_signed: bool = True
    translate_pixels: bool = False  # translation is in pixels, not in sides of the image
    interpolation: Interpolation = "bilinear"


def _each(value: Callable[[int], float]) -> Values:
    return tuple(float(value(magnitude)) for magnitude in range(11))


MILD = Magnitudes(
    rotate=_each(lambda m: 3 * m),
    shear_x=_each(lambda m: 0.03 * m),
    shear_y=_each(lambda m: 0.03 * m),
    translate_x=_each(lambda m: m / 30),
    translate_y=_each(lambda m: m / 30),
    posterize=_each(lambda m: 4 - 4 * m // 10 or 1),  # no bits at all would be a black image
    solarize=_each(lambda m: 256 - 256 * m // 10),
    color=_each(lambda m: 0.09 * m),
)
SETS: dict[str, Magnitudes] = {
    "mild": MILD,
    "codebase": replace(
        MILD,
        translate_x=_each(lambda m: 10 * m),
        translate_y=_each(lambda m: 10 * m),
        posterize=_each(lambda m: 4 * m // 10),
        solarize=_each(lambda m: 256 * m // 10),
        color=_each(lambda m: 0.18 * m + 0.1),
        color_signed=False,
        translate_pixels=True,
        interpolation="nearest",
    ),
    "wide": replace(
        MILD,
        translate_x=_each(lambda m: 10 * m / 32),
        translate_y=_each(lambda m: 10 * m / 32),
        interpolation="nearest",
    ),
}


def magnitudes_for(asked: str | Mapping[str, Sequence[float]]) -> Magnitudes:
    """A set by its name, or `mild` with ranges of one's own.

    A range `{"rotate": (0, 60)}` goes evenly from its first number at magnitude 0, which is not drawn, to its
    second at magnitude 10; posterize's bits and solarize's threshold are rounded.
    """
    if isinstance(asked, str):
        return entry("set of magnitudes", SETS, asked)
    own: dict[str, Any] = {name: _range(name, ends) for name, ends in asked.items()}
    return replace(MILD, **own)


def _range(name: str, ends: Sequence[float]) -> Values:
    low, high = entry("operation with a magnitude", LIMITS, name)
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise UserError(f"magnitudes.{name} must be two numbers, at 0 and at 10, got {brief(ends)}.")
    for end in ends:
        require_number(f"magnitudes.{name}", end, low, high)
    first, last = ends
    values = _each(lambda m: first + (last - first) * m / 10)
    return tuple(float(round(value)) for value in values) if name in WHOLE else values
