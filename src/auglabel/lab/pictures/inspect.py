"""How the learned confidence moved, in the terminal."""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text
from torch import Tensor

from auglabel.errors import UserError
from auglabel.lab.pictures.sheet import tint
from auglabel.lab.runs.files import read_bounded
from auglabel.util.checks import brief, kind_of
from auglabel.util.checksummed_json import parse_line

Confidences = dict[str, list[float]]  # a kind's name -> the confidence of each of its levels
History = Sequence[tuple[int, Confidences]]  # (epoch, confidences), in order

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.:-=+*#"
MOST_KINDS, MOST_BUCKETS, MOST_EPOCHS = 1000, 20_000, 10**9  # that can be shown
LONGEST_LINE = 16  # characters: the table then fits 80 columns


def read_history(path: str | os.PathLike[str]) -> list[tuple[int, Confidences]]:
    """The lines of a run's tables.jsonl: `{"epoch": 3, "confidence": {"rotate": [...], ...}}`.

    A last line that broke off while it was written is left out. An epoch told again, as after a
    resumed run, replaces what was told of it and of those after it.
    """
    try:
        content = read_bounded(Path(path))
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
            raise UserError(f"{path}, line {number}: {error}") from None
        while history and history[-1][0] >= epoch:
            history.pop()
        if history and shape_of(history[0][1]) != shape_of(confidence):
            raise UserError(
                f"{path}, line {number}: it is a table for other distances than the lines before: "
                f"{brief(shape_of(confidence))} after {brief(shape_of(history[0][1]))}."
            )
        history.append((epoch, confidence))
    if not history:
        raise UserError(f"{path} holds no epoch yet.")
    return history


def _entry(line: bytes) -> tuple[int, Confidences]:
    found = parse_line(line)
    if type(found.get("epoch")) is not int or not 0 <= found["epoch"] <= MOST_EPOCHS:
        raise UserError(f'an object with a whole number as "epoch" was expected, got {kind_of(found)}.')
    rows = found.get("confidence")
    if not isinstance(rows, dict) or not rows or not all(isinstance(r, list) and r for r in rows.values()):
        raise UserError(f'"confidence" must hold a list of numbers per kind, got {kind_of(rows)}.')
    if len(rows) > MOST_KINDS or sum(map(len, rows.values())) > MOST_BUCKETS:
        raise UserError(f"a table has at most {MOST_KINDS:,} kinds and {MOST_BUCKETS:,} buckets, got more.")
    for value in (value for row in rows.values() for value in row):
        if type(value) not in (int, float) or not 0 <= value <= 1:
            raise UserError(f"every confidence must be a number in [0, 1], got {kind_of(value)}.")
    return found["epoch"], rows


def shape_of(confidence: Confidences) -> dict[str, int]:
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
        raise UserError(
            f"{len(kinds)} kinds with {sum(levels)} levels in all need as many confidences, "
            f"got {len(values)}."
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


def summary(history: History, bars: str = BARS) -> Table:
    """Per kind: the mean confidence in the first, middle and last epoch, its course, the last's extremes."""
    require_epochs(history)
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
        shown.add_row(Text(kind), *numbers, sparkline(course, lowest, bars=bars), *extremes)
    return shown


def sparkline(course: Sequence[float], lowest: float, longest: int = LONGEST_LINE, bars: str = BARS) -> str:
    """A bar per value, from the lowest confidence to one; more values than fit are averaged in groups."""
    count = min(len(course), longest)
    edges = [round(i * len(course) / count) for i in range(count + 1)]
    values = [statistics.fmean(course[low:high]) for low, high in itertools.pairwise(edges)]
    scale = len(bars) - 1
    return "".join(
        bars[scale if lowest >= 1 else round(scale * (value - lowest) / (1 - lowest))] for value in values
    )


def _percent(confidence: float) -> str:
    return f"{100 * confidence:.1f}"


def require_epochs(history: History) -> None:
    if not history:
        raise UserError("a history of at least one epoch was expected, got an empty one.")
