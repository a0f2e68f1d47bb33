"""The runs of a report, grouped into methods (runs that differ in their seed alone) and by their data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.recipe.recipe import ELSEWHERE, flat
from auglabel.lab.recipe.yamlfile import read_yaml
from auglabel.lab.runs.evaluations import MeasuredRun, evaluations_of
from auglabel.lab.runs.label_tables import History
from auglabel.lab.runs.records import Epoch, RunFacts, seconds_by_part
from auglabel.lab.runs.run import Run
from auglabel.util.checksummed_json import mismatch

WORDS = {  # of a recipe, as people write them
    "clean": "no augmentation",
    "randaug": "RandAug",
    "augmix": "AugMix",
    "adversarial": "adversarial",
    "cutmix": "CutMix",
    "wide_crop": "wide crop",
    "one_hot": "one-hot",
    "label_smoothing": "label smoothing",
    "autolabel": "AutoLabel",
    "autolabel_variant": "AutoLabel variant",
    "autolabel_by_class": "AutoLabel by class",
    "self_distilled": "self-distilled AutoLabel",
    "ccat": "CCAT",
    "soft_augmentation": "Soft Augmentation",
    "table": "a fixed table",
    "focal": "focal loss",
    "weighted_cross_entropy": "weighted",
    "trades": "TRADES",
    "jensen_shannon": "Jensen-Shannon",
}
NAMED = {"name": str}
RECIPE = {"seed": int, "epochs": int, "loss": str, "data": NAMED, "augment": NAMED, "labels": NAMED}


@dataclass(frozen=True)
class TrainedRun:
    """One run, as far as it got."""

    name: str
    recipe: Mapping[str, Any]  # plain values, as they stand in its file
    facts: RunFacts
    epochs: Sequence[Epoch]
    history: History  # of its label table; empty if its labels do not learn
    evaluations: Mapping[str, MeasuredRun]  # by the file's name
    title: str | None = None  # of its method; made of the recipe if not given

    @property
    def seed(self) -> int:
        return self.facts.seed

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of training, calibrating and validating; empty where they were not recorded."""
        return seconds_by_part(self.facts, self.epochs)

    @property
    def finished(self) -> bool:
        return len(self.epochs) >= int(self.recipe["epochs"])

    @property
    def kind(self) -> tuple[tuple[str, str], ...]:
        """What makes runs one method: all of the recipe but the seed, and the number of epochs."""
        plain = {key: value for key, value in flat(self.recipe).items() if key not in {"seed", *ELSEWHERE}}
        plain["epochs done"] = len(self.epochs)
        return tuple(
            sorted((key, json.dumps(value, default=str, skipkeys=True)) for key, value in plain.items())
        )


@dataclass(frozen=True)
class Method:
    """Runs that differ in their seed alone."""

    title: str
    runs: Sequence[TrainedRun]

    @property
    def first(self) -> TrainedRun:
        return self.runs[0]


def read_run(path: Path, title: str | None = None) -> tuple[TrainedRun, list[str]]:
    """The run in that directory, and notes on what it lacks; `title` names its method."""
    run = Run(path)
    run.require()
    _, recipe = read_yaml(run.recipe_file)
    facts, epochs = run.facts(), run.epochs()
    if facts is None or not epochs:
        raise UserError(f"{path} has no epoch yet: auglabel train --resume --out {path} goes on with it.")
    if wrong := mismatch(recipe, RECIPE):
        raise UserError(f"{path} is incomplete or of another version: {wrong}.")
    last = epochs[-1].epoch
    history = run.history() if run.tables_file.exists() else []
    history = [table for table in history if table.epoch <= last]  # it may be killed between the two lines
    found, notes = evaluations_of(run, last, facts.data.checksum)
    if not found:
        notes.append(f"{path} has not been measured on test images: auglabel eval {path}.")
    trained = TrainedRun(str(path), recipe, facts, epochs, history, found, title)
    if not trained.finished:
        notes.append(f"{path} is unfinished: epoch {len(epochs)} of {recipe['epochs']}.")
    return trained, notes


def methods_of(runs: Iterable[TrainedRun]) -> list[Method]:
    """Group runs that differ in their seed alone, in the order of the first of each."""
    groups: dict[tuple[tuple[str, str], ...], list[TrainedRun]] = {}
    for run in runs:
        group = groups.setdefault(run.kind, [])
        if twin := [other for other in group if other.seed == run.seed]:
            raise UserError(f"{twin[0].name} and {run.name} are the same run, with the same seed.")
        group.append(run)
    titles = _titles([group[0] for group in groups.values()])
    return [
        Method(title, sorted(group, key=lambda run: run.seed))
        for title, group in zip(titles, groups.values(), strict=True)
    ]


def _titles(runs: Sequence[TrainedRun]) -> list[str]:
    """Augmentation, labels and loss, and the options that differ where methods share all three."""
    plain = [_title(run) for run in runs]
    titles = []
    for run, title in zip(runs, plain, strict=True):
        alike = [other for other, same in zip(runs, plain, strict=True) if same == title]
        kinds = [dict(other.kind) for other in alike]
        apart = sorted(key for key in dict(run.kind) if len({kind.get(key) for kind in kinds}) > 1)
        own = dict(run.kind)
        words = ", ".join(f"{key} {json.loads(own[key])}" for key in apart)
        titles.append(f"{title} ({words})" if words else title)
    return titles


def _title(run: TrainedRun) -> str:
    if run.title is not None:
        return run.title
    augment, labels = (str(run.recipe[part]["name"]) for part in ("augment", "labels"))
    title = f"{WORDS.get(augment, augment)} + {WORDS.get(labels, labels)}"
    if (loss := str(run.recipe["loss"])) != "cross_entropy":
        title += f", {WORDS.get(loss, loss)}"
    return title if run.finished else f"{title}, epoch {len(run.epochs)} of {run.recipe['epochs']}"


def by_data(runs: Iterable[TrainedRun]) -> list[list[TrainedRun]]:
    """Group runs by their images: numbers on different images are not to be compared."""
    groups: dict[str, list[TrainedRun]] = {}
    for run in runs:
        groups.setdefault(run.facts.data.checksum, []).append(run)
    return list(groups.values())
