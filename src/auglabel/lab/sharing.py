"""`auglabel share`: a run as a folder in Hugging Face's layout, and back. Nothing in it can run.

model.safetensors   the weights
config.json         the network, its classes, and what it was trained with
labels.json         the label confidence of every bucket, if labels were learned
README.md           the model card
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from auglabel import __version__
from auglabel.augment.base import Augmentation
from auglabel.checks import entry, shown
from auglabel.lab.card import card, measured
from auglabel.lab.catalogue import AUGMENTATIONS
from auglabel.lab.checkpoint import load_weights, require_fitting
from auglabel.lab.draft import read_recipe
from auglabel.lab.rundir import Run
from auglabel.models.by_name import MODELS
from auglabel.sealed import read_sealed, unlike, write_sealed
from auglabel.tablefile import load_table, save_table
from auglabel.whole import write_text, write_whole

FORMAT = "auglabel model, version 1"


class Shared(NamedTuple):
    """What a folder held."""

    model: nn.Module  # in evaluation mode
    classes: tuple[str, ...]
    augment: Augmentation
    table: Tensor | None  # (num_buckets,), if labels were learned
    config: dict[str, Any]


def share_run(run: Run, folder: Path, words: Sequence[str] = ()) -> Path:
    """Write the finished `run` as `folder`, whole or not at all.

    `words` repeat --model where the network is of the user's own module: it can be shared, but `load_shared`
    does not build it.
    """
    if not run.exists():
        raise FileNotFoundError(f"{run.path} is not a run: it has no recipe.yaml.")
    recipe, facts = read_recipe(str(run.recipe_file), words), run.facts()
    if differences := run.recipe(recipe.model.name).differences(recipe):
        raise ValueError(f"a run is shared as it was trained, but {'; '.join(differences)} was asked for.")
    if not run.model_file.is_file() or "data" not in facts:
        raise ValueError(f"{run.path} is not finished: auglabel train --resume --out {run.path}.")
    if folder.exists():
        raise ValueError(f"{folder} is there already: name another place.")
    load_weights(run.model_file)  # says so if it is damaged
    augment = AUGMENTATIONS[recipe.augment.name](**recipe.augment.options)
    table = load_table(run.table_file, augment.grid) if run.table_file.is_file() else None
    config = config_of(recipe.as_dict(), facts)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        write_whole(partial / "model.safetensors", lambda file: shutil.copyfile(run.model_file, file))
        write_sealed(partial / "config.json", config)
        if table is not None:
            save_table(partial / "labels.json", table, augment.grid)
        write_text(partial / "README.md", card(folder.name, config, augment, table, measured(run)))
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def config_of(recipe: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The network, and what it was trained with; no paths."""
    data, classes = facts["data"], facts["data"]["classes"]
    model, augment, labels = (dict(recipe[part]) for part in ("model", "augment", "labels"))
    labels = {key: value for key, value in labels.items() if key not in ("path", "start_table")}
    return {
        "format": FORMAT,
        "model_type": "auglabel",
        "architectures": [model["name"]],
        "id2label": {str(number): name for number, name in enumerate(classes)},
        "label2id": {name: number for number, name in enumerate(classes)},
        "model": model,
        "mean": data["mean"],
        "std": data["std"],
        "augment": augment,
        "labels": labels,
        "data": {"name": data["name"], "checksum": data["checksum"], "images": data["images"]},
        "epochs": recipe["epochs"],
        "seed": recipe["seed"],
        "auglabel_version": __version__,
    }


def load_shared(folder: Path) -> Shared:
    """What `share_run` wrote, once it is known to fit together; runs no code that it brings."""
    config = _config(folder / "config.json")
    name = config["model"]["name"]
    if name not in MODELS:
        raise ValueError(
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
        raise ValueError(f"{folder / 'config.json'} does not fit: {told}.") from None
    require_fitting(outline.state_dict(), weights, str(folder / "model.safetensors"))
    model = MODELS[name](**given, **options)
    model.load_state_dict(weights)
    labels = folder / "labels.json"
    table = load_table(labels, augment.grid) if labels.is_file() else None
    return Shared(model.eval(), classes, augment, table, config)


def _config(path: Path) -> dict[str, Any]:
    found = read_sealed(path, FORMAT, what="a shared model")
    wanted = {"model": dict, "augment": dict, "id2label": {...: str}, "mean": [float], "std": [float]}
    for key, kind in wanted.items():
        if wrong := unlike(found.get(key), kind, f'"{key}"'):
            raise ValueError(f"{path}: {wrong}.")
    for key in ("model", "augment"):
        if not isinstance(found[key].get("name"), str):
            raise ValueError(f'{path}: "{key}" must have a "name".')
    numbers = {str(number) for number in range(len(found["id2label"]))}
    if found["id2label"].keys() != numbers or len(numbers) < 2:
        raise ValueError(f'{path}: "id2label" must number at least 2 classes from 0.')
    return found
