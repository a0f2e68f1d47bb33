"""A run trained by several processes, one per GPU: the command `auglabel train`, by torch's launcher."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from auglabel.lab.process.launch import STOPPED, launch
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.run import Run


def train_by_several(processes: int, recipe: Recipe, run: Run, typed: Sequence[str], log: TextIO) -> None:
    """Train or go on, printing into the log. `typed` are the words that the run's own file cannot say."""
    run.require_free(recipe, resume=True)
    run.begin(recipe)
    words = [str(run.path), f"--out={run.path}", "--resume=true", "--tracker=none", "--keep=1", *typed]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a run in one process has it
    with _printing_to(log):
        code = launch([sys.executable, "-m", "auglabel.cli", "train", *words], processes, None)
    if code == STOPPED:
        raise KeyboardInterrupt
    if code:
        raise OSError(f"training by {processes} processes failed; {log.name} says why.")


@contextmanager
def _printing_to(log: TextIO) -> Iterator[None]:
    """Processes begun in this print into the log."""
    log.flush()
    before = [os.dup(1), os.dup(2)]
    try:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        yield
    finally:
        for number, kept in enumerate(before, start=1):
            os.dup2(kept, number)
            os.close(kept)
