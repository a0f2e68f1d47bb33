"""The learned confidence of every bucket after every epoch, as a picture."""

from __future__ import annotations

import bisect
import itertools
import math

from PIL import Image, ImageDraw

from auglabel.lab.pictures.drawing import BLACK, GREY, PALE, WHITE, colour, shortened, width_of, write
from auglabel.lab.pictures.terminal import require_epochs
from auglabel.lab.runs.label_tables import History, thinned

TITLE, LABEL, SMALL = 20, 14, 11  # font sizes
GAP, MARGIN, PLOT = 8, 20, 1000
NARROWEST_RANGE = 0.01  # of the colours: less than a hundredth would make noise look like news


def history_chart(history: History) -> Image.Image:
    """A heat map: a row per bucket, by kind and from weak to strong, and a column per epoch."""
    require_epochs(history)
    history = [history[place] for place in thinned(len(history), PLOT)]
    kinds = history[0].levels
    buckets = sum(kinds.values())
    wide, tall = min(48, PLOT // len(history)), min(28, max(12, 560 // buckets))
    between = 0 if len(kinds) == 1 else 5
    named = list(kinds) != ["1"]
    left = MARGIN + LABEL + GAP + 24
    left += max(width_of(shortened(kind, LABEL, 160), LABEL) for kind in kinds) + GAP if named else 0
    plot_wide = wide * len(history)
    plot_tall = tall * buckets + between * (len(kinds) - 1)
    top = MARGIN + TITLE + 2 * GAP
    bar_tall = min(320, max(150, plot_tall))
    size = max(left + plot_wide + 130, 480), top + max(plot_tall + 56, bar_tall + 2 * GAP) + MARGIN
    chart = Image.new("RGB", size, WHITE)
    draw = ImageDraw.Draw(chart)
    write(draw, (MARGIN, MARGIN), "Learned label confidence per bucket and epoch", TITLE)
    every = [value for table in history for row in table.confidence.values() for value in row]
    lowest = min(*every, 1 - NARROWEST_RANGE)
    y = top
    for kind, levels in kinds.items():
        _draw_kind(draw, history, kind, (left, y), (wide, tall), lowest, named)
        y += tall * levels + between
    _draw_epochs(draw, [table.epoch for table in history], left, top + plot_tall, wide)
    _draw_bar(draw, left + plot_wide + 36, top, bar_tall, lowest)
    for aside in (("kind, " * named) + "level from weak to strong", "level"):
        if width_of(aside, LABEL) <= plot_tall:
            _write_upwards(chart, aside, MARGIN, top, plot_tall)
            break
    return chart


def _draw_kind(
    draw: ImageDraw.ImageDraw,
    history: History,
    kind: str,
    place: tuple[int, int],
    size: tuple[int, int],
    lowest: float,
    named: bool,
) -> None:
    (x, y), (wide, tall) = place, size
    levels = history[0].levels[kind]
    for column, table in enumerate(history):
        for level, value in enumerate(table.confidence[kind]):
            corner = x + column * wide, y + level * tall
            end = corner[0] + wide - 1, corner[1] + tall - 1
            draw.rectangle((*corner, *end), fill=colour(value, lowest))
    draw.rectangle((x - 1, y - 1, x + wide * len(history), y + tall * levels), outline=PALE)
    if named:
        name = shortened(kind, LABEL, 160)
        write(draw, (x - 24 - GAP, y + tall * levels / 2), name, LABEL, "rm")
    for level in {1, levels} if levels > 1 else ():
        write(draw, (x - GAP + 2, y + tall * (level - 0.5)), str(level), SMALL, "rm", GREY)


def _draw_epochs(draw: ImageDraw.ImageDraw, epochs: list[int], x: int, y: int, wide: int) -> None:
    """Ticks at round numbers, at least 48 pixels apart, and always at least one."""
    step = _round_step(48 * (epochs[-1] - epochs[0] + 1) / (wide * len(epochs)))
    marks = range(-(-epochs[0] // step) * step, epochs[-1] + 1, step)
    ticks = {bisect.bisect_left(epochs, mark) for mark in marks} or {0}
    for i in ticks:
        middle = x + wide * (i + 0.5)
        draw.line((middle, y + 1, middle, y + 5), fill=GREY)
        write(draw, (middle, y + 20), str(epochs[i]), LABEL - 1, "ms")
    write(draw, (x + wide * len(epochs) / 2, y + 44), "epoch", LABEL, "ms", BLACK)


def _draw_bar(draw: ImageDraw.ImageDraw, x: int, y: int, tall: int, lowest: float) -> None:
    for down in range(tall):
        shade = colour(1 - (1 - lowest) * down / (tall - 1), lowest)
        draw.line((x, y + down, x + 17, y + down), fill=shade)
    draw.rectangle((x - 1, y - 1, x + 18, y + tall), outline=PALE)
    # In ten-thousandths, so that the numbers are whole and 100 % is always one of them.
    step = _round_step(10_000 * (1 - lowest) / 5)
    digits = 0 if step % 100 == 0 else 1 if step % 10 == 0 else 2
    for mark in range(10_000, math.ceil(10_000 * lowest - 1e-6) - 1, -step):
        place = y + (tall - 1) * (1 - mark / 10_000) / (1 - lowest)
        draw.line((x + 19, place, x + 22, place), fill=GREY)
        write(draw, (x + 26, place), f"{mark / 100:.{digits}f} %", LABEL - 1, "lm")


def _round_step(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, 50, ... that is not below `least`."""
    step = 1
    for factor in itertools.cycle((2, 2.5, 2)):
        if step >= least * (1 - 1e-9):  # float error must not skip a step
            break
        step = int(step * factor)
    return step


def _write_upwards(chart: Image.Image, text: str, x: int, top: int, tall: int) -> None:
    """Text turned to be read from below, at the middle of the plot."""
    strip = Image.new("RGB", (width_of(text, LABEL) + 2, LABEL + 6), WHITE)
    write(ImageDraw.Draw(strip), (1, LABEL), text, LABEL, "ls")
    turned = strip.rotate(90, expand=True)
    chart.paste(turned, (x - 2, max(top, top + (tall - turned.height) // 2)))
