"""`auglabel eval`: load a network, measure it, keep and print what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from rich.console import Console
from torch import Tensor, nn

from auglabel import __version__
from auglabel.augment.base import Augmentation
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Attack, Condition, conditions
from auglabel.lab.evaluate.corrupted import Corruptions, overlaps
from auglabel.lab.evaluate.evaluate import evaluate
from auglabel.lab.evaluate.results import as_csv, as_json, as_tables
from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.catalogue import AUGMENTATIONS
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.checkpoint import load_weights, require_fitting
from auglabel.lab.runs.run import Run
from auglabel.util.atomic_write import write_text
from auglabel.util.checks import require_whole
from auglabel.util.checksummed_json import write_checksummed


@dataclass(frozen=True)
class Measured:
    """What to measure, and where the results go"""

    on: str = "clean"
    """clean, corrupted, fog (or another corruption), pgd, foolbox:NAME, module:function; commas between"""
    checkpoint: Literal["last", "best"] = "last"
    """which weights of a run; the best had the lowest validation NLL"""
    weights: str | None = None
    """safetensors file with the weights of --model, for a network that no run here trained"""
    images: int | None = None
    """how many test images to use; all of them if not given"""
    resamples: int = 1000
    """of the bootstrap; 0 for no intervals"""
    temperature: Literal["clean", "augmented"] = "clean"
    """which validation images it is fitted on; augmented: by the run's own augmentation"""
    batch_size: int = 250
    """images at a time"""
    workers: int = 0
    """processes that decode or corrupt images ahead"""
    out: str | None = None
    """directory for the results; RUN/eval if not given"""

    def __post_init__(self) -> None:
        require_whole("resamples", self.resamples, 0)
        require_whole("batch_size", self.batch_size, 1)
        require_whole("workers", self.workers, 0)
        if self.images is not None:
            require_whole("images", self.images, 1)


class Asked(NamedTuple):
    """What to measure, with the options of what it names."""

    how: Measured
    attack: Attack
    corruptions: Corruptions
    names: list[str]
    rows: list[Condition]

    @property
    def corrupted(self) -> list[str]:
        """The corruptions among the rows."""
        return list(dict.fromkeys(row.on for row in self.rows if row.source is not None))

    @property
    def attacks(self) -> bool:
        return any(row.attacks for row in self.rows)

    @property
    def file_name(self) -> str:
        """What was measured, so that another measurement does not take its place."""
        words = [word.replace(":", ".") for word in self.names]
        given, usual = asdict(self.corruptions), asdict(Corruptions())
        if self.corrupted:
            words += [f"{key}_{_in_a_name(value)}" for key, value in given.items() if value != usual[key]]
        words += [f"epsilon{self.attack.epsilon:g}"] if self.attacks else []
        words += [] if self.how.images is None else [f"{self.how.images}images"]
        words += [] if self.how.temperature == "clean" else [f"temperature_{self.how.temperature}"]
        return "-".join([*words, *(["best"] if self.how.checkpoint == "best" else [])])


def asked_for(how: Measured, attack: Attack, corruptions: Corruptions) -> Asked:
    """All that is asked for, once everything that it names is known and there."""
    names = list(dict.fromkeys(name.strip() for name in how.on.split(",")))
    return Asked(how, attack, corruptions, names, conditions(names, attack, corruptions))


def _in_a_name(value: object) -> str:
    parts = value if isinstance(value, tuple) else (Path(str(value)).name,)
    return "+".join(str(part).replace(",", "+").replace(" ", "") for part in parts)


def evaluate_run(run: Run, asked: Asked, words: Sequence[str]) -> dict[str, Any]:
    """Measure a run's last or best weights on its test images; results go into the run."""
    how = asked.how
    if how.weights is not None:
        raise UserError(f"--weights go with --model, but {run.path} is a run, which has its own.")
    recipe = read_recipe(str(run.recipe_file), words)
    if differences := run.recipe(recipe.model.name).differences(recipe):
        raise UserError(f"a run is measured as it was trained, but {'; '.join(differences)} was asked for.")
    data, parts = data_for(recipe)
    run.require_data(data, parts)
    model, weights = run.network(recipe, data, how.checkpoint)
    out = Path(how.out) if how.out else run.path / "eval"
    known = overlaps(_operations(recipe), asked.corrupted)
    return _measure(model, recipe, data, parts, asked, {"run": str(run.path), **weights.about}, out, known)


