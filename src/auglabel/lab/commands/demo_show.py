"""Run the demo on all cores and show what came out, in the terminal."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Sequence
from ctypes import Array, c_int
from functools import partial
from typing import NamedTuple

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.augment.randaug import RandAug
from auglabel.lab.commands.demo import DISTORTIONS, METHODS, Outcome, Reading, recipe_for, run
from auglabel.lab.evaluate.metric_list import METRICS
from auglabel.lab.machine.bar import bar_of, followed
from auglabel.lab.machine.workers import cores, each
from auglabel.lab.pictures.show import sheet_of
from auglabel.lab.pictures.terminal import heat_map
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.report.page import picture_of
from auglabel.lab.report.report import TILE, ReportOptions, write_report

PAGE = "runs/demo.html"
HEADS = {"accuracy": "accuracy", "ece": "ECE", "debiased_ece": "debiased", "nll": "NLL", "brier": "Brier"}


def demo(seeds: int, epochs: int, console: Console | None = None) -> list[Outcome]:
    """Train, measure and print; every run, as it comes out."""
    console = console or Console()
    start = time.perf_counter()
    outcomes = _run_all(seeds, epochs, console)
    console.print(results(outcomes))
    console.print(learned(outcomes))
    adaptive = [outcome for outcome in outcomes if outcome.table is not None]
    share = sum(outcome.calibrating for outcome in adaptive) / sum(outcome.seconds for outcome in adaptive)
    recipe = recipe_for("AutoLabel", 0, epochs)
    console.print(
        f"{recipe.split['train']:,} training images a run. AutoLabel sees each validation image in "
        f"{recipe.calibrate.visits} of 82 buckets an epoch and keeps {recipe.calibrate.memory:.0%} of the "
        "older sums; the paper sees it in all of them. On grey images color does nothing."
    )
    console.print(
        f"{len(outcomes)} runs in {time.perf_counter() - start:.0f} s. "
        f"AutoLabel spent {share:.0%} of its time on calibration."
    )
    _report(outcomes, recipe, console)
    return outcomes


def _report(outcomes: Sequence[Outcome], recipe: Recipe, console: Console) -> None:
    """All of it as a page, if what draws charts is installed."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.seed, list(METHODS).index(outcome.method)))
    runs = [outcome.trained for outcome in ordered if outcome.trained is not None]
    learned = next(run for run in runs if run.history)  # of seed 0, as the recipe is
    try:
        sheet = sheet_of(recipe, *data_for(recipe), None, learned.history[-1], tile=TILE)
        picture = picture_of("RandAug + AutoLabel", sheet)
        how = ReportOptions(out=PAGE, title="What label should an augmented image carry?")
        path = write_report(runs, [(learned.name, picture)], [], how, console)
    except ImportError as missing:
        console.print(f"No page was written: {missing}", markup=False, soft_wrap=True)
    else:
        console.print(f"All of it as a page, to open in a browser: {path}", markup=False, soft_wrap=True)


def _run_all(seeds: int, epochs: int, console: Console) -> list[Outcome]:
    """Every method with every seed, one process and one thread per core: faster than many threads."""
    runs = [Run(number, *which) for number, which in enumerate(itertools.product(range(seeds), METHODS))]
    ended = multiprocessing.RawArray("i", len(runs))  # no lock, which a killed process would never release
    outcomes = []
    bar = bar_of("epochs", console)
    task = bar.add_task(f"training {len(runs)} networks", total=len(runs) * epochs)
    with (
        followed(bar, task, lambda: {"completed": sum(ended)}),
        contextlib.closing(each(partial(_run, epochs, ended), runs, cores(), "start the demo again")) as done,
    ):
        for _, outcome in done:
            outcomes.append(outcome)
            console.print(f"{outcome.method}, seed {outcome.seed}: {outcome.seconds:.0f} s", highlight=False)
    return outcomes


class Run(NamedTuple):
    number: int
    seed: int
    method: str


def _run(epochs: int, ended: Array[c_int], which: Run) -> Outcome:
    def tick() -> None:
        ended[which.number] += 1

    torch.set_num_threads(1)
    return run(which.method, which.seed, epochs, tick)


def results(outcomes: Sequence[Outcome]) -> Table:
    """Mean and standard deviation over seeds, for clean images, each distortion and their mean."""
    seeds = len({outcome.seed for outcome in outcomes})
    table = Table(
        title=f"2,000 test images a row; mean ± standard deviation over {seeds} seeds",
        caption="accuracy, ECE and debiased ECE in %; RandAug has none of the four distortions",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("images", "labels"):
        table.add_column(name, no_wrap=True)
    for name in HEADS.values():
        table.add_column(name, justify="right", no_wrap=True)
    groups = {
        "clean": ["clean"],
        "all four": list(DISTORTIONS),
        **{name: [name] for name in DISTORTIONS},
    }
    for title, names in groups.items():
        table.add_section()
        for method in METHODS:
            each = [_mean([o.readings[name] for name in names]) for o in outcomes if o.method == method]
            table.add_row(
                title, method, *(spread([value[i] for value in each], f) for i, f in enumerate(HEADS))
            )
            title = ""
    return table


def _mean(readings: Sequence[Reading]) -> Reading:
    return Reading(*(statistics.fmean(column) for column in zip(*readings, strict=True)))


def spread(values: Sequence[float], field: str) -> str:
    scale, digits = (100, 1) if METRICS[field].unit == "%" else (1, 2)
    shown = f"{scale * statistics.fmean(values):.{digits}f}"
    return shown if len(values) == 1 else f"{shown}±{scale * statistics.stdev(values):.{digits}f}"


def learned(outcomes: Sequence[Outcome]) -> Table:
    """AutoLabel's confidence per operation and magnitude, mean over seeds."""
    tables = [outcome.table for outcome in outcomes if outcome.table is not None]
    grid, title = RandAug().grid, "Learned label confidence, % (mean over seeds)"
    return heat_map(grid.kinds, grid.levels, torch.tensor(tables).mean(dim=0), title, head="magnitude")
