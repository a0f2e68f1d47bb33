"""One run with its measurements, and the file that is left of it: what sweeps and tables are made of.

A result is one small JSON file, named after the job and a digest of all that decides it. One that is there
is never made again, and one of another recipe never takes its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from auglabel.errors import UserError
from auglabel.lab.evaluate.network import LoadedNetwork, network_of_run
from auglabel.lab.evaluate.options import EvalOptions
from auglabel.lab.evaluate.request import fit, measure_network
from auglabel.lab.parts.catalogue import augmentation_for
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.options import MENUS, defaults_of
from auglabel.lab.recipe.recipe import ELSEWHERE, Choice, Recipe, flat, stored_meaning
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.evaluations import MeasuredRun
from auglabel.lab.runs.records import seconds_by_part
from auglabel.lab.runs.run import Run
from auglabel.lab.sweep.measurement import Measurement, digest_words
from auglabel.lab.sweep.result import KindReadings, Result, ResultEvaluation, read_result, readings_of
from auglabel.lab.sweep.several import train_by_several
from auglabel.lab.train.feed import batches, in_turn
from auglabel.lab.train.learned import replayed
from auglabel.lab.train.train import TrainOptions, train
from auglabel.measure import calibrate
from auglabel.table_file import FORMAT as TABLE
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import read_checksummed


@dataclass(frozen=True)
class Job:
    """A recipe to train, and what to measure of it on the test images.

    `views` names an augmentation: calibration on the test images is then measured in each of its buckets.
    """

    name: str
    recipe: Recipe
    measured: tuple[Measurement, ...] = ()
    views: Choice | None = None

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The recipe's values, but for where its data lie."""
        recipe = self.recipe.as_dict()
        for key in ELSEWHERE:
            section, _, option = key.partition(".")
            recipe[section].pop(option, None)
        return recipe

    @cached_property
    def digest(self) -> str:
        """A hash of all that decides the result and is not a default, so that a new option changes none.

        The labels of a run that is replayed decide too: it may have been trained again.
        """
        given = flat(self.plain)
        expected = defaults_of({section: given[f"{section}.name"] for section in MENUS})
        expected |= {f"{section}.name": ... for section in MENUS}  # names always count,
        expected["optimizer.name"] = "sgd"  # but for this one, which older results do not have
        unusual = {key: value for key, value in given.items() if value != expected.get(key, ...)}
        decides: list[object] = [unusual, digest_words(self.measured), self.views]
        if (first := replayed(self.recipe)) is not None:
            if not first.tables_file.is_file():
                raise UserError(
                    f"labels.replay: there is no {first.tables_file}, which has the labels to replay. "
                    "Give a run that has learned labels."
                )
            decides.append(first.tables_file.read_text(encoding="utf-8"))
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.digest}"


