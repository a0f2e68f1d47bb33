"""What a network is measured on: images as they are, attacked, corrupted, or moved by a function of yours."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from auglabel.attack.foolbox import ATTACKS, foolbox_attack
from auglabel.attack.pgd import pgd
from auglabel.corrupt import SEVERITIES, SUITES
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.corrupted import CorruptedImages
from auglabel.lab.evaluate.options import Attack, Corruptions
from auglabel.models.by_name import imported
from auglabel.util.checks import entry, kind_of
from auglabel.util.inference import eval_mode

Move = Callable[[nn.Module, Tensor, Tensor, Generator], Tensor]  # model, images in [0, 1], labels


@dataclass(frozen=True)
class Condition:
    """What one row of a results table is measured on: the test images as they are, unless it says otherwise.

    `source` gives other images in their place, out of the test images and the data set that they are of.
    `move` changes a batch, with the network at hand; one that `attacks` asks the network, so its batches must
    be small.
    """

    on: str
    move: Move | None = None
    severity: int | None = None
    attacks: bool = False
    source: Callable[[Source, DataSet | None], Source] | None = None


def conditions(
    names: Sequence[str], attack: Attack, images: CorruptedImages | None = None
) -> list[Condition]:
    """The rows meant by `names`: clean, pgd, foolbox:NAME, corrupted, one corruption's name, module:function.

    A function of the user's is called with (images, severity, generator), images and generator on the CPU,
    for each severity 1..5, and returns images of that shape, in [0, 1].
    """
    images = images or CorruptedImages(Corruptions())
    known = [each for name in names for each in _named(name, attack, images)]
    return list({(each.on, each.severity): each for each in known}.values())


def _named(name: str, attack: Attack, images: CorruptedImages) -> list[Condition]:
    if name == "clean":
        return [Condition(name)]
    if name == "pgd" or name.startswith("foolbox:"):
        return [Condition(name, _attack(name, attack), attacks=True)]
    if ":" in name:
        function = _function(name)
        return [Condition(name, _moved_by(name, function, s), s) for s in SEVERITIES]
    if name != "corrupted":
        try:
            entry("condition", dict.fromkeys(("clean", "pgd", "corrupted", *SUITES["all"])), name)
        except UserError as error:
            raise UserError(f"--on: {error} It also takes foolbox:NAME and module:function.") from None
    corruptions = images.options.names if name == "corrupted" else [name]
    for each in corruptions:
        images.require(each)
    return [
        Condition(each, severity=severity, source=partial(images.source, each, severity))
        for each in corruptions
        for severity in images.options.severities
    ]


def _attack(name: str, attack: Attack) -> Move:
    """Images that the attack moved; one that fools the model as it is needs no attack that repairs it."""
    kind = name.removeprefix("foolbox:")
    if kind != name:
        entry("foolbox attack", ATTACKS, kind)
        nothing = torch.empty(0, 1, 1, 1), torch.empty(0, dtype=torch.int64)
        foolbox_attack(nn.Identity(), *nothing, 0.0, kind)  # says now, not after hours, that it is missing

    def move(model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        if kind != name:
            moved = foolbox_attack(model, images, labels, attack.epsilon, kind, generator=generator)
        elif attack.epsilon == 0:
            return images
        else:
            attacked = partial(pgd, steps=attack.steps, restarts=attack.restarts, generator=generator)
            moved = attacked(model, images, labels, attack.epsilon, step=2.5 * attack.epsilon / attack.steps)
        with eval_mode(model), torch.no_grad():
            repaired = (model(images).argmax(dim=1) != labels) & (model(moved).argmax(dim=1) == labels)
        return torch.where(repaired[:, None, None, None], images, moved)

    return move


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        function: Callable[..., Any] = imported(module, attribute)
    except Exception as error:  # a module of the user's may fail in ways of its own
        kind = "" if isinstance(error, ValueError | TypeError | ImportError) else f"{type(error).__name__}: "
        raise UserError(f"--on {name}: {kind}{' '.join(str(error).split())}") from None
    try:
        inspect.signature(function).bind("images", "severity", "generator")
    except TypeError as error:
        raise UserError(f"--on {name} is called with (images, severity, generator), but: {error}.") from None
    except ValueError:  # written in C, without a signature
        pass
    return function


def _moved_by(name: str, function: Callable[..., Any], severity: int) -> Move:
    def move(model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        moved = function(
            images.cpu(), severity, generator
        )  # where the generator is: the same on every device
        if not isinstance(moved, Tensor) or moved.shape != images.shape or not moved.is_floating_point():
            came = kind_of(moved) if isinstance(moved, Tensor) else f"a {type(moved).__name__}"
            shape = tuple(images.shape)
            raise UserError(f"--on {name} must return images in floating point of shape {shape}, got {came}.")
        low, high = (float(edge) for edge in moved.aminmax())
        if not (low >= 0 and high <= 1):  # or nan
            came = "nan" if math.isnan(low) else f"values from {low:.9g} to {high:.9g}"
            raise UserError(f"--on {name} must return pixels in [0, 1], got {came}: clamp them.")
        return moved.detach().to(images)

    return move
