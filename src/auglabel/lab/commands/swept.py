"""`auglabel sweep`: a recipe at every point of a grid, with some seeds, or where a search asks for it."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.recipe.options import pairs
from auglabel.lab.runs.files import locked
from auglabel.lab.sweep.forecast import core_hours
from auglabel.lab.sweep.grid import SUCH_AS, Grid, Shared, counted, grid, require_once
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement, digest_words
from auglabel.lab.sweep.search import Searches
from auglabel.lab.sweep.summary import summary_of
from auglabel.lab.sweep.sweep import Crew
from auglabel.util.checks import require_whole

SEEDS = 3


@dataclass(frozen=True)
class Sweep:
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
        """Of what is measured."""
        return list(dict.fromkeys(name.strip() for name in self.measure.split(","))) if self.measure else []

    def measured(self) -> tuple[Measurement, ...]:
        """A measurement for each name, all of which can be measured."""
        found = tuple(Measurement(on=name, images=self.images) for name in self.names)
        for each in found:
            try:
                each.request()
            except ValueError as error:
                raise UserError(str(error).replace("--on", "--measure", 1)) from None
        return found


def sweep_recipe(name: str, words: Sequence[str], asked: Sweep, crew: Crew) -> None:
    """Say what is to be done, do what is not there yet, and sum up what came out."""
    crew.require()
    shared = Shared(name, tuple(words), asked.measured())
    require_once(asked.over, asked.search, [key for key, _ in pairs(words)])
    out = Path(asked.out or f"sweeps/{shared.name}")
    results = Results(out / "results", out / "runs")
    work = _work(asked, shared, results)
    console = Console(file=sys.stdout, highlight=False, emoji=False)
    _tell(work, results, crew, console)
    if asked.plan:
        return
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, f"another sweep is under way in {out}: wait for it, or name another --out."):
        failed = work.run(crew, console)
        summary = summary_of(work.runs(), results, asked.names)
        if summary.lines:
            how = {key: value for key, value in asdict(asked).items() if key in ("over", "search", "trials")}
            how["measured"] = digest_words(shared.measured)
            summary.write(out, {"recipe": name, "words": list(words), **how})
            console.print(summary.table(str(out)))
            console.print(f"wrote {out / 'summary'}.json and .csv", markup=False, soft_wrap=True)
    if failed:
        names = ", ".join(line.partition(": ")[0] for line in failed)
        raise OSError(
            f"{len(failed)} of {work.count} runs failed: {names}. The others are there, why is said above, "
            "and the same command tries again."
        )


def _work(asked: Sweep, shared: Shared, results: Results) -> Grid | Searches:
    points = grid(shared, asked.over)
    if asked.trials is None:
        seeds = range(asked.first_seed, asked.first_seed + (asked.seeds or SEEDS))
        return Grid(shared, points, seeds, results)
    return Searches(shared, points, asked.search, asked.trials, asked.first_seed, results)


def _tell(work: Grid | Searches, results: Results, crew: Crew, console: Console) -> None:
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
    if left:
        hours = _forecast(waiting, results, console)
        wall = ""
        if crew.strength is not None:
            wall = f": {_span(wall_hours(hours, crew.strength))} with {counted(crew.strength, 'worker')}"
        console.print(f"About {max(sum(hours), 0.01):.2f} core-hours{wall}.", markup=False)


def _forecast(waiting: Sequence[Sequence[Job]], results: Results, console: Console) -> list[float]:
    """Core-hours of each run; those that cannot even be tried are left out, unless there are no others."""
    hours: list[float] = []
    troubles: list[str] = []
    with console.status("") as status:
        for jobs in filter(None, waiting):
            try:
                hours += core_hours(jobs, results, lambda name: status.update(f"trying {name}"))
            except Exception as error:  # a network of the user's own may fail in any way
                troubles.append(f"{jobs[0].name}: {' '.join(str(error).split()) or type(error).__name__}")
    if troubles and not hours:
        raise UserError(troubles[0])
    for trouble in troubles:
        console.print(f"no forecast for {trouble}", markup=False, soft_wrap=True)
    return hours


def wall_hours(hours: Sequence[float], workers: int) -> float:
    """Until the last run is done, if each worker takes the next that waits."""
    busy = [0.0] * workers
    for each in hours:
        heapq.heapreplace(busy, busy[0] + each)
    return max(busy)


def _span(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{max(60 * hours, 1):.0f} min"
