"""The network to measure: that of a run, or one from elsewhere with a file of weights."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.lab.parts.catalogue import augmentation_for
from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.checkpoint import load_weights, require_fitting
from auglabel.lab.runs.run import Run


@dataclass(frozen=True)
class LoadedNetwork:
    """A network with its weights, its recipe, and the images to measure it on."""

    model: nn.Module
    recipe: Recipe
    data: DataSet
    parts: Parts
    about: dict[str, Any]  # which weights of what, for the results
    augment: Augmentation | None  # the one a run was trained with
    folder: Path  # where its results go
    notes: list[str] = field(default_factory=list)  # what a reader of its results should know
    saw_validation: bool = False  # was it trained on the validation images?

    @property
    def title(self) -> str:
        return str(self.about.get("run") or self.about.get("model"))

    @property
    def operations(self) -> Sequence[str]:
        """Those of its augmentation, if that has any."""
        return getattr(self.augment, "operations", ())


def network_of_run(run: Run, words: Sequence[str], checkpoint: str = "last") -> LoadedNetwork:
    """A run's last or best weights; `words` may say where its data lie."""
    recipe = run.recipe_with(words, "measured")
    data, parts = data_for(recipe)
    run.require_data(data, parts)
    model, weights = run.network(recipe, data, checkpoint)
    augment = augmentation_for(recipe.augment.name, **recipe.augment.options)
    about = {"run": str(run.path), **weights.about}
    return LoadedNetwork(
        on_device(model),
        recipe,
        data,
        parts,
        about,
        augment,
        run.path / "eval",
        saw_validation=weights.saw_validation(recipe),
    )


def network_of_weights(recipe: Recipe, file: str) -> LoadedNetwork:
    """A network that no run here trained."""
    weights = load_weights(Path(file))
    data, parts = data_for(recipe)
    model = model_for(recipe, data)
    load_into(model, weights, file)
    about = {"model": recipe.model.name, "weights": file}
    doubts = _doubts(recipe, data, len(parts.validation) > 0)
    return LoadedNetwork(on_device(model), recipe, data, parts, about, None, Path("eval"), doubts)


def on_device(model: nn.Module) -> nn.Module:
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def load_into(model: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    """Put `weights` into `model`; a network inside our Normalize takes its own names."""
    ours = model.state_dict()
    weights = _without_wrapper(weights, ours.keys())
    if weights.keys() != ours.keys() and {f"net.{name}" for name in weights} <= ours.keys():
        weights = {f"net.{name}": value for name, value in weights.items()}
    if "normalize.mean" in ours and "normalize.mean" not in weights:  # published weights have no such layer
        weights = {**{name: ours[name] for name in ("normalize.mean", "normalize.std")}, **weights}
    require_fitting(model.state_dict(), weights, where)
    model.load_state_dict(weights)


def _without_wrapper(weights: dict[str, Tensor], ours: Set[str]) -> dict[str, Tensor]:
    """Weights without the prefix that all names share, if some name is ours then.

    That is module. of DataParallel and DDP, _orig_mod. of torch.compile, or where a LightningModule has it.
    """
    known, found = ours | {name.removeprefix("net.") for name in ours}, weights
    while not found.keys() & known:
        prefix = next(iter(found), "").partition(".")[0] + "."
        if not found or not all(name.startswith(prefix) for name in found):
            return weights
        found = {name.removeprefix(prefix): value for name, value in found.items()}
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
