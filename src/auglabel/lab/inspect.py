"""How the learned confidence moved: per bucket and epoch, in the terminal and as a picture."""

from __future__ import annotations

import bisect
import itertools
import json
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw
from rich import box
from rich.table import Table
from rich.text import Text
from torch import Tensor

from auglabel.checks import kind_of
from auglabel.lab.sheet import BLACK, GREY, PALE, WHITE, colour, shortened, tint, width_of, write

Confidences = dict[str, list[float]]  # a kind's name -> the confidence of each of its levels
History = Sequence[tuple[int, Confidences]]  # (epoch, confidences), in order

BARS = "▁▂▃▄▅▆▇█"
LONGEST_LINE = 16  # characters: the table then fits 80 columns
TITLE, LABEL, SMALL = 20, 14, 11  # font sizes
GAP, MARGIN, PLOT = 8, 20, 1000
NARROWEST_RANGE = 0.01  # of the colours: less than a hundredth would make noise look like news


def read_history(path: str | os.PathLike[str]) -> list[tuple[int, Confidences]]:
    """The lines of a run's tables.jsonl: `{"epoch": 3, "confidence": {"rotate": [...], ...}}`.

    A last line that broke off while it was written is left out. An epoch told again, as after a
    resumed run, replaces what was told of it and of those after it.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: training writes it, a line per epoch.") from None
    history: list[tuple[int, Confidences]] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            epoch, confidence = _entry(line)
        except ValueError as error:
            if number == len(lines):  # no line end after it: torn
                break
            raise ValueError(f"{path}, line {number}: {error}") from None
        while history and history[-1][0] >= epoch:
            history.pop()
        if history and _shape(history[0][1]) != _shape(confidence):
            raise ValueError(
                f"{path}, line {number}: it is a table for other distances than the lines before: "
                f"{_shape(confidence)} after {_shape(history[0][1])}."
            )
        history.append((epoch, confidence))
    if not history:
        raise ValueError(f"{path} holds no epoch yet.")
    return history


def _entry(line: bytes) -> tuple[int, Confidences]:
    try:
        found = json.loads(line)
    except ValueError:
        raise ValueError("it is not JSON.") from None
    if not isinstance(found, dict) or type(found.get("epoch")) is not int:
        raise ValueError(f'an object with a whole number as "epoch" was expected, but {kind_of(found)} came.')
    rows = found.get("confidence")
    if not isinstance(rows, dict) or not rows or not all(isinstance(r, list) and r for r in rows.values()):
        raise ValueError(f'"confidence" must hold a list of numbers per kind, but {kind_of(rows)} came.')
    for value in (value for row in rows.values() for value in row):
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise ValueError(f"every confidence must be a number in [0, 1], but {kind_of(value)} came.")
    return found["epoch"], rows


def _shape(confidence: Confidences) -> dict[str, int]:
    return {kind: len(row) for kind, row in confidence.items()}


def heat_map(
    kinds: Sequence[str],
    levels: Sequence[int],
    table: Tensor | Sequence[float],
    title: str,
    head: str = "level",
) -> Table:
    """The confidence per kind and level, in hundredths; redder where it is lower."""
    values = table.tolist() if isinstance(table, Tensor) else list(table)
    if len(values) != sum(levels) or len(kinds) != len(levels):
        raise ValueError(
            f"{len(kinds)} kinds with {sum(levels)} levels in all need as many confidences, "
            f"but {len(values)} came."
        )
    lowest = min(values)
    shown = Table(title=title, box=None, padding=0)
    shown.add_column(f"{head} ", justify="right", no_wrap=True)
    for level in range(1, max(levels) + 1):
        shown.add_column(str(level), justify="right", width=5)
    start = 0
    for kind, count in zip(kinds, levels, strict=True):
        cells = [_cell(value, lowest) for value in values[start : start + count]]
        shown.add_row(Text(f"{kind} "), *cells)
        start += count
    return shown


def _cell(confidence: float, lowest: float) -> Text:
    red, green, blue = tint(confidence, lowest)
    return Text(f"{100 * confidence:4.0f} ", style=f"black on rgb({red},{green},{blue})")


def summary(history: History) -> Table:
    """Per kind: the mean confidence in the first, middle and last epoch, its course, the last's extremes."""
    _require_epochs(history)
    epochs = [epoch for epoch, _ in history]
    means = {
        kind: [statistics.fmean(confidence[kind]) for _, confidence in history] for kind in history[0][1]
    }
    lowest = min(min(course) for course in means.values())
    last = history[-1][1]
    shown = Table(
        title="Learned label confidence, %: mean over each kind's buckets",
        caption=f"bars from {100 * lowest:.1f} to 100; lowest and highest bucket of epoch {epochs[-1]}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    picked = sorted({0, (len(history) - 1) // 2, len(history) - 1})
    shown.add_column("kind", no_wrap=True)
    for index in picked:
        shown.add_column(f"epoch {epochs[index]}", justify="right", no_wrap=True)
    shown.add_column(f"epochs {epochs[0]} to {epochs[-1]}", no_wrap=True)
    for name in ("lowest", "highest"):
        shown.add_column(name, justify="right", no_wrap=True)
    for kind, course in means.items():
        numbers = [_percent(course[index]) for index in picked]
        extremes = _percent(min(last[kind])), _percent(max(last[kind]))
        shown.add_row(Text(kind), *numbers, sparkline(course, lowest), *extremes)
    return shown


def sparkline(course: Sequence[float], lowest: float, longest: int = LONGEST_LINE) -> str:
    """A bar per value, from the lowest confidence to one; more values than fit are averaged in groups."""
    count = min(len(course), longest)
    edges = [round(i * len(course) / count) for i in range(count + 1)]
    values = [statistics.fmean(course[low:high]) for low, high in itertools.pairwise(edges)]
    scale = len(BARS) - 1
    return "".join(
        BARS[scale if lowest >= 1 else round(scale * (value - lowest) / (1 - lowest))] for value in values
    )


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.1f}"


def _require_epochs(history: History) -> None:
    if not history:
        raise ValueError("a history of at least one epoch was expected, but an empty one came.")


def history_chart(history: History) -> Image.Image:
    """A heat map: a row per bucket, by kind and from weak to strong, and a column per epoch."""
    _require_epochs(history)
    history = _thinned(history, PLOT)
    kinds = _shape(history[0][1])
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
    every = [value for _, confidence in history for row in confidence.values() for value in row]
    lowest = min(*every, 1 - NARROWEST_RANGE)
    y = top
    for kind, levels in kinds.items():
        _draw_kind(draw, history, kind, (left, y), (wide, tall), lowest, named)
        y += tall * levels + between
    _draw_epochs(draw, [epoch for epoch, _ in history], left, top + plot_tall, wide)
    _draw_bar(draw, left + plot_wide + 36, top, bar_tall, lowest)
    for aside in (("kind, " * named) + "level from weak to strong", "level"):
        if width_of(aside, LABEL) <= plot_tall:
            _write_upwards(chart, aside, MARGIN, top, plot_tall)
            break
    return chart


def _thinned(history: History, most: int) -> History:
    """At most that many epochs, evenly spaced, the first and the last among them."""
    if len(history) <= most:
        return history
    return [history[round(i * (len(history) - 1) / (most - 1))] for i in range(most)]


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
    levels = len(history[0][1][kind])
    for column, (_, confidence) in enumerate(history):
        for level, value in enumerate(confidence[kind]):
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
