"""The learned labels in the terminal: a heat map of one epoch, and a table of all."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text
from torch import Tensor

from auglabel.errors import UserError
from auglabel.lab.pictures.drawing import tint
from auglabel.lab.runs.label_tables import History

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.:-=+*#"
LONGEST_LINE = 16  # characters: the table then fits 80 columns


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
    """For each kind the mean confidence in the first, middle and last epoch, its course, and its extremes."""
    require_epochs(history)
    epochs, last = [table.epoch for table in history], history[-1].confidence
    means = {kind: [statistics.fmean(table.confidence[kind]) for table in history] for kind in last}
    lowest = min(min(course) for course in means.values())
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