def _augmentation(recipe: Recipe) -> Augmentation:
    return AUGMENTATIONS[recipe.augment.name](**recipe.augment.options)


def _operations(recipe: Recipe) -> Sequence[str]:
    """Of the augmentation that a run trained with, if it has any."""
    return getattr(_augmentation(recipe), "operations", ())


def evaluate_network(recipe: Recipe, asked: Asked) -> dict[str, Any]:
    """Measure a network that no run here trained."""
    how = asked.how
    if how.temperature != "clean":
        raise UserError("--temperature augmented goes with a run, which has an augmentation.")
    assert how.weights is not None
    weights = load_weights(Path(how.weights))
    data, parts = data_for(recipe)
    model = model_for(recipe, data)
    load_into(model, weights, how.weights)
    about = {"model": recipe.model.name, "weights": how.weights}
    doubts = _doubts(recipe, data, len(parts.validation) > 0)
    return _measure(model, recipe, data, parts, asked, about, Path(how.out or "eval"), doubts)


def _measure(
    model: nn.Module,
    recipe: Recipe,
    data: DataSet,
    parts: Parts,
    asked: Asked,
    about: dict[str, Any],
    out: Path,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Print the evaluation and write it into `out`; what is written."""
    how = asked.how
    console = Console(highlight=False, emoji=False)
    out.mkdir(parents=True, exist_ok=True)
    if torch.cuda.is_available():
        model.to("cuda")
    with console.status("measuring") as status:
        evaluation = evaluate(
            model,
            parts.test,
            parts.validation,
            asked.rows,
            seed=recipe.training.seed,
            images=how.images,
            batch_size=how.batch_size,
            resamples=how.resamples,
            bins=recipe.calibrate.bins,
            workers=how.workers,
            data=data,
            augment=_augmentation(recipe) if how.temperature == "augmented" else None,
            told=lambda line: status.update(f"measuring {line}"),
        )
    evaluation.notes.extend(notes)
    corruptions = None
    if asked.corrupted:
        corruptions = asked.corruptions.about(asked.corrupted, parts.test.shape)
        evaluation.notes.append(f"Corrupted images: {corruptions['from']}.")
    about = {
        "auglabel": __version__,
        **about,
        "data": {"name": data.name, "checksum": data.checksum, "notes": list(data.notes)},
        "seed": recipe.training.seed,
        "resamples": how.resamples,
        "batch_size": how.batch_size,
        "attack": vars(asked.attack) if asked.attacks else None,
        "corruptions": corruptions,
    }
    for table in as_tables(evaluation, str(about.get("run") or about.get("model"))):
        console.print(table)
    for note in evaluation.notes:
        console.print(note, markup=False)
    name = asked.file_name
    found = as_json(evaluation, about)
    write_checksummed(out / f"{name}.json", found)
    write_text(out / f"{name}.csv", as_csv(evaluation))
    console.print(f"wrote {out / name}.json and .csv", markup=False, soft_wrap=True)
    return found


def _doubts(recipe: Recipe, data: DataSet, scaled: bool) -> list[str]:
    """What a network from elsewhere may have seen: the data set says which images are for training."""
    if data.test is None:
        return [
            f"{data.name} has no test part: test and validation images are a random part of it, which this "
            "network may have trained on."
        ]
    if scaled and recipe.split["validation_from"] == "train":
        return [
            "The temperature was fitted on images cut from the training part, which this network may know."
        ]
    return []


def load_into(model: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Put `weights` into `model`; a network inside our Normalize takes its own names."""
    ours = model.state_dict()
    if weights.keys() != ours.keys() and {f"net.{name}" for name in weights} <= ours.keys():
        weights = {f"net.{name}": value for name, value in weights.items()}
    if "normalize.mean" in ours and "normalize.mean" not in weights:  # published weights have no such layer
        weights = {**{name: ours[name] for name in ("normalize.mean", "normalize.std")}, **weights}
    require_fitting(model.state_dict(), weights, where)
    model.load_state_dict(weights)
