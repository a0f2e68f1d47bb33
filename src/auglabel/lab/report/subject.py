"""What a report is about: runs, gathered into methods (equal but for the seed) and by their data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.evaluate.results import read_evaluation
from auglabel.lab.pictures.inspect import History, read_history
from auglabel.lab.recipe.recipe import ELSEWHERE, flat
from auglabel.lab.recipe.yamlfile import read_yaml
from auglabel.lab.runs.run import Run
from auglabel.util.checksummed_json import mismatch

WORDS = {  # of a recipe, as people write them
    "clean": "no augmentation",
    "randaug": "RandAug",
    "augmix": "AugMix",
    "adversarial": "adversarial",
    "cutmix": "CutMix",
    "one_hot": "one-hot",
    "label_smoothing": "label smoothing",
    "autolabel": "AutoLabel",
    "autolabel_variant": "AutoLabel variant",
    "ccat": "CCAT",
    "table": "a fixed table",
}
NAMED = {"name": str}
RECIPE = {"seed": int, "epochs": int, "loss": str, "data": NAMED, "augment": NAMED, "labels": NAMED}
FACTS = {
    **{"seed": int, "versions": dict, "parameters": int},
    "data": {"name": str, "checksum": str, "images": {"train": int}},
}


@dataclass(frozen=True)
class Subject:
    """One run, as far as it got."""

    name: str
    recipe: Mapping[str, Any]  # plain values, as they stand in its file
    facts: Mapping[str, Any]  # what it ran with
    epochs: Sequence[Mapping[str, Any]]  # what it measured after each
    history: History  # of its table; empty if its labels do not learn
    evaluations: Mapping[str, Mapping[str, Any]]  # what `eval` wrote, by the file's name

    @property
    def seed(self) -> int:
        return int(self.facts["seed"])

    @property
    def data(self) -> str:
        """Which images, to the bit."""
        return str(self.facts["data"]["checksum"])

    @property
    def finished(self) -> bool:
        return len(self.epochs) >= int(self.recipe["epochs"])

    @property
    def kind(self) -> tuple[tuple[str, str], ...]:
        """Equal for runs that differ in their seed alone."""
        plain = {key: value for key, value in flat(self.recipe).items() if key not in {"seed", *ELSEWHERE}}
        plain["epochs done"] = len(self.epochs)
        return tuple(
            sorted((key, json.dumps(value, default=str, skipkeys=True)) for key, value in plain.items())
        )


@dataclass(frozen=True)
class Method:
    """Runs that differ in their seed alone."""

    title: str
    subjects: Sequence[Subject]

    @property
    def first(self) -> Subject:
        return self.subjects[0]


def read_subject(path: Path) -> tuple[Subject, list[str]]:
    """The run in that directory, and what has to be said about it."""
    run = Run(path)
    if not run.exists():
        raise FileNotFoundError(f"{path} is not a run: it has no recipe.yaml.")
    _, recipe = read_yaml(run.recipe_file)
    facts, epochs = run.facts(), run.metrics()
    if not facts or not epochs:
        raise UserError(f"{path} has no epoch yet: auglabel train --resume --out {path} goes on with it.")
    _require_whole(path, recipe, facts)
    last = epochs[-1]["epoch"]
    history = read_history(run.tables_file) if run.tables_file.exists() else []
    history = [entry for entry in history if entry[0] <= last]  # a run may be killed between the two lines
    found, notes = evaluations_of(run, last, facts["data"]["checksum"])
    if not found:
        notes.append(f"{path} has not been measured on test images: auglabel eval {path}.")
    subject = Subject(str(path), recipe, facts, epochs, history, found)
    if not subject.finished:
        notes.append(f"{path} is unfinished: epoch {len(epochs)} of {recipe['epochs']}.")
    return subject, notes


def evaluations_of(run: Run, epoch: int, checksum: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What `eval` wrote of the run as it is now, by the file's name; and why anything was left out."""
    found, notes = {}, []
    for file in sorted((run.path / "eval").glob("*.json")):
        evaluation = read_evaluation(file)
        if evaluation["checkpoint"] == "last" and evaluation["epoch"] != epoch:
            notes.append(
                f"{file} is left out: it was measured after epoch {evaluation['epoch']}, but the run is at "
                f"{epoch}. auglabel eval {run.path} measures it again."
            )
        elif evaluation["data"]["checksum"] != checksum:
            notes.append(f"{file} is left out: it was measured on other images than the run's.")
        else:
            found[file.stem] = evaluation
    return found, notes


def _require_whole(path: Path, recipe: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """What the report reads of a run must be there."""
    if wrong := mismatch(recipe, RECIPE) or mismatch(facts, FACTS):
        raise UserError(f"{path} is incomplete or of another version: {wrong}.")


def methods_of(subjects: Iterable[Subject]) -> list[Method]:
    """Runs that differ in their seed alone, together, in the order in which they came."""
    groups: dict[tuple[tuple[str, str], ...], list[Subject]] = {}
    for subject in subjects:
        group = groups.setdefault(subject.kind, [])
        if twin := [other for other in group if other.seed == subject.seed]:
            raise UserError(f"{twin[0].name} and {subject.name} are the same run, with the same seed.")
        group.append(subject)
    titles = _titles([group[0] for group in groups.values()])
    return [
        Method(title, sorted(group, key=lambda subject: subject.seed))
        for title, group in zip(titles, groups.values(), strict=True)
    ]


def _titles(subjects: Sequence[Subject]) -> list[str]:
    """Augmentation and labels; and for those that share both, what else tells them apart."""
    plain = [_title(subject) for subject in subjects]
    titles = []
    for subject, title in zip(subjects, plain, strict=True):
        alike = [other for other, same in zip(subjects, plain, strict=True) if same == title]
        kinds = [dict(other.kind) for other in alike]
        apart = sorted(key for key in dict(subject.kind) if len({kind.get(key) for kind in kinds}) > 1)
        own = dict(subject.kind)
        words = ", ".join(f"{key} {json.loads(own[key])}" for key in apart)
        titles.append(f"{title} ({words})" if words else title)
    return titles


def _title(subject: Subject) -> str:
    augment, labels = (str(subject.recipe[part]["name"]) for part in ("augment", "labels"))
    title = f"{WORDS.get(augment, augment)} + {WORDS.get(labels, labels)}"
    return (
        title if subject.finished else f"{title}, epoch {len(subject.epochs)} of {subject.recipe['epochs']}"
    )


def by_data(subjects: Iterable[Subject]) -> list[list[Subject]]:
    """Those on the same images together: figures of others are not to be compared."""
    groups: dict[str, list[Subject]] = {}
    for subject in subjects:
        groups.setdefault(subject.data, []).append(subject)
    return list(groups.values())
