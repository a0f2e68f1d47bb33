"""The jobs behind tables and figures: first those that choose rho and alpha, then those that are reported."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.study.row import FIRST_SEED, NAMES, Scale, StudyRow
from auglabel.lab.study.rows import rows_by_name, rows_of
from auglabel.lab.study.rows_fast import STAGES
from auglabel.lab.study.run_options import copies_of, recipe_words
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import Result
from auglabel.pooling import RULE

WHERE = {
    data: f"the official files or folders of images; auglabel train {data} --data.root DIR "
    "--data.download true fetches them"
    for data in ("cifar10", "cifar100")
} | {"imagenet": "the folder that holds train/ and val/, which its owners hand out"}
COPIES = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C", "imagenet": "ImageNet-C"}  # official names
MOST_SEEDS = 20  # of a row


Found = Mapping[str, Mapping[int, Result]]  # results by the row's name and seed


@dataclass(frozen=True)
class Choosing:
    """How rho and alpha are chosen at a scale."""

    seeds: tuple[int, ...]  # of the runs that choose; none of them is ever reported
    augmented: bool  # whether the NLL of augmented validation images decides, or that of clean ones

    @property
    def words(self) -> str:
        return f"{'augmented' if self.augmented else 'clean'} validation images"


CHOOSING, CHOOSING_FAST = Choosing((100,), augmented=False), Choosing((100, 101), augmented=True)


@dataclass(frozen=True)
class Study:
    """Rows at one scale, where their data lie, and the results that are there."""

    scale: Scale
    results: Results
    roots: Mapping[str, str] = field(default_factory=dict)
    seeds: int | None = None  # instead of each row's own number
    failed: frozenset[str] = frozenset()  # stems of jobs that ended without a result
    words: tuple[str, ...] = ()  # options of every run, such as --engine.precision=bf16 and --copies=DIR

    @property
    def choosing(self) -> Choosing:
        return CHOOSING_FAST if self.scale == "fast" else CHOOSING

    def names(self) -> list[str]:
        """Every table and figure that this scale has."""
        return [name for name in NAMES if name in ("table1", "figure4") or rows_of(name, self.scale)]

    def stages(self, names: Sequence[str]) -> list[list[StudyRow]]:
        """The rows of these tables and figures that have data, in the order of their runs, each row once."""
        wanted = {row.name: row for row in self.rows(names) if not self.lacks_data(row)}
        groups = [*(STAGES if self.scale == "fast" else ()), list(wanted.values())]
        found = [[row for row in group if wanted.pop(row.name, None)] for group in groups]
        return [rows for rows in found if rows]

    def rows(self, names: Iterable[str]) -> list[StudyRow]:
        """Every row that these tables and figures rest on, once."""
        found = {row.name: row for name in names for row in rows_of(name, self.scale)}
        return list(found.values())

    def lacks_data(self, row: StudyRow) -> bool:
        """Whether it trains on images whose folder was not given."""
        return row.data in WHERE and row.data not in self.roots

    def require_data(self, rows: Sequence[StudyRow]) -> str:
        """Raise unless one of the rows has its data, and every folder is there; which rows are left out."""
        needed = [data for data in WHERE if data in {row.data for row in rows}]
        for data in needed:
            if data in self.roots and not Path(self.roots[data]).expanduser().exists():
                raise FileNotFoundError(f"--{data}: there is no {self.roots[data]}. It takes {WHERE[data]}.")
        if rows and all(map(self.lacks_data, rows)):
            ways = "; or ".join(f"--{data} DIR, {WHERE[data]}" for data in needed)
            raise UserError(f"no row has its images. Give {ways}.")
        left_out = {data: [row.name for row in rows if row.data == data] for data in needed}
        return "; ".join(
            f"{', '.join(names)} (--{data} DIR brings {'them' if len(names) > 1 else 'it'})"
            for data, names in left_out.items()
            if data not in self.roots
        )

    def require_same_images(self, jobs: Iterable[Job]) -> None:
        """The images that the results which are there were made with."""
        told: dict[str, str] = {}
        for job in jobs:
            there, data = self.results.read(job), job.recipe.data.name
            if there is None or data in told:
                continue
            told[data] = data_for(job.recipe)[0].checksum
            if there.data.checksum != told[data]:
                raise UserError(
                    f"{self.results.file(job)} was made with other images: their checksum was "
                    f"{there.data.checksum[:12]}..., but that of {data} is now {told[data][:12]}.... "
                    "Give the folder of those, or another --out."
                )

    def of_an_older_rule(self, row: StudyRow) -> bool:
        """Whether its results, or those of its choice, were made by another form of the pooled rule."""
        chosen = [job for jobs in self.tuning(row).values() for job in jobs]
        made = [self.results.read(job) for job in (*chosen, *self.jobs(row)) if _pooled(job.recipe)]
        return any(there.versions.get("pooled_rule", "1") != RULE for there in made if there is not None)

    def tuning(self, row: StudyRow) -> dict[float, list[Job]]:
        """Jobs for every value to choose from, on seeds that are never reported, without a test image."""
        row = rows_by_name(self.scale)[row.like] if row.like else row
        return {
            value: [
                Job(
                    f"{row.name}-{row.tuned}{value:g}-{seed}",
                    self._recipe(row, [f"--labels.{row.tuned}={value:g}"], seed).changed("give_back", None),
                )
                for seed in self.choosing.seeds
            ]
            for value in row.values
        }

    def tried(self, row: StudyRow, metric: str = "nll") -> dict[float, float]:
        """The mean over seeds of each value whose runs have all ended; infinite where one failed."""
        found = {}
        for value, jobs in self.tuning(row).items():
            read = [self.results.read(job) for job in jobs]
            if all(
                there is not None or job.stem in self.failed for there, job in zip(read, jobs, strict=True)
            ):
                found[value] = statistics.fmean(self._seen(there, metric) for there in read)
        return found

    def _seen(self, result: Result | None, metric: str) -> float:
        """Of the validation images that decide, after the last epoch; infinite for a run without result."""
        seen = result and (result.validation_augmented if self.choosing.augmented else result.validation)
        value = seen.get(metric) if seen else None
        return math.inf if value is None or math.isnan(value) else value

    def chosen(self, row: StudyRow) -> float | None:
        """The value of lowest validation NLL; None while not all are tried, or with nothing to choose."""
        found = self.tried(row)
        if len(found) < len(self.tuning(row)) or not any(map(math.isfinite, found.values())):
            return None
        return min(found, key=lambda value: found[value])

    def jobs(self, row: StudyRow) -> list[Job]:
        """One per seed, once rho or alpha is chosen; none before."""
        if not self.tuning(row):
            return self._with(row, None)
        return [] if (value := self.chosen(row)) is None else self._with(row, value)

    def planned(self, row: StudyRow) -> list[Job]:
        """One per seed, before anything is chosen with the first of its values: what they will cost."""
        return self.jobs(row) or self._with(row, next(iter(self.tuning(row))))

    def found(self, rows: Iterable[StudyRow]) -> Found:
        """Every result of these rows, however many seeds were asked for: none is left out."""
        many = replace(self, seeds=MOST_SEEDS)
        read = {
            row.name: {job.recipe.training.seed: self.results.read(job) for job in many.jobs(row)}
            for row in rows
        }
        return {
            name: {seed: each for seed, each in some.items() if each is not None}
            for name, some in read.items()
        }

    def _with(self, row: StudyRow, value: float | None) -> list[Job]:
        words = [] if value is None else [f"--labels.{row.tuned}={value:g}"]
        seeds = range(FIRST_SEED, FIRST_SEED + (self.seeds or row.seeds))
        recipes = {seed: self._recipe(row, words, seed) for seed in seeds}
        measured = self.measured(row)
        return [Job(f"{row.name}-{seed}", recipes[seed], measured, row.views) for seed in seeds]

    def measured(self, row: StudyRow) -> tuple[Measurement, ...]:
        """What is measured of a row: on copies, where they are given and its data set has any."""
        if (folder := copies_of(self.words)) is None or row.data not in COPIES:
            return row.measured
        where = str(Path(folder) / COPIES[row.data])
        return tuple(replace(each, copies=where) if each.on == "corrupted" else each for each in row.measured)

    def require_copies(self, rows: Sequence[StudyRow]) -> None:
        """Raise unless the copies that these rows are measured on are there."""
        there = {each.copies for row in rows if not self.lacks_data(row) for each in self.measured(row)}
        for where in sorted(there - {None}, key=str):
            if not Path(str(where)).expanduser().is_dir():
                raise FileNotFoundError(
                    f"--copies: there is no {where}. It takes the folder that holds "
                    f"{', '.join(COPIES.values())}, as they unpack."
                )
        for each in {each for row in rows if not self.lacks_data(row) for each in self.measured(row)}:
            if each.copies is not None:
                each.request()  # raises where a corruption is missing, before hours of training

    def _recipe(self, row: StudyRow, words: Sequence[str], seed: int) -> Recipe:
        root = [f"--data.root={self.roots.get(row.data, '.')}"] if row.data in WHERE else []
        recipe = _read(row.recipe, (*row.words, *words, *recipe_words(self.words), *root))
        return replace(recipe, training=replace(recipe.training, seed=seed))


@functools.cache
def _read(name: str, words: tuple[str, ...]) -> Recipe:
    """Reading a recipe takes a moment, and every seed of a row has the same."""
    return read_recipe(name, words)


def _pooled(recipe: Recipe) -> bool:
    return recipe.labels.name.startswith("autolabel") and recipe.calibrate.rule == "pooled"


def in_order(jobs: Sequence[tuple[StudyRow, Job]]) -> list[Job]:
    """What the paper has before what it has not, and seed by seed: a stop leaves whole seeds behind."""
    ordered = sorted(jobs, key=lambda pair: (pair[0].extra, pair[1].recipe.training.seed))
    return list({job.stem: job for _, job in ordered}.values())
