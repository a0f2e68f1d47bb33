"""`auglabel share`: a run as a folder in Hugging Face's layout, and back. Nothing in it can run.

model.safetensors   the weights
config.json         the network, its classes, the images it takes, its temperature, and how it was trained
labels.json         the label confidence of every bucket, if labels were learned
README.md           the model card
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from auglabel import __version__
from auglabel.augment.base import Augmentation
from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import AUGMENTATIONS, augmentation_for
from auglabel.lab.runs.checkpoint import load_weights, require_fitting
from auglabel.lab.runs.records import RunFacts
from auglabel.lab.runs.run import Run
from auglabel.lab.share.card import card, measured, temperature_of
from auglabel.lab.share.inputs import Input, input_of
from auglabel.models.by_name import MODELS
from auglabel.table_file import load_table, save_table
from auglabel.util.atomic_write import write_atomically, write_text
from auglabel.util.checks import entry, shown
from auglabel.util.checksummed_json import mismatch, read_checksummed, write_checksummed

if TYPE_CHECKING:
    from PIL.Image import Image

FORMAT = "auglabel model, version 1"
INPUT = {"channels": int, "height": int, "width": int, "resize": (int, None)}


class SharedModel(NamedTuple):
    """What a folder held. `model` refuses images of another size than it was trained on."""

    model: nn.Module  # in evaluation mode
    classes: tuple[str, ...]
    augment: Augmentation
    table: Tensor | None  # (num_buckets,), if labels were learned
    config: dict[str, Any]

    @property
    def input(self) -> Input | None:
        """The images that the network takes; None in a folder of an older version, which does not say."""
        return Input.from_json(self.config.get("input"))

    @property
    def temperature(self) -> float:
        """That of the run's evaluation, which fitted it on validation images; 1 if there was none."""
        found = self.config.get("temperature")
        return 1.0 if found is None else float(found)

    def prepare(self, picture: str | os.PathLike[str] | Image | Tensor) -> Tensor:
        """A file, a picture of Pillow's, or bytes (C, H, W), brought to the network's size as in training."""
        if self.input is None:
            raise UserError("this folder does not say which images its network takes: share the run again.")
        return self.input.prepare(picture)

    @torch.no_grad()
    def probabilities(self, images: Tensor) -> Tensor:
        """(B, K), at the fitted temperature, of images (B, C, H, W) of the network's size."""
        logits: Tensor = self.model(images)
        return (logits / self.temperature).softmax(dim=1)


def share_run(run: Run, folder: Path, words: Sequence[str] = ()) -> Path:
    """Write the finished `run` as `folder`, whole or not at all.

    `words` repeat --model where the network is of the user's own module: it can be shared, but `load_shared`
    does not build it.
    """
    recipe, facts = run.recipe_with(words, "shared"), run.facts()
    if not run.model_file.is_file() or facts is None:
        raise UserError(f"{run.path} is not finished: auglabel train --resume --out {run.path}.")
    if folder.exists():
        raise UserError(f"{folder} is there already: name another place.")
    load_weights(run.model_file)  # says so if it is damaged
    augment = augmentation_for(recipe.augment.name, **recipe.augment.options)
    table = load_table(run.table_file, augment.grid) if run.table_file.is_file() else None
    config = config_of(recipe.as_dict(), facts, temperature_of(run))
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        write_atomically(partial / "model.safetensors", lambda file: shutil.copyfile(run.model_file, file))
        write_checksummed(partial / "config.json", config)
        if table is not None:
            save_table(partial / "labels.json", table, augment.grid)
        write_text(partial / "README.md", card(folder.name, config, augment, table, measured(run)))
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def config_of(recipe: Mapping[str, Any], facts: RunFacts, temperature: float | None = None) -> dict[str, Any]:
    """The network, what it takes, and what it was trained with; no paths."""
    data, classes = facts.data, facts.data.classes or []
    model, augment, labels = (dict(recipe[part]) for part in ("model", "augment", "labels"))
    labels = {key: value for key, value in labels.items() if key not in ("path", "start_table", "replay")}
    taken = input_of(recipe, data)
    return {
        "format": FORMAT,
        "model_type": "auglabel",
        "architectures": [model["name"]],
        "id2label": {str(number): name for number, name in enumerate(classes)},
        "label2id": {name: number for number, name in enumerate(classes)},
        "model": model,
        "mean": data.mean,
        "std": data.std,
        "input": None if taken is None else taken.as_json(),
        "temperature": temperature,
        "augment": augment,
        "labels": labels,
        "data": {"name": data.name, "checksum": data.checksum, "images": data.images},
        "epochs": recipe["epochs"],
        "give_back": recipe.get("give_back"),
        "seed": recipe["seed"],
        "auglabel_version": __version__,
    }


def load_shared(folder: Path) -> SharedModel:
    """What `share_run` wrote, once it is known to fit together; runs no code that it brings."""
    config = _config(folder / "config.json")
    name = config["model"]["name"]
    if name not in MODELS:
        raise UserError(
            f'{folder}: its network is "{shown(name)}", which is not one of ours ({", ".join(MODELS)}): '
            "build it yourself, and load model.safetensors into it."
        )
    options = {key: value for key, value in config["model"].items() if key != "name"}
    classes = tuple(config["id2label"][str(number)] for number in range(len(config["id2label"])))
    given = {"num_classes": len(classes), "mean": config["mean"], "std": config["std"]}
    weights = load_weights(folder / "model.safetensors")
    try:
        with torch.device("meta"):  # no memory yet: the file may ask for any size, but not bring the weights
            outline = MODELS[name](**given, **options)
        chosen = {key: value for key, value in config["augment"].items() if key != "name"}
        augment = entry("augmentation", AUGMENTATIONS, config["augment"]["name"])(**chosen)
    except Exception as error:  # options of any kind
        told = shown(str(error).split("\n")[0], 500)
        raise UserError(f"{folder / 'config.json'} does not fit: {told}.") from None
    require_fitting(outline.state_dict(), weights, str(folder / "model.safetensors"))
    model = MODELS[name](**given, **options)
    model.load_state_dict(weights)
    if (taken := Input.from_json(config.get("input"))) is not None:
        model.register_forward_pre_hook(taken.before, with_kwargs=True)
    labels = folder / "labels.json"
    table = load_table(labels, augment.grid) if labels.is_file() else None
    return SharedModel(model.eval(), classes, augment, table, config)


def _config(path: Path) -> dict[str, Any]:
    found = read_checksummed(path, FORMAT, what="a shared model")
    wanted = {"model": dict, "augment": dict, "id2label": {...: str}, "mean": [float], "std": [float]}
    wanted |= {"input": (None, INPUT), "temperature": (None, float)}
    for key, kind in wanted.items():
        if wrong := mismatch(found.get(key), kind, f'"{key}"'):
            raise UserError(f"{path}: {wrong}.")
    try:
        Input.from_json(found.get("input"))
    except UserError as error:
        raise UserError(f'{path}: "input" does not fit: {error}') from None
    if found.get("temperature") is not None and not found["temperature"] > 0:
        raise UserError(f'{path}: "temperature" must be above 0, got {found["temperature"]}.')
    for key in ("model", "augment"):
        if not isinstance(found[key].get("name"), str):
            raise UserError(f'{path}: "{key}" must have a "name".')
    numbers = {str(number) for number in range(len(found["id2label"]))}
    if found["id2label"].keys() != numbers or len(numbers) < 2:
        raise UserError(f'{path}: "id2label" must number at least 2 classes from 0.')
    return found
