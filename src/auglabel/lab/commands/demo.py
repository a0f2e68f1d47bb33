"""`auglabel demo`: a comparison of three kinds of labels on the embedded images, strongly distorted.

All runs of a seed see the same images, initial weights and transformations, and differ in their labels alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from auglabel.lab.commands.arguments import require_no_more
from auglabel.lab.compare.candidates import usual
from auglabel.lab.compare.contest import Contest
from auglabel.lab.compare.outcome import TITLE, show
from auglabel.lab.pictures.terminal import heat_map
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.report.report import report_if_possible
from auglabel.lab.runs.files import locked
from auglabel.lab.sweep.executor import Executor, require_done
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.util.checks import require_whole

MEASURED = (Measurement("clean"), Measurement("corrupted", images=400))
FOLDER, PAGE = Path("runs/demo"), Path("runs/demo.html")


@dataclass(frozen=True)
class DemoOptions:
    """How much to train"""

    seeds: int = 3
    """runs per kind of label"""
    epochs: int = 40
    """epochs per run"""

    def __post_init__(self) -> None:
        require_whole("seeds", self.seeds, 1)
        require_whole("epochs", self.epochs, 1)


USAGE, OPTIONS = "", (DemoOptions,)


def run(words: list[str]) -> None:
    options, rest = flags(DemoOptions, words)
    require_no_more(rest)
    console, start = Console(highlight=False, emoji=False), time.perf_counter()
    contest = contest_of(options)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with locked(FOLDER, f"another demo is under way in {FOLDER}: wait for it."):
        _remove_results_without_runs(contest)
        left = sum(contest.results.read(job) is None for job in contest.planned)
        console.print(f"{len(contest.planned)} runs, {left} of them to do, in {FOLDER}", markup=False)
        require_done(contest.run(Executor(), console), len(contest.planned))
        _tell(contest, console)
        console.print(f"{left} runs in {time.perf_counter() - start:.0f} s.")
        titles = contest.trained()
        report_if_possible(list(titles), PAGE, TITLE, console, titles)


def contest_of(options: DemoOptions) -> Contest:
    """Every kind of labels with every seed."""
    words = (f"--epochs={options.epochs}", "--augment.magnitudes=wide")
    candidates = usual(read_recipe("embedded", words))
    results = Results(FOLDER / "results", FOLDER / "runs")
    return Contest(Shared("embedded", words, MEASURED), candidates, range(options.seeds), results)


def _remove_results_without_runs(contest: Contest) -> None:
    """So that they are made again: the page shows the runs themselves."""
    for job in contest.planned:
        if not contest.results.run(job).model_file.exists():
            contest.results.file(job).unlink(missing_ok=True)


def _tell(contest: Contest, console: Console) -> None:
    """Print the labels that AutoLabel learned, what was measured, and the verdict."""
    learned = [contest.results.perform(job) for job in contest.jobs(contest.candidates[-1])]  # that is: read
    console.print(learned_table([result.labels for result in learned if result.labels]))
    verdict = contest.verdict()
    assert verdict is not None  # every run is there
    show(verdict, console)


def learned_table(labels: Sequence[Mapping[str, Sequence[float]]]) -> Table:
    """AutoLabel's confidence per operation and magnitude, mean over seeds."""
    levels = [len(row) for row in labels[0].values()]
    flat = torch.tensor([[value for row in each.values() for value in row] for each in labels])
    title = "Learned label confidence, % (mean over seeds)"
    return heat_map(list(labels[0]), levels, flat.mean(dim=0), title, head="magnitude")
