"""The runs of a comparison: first those that choose an option on validation images, then all methods."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.compare.candidates import Candidate
from auglabel.lab.methods.comparisons import OVERALL, Comparison, Place
from auglabel.lab.methods.verdict import CLEAN, Verdict
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.evaluations import TA, MeasuredRow, T
from auglabel.lab.sweep.executor import Executor, run_all
from auglabel.lab.sweep.grid import Shared, require_different
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.result import AT, KEPT, Result, mean_of

CHOOSING_SEEDS = (100, 101)  # of runs that are never reported


@dataclass(frozen=True)
class Contest:
    """Candidates, the recipe that they change, and the seeds that are reported."""

    shared: Shared
    candidates: Sequence[Candidate]
    seeds: Sequence[int]
    results: Results

    def __post_init__(self) -> None:
        if taken := sorted(set(self.seeds) & set(CHOOSING_SEEDS)):
            raise UserError(f"seed {taken[0]} is kept for choosing: let --first_seed begin elsewhere.")
        require_different(
            [self._job(each, each.values[:1], self.seeds[0]) for each in self.candidates], "--methods"
        )

    @cached_property
    def plain(self) -> str:
        """The method that others are compared with: the first with one-hot labels, or else the first."""
        recipes = {
            each.name: self._job(each, each.values[:1], self.seeds[0]).recipe for each in self.candidates
        }
        one_hot = [name for name, recipe in recipes.items() if recipe.labels.name == "one_hot"]
        return (one_hot or list(recipes))[0]

    @cached_property
    def choosing(self) -> list[Job]:
        """Every run that chooses an option, without a test image."""
        return [job for each in self.candidates for value in each.values for job in self._trials(each, value)]

    def chosen(self, candidate: Candidate) -> tuple[str, ...] | None:
        """The value of lowest NLL on augmented validation images; () if nothing is to choose, None before."""
        found = {value: self._nll(candidate, value) for value in candidate.values}
        known = {value: nll for value, nll in found.items() if nll is not None}
        if len(known) < len(candidate.values):
            return None
        return (min(known, key=lambda value: known[value]),) if known else ()

    def jobs(self, candidate: Candidate) -> list[Job]:
        """A run per seed, once its option is chosen; none before."""
        value = self.chosen(candidate)
        return [] if value is None else [self._job(candidate, value, seed) for seed in self.seeds]

    @property
    def planned(self) -> list[Job]:
        """Every run, with the first of the values where the choice is still to be made."""
        reported = [
            self._job(each, each.values[:1] if self.chosen(each) is None else self.chosen(each) or (), seed)
            for seed in self.seeds
            for each in self.candidates
        ]
        return [*self.choosing, *reported]

    def run(self, executor: Executor, console: Console) -> list[str]:
        """Do what is not there yet, seed by seed; a sentence for each run that failed."""
        failed = run_all(self.choosing, self.results, executor, console) if self.choosing else []
        by_seed = [self.jobs(candidate) for candidate in self.candidates]
        in_order = [jobs[n] for n in range(len(self.seeds)) for jobs in by_seed if jobs]
        return failed + run_all(in_order, self.results, executor, console)

    def trained(self) -> dict[str, str]:
        """The path of every finished run that is reported, with the name of its method."""
        runs = [(each.name, self.results.run(job)) for each in self.candidates for job in self.jobs(each)]
        return {str(run.path): name for name, run in runs if run.model_file.is_file()}

    @property
    def reported(self) -> dict[str, list[Result]]:
        """The results that are there, by the name of their method."""
        return {
            each.name: [result for job in self.jobs(each) if (result := self.results.read(job))]
            for each in self.candidates
        }

    def verdict(self) -> Verdict | None:
        """What the results that are there show; None before there are any."""
        clean, corrupted = Comparison("", ""), Comparison("", "")
        for name, results in self.reported.items():
            for result in results:
                for comparison, place, row in _rows(result, clean, corrupted):
                    comparison.rows.setdefault(place, {}).setdefault(name, {})[result.seed] = row
        methods = clean.methods
        plain = self.plain if self.plain in methods else methods[0] if methods else ""
        return Verdict(methods, plain, [clean, corrupted]) if methods else None

    def _trials(self, candidate: Candidate, value: str) -> list[Job]:
        """Runs that choose hold validation images out to their end, also where the method gives them back."""
        jobs = [self._job(candidate, (value,), seed) for seed in CHOOSING_SEEDS]
        return [replace(job, recipe=job.recipe.changed("give_back", None), measured=()) for job in jobs]

    def _nll(self, candidate: Candidate, value: str) -> float | None:
        """Mean over the choosing seeds; None while one is missing, infinite where it is no number."""
        read = [self.results.read(job) for job in self._trials(candidate, value)]
        found = [there.validation_augmented for there in read if there is not None]
        if len(found) < len(read):
            return None
        return statistics.fmean(_finite(each["nll"] if each else None) for each in found)

    def _job(self, candidate: Candidate, value: Iterable[str], seed: int) -> Job:
        words = [*self.shared.words, *candidate.words, *(f"--{candidate.option}={each}" for each in value)]
        recipe = read_recipe(self.shared.recipe, words).changed("seed", seed)
        name = re.sub(r"[^\w.+-]+", "_", "-".join([candidate.name, *value]))
        return Job(f"{name}-seed{seed}", recipe, self.shared.measured)


def _rows(
    result: Result, clean: Comparison, corrupted: Comparison
) -> Iterator[tuple[Comparison, Place, MeasuredRow]]:
    """The row on clean images, and the mean over corruptions if they were measured."""
    rows = [row for evaluation in result.evaluations for row in evaluation.rows]
    yield clean, CLEAN, next(row for row in rows if row.on == "clean")
    if some := [row for row in rows if row.severity is not None]:
        values, *scaled = ({name: mean_of(some, f"{name}{at}") for name in KEPT} for at in AT)
        named = dict(zip((T, TA), scaled, strict=True))
        yield (
            corrupted,
            OVERALL,
            MeasuredRow("corrupted", None, some[0].count, values, named, pairs=len(some)),
        )


def _finite(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value
