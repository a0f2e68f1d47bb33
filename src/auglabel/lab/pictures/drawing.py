"""What the pictures of `preview` and `inspect` share: fonts, captions and the colours of confidence."""

from __future__ import annotations

import functools

from PIL import ImageDraw, ImageFont

BLACK, GREY, PALE, WHITE = (20, 20, 20), (110, 110, 110), (190, 190, 190), (255, 255, 255)
# From certain to the lowest confidence; each stop is darker than the one before, so grey prints work.
STOPS = ((255, 250, 240), (253, 212, 158), (252, 141, 89), (203, 24, 29), (90, 0, 20))

Colour = tuple[int, int, int]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@functools.cache
def font(size: int) -> Font:
    return ImageFont.load_default(size=size)


def width_of(text: str, size: int) -> int:
    return int(font(size).getlength(text) + 0.999)


def shortened(text: str, size: int, width: int) -> str:
    """The text, its end given up for three dots where it is wider than `width` pixels."""
    if width_of(text, size) <= width:
        return text
    while text and width_of(text + "...", size) > width:
        text = text[:-1]
    return text.rstrip() + "..."


def write(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    text: str,
    size: int,
    anchor: str = "lt",
    colour: Colour = BLACK,
) -> None:
    """Text at a place; the anchor says which of its points: l, m or r, then t, m or s (see Pillow)."""
    draw.text(place, text, font=font(size), fill=colour, anchor=anchor)


def tint(confidence: float, lowest: float) -> Colour:
    """White at one, the fullest red at the lowest confidence; black text stays readable on it."""
    light = 255 if lowest >= 1 else int(95 + 160 * (confidence - lowest) / (1 - lowest))
    return (255, light, light)


def colour(confidence: float, lowest: float) -> Colour:
    """Nearly white at one, through orange and red, to nearly black at the lowest confidence."""
    depth = (len(STOPS) - 1) * min(max((1 - confidence) / (1 - lowest), 0), 1)
    index = min(int(depth), len(STOPS) - 2)
    here, there = STOPS[index], STOPS[index + 1]
    red, green, blue = (round(a + (b - a) * (depth - index)) for a, b in zip(here, there, strict=True))
    return (red, green, blue)
