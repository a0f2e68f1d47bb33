"""`auglabel sweep`: a recipe at every point of a grid, with some seeds, or where a search asks for it."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import recipe_first
from auglabel.lab.paper.claim_verdicts import Part
from auglabel.lab.recipe.options import flags, pairs
from auglabel.lab.runs.files import locked
from auglabel.lab.search.search import Searches
from auglabel.lab.sweep.executor import Executor, require_done
from auglabel.lab.sweep.forecast import Forecast, forecast, unit
from auglabel.lab.sweep.grid import SUCH_AS, Grid, Shared, counted, grid, require_once
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement, digest_words
from auglabel.lab.sweep.summary import CHOOSES, Summary, summary_of
from auglabel.util.checks import require_whole

SEEDS = 3


@dataclass(frozen=True)
class SweepOptions:
    """Which runs, and what of them is measured"""

    over: str = ""
    """options and their values, all combined: "labels.alpha=0.02,0.05;regime=randaug_ls,randaug" """
    search: str = ""
    """options and their ranges, for optuna to find the lowest validation NLL: "labels.alpha=0.005..0.5" """
    trials: int | None = None
    """runs of the search, at each point of --over if there are several"""
    seeds: int | None = None
    """runs of each point of --over; 3 if not given; a search has one"""
    first_seed: int = 0
    """the others follow it"""
    measure: str = ""
    """what of the test images to measure, as in eval --on; nothing if not given: that is not for choosing"""
    images: int | None = None
    """how many test images to measure on; all of them if not given"""
    plan: bool = False
    """say what there is to do and what it will cost, and stop"""
    out: str | None = None
    """directory of the results, the runs and the summary; sweeps/RECIPE if not given"""

    def __post_init__(self) -> None:
        require_whole("first_seed", self.first_seed, 0)
        for name in ("seeds", "trials", "images"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), 1)
        if self.search and self.trials is None:
            raise UserError("search goes with --trials N: how many runs it may take.")
        if self.trials is not None and not self.search:
            raise UserError(f"trials goes with --search, such as {SUCH_AS['--search']}.")
        if self.search and (self.seeds or 1) > 1:
            raise UserError("seeds goes with --over; a search trains each trial once, with --first_seed.")
        if self.images is not None and not self.measure:
            raise UserError("images goes with --measure: nothing else looks at test images.")

    @cached_property
    def names(self) -> list[str]:
        """What to measure on the test images, each name once."""
        return list(dict.fromkeys(name.strip() for name in self.measure.split(","))) if self.measure else []

    def measured(self) -> tuple[Measurement, ...]:
        """A measurement for each name, all of which can be measured."""
        found = tuple(Measurement(on=name, images=self.images) for name in self.names)
        for each in found:
            try:
                each.request()
            except UserError as error:
                raise UserError(str(error).replace("--on", "--measure", 1)) from None
        return found


USAGE, OPTIONS, TAKES_RECIPE = "RECIPE", (SweepOptions, Executor), True


def run(words: list[str]) -> None:
    name, rest = recipe_first(words, "auglabel sweep embedded --over alpha=0.02,0.05")
    options, rest = flags(SweepOptions, rest)
    executor, rest = flags(Executor, rest)
    sweep_recipe(name, rest, options, executor)


def sweep_recipe(name: str, words: Sequence[str], options: SweepOptions, executor: Executor) -> None:
    """Say what is to be done, do what is not there yet, and sum up what came out."""
    executor.require()
    shared = Shared(name, tuple(words), options.measured())
    require_once(options.over, options.search, [key for key, _ in pairs(words)])
    out = Path(options.out or f"sweeps/{shared.name}")
    results = Results(out / "results", out / "runs")
    work = _work(options, shared, results)
    console = Console(file=sys.stdout, highlight=False, emoji=False)
    _tell(work, results, executor, console)
    if options.plan:
        return
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, f"another sweep is under way in {out}: wait for it, or name another --out."):
        failed = work.run(executor, console)
        summary = summary_of(work.runs(), results, options.names)
        if summary.lines:
            about = {key: getattr(options, key) for key in ("over", "search", "trials")}
            about["measured"] = digest_words(shared.measured)
            summary.write(out, {"recipe": name, "words": list(words), **about})
            console.print(summary.table(str(out)))
            if doubt := doubt_of(summary):
                console.print(doubt, markup=False, soft_wrap=True)
            console.print(f"wrote {out / 'summary'}.json and .csv", markup=False, soft_wrap=True)
    require_done(failed, work.count)


def doubt_of(summary: Summary) -> str | None:
    """That the choice is not told apart from the next point, seed by seed; None where it is."""
    best = summary.choice
    others = [line for line in summary.lines if line.whole and line is not best]
    if best is None or not others:
        return None
    following = min(others, key=lambda line: line.figures[CHOOSES].mean)
    names = f"{best.point.name} from {following.point.name}, the next"
    pairs_of = list(zip(following.values[CHOOSES], best.values[CHOOSES], strict=True))
    if len(pairs_of) == 1:
        return f"One run each does not tell {names}."
    try:
        part = Part("", [], [theirs - ours for theirs, ours in pairs_of])
        low, high = part.interval
    except ImportError as error:
        return f"Whether the seeds tell {names}, is not known: {error}"
    if low > 0:
        return None
    spread = f"{part.mean:.3f} more validation NLL, 95 % interval [{low:.3f}, {high:.3f}]"
    return f"These {len(pairs_of)} seeds do not tell {names}: {spread}."


def _work(options: SweepOptions, shared: Shared, results: Results) -> Grid | Searches:
    points = grid(shared, options.over)
    if options.trials is None:
        seeds = range(options.first_seed, options.first_seed + (options.seeds or SEEDS))
        return Grid(shared, points, seeds, results)
    return Searches(shared, points, options.search, options.trials, options.first_seed, results)


def _tell(work: Grid | Searches, results: Results, executor: Executor, console: Console) -> None:
    """What there is to do, what is kept apart from it, and what it will cost."""
    waiting = work.waiting()
    left = sum(len(jobs) for jobs in waiting)
    console.print(
        f"{work.count} runs, {work.shape}: {work.count - left} are there, {left} to do.", markup=False
    )
    others = [path for _, jobs in work.runs() for job in jobs for path in results.others(job)]
    if others:
        names = ", ".join(path.stem for path in others)
        console.print(
            f"Kept apart, being of another recipe or with other measurements: {names}.",
            markup=False,
            soft_wrap=True,
        )
    tell_cost(waiting, results, executor, console)


def tell_cost(
    waiting: Sequence[Sequence[Job]], results: Results, executor: Executor, console: Console
) -> None:
    """What runs will cost; nothing if there are none, or if no forecast is wanted."""
    jobs = [job for group in waiting for job in group]
    if not jobs or not executor.forecast:
        return
    with console.status("") as status:
        found = forecast(jobs, results, executor.forecast, lambda name: status.update(f"trying {name}"))
    for trouble in found.troubles:
        if not any(found.hours):
            raise UserError(trouble)
        console.print(f"no forecast for {trouble}", markup=False, soft_wrap=True)
    console.print(_cost(found, executor), markup=False, soft_wrap=True)


def _cost(found: Forecast, executor: Executor) -> str:
    """A sentence, or two where time was too short."""
    more = f"Timing stopped after {executor.forecast:g} s (--forecast)."
    if math.isnan(sum(found.hours)):
        return f"No forecast: not one step was done in time. {more}"
    wall = ""
    if executor.capacity is not None:
        hours = wall_hours([each / executor.gpus_per_run for each in found.hours], executor.capacity)
        wall = f": {_span(hours)} with {counted(executor.capacity, 'worker')}"
    told = f"{'Roughly' if found.rough else 'About'} {max(sum(found.hours), 0.01):.2f} {unit()}{wall}."
    return f"{told} {more}" if found.rough else told


def wall_hours(hours: Sequence[float], workers: int) -> float:
    """Until the last run is done, if each worker takes the next that waits."""
    busy = [0.0] * workers
    for each in hours:
        heapq.heapreplace(busy, busy[0] + each)
    return max(busy)


def _span(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{max(60 * hours, 1):.0f} min"
