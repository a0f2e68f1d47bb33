"""The bar of every long job, shown in a terminal alone."""

from __future__ import annotations

from rich import progress
from rich.console import Console


def bar_of(unit: str, console: Console, shown: bool = True) -> progress.Progress:
    """Words, a bar, how many `unit` of all, and the time left."""
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,}/{task.total:,} " + unit),
        progress.TimeRemainingColumn(),
        console=console,
        disable=not (shown and console.is_terminal),
    )