@dataclass(frozen=True)
class Results:
    """A folder of results, and beside it one for the runs that they come from."""

    path: Path
    runs: Path = field(default_factory=lambda: Path("runs"))

    def file(self, job: Job) -> Path:
        return self.path / f"{job.stem}.json"

    def run(self, job: Job) -> Run:
        return Run(self.runs / job.stem)

    def log(self, job: Job) -> Path:
        return self.runs / f"{job.stem}.log"

    def read(self, job: Job) -> Result | None:
        """The result of this very job, if it is there."""
        if not self.file(job).is_file():
            return None
        result = read_result(self.file(job))
        if len(result.evaluations) != len(job.measured):
            raise UserError(f"{self.file(job)} is damaged: not all that was measured is there. Remove it.")
        before, now = flat(stored_meaning(result.recipe)), flat(job.plain)
        if "augment.magnitudes" not in before:
            # older results name the default interpolation, newer ones leave it None
            before.pop("augment.interpolation", None)
        if changed := [key for key in before.keys() & now.keys() if before[key] != now[key]]:
            had = ", ".join(f"{key} {before[key]}" for key in sorted(changed))
            raise UserError(
                f"{self.file(job)} is of another version of its recipe, which had {shown(had)}: "
                "move it elsewhere."
            )
        return result

    def others(self, job: Job) -> list[Path]:
        """Results of that name by another version of its recipe, or with other measurements."""
        named = self.path.glob(f"{job.name}-{'[0-9a-f]' * 8}.json")
        return sorted(path for path in named if path != self.file(job))

    def perform(self, job: Job, processes: int = 1, loader_workers: int | None = None) -> Result:
        """Train and measure, going on where an earlier call was stopped, and leave the result behind.

        Several processes train together, one per GPU; one measures. Each has `loader_workers` processes that
        decode images, or as many as `auglabel train` and `eval` have by default.
        """
        if (there := self.read(job)) is not None:
            return there
        keep_memory()
        self.path.mkdir(parents=True, exist_ok=True)
        self.runs.mkdir(parents=True, exist_ok=True)
        with self.log(job).open("a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
            run = self.run(job)
            if processes > 1 and not run.model_file.exists():
                given = [] if loader_workers is None else [f"--workers={loader_workers}"]
                train_by_several(processes, job.recipe, run, [*_typed(job.recipe), *given], log)
            elif not run.model_file.exists():
                options = TrainOptions(resume=True, tracker=("none",), keep=1)
                if loader_workers is not None:
                    options = replace(options, workers=loader_workers)
                train(job.recipe, run.path, options)
            self._measured(job, run, loader_workers).write(self.file(job))
        return read_result(self.file(job))

    def _measured(self, job: Job, run: Run, workers: int | None) -> Result:
        """The network is loaded and its temperatures are fitted once for all measurements."""
        start = time.perf_counter()
        network = network_of_run(run, _typed(job.recipe))
        fitted = fit(network, EvalOptions(workers=workers))
        requests = [each.request(self.runs / "corrupted", workers) for each in job.measured]
        found = [MeasuredRun.of(measure_network(network, each, fitted)) for each in requests]
        views = _views_of(network, job.views) if job.views is not None else None
        facts, epochs = run.facts(), run.epochs()
        assert facts is not None  # training has recorded them
        return Result(
            name=job.name,
            digest=job.digest,
            recipe=job.plain,
            measured=[each.as_dict() for each in job.measured],
            versions=facts.versions,
            seed=facts.seed,
            parameters=facts.parameters,
            data=facts.data,
            processor=facts.processor,
            labelled_images=facts.labelled_images
            or facts.data.images["train"] + facts.data.images["validation"],
            validation=epochs[-1].validation or None,
            labels=_labels_of(job, run),
            seconds={
                "training": round(sum(seconds_by_part(facts, epochs).values()), 1),
                "measuring": round(time.perf_counter() - start, 1),
            },
            temperatures=fitted.temperatures,
            evaluations=[ResultEvaluation(each.notes, each.rows) for each in found],
            views=views,
            validation_augmented=readings_of(fitted.augmented),
        )


def _typed(recipe: Recipe) -> list[str]:
    """What a run's own file does not decide: where its data lie, and that its parts may be imported."""
    plain = flat(recipe.as_dict())
    where = [f"--{key}={plain[key]}" for key in sorted(ELSEWHERE) if plain.get(key) is not None]
    return [*where, *(f"--{option}={name}" for option, name in recipe.own_parts.items())]


def _views_of(network: LoadedNetwork, views: Choice) -> dict[str, KindReadings]:
    """Calibration on the test images in every bucket of another augmentation than the run's own."""
    augment, test = augmentation_for(views.name, **views.options), network.parts.test
    generator = generator_for(network.recipe.training.seed, "views")
    loader = batches(test, in_turn(test, 500, 0, 1))
    seen = calibrate(network.model, augment, loader, generator=generator)
    levels = list(augment.grid.levels)
    return {
        kind: KindReadings(count.tolist(), _short(accuracy), _short(ece))
        for kind, count, accuracy, ece in zip(
            augment.grid.kinds,
            seen.count.long().split(levels),
            seen.accuracy.split(levels),
            seen.ece.split(levels),
            strict=True,
        )
    }


def _short(values: torch.Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]


def _labels_of(job: Job, run: Run) -> dict[str, list[float]] | None:
    """The labels that the run has learned; None for labels that do not learn."""
    if job.recipe.labels.name == "table" or not run.table_file.is_file():
        return None
    found: dict[str, list[float]] = read_checksummed(run.table_file, TABLE, what="a label table")[
        "confidence"
    ]
    return found
