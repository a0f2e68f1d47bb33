"""The bar of every long job, shown in a terminal alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def followed(
    bar: progress.Progress, task: progress.TaskID, look: Callable[[], dict[str, Any]]
) -> Iterator[None]:
    """Show the bar and ask `look` every second how far the task is: `completed`, `description`."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            bar.update(task, **look())

    watching = threading.Thread(target=watch, daemon=True)
    with bar:
        if not bar.disable:
            watching.start()
        try:
            yield
        finally:
            over.set()
            if watching.is_alive():
                watching.join()
