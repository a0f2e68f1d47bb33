"""Five windows frozen over, drawn: fans of feathery crystals, folds, clouds and grain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Generator, Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Pane:
    """How one window is frozen over."""

    seed: int
    size: tuple[int, int]
    colour: tuple[int, int, int]  # mean red, green and blue
    contrast: float  # standard deviation of the brightness
    skew: float = 0.0  # above 0: a few places are much brighter, below 0: much darker
    tint: float = 2.0  # standard deviation of the red, for grey places among blue ones
    clouds: float = 0.5  # share of large bright and dark areas
    grain: float = 0.2  # share of specks
    wrinkles: float = 0.0  # share of folds in the ice
    softness: float = 0.3  # sigma of a last blur, in pixels
    crystals: int = 0
    rays: tuple[int, int] = (1, 4)  # least and most feathers of a crystal
    length: tuple[int, int] = (24, 100)  # of a feather, in pixels
    breadth: float = 0.14  # of a feather to either side, part of its length
    barbs: float = 9.0  # pixels along the spine from one to the next
    slant: float = 3.0  # pixels along the spine that a barb goes for each one outwards


# Size, colour and contrast are about those of the published photographs, of which two are alike.
BLADES = Pane(2, (315, 560), (201, 205, 214), 22, skew=-0.5, clouds=0.4, grain=0.3, crystals=380)
PANES = (
    Pane(
        seed=1,
        size=(600, 900),
        colour=(78, 149, 166),
        contrast=18,
        skew=0.1,
        tint=16,
        clouds=1,
        grain=0.3,
        wrinkles=0.8,
    ),
    BLADES,
    replace(BLADES, seed=3),
    Pane(
        seed=4,
        size=(350, 527),
        colour=(138, 153, 165),
        contrast=29,
        skew=-0.1,
        clouds=0.3,
        grain=1.0,
        softness=0.4,
        crystals=700,
        rays=(2, 6),
        length=(7, 34),
        breadth=0.3,
        barbs=5,
        slant=1,
    ),
    Pane(
        seed=5,
        size=(495, 660),
        colour=(112, 123, 135),
        contrast=43,
        clouds=0.6,
        grain=0.3,
        crystals=1000,
        length=(18, 62),
        breadth=0.28,
        barbs=4.5,
        slant=1.3,
    ),
)


@lru_cache(maxsize=1)
def drawn() -> tuple[Tensor, ...]:
    """Five panes of our own, always the same: in float64, so that rounding differs on no machine."""
    with torch.device("cpu"):
        return tuple(_draw(pane) for pane in PANES)


def _draw(pane: Pane) -> Tensor:
    generator = Generator().manual_seed(pane.seed)
    clouds = _noise(pane.size, 3.0, generator)
    light = 0.2 * _noise(pane.size, 2.0, generator)
    if pane.crystals:
        light = _standard(_bent(_feathered(light, clouds, pane, generator), 2.0, generator))
    if pane.wrinkles:
        light = light + pane.wrinkles * _wrinkled(pane.size, generator)
    light = light + pane.clouds * clouds + pane.grain * _noise(pane.size, 0.5, generator)
    light = _standard(_filtered(light, lambda f: torch.exp(-2 * (math.pi * pane.softness * f).square())))
    light = _standard(torch.expm1(pane.skew * light) / pane.skew) if pane.skew else light
    red, green, blue = (mean + pane.contrast * light for mean in pane.colour)
    tint = pane.tint * _noise(pane.size, 3.0, generator)
    return torch.stack((red + tint, green, blue - tint / 3)).round().clamp(0, 255).to(torch.uint8)


def _feathered(light: Tensor, clouds: Tensor, pane: Pane, generator: Generator) -> Tensor:
    """`light` with the pane's crystals grown over it, feathers brighter under bright clouds."""

    def uniform(low: float, high: float, count: int) -> Tensor:
        return torch.rand(count, generator=generator, dtype=torch.float64) * (high - low) + low

    rays = torch.randint(pane.rays[0], pane.rays[1] + 1, (pane.crystals,), generator=generator)
    of = torch.arange(pane.crystals).repeat_interleave(rays)  # the crystal of each feather
    y, x = (uniform(0, side, pane.crystals)[of] for side in pane.size)
    sixth = torch.arange(len(of)) - (rays.cumsum(0) - rays)[of]  # ice grows in six directions
    angle = uniform(0, 2 * math.pi, pane.crystals)[of] + uniform(-0.2, 0.2, len(of))
    angle = angle + sixth.double() * (math.pi / 3)
    length = uniform(*pane.length, pane.crystals)[of] * uniform(0.5, 1, len(of))
    tone = (uniform(0.3, 1.2, len(of)) + 0.25 * clouds[y.long(), x.long()]).clamp(0.1)
    feathers = torch.stack((y, x, angle, length, uniform(0, 1, len(of)), tone), dim=1)

    edge = pane.length[1] + 2
    canvas = functional.pad(light, (edge, edge, edge, edge))
    chunks = feathers[length.argsort(descending=True, stable=True)].split(32)  # of like length: small tensors
    for chunk in chunks[::3] + chunks[1::3] + chunks[2::3]:  # yet long ones lie over short ones too
        _lay(chunk, canvas, edge, pane)
    return canvas[edge:-edge, edge:-edge]


