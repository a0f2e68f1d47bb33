"""The methods that a comparison trains: what each changes in the recipe, and what it may choose.

A file of one's own has a name and the options of each, and lists the values to choose from:

    one-hot: {labels: one_hot}
    label smoothing: {labels: label_smoothing, labels.rho: {choose: [0.02, 0.05, 0.1]}}
    AutoLabel: {labels: autolabel}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.yamlfile import read_yaml
from auglabel.util.checks import brief
from auglabel.util.yaml_values import yaml_text

Options = Mapping[str, Any]  # of a recipe, by their keys
ONE_HOT: dict[str, Options] = {
    "one-hot": {"labels": "one_hot"},
    "label smoothing": {"labels": "label_smoothing", "labels.rho": 0.1},
}
# mixup and CutMix have soft labels from the start
MIXED: dict[str, Options] = {"mixed labels": {"labels": "mixup"}}
LEARNED: dict[str, Options] = {"AutoLabel": {"labels": "autolabel"}}


@dataclass(frozen=True)
class Candidate:
    """A method: options of the recipe, and one whose value is chosen on validation images, if any."""

    name: str
    words: tuple[str, ...]
    option: str = ""
    values: tuple[str, ...] = ()


def usual(recipe: Recipe) -> list[Candidate]:
    """One-hot labels, label smoothing and AutoLabel, with the augmentation of the recipe."""
    mixes = recipe.augment.name in ("mixup", "cutmix")
    return [_candidate(name, options) for name, options in ((MIXED if mixes else ONE_HOT) | LEARNED).items()]


def of_file(path: Path) -> list[Candidate]:
    """The candidates of a YAML file."""
    _, found = read_yaml(path)
    if not found or not all(isinstance(options, dict) for options in found.values()):
        raise UserError(
            f"{path} must hold a name and options for each method, such as "
            f'"one-hot: {{labels: one_hot}}", got {brief(found)}.'
        )
    return [_candidate(str(name), options) for name, options in found.items()]


def _candidate(name: str, options: Options) -> Candidate:
    options = _options(options)
    if "seed" in options:
        raise UserError(f"{name} has a seed of its own: all methods share those of --seeds and --first_seed.")
    chosen = {key: value["choose"] for key, value in options.items() if _is_choice(value)}
    if len(chosen) > 1:
        raise UserError(f"{name} has several options to choose: {', '.join(chosen)}. It may have one.")
    words = tuple(f"--{key}={yaml_text(value)}" for key, value in options.items() if key not in chosen)
    option = next(iter(chosen), "")
    return Candidate(name, words, option, tuple(yaml_text(value) for value in chosen.get(option, ())))


def _is_choice(value: Any) -> bool:
    if not isinstance(value, dict) or "choose" not in value:
        return False
    if list(value) != ["choose"] or not isinstance(value["choose"], list) or not value["choose"]:
        raise UserError(
            f"choose must be a list of values, such as {{choose: [0.05, 0.1]}}, got {brief(value)}."
        )
    return True


def _options(options: Options) -> dict[str, Any]:
    """With dotted keys, also where a section is written as recipes write it: {labels: {name: one_hot}}."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, dict) and "choose" not in value:
            found |= {key if name == "name" else f"{key}.{name}": each for name, each in value.items()}
        else:
            found[key] = value
    return found
