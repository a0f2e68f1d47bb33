"""What a recipe holds: everything that decides what a run computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import yaml

from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import loss_function
from auglabel.lab.parts.optimizers import Optimizer
from auglabel.losses import GAMMA
from auglabel.pooling import require_memory
from auglabel.util.checks import require_number, require_whole, shown

ELSEWHERE = {"data.root", "data.path"}  # where data lies may change; what it holds is checked by its checksum


@dataclass(frozen=True)
class Training:
    """What belongs to no section"""

    seed: int = 0
    """of the split, the first weights, the order, the views: everything drawn"""
    epochs: int = 200
    """passes over the training images"""
    batch_size: int = 128
    """images in a step, over all processes"""
    loss: str = "cross_entropy"
    """a name that `auglabel list losses` shows, or module:function"""
    gamma: float | None = None
    """how much less a sure prediction counts in the loss focal; 3 if null. No other loss has it"""
    ema: float = 0.0
    """decay of an average of the weights, which is then what is measured and kept; 0: no average"""
    give_back: float | None = None
    """from this part of the epochs on the validation images are trained on too, and no labels are learned"""

    def __post_init__(self) -> None:
        require_whole("seed", self.seed, 0)
        require_whole("epochs", self.epochs, 1)
        require_whole("batch_size", self.batch_size, 1)
        require_number("ema", self.ema, 0, 1)
        if self.ema == 1:
            raise UserError("ema must be below 1, which would never leave the first weights.")
        if self.loss == "focal" and self.gamma is None:
            object.__setattr__(self, "gamma", GAMMA)
        if self.gamma is not None:
            require_number("gamma", self.gamma, 0)
            if self.loss != "focal":
                raise UserError(f"gamma is an option of focal, not of {self.loss}: leave it out.")
        loss_function(self.loss)
        if self.give_back is not None:
            require_number("give_back", self.give_back, 0, 1)
            if not 0 < self.held_out_epochs < self.epochs:
                raise UserError(
                    f"give_back must leave an epoch before it and one after it, but {self.give_back} is "
                    f"{self.held_out_epochs} of {self.epochs}. The usual value is 0.7."
                )

    @property
    def held_out_epochs(self) -> int:
        """Number of epochs before the validation images are trained on: all of them without `give_back`."""
        return self.epochs if self.give_back is None else round(self.give_back * self.epochs)


@dataclass(frozen=True)
class Calibrate:
    """How AutoLabel measures calibration on the validation images after each epoch"""

    rule: Literal["pooled", "exact"] = "pooled"
    """pooled: each image visits a few buckets, which pool what they saw; exact: all, as in the paper"""
    visits: int = 2
    """pooled: buckets each image visits in an epoch, in rotation; all if there are no more"""
    memory: float = 0.5
    """pooled: how much of the sums of earlier epochs is kept"""
    bins: int = 15
    """of the confidence, for ECE; pooled moves labels by the gap alone, which has none"""
    batch_size: int = 500
    """images at a time, per process"""

    def __post_init__(self) -> None:
        require_whole("visits", self.visits, 1)
        require_memory(self.memory)
        require_whole("bins", self.bins, 1)
        require_whole("batch_size", self.batch_size, 1)


@dataclass(frozen=True)
class Engine:
    """How the arithmetic is done"""

    precision: Literal["float32", "bf16", "fp16"] = "float32"
    """of the forward and backward pass; weights stay in float32"""
    channels_last: bool = True
    """keep images channel by channel together: faster convolutions"""
    compile: bool = False
    """let torch.compile make the network faster; the first step then takes long"""
    deterministic: bool = True
    """cuDNN: the same result every time; false: its fastest algorithms, whose results may differ a little"""


class Choice(NamedTuple):
    """An entry of the catalogue and its options."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a run computes."""

    training: Training
    data: Choice
    split: dict[str, Any]
    model: Choice
    prepare: dict[str, Any]
    augment: Choice
    labels: Choice
    optimizer: Optimizer
    schedule: Choice
    calibrate: Calibrate
    engine: Engine

    @property
    def own_parts(self) -> dict[str, str]:
        """Names of the user's own parts (module:function), by the option that names them."""
        named = {key: part.name for key, part in vars(self).items() if isinstance(part, Choice)}
        return {key: name for key, name in {**named, "loss": self.training.loss}.items() if ":" in name}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they stand in a recipe file, every default filled in; gamma only if it is used."""
        plain: dict[str, Any] = asdict(self.training)
        if self.training.gamma is None:
            del plain["gamma"]
        for field in fields(self):
            part = getattr(self, field.name)
            if isinstance(part, Choice):
                plain[field.name] = {"name": part.name, **part.options}
            elif field.name != "training":
                plain[field.name] = dict(part) if isinstance(part, dict) else asdict(part)
        return {key: listed(value) for key, value in plain.items()}

    def as_yaml(self) -> str:
        return str(yaml.safe_dump(self.as_dict(), sort_keys=False, default_flow_style=None, width=110))

    def changed(self, key: str, value: Any) -> Recipe:
        """This recipe with `section.option` set to `value`, which must be valid: nothing checks it here."""
        section, _, option = key.rpartition(".")
        part = getattr(self, section or "training")
        if key == "loss" and value != "focal":
            part = replace(part, loss=value, gamma=None)
        elif isinstance(part, Choice):
            part = part._replace(options={**part.options, option: value})
        else:
            part = {**part, option: value} if isinstance(part, dict) else replace(part, **{option: value})
        return replace(self, **{section or "training": part})

    def differences(self, other: Recipe) -> list[str]:
        """What `other` has otherwise, as "labels.alpha: 0.01, not 0.02"; where data lies does not count."""
        ours, theirs = flat(self.as_dict()), flat(other.as_dict())
        return [
            f"{key}: {shown(theirs.get(key, 'nothing'), 60)}, not {shown(ours.get(key, 'nothing'), 60)}"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key) and key not in ELSEWHERE
        ]


def listed(value: Any) -> Any:
    """Tuples as the lists that YAML gives back."""
    if isinstance(value, dict):
        return {key: listed(each) for key, each in value.items()}
    return [listed(each) for each in value] if isinstance(value, tuple | list) else value


def stored_meaning(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe that a run or result has stored, with what it left out before there was a choice."""
    labels, optimizer = recipe.get("labels"), recipe.get("optimizer")
    found = dict(recipe)
    if isinstance(labels, dict) and labels.get("name") == "ccat":
        found["labels"] = {"radius": "largest", **labels}
    if isinstance(optimizer, dict):
        found["optimizer"] = {"name": "sgd", **optimizer}
    return found


def flat(sections: Mapping[str, Any], between: str = ".") -> dict[str, Any]:
    """{"labels": {"alpha": 1}, "seed": 0} as {"labels.alpha": 1, "seed": 0}."""
    options: dict[str, Any] = {}
    for key, value in sections.items():
        inner = value if isinstance(value, dict) else {}
        options |= {f"{key}{between}{name}": each for name, each in inner.items()} or {key: value}
    return options