def _lay(feathers: Tensor, canvas: Tensor, edge: int, pane: Pane) -> None:
    y, x, angle, length, _, tone = feathers.unbind(1)
    side = math.ceil(length.max()) + 2
    bright, cover = _feathers(pane, side, *feathers[:, 2:5, None, None].unbind(1))
    bright = bright * tone[:, None, None]
    top = (y + angle.sin() * length / 2 + (edge - side / 2)).long().tolist()
    left = (x + angle.cos() * length / 2 + (edge - side / 2)).long().tolist()
    for number in range(len(feathers)):
        spot = canvas[top[number] : top[number] + side, left[number] : left[number] + side]
        spot.lerp_(bright[number], cover[number])


def _feathers(pane: Pane, side: int, angle: Tensor, length: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Brightness and cover (N, side, side) of feathers: a spine, and barbs that lean towards its tip."""
    x = torch.arange(side, dtype=torch.float64) - (side - 1) / 2
    along, across = angle.cos() * x + angle.sin() * x[:, None], angle.cos() * x[:, None] - angle.sin() * x
    out, part = across.abs(), along / length + 0.5
    barb = (along - pane.slant * out) / pane.barbs + shift
    ridge = 0.5 + 0.5 * (2 * math.pi * barb).cos()
    ragged = 0.55 + 0.45 * (barb.round() * 0.618 + shift).frac().abs()  # each barb ends elsewhere
    reach = pane.breadth * length * ragged * (1 - part).clamp(0, 1).pow(0.7) * (5 * part).clamp(0, 1)
    spine = (-out.square()).exp() * (1 - 0.6 * part) * (part > 0) * (part < 1)
    lit = 1 + 0.3 * across.sign()  # one side faces the light
    cover = 0.8 * torch.maximum((0.7 * (reach - out)).clamp(0, 1), spine)
    return torch.maximum(lit * (1.5 * ridge - 0.5), 1.6 * spine), cover


def _wrinkled(size: tuple[int, int], generator: Generator) -> Tensor:
    """Folds of all sizes, lit from one corner and flat in places."""
    flat, steep = _noise(size, 2.6, generator, stretch=2.0), _noise(size, 2.6, generator, stretch=0.7)
    folds = _bent(-flat.abs() - 0.5 * steep.abs(), 14.0, generator)
    slope = folds - functional.pad(folds[None], (1, 0, 1, 0), mode="replicate")[0, :-1, :-1]
    return _standard((slope * (0.7 + 0.6 * _noise(size, 3.0, generator)).clamp(0.15)).clamp(-0.5, 0.5))


def _bent(light: Tensor, pixels: float, generator: Generator) -> Tensor:
    """Moved about by some `pixels`, so that nothing stays straight."""
    height, width = size = (light.shape[0], light.shape[1])
    y = torch.arange(height)[:, None] + pixels * _noise(size, 3.5, generator, finest=10)
    x = torch.arange(width) + pixels * _noise(size, 3.5, generator, finest=10)
    grid = torch.stack((x * (2 / (width - 1)) - 1, y * (2 / (height - 1)) - 1), dim=2)[None]
    bent = functional.grid_sample(light[None, None], grid, padding_mode="reflection", align_corners=True)
    return bent[0, 0]


def _noise(
    size: tuple[int, int], falloff: float, generator: Generator, finest: float = 1, stretch: float = 1
) -> Tensor:
    """(H, W): power falls as frequency ** -falloff, and faster for waves below `finest` pixels or so.

    Forms are wider than high where `stretch` is above 1.
    """

    def gain(frequency: Tensor) -> Tensor:
        return frequency.clamp(min=1 / max(size)).pow(-falloff / 2) * (-(finest * frequency).square()).exp()

    white = torch.rand(size, generator=generator, dtype=torch.float64) - 0.5
    return _standard(_filtered(white, gain, stretch))


def _filtered(values: Tensor, gain: Callable[[Tensor], Tensor], stretch: float = 1) -> Tensor:
    """(H, W) with each frequency, in cycles per pixel, times its gain."""
    height, width = values.shape
    rows = torch.fft.fftfreq(height, dtype=torch.float64)[:, None]
    columns = torch.fft.rfftfreq(width, dtype=torch.float64)
    spectrum = torch.fft.rfft2(values) * gain(torch.hypot(rows, stretch * columns))
    filtered: Tensor = torch.fft.irfft2(spectrum, s=(height, width))
    return filtered


def _standard(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std()
