"""Search ranges of options: workers ask a study for values, train, and tell it the validation NLL."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.recipe.recipe import Recipe, flat
from auglabel.lab.search.journal import TrialJournal, require_optuna
from auglabel.lab.sweep.executor import Executor, attempt, go_through
from auglabel.lab.sweep.grid import Point, Shared, counted, require_different, settings
from auglabel.lab.sweep.job import Job, Results

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


class Range(NamedTuple):
    """Where the values of an option lie: its ends as they were written, its name as the recipe has it."""

    option: str
    low: str
    high: str
    key: str = ""
    whole: bool = False

    @property
    def log(self) -> bool:
        """Whether the logarithm is drawn evenly: from a positive number to one at least ten times that."""
        return float(self.low) > 0 and float(self.high) / float(self.low) >= 10

    def distribution(self) -> Any:
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(float(self.low)), int(float(self.high)), log=self.log)
        return FloatDistribution(float(self.low), float(self.high), log=self.log)

    def text(self, value: float) -> str:
        """A value with 4 significant digits, so that names stay short and true; never beyond the ends."""
        if self.whole:
            return str(int(value))
        return min(max(f"{value:.4g}", self.low, key=float), self.high, key=float)


@dataclass(frozen=True)
class Search:
    """What is tried at one point of a grid, with one seed."""

    shared: Shared
    point: Point
    recipe: Recipe  # at that point
    ranges: tuple[Range, ...]
    seed: int
    results: Results
    journal: Path

    def at(self, texts: Sequence[str]) -> tuple[Point, Job]:
        """The run with these values."""
        recipe, values = self.recipe, dict(self.point.values)
        for each, text in zip(self.ranges, texts, strict=True):
            values[each.option] = text
            recipe = recipe.changed(each.key, int(text) if each.whole else float(text))
        point = self.shared.point(values)
        return point, self.shared.job(point, recipe, self.seed)

    def ends(self) -> list[Job]:
        """The run with all options at their lowest, and that with all at their highest."""
        texts = zip(*((each.low, each.high) for each in self.ranges), strict=True)
        return [self.at(each)[1] for each in texts]

    def texts(self, values: Mapping[str, float]) -> list[str]:
        return [each.text(values[each.option]) for each in self.ranges]

    def study(self) -> TrialJournal:
        """Another recipe or range has another; what is measured on test images makes no difference."""
        decides = json.dumps([job.plain for job in self.ends()], sort_keys=True)
        return TrialJournal(
            self.journal, f"{self.point.name}-{hashlib.sha256(decides.encode()).hexdigest()[:8]}"
        )

    def done(self) -> dict[int, tuple[Point, Job]]:
        """The trials that are finished and have their result, by number."""
        if not self.journal.exists():
            return {}
        study = self.study()
        tried = {n: self.at(self.texts(t.params)) for n, t in study.trials().items() if study.finished(t)}
        return {n: run for n, run in tried.items() if self.results.file(run[1]).is_file()}


class Trial(NamedTuple):
    """A number of a search, to be tried."""

    search: Search
    number: int

    def attempt(self, processes: int = 1, loader_workers: int | None = None) -> str | None:
        """Train with the values of that trial; what went wrong, if something did.

        A trial without values asks for some, and so does the next of that number after one that failed.
        """
        search, study = self.search, self.search.study()
        ranges = {each.option: each.distribution() for each in search.ranges}
        trial = study.trials().get(self.number) or study.ask(self.number, ranges, search.texts)
        _, job = search.at(search.texts(trial.params))
        trouble = attempt(search.results, job, processes, loader_workers)
        result = None if trouble else search.results.read(job)
        seen = result.validation if result else None
        nll = None if seen is None else seen["nll"]
        study.tell(trial, math.nan if nll is None else nll)
        if trouble is None and seen is None:
            return "a search goes by validation images, but --split.validation or --give_back leaves none."
        return trouble

    def told(self) -> str:
        """Its values and its loss, as far as it has them."""
        trial = self.search.study().last(self.number)
        if trial is None:
            return f"trial {self.number}"
        point, _ = self.search.at(self.search.texts(trial.params))
        return point.name if trial.value is None else f"{point.name}, validation NLL {trial.value:.4f}"


class Searches:
    """A search at every point of a grid."""

    def __init__(
        self, shared: Shared, points: Sequence[Point], text: str, trials: int, seed: int, results: Results
    ) -> None:
        require_optuna()
        self.results, self.trials = results, trials
        self.journal = results.path.parent / "search.journal"
        self.each = [search_at(shared, point, text, seed, results, self.journal) for point in points]
        require_different([search.ends()[0] for search in self.each])
        for search in self.each:
            require_room(search.ranges, trials)
        self.count = len(points) * trials
        self.shape = f"{counted(len(points), 'point')} x {counted(trials, 'trial')}"

    def waiting(self) -> list[list[Job]]:
        """For each trial to come the run at the upper ends, since nobody knows its values yet."""
        counts = [self.trials - sum(number < self.trials for number in search.done()) for search in self.each]
        return [count * search.ends()[-1:] for count, search in zip(counts, self.each, strict=True)]

    def runs(self) -> list[tuple[Point, list[Job]]]:
        """Those that are done, the best first."""
        found = [run for search in self.each for run in search.done().values()]
        return [(point, [job]) for point, job in sorted(found, key=self._loss)]

    def _loss(self, run: tuple[Point, Job]) -> float:
        result = self.results.read(run[1])
        assert result is not None
        assert result.validation is not None  # a trial without is told as failed
        return math.inf if (nll := result.validation["nll"]) is None else nll

    def run(self, executor: Executor, console: Console) -> list[str]:
        """In turn, so that a stop leaves all searches as far; a sentence for each trial that failed."""
        done = [search.done() for search in self.each]
        waiting = [
            Trial(search, number)
            for number in range(self.trials)
            for search, there in zip(self.each, done, strict=True)
            if number not in there
        ]
        with console.status(f"{len(waiting)} trials"):
            do = partial(Trial.attempt, **executor.per_run)
            return go_through(waiting, do, executor, console, Trial.told)


def search_at(shared: Shared, point: Point, text: str, seed: int, results: Results, journal: Path) -> Search:
    """The search of `text` at a point, once a recipe with either end of each range has been read."""
    ranges = ranges_in(text)
    lowest = {each.option: each.low for each in ranges}
    below = shared.recipe_at(shared.point({**point.values, **lowest}))
    resolved = []
    for each in ranges:
        above = shared.recipe_at(shared.point({**point.values, **lowest, each.option: each.high}))
        resolved.append(_resolved(each, flat(below.as_dict()), flat(above.as_dict())))
    if any(each.key == "give_back" for each in resolved):
        raise UserError(
            "--search: a search goes by validation images, on which give_back trains: "
            "compare some values with --over and --measure clean."
        )
    held_out = below.changed("give_back", None)  # what a search goes by
    return Search(shared, point, held_out, tuple(resolved), seed, results, journal)


def ranges_in(text: str) -> list[Range]:
    """`labels.alpha=0.005..0.5;optimizer.momentum=0.5..0.99`, read."""
    ranges = []
    for option, ends in settings("--search", text).items():
        found = re.fullmatch(rf"({NUMBER})\.\.({NUMBER})", ends)
        if found is None or not float(found[1]) < float(found[2]):
            raise UserError(f"--search: {option} must have a range such as 0.005..0.5, got {ends}.")
        ranges.append(Range(option, found[1], found[2]))
    return ranges


def _resolved(wanted: Range, below: Mapping[str, Any], above: Mapping[str, Any]) -> Range:
    """Which of the recipe's options it is, and whether it takes whole numbers."""
    (key,) = (key for key in below if below[key] != above[key])
    ends = below[key], above[key]
    if not all(isinstance(end, int | float) for end in ends):
        raise UserError(f"--search: {key} does not take numbers; --over takes words.")
    return wanted._replace(key=key, whole=all(isinstance(end, int) for end in ends))


def require_room(ranges: Sequence[Range], trials: int) -> None:
    """Each trial has values of its own."""
    if all(each.whole for each in ranges):
        room = math.prod(int(float(each.high)) - int(float(each.low)) + 1 for each in ranges)
        if trials > room:
            raise UserError(f"--trials {trials} is more than the {room} values there are: use --over.")
