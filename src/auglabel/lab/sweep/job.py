"""One run with its measurements, and the file that is left of it: what sweeps and tables are made of.

A result is one small JSON file, named after the job and a digest of all that decides it. One that is there
is never made again, and one of another recipe never takes its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Attack
from auglabel.lab.evaluate.corrupted import Corruptions
from auglabel.lab.evaluate.measured import Measured, asked_for, evaluate_run
from auglabel.lab.machine.memory import keep_memory
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.catalogue import AUGMENTATIONS
from auglabel.lab.recipe.options import MENUS, flags, usual
from auglabel.lab.recipe.recipe import ELSEWHERE, Choice, Recipe, flat
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.records import seconds_by_part
from auglabel.lab.runs.run import Run
from auglabel.lab.train.feed import batches, in_turn
from auglabel.lab.train.train import How, train
from auglabel.measure import calibrate
from auglabel.table_file import FORMAT as TABLE
from auglabel.util.atomic_write import write_text
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import read_checksummed, with_checksum

FORMAT = "auglabel result, version 1"
RESULT = {  # what is read of one
    **{"recipe": dict, "validation": (None, {...: (math.inf, None)}), "labels": (None, {...: [float]})},
    "evaluations": [{"words": str, "columns": [str], "rows": [[(float, None, str)]]}],
    "views": (None, {...: {"accuracy": [float], ...: [math.inf]}}),
}
KEPT = ("accuracy", "confidence", "ece", "debiased_ece", "nll", "brier")  # of each measured row


@dataclass(frozen=True)
class Job:
    """A recipe to train, and what to measure then: the words of each `auglabel eval`.

    `views` names an augmentation: calibration on the test images is then measured in each of its buckets.
    """

    name: str
    recipe: Recipe
    measured: tuple[str, ...] = ()
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
        """Of all that decides the result and is not as usual: an option that is new to us changes none."""
        given = flat(self.plain)
        expected = usual({section: given[f"{section}.name"] for section in MENUS})
        unusual = {k: v for k, v in given.items() if k.endswith(".name") or v != expected.get(k, ...)}
        decides = [unusual, self.measured, self.views]
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

    def read(self, job: Job) -> dict[str, Any] | None:
        """The result of this very job, if it is there."""
        if not self.file(job).is_file():
            return None
        result = read_result(self.file(job))
        if len(result["evaluations"]) != len(job.measured):
            raise UserError(f"{self.file(job)} is damaged: not all that was measured is there. Remove it.")
        before, now = flat(result["recipe"]), flat(job.plain)
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

    def perform(self, job: Job) -> dict[str, Any]:
        """Train and measure, going on where an earlier call was stopped, and leave the result behind."""
        if (there := self.read(job)) is not None:
            return there
        keep_memory()
        self.path.mkdir(parents=True, exist_ok=True)
        self.runs.mkdir(parents=True, exist_ok=True)
        with self.log(job).open("a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
            run = self.run(job)
            if not run.model_file.exists():
                train(job.recipe, run.path, How(resume=True, tracker=("none",), keep=1))
            start = time.perf_counter()
            evaluations = [_evaluated(run, words, _typed(job.recipe)) for words in job.measured]
            views = _views_of(run, job) if job.views is not None else None
            result = _result(job, run, evaluations, views, time.perf_counter() - start)
            write_text(self.file(job), _as_text(result))
        return result


def read_result(path: Path) -> dict[str, Any]:
    again = "Remove it, and it is made again."
    found = read_checksummed(path, FORMAT, what="a result", otherwise=again, shape=RESULT)
    for evaluation in found["evaluations"]:
        columns, rows = evaluation["columns"], evaluation["rows"]
        named = {*KEPT, *(f"scaled_{name}" for name in KEPT)} <= set(columns[3:])
        fitting = all(len(row) == len(columns) and _is_row(row) for row in rows)
        if not rows or not named or not fitting:
            raise UserError(f"{path} is damaged: a measurement in it lacks rows or columns. {again}")
    return found


def _is_row(row: Sequence[Any]) -> bool:
    """What it is on, and numbers."""
    return isinstance(row[0], str) and not any(isinstance(each, str) for each in row[1:])


def _as_text(result: dict[str, Any]) -> str:
    """A line per entry: short enough to keep many, and to read."""
    lines = [
        f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in with_checksum(result).items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _typed(recipe: Recipe) -> list[str]:
    """What a run's own file does not decide: where its data lie, and that its network may be imported."""
    plain = flat(recipe.as_dict())
    where = [f"--{key}={plain[key]}" for key in sorted(ELSEWHERE) if plain.get(key) is not None]
    return [*where, f"--model={recipe.model.name}"]


def _evaluated(run: Run, words: str, typed: Sequence[str]) -> dict[str, Any]:
    how, rest = flags(Measured, shlex.split(words))
    attack, rest = flags(Attack, rest)
    corruptions, rest = flags(Corruptions, rest)
    return evaluate_run(run, asked_for(how, attack, corruptions), [*rest, *typed])


def _views_of(run: Run, job: Job) -> dict[str, Any]:
    """Calibration on the test images in every bucket of another augmentation than the run's own."""
    assert job.views is not None
    augment = AUGMENTATIONS[job.views.name](**job.views.options)
    data, parts = data_for(job.recipe)
    model, _ = run.network(job.recipe, data)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    rows = in_turn(parts.test, 500, 0, 1)
    generator = generator_for(job.recipe.training.seed, "views")
    seen = calibrate(model, augment, batches(parts.test, rows), generator=generator)
    levels = list(augment.grid.levels)
    return {
        kind: {"count": count.tolist(), "accuracy": _short(accuracy), "ece": _short(ece)}
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


def _result(
    job: Job, run: Run, evaluations: list[dict[str, Any]], views: dict[str, Any] | None, measuring: float
) -> dict[str, Any]:
    facts, epochs = run.facts(), run.epochs()
    assert facts is not None  # training has recorded them
    seconds, data = sum(seconds_by_part(facts, epochs).values()), asdict(facts.data)
    learns = job.recipe.labels.name.startswith("autolabel")
    table = read_checksummed(run.table_file, TABLE, what="a label table") if learns else None
    return {
        "format": FORMAT,
        "name": job.name,
        "digest": job.digest,
        "recipe": job.plain,
        "measured": list(job.measured),
        "versions": facts.versions,
        "seed": facts.seed,
        "parameters": facts.parameters,
        "data": {key: data[key] for key in ("name", "checksum", "images")},
        "seconds": {"training": round(seconds, 1), "measuring": round(measuring, 1)},
        "validation": epochs[-1].validation or None,
        "labels": None if table is None else table["confidence"],
        "evaluations": [
            {
                "words": words,
                "temperature": found["temperature"],
                "notes": found["notes"],
                "columns": ["on", "severity", "count", *KEPT, *(f"scaled_{name}" for name in KEPT)],
                "rows": list(_rows(found["rows"])),
            }
            for words, found in zip(job.measured, evaluations, strict=True)
        ],
        "views": views,
    }


def _rows(rows: Sequence[dict[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        plain = [_rounded(row["figures"][name]["value"]) for name in KEPT]
        scaled = [_rounded(row["scaled"][name]["value"]) if row["scaled"] else None for name in KEPT]
        yield [row["on"], row["severity"], row["count"], *plain, *scaled]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
