"""The points of a sweep: every combination of the values that some options of a recipe are to have."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.sweep.executor import Executor, run_all
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement

SUCH_AS = {
    "--over": "labels.alpha=0.02,0.05;regime=randaug_ls,randaug",
    "--search": "labels.alpha=0.005..0.5",
}


@dataclass(frozen=True)
class Point:
    """A combination of values, as they were written, and the name it goes by."""

    name: str
    values: dict[str, str]

    @property
    def words(self) -> list[str]:
        return [f"--{option}={value}" for option, value in self.values.items()]


@dataclass(frozen=True)
class Shared:
    """What all runs of a sweep have in common: a recipe, words that change it, what is measured."""

    recipe: str
    words: tuple[str, ...] = ()
    measured: tuple[Measurement, ...] = ()

    @property
    def name(self) -> str:
        """The recipe's, without its folder."""
        return re.sub(r"\.ya?ml$", "", self.recipe.rstrip("/").rpartition("/")[2])

    def point(self, values: Mapping[str, str]) -> Point:
        """`alpha0.02-regime_randaug`: the section is left out where the option is clear without."""
        lasts = [option.rpartition(".")[2] for option in values]
        parts = []
        for (option, value), last in zip(values.items(), lasts, strict=True):
            short = last if lasts.count(last) == 1 else option
            parts.append(f"{short}{value}" if re.match(r"[\d.+-]", value) else f"{short}_{value}")
        return Point(re.sub(r"[^\w.+-]+", "_", "-".join(parts) or self.name), dict(values))

    def recipe_at(self, point: Point) -> Recipe:
        return read_recipe(self.recipe, [*self.words, *point.words])

    def job(self, point: Point, recipe: Recipe, seed: int) -> Job:
        """A run of the recipe at that point."""
        return Job(f"{point.name}-seed{seed}", recipe.changed("seed", seed), self.measured)


def grid(shared: Shared, over: str) -> list[Point]:
    """Every combination of the values in `over`; a single point, the recipe as it is, if that is empty."""
    listed = settings("--over", over)
    values = {option: _values(option, text) for option, text in listed.items()}
    return [
        shared.point(dict(zip(values, chosen, strict=True))) for chosen in itertools.product(*values.values())
    ]


class Grid:
    """Every point with every seed."""

    def __init__(self, shared: Shared, points: Sequence[Point], seeds: Sequence[int], results: Results):
        self.results = results
        recipes = [shared.recipe_at(point) for point in points]
        self.jobs = [
            [shared.job(point, recipe, seed) for seed in seeds]
            for point, recipe in zip(points, recipes, strict=True)
        ]
        require_different([jobs[0] for jobs in self.jobs])
        self.points = points
        self.count = len(points) * len(seeds)
        self.shape = f"{counted(len(points), 'point')} x {counted(len(seeds), 'seed')}"

    def waiting(self) -> list[list[Job]]:
        """What is to be done at each point."""
        return [[job for job in jobs if self.results.read(job) is None] for jobs in self.jobs]

    def runs(self) -> list[tuple[Point, list[Job]]]:
        return list(zip(self.points, self.jobs, strict=True))

    def run(self, executor: Executor, console: Console) -> list[str]:
        """Seed by seed, so that a stop leaves whole seeds behind; a sentence for each run that failed."""
        by_seed = [job for jobs in zip(*self.jobs, strict=True) for job in jobs]
        return run_all(by_seed, self.results, executor, console)


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count > 1)}"


def settings(flag: str, text: str) -> dict[str, str]:
    """What each option of `a=1,2;b=3` is set to, as it is written; an empty text sets none."""
    found: dict[str, str] = {}
    for part in text.split(";") if text else []:
        option, _, values = (each.strip() for each in part.partition("="))
        option = option.removeprefix("--").replace("-", "_")
        if not option or not values:
            raise UserError(
                f'{flag} takes options with their values, such as "{SUCH_AS[flag]}", got "{part}".'
            )
        if option in found:
            raise UserError(f"{flag} has {option} twice: give all its values at once.")
        found[option] = values
    return found


def _values(option: str, text: str) -> list[str]:
    """Split at commas, but for those inside a [list]."""
    values = [value.strip() for value in re.split(r",(?![^\[]*\])", text)]
    if not all(values):
        raise UserError(f'--over: one of the values of {option} is empty in "{text}".')
    return values


def require_once(over: str, search: str, given: Sequence[str]) -> None:
    """No option is set in two of these places, with or without its section, and the seed in none."""
    swept = [(option, "in --over") for option in settings("--over", over)]
    swept += [(option, "in --search") for option in settings("--search", search)]
    places = [*swept, *((option, f"by --{option}") for option in given)]
    if "seed" in dict(places):
        raise UserError("--seed: a sweep has several, which --seeds and --first_seed say.")
    for number, (one, here) in enumerate(swept):
        for other, there in places[number + 1 :]:
            if one == other or one.endswith(f".{other}") or other.endswith(f".{one}"):
                raise UserError(f"{one} is set {here} and {there}: leave one of them out.")


def require_different(jobs: Sequence[Job], flag: str = "--over") -> None:
    """No two of these, one for each point or method that `flag` gives, may be the same run."""
    known: dict[str, str] = {}
    for job in jobs:
        if job.digest in known:
            raise UserError(
                f"{flag}: {known[job.digest]} and {job.name} are the same recipe: leave one of them out."
            )
        known[job.digest] = job.name
