"""`auglabel demo`: RandAug with three kinds of labels on the embedded images, as a sweep and its report.

All runs of a seed see the same images, initial weights and transformations, and differ in their labels alone.
They are measured on the test images as they are and under four corruptions that RandAug does not contain.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.lab.commands.arguments import require_no_more
from auglabel.lab.commands.sweep import SweepOptions
from auglabel.lab.evaluate.results import COLUMNS
from auglabel.lab.pictures.terminal import heat_map
from auglabel.lab.recipe.options import flags
from auglabel.lab.report.report import ReportOptions, report
from auglabel.lab.runs.files import locked
from auglabel.lab.runs.metric_list import METRICS
from auglabel.lab.sweep.executor import Executor, require_done
from auglabel.lab.sweep.grid import Grid, Point, Shared
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.result import Result, mean_of
from auglabel.util.checks import require_whole

METHODS: dict[str, dict[str, str]] = {  # what each kind of labels changes in the recipe "embedded"
    "one-hot": {"regime": "randaug"},
    "label smoothing": {"regime": "randaug_ls", "labels.rho": "0.01"},  # chosen by benchmarks/demo_choice.py
    "AutoLabel": {"labels.alpha": "0.02"},  # chosen there too
}
CORRUPTIONS = ("gaussian_noise", "defocus_blur", "fog", "pixelate")
HEADS = {name: title for name, title in COLUMNS.items() if name != "aurc"}
FOLDER, PAGE = Path("runs/demo"), "runs/demo.html"


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
    sweep = sweep_of(options)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with locked(FOLDER, f"another demo is under way in {FOLDER}: wait for it."):
        _remove_results_without_runs(sweep)
        left = sum(map(len, sweep.waiting()))
        console.print(f"{sweep.count} runs, {left} of them to do, in {FOLDER}", markup=False)
        require_done(sweep.run(Executor(), console), sweep.count)
        show(sweep, console)
        console.print(f"{left} runs in {time.perf_counter() - start:.0f} s.")
        _report([job for jobs in zip(*sweep.jobs, strict=True) for job in jobs], sweep.results, console)


def sweep_of(options: DemoOptions) -> Grid:
    """Every kind of labels with every seed."""
    measured = SweepOptions(measure=",".join(("clean", *CORRUPTIONS))).measured()
    shared = Shared("embedded", (f"--epochs={options.epochs}",), measured)
    points = [Point(name.replace(" ", "_"), values) for name, values in METHODS.items()]
    results = Results(FOLDER / "results", FOLDER / "runs")
    return Grid(shared, points, range(options.seeds), results)


def _remove_results_without_runs(sweep: Grid) -> None:
    """So that they are made again: the page shows the runs themselves."""
    for job in (job for jobs in sweep.jobs for job in jobs):
        if not sweep.results.run(job).model_file.exists():
            sweep.results.file(job).unlink(missing_ok=True)


def show(sweep: Grid, console: Console) -> None:
    """Print what was measured, and the labels that AutoLabel learned."""
    found = {
        name: [sweep.results.perform(job) for job in jobs]  # that is: read
        for name, jobs in zip(METHODS, sweep.jobs, strict=True)
    }
    console.print(measured_table(found))
    console.print(learned_table([result.labels or {} for result in found["AutoLabel"]]))
    recipe = sweep.jobs[-1][0].recipe
    last = [sweep.results.run(job).epochs()[-1] for job in sweep.jobs[-1]]
    share = statistics.fmean(epoch.calibration_share or 0.0 for epoch in last)
    console.print(
        f"{recipe.split['train']:,} training images a run. AutoLabel sees each validation image in "
        f"{recipe.calibrate.visits} of 82 buckets an epoch and keeps {recipe.calibrate.memory:.0%} of the "
        "older sums; the paper sees it in all of them. On grey images color does nothing. AutoLabel spent "
        f"{share:.0%} of its time on calibration."
    )


def measured_table(found: Mapping[str, Sequence[Result]]) -> Table:
    """Mean and standard deviation over seeds for each kind of labels: clean, each corruption, their mean."""
    seeds = len(next(iter(found.values())))
    table = Table(
        title=f"2,000 test images a row; mean ± standard deviation over {seeds} seeds",
        caption="accuracy, ECE and debiased ECE in %; a corruption: mean of its 5 severities",
        box=box.SIMPLE_HEAD,
        padding=0,  # so that it fits 80 columns
    )
    for name in ("images", "labels"):
        table.add_column(name, no_wrap=True)
    for name in HEADS.values():
        table.add_column(name, justify="right", no_wrap=True)
    groups = {"clean": [0], "all four": [1, 2, 3, 4]} | {n: [i] for i, n in enumerate(CORRUPTIONS, start=1)}
    for title, places in groups.items():
        table.add_section()
        for method, results in found.items():
            cells = [_cell(results, places, metric) for metric in HEADS]
            table.add_row(title if method == next(iter(found)) else "", method, *cells)
    return table


def _cell(results: Sequence[Result], places: Sequence[int], name: str) -> str:
    """A metric over seeds: of each run the mean over all rows of its evaluations in these places."""
    rows = [[row for place in places for row in result.evaluations[place].rows] for result in results]
    values = [value for some in rows if (value := mean_of(some, name)) is not None]
    metric = METRICS[name]
    return metric.mean_and_spread(values, "±", fewer=0 if metric.unit else 1) if values else "-"


def learned_table(labels: Sequence[Mapping[str, Sequence[float]]]) -> Table:
    """AutoLabel's confidence per operation and magnitude, mean over seeds."""
    levels = [len(row) for row in labels[0].values()]
    flat = torch.tensor([[value for row in each.values() for value in row] for each in labels])
    title = "Learned label confidence, % (mean over seeds)"
    return heat_map(list(labels[0]), levels, flat.mean(dim=0), title, head="magnitude")


def _report(jobs: Sequence[Job], results: Results, console: Console) -> None:
    """All of it as a page, if what draws charts is installed."""
    options = ReportOptions(out=PAGE, title="What label should an augmented image carry?")
    try:
        path = report([str(results.run(job).path) for job in jobs], options, [], console)
    except ImportError as missing:
        console.print(f"No page was written: {missing}", markup=False, soft_wrap=True)
    else:
        console.print(f"All of it as a page, to open in a browser: {path}", markup=False, soft_wrap=True)
