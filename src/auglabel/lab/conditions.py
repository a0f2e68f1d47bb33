"""What a network is measured on: images as they are, attacked, or moved by a function of the user's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor, nn

from auglabel.attack.foolbox import ATTACKS, foolbox_attack
from auglabel.attack.pgd import pgd
from auglabel.lab.catalogue import entry
from auglabel.modes import evaluating

SEVERITIES = (1, 2, 3, 4, 5)
Move = Callable[[nn.Module, Tensor, Tensor, Generator], Tensor]  # model, images in [0, 1], labels


@dataclass(frozen=True)
class Condition:
    """One row of a results table."""

    on: str
    move: Move
    severity: int | None = None


@dataclass(frozen=True)
class Attack:
    """The evaluation attack of the paper: PGD, 50 steps of 2.5 epsilon / steps, 3 restarts"""

    epsilon: float = 0.03
    """largest change of a pixel, pixels being in [0, 1]"""
    steps: int = 50
    """of PGD"""
    restarts: int = 3
    """of PGD, from random starts"""


def conditions(names: Sequence[str], attack: Attack) -> list[Condition]:
    """The rows meant by `names`: clean, pgd, foolbox:NAME, or a function(images, severity, generator)."""
    return [condition for name in names for condition in _named(name, attack)]


def _named(name: str, attack: Attack) -> list[Condition]:
    if name.startswith("foolbox:"):
        kind = name.removeprefix("foolbox:")
        entry("foolbox attack", ATTACKS, kind)
        return [Condition(name, partial(_foolbox, kind, attack))]
    if ":" in name:
        function = _function(name)
        return [Condition(name, partial(_function_at, function, s), s) for s in SEVERITIES]
    known: dict[str, Move] = {"clean": _as_it_is, "pgd": partial(_pgd, attack)}
    hint = "condition (--on also takes foolbox:NAME and module:function)"
    return [Condition(name, entry(hint, known, name))]


def _as_it_is(model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
    return images


def _pgd(attack: Attack, model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
    moved = pgd(
        model,
        images,
        labels,
        attack.epsilon,
        steps=attack.steps,
        step=2.5 * attack.epsilon / attack.steps,
        restarts=attack.restarts,
        generator=generator,
    )
    return _still_wrong(model, images, moved, labels)


def _foolbox(
    kind: str, attack: Attack, model: nn.Module, images: Tensor, labels: Tensor, generator: Generator
) -> Tensor:
    moved = foolbox_attack(model, images, labels, attack.epsilon, kind, generator=generator)
    return _still_wrong(model, images, moved, labels)


def _still_wrong(model: nn.Module, images: Tensor, moved: Tensor, labels: Tensor) -> Tensor:
    """An image that fools the model as it is needs no attack that repairs it."""
    with evaluating(model), torch.no_grad():
        repaired = (model(images).argmax(dim=1) != labels) & (model(moved).argmax(dim=1) == labels)
    return torch.where(repaired[:, None, None, None], images, moved)


def _function(name: str) -> Callable[[Tensor, int, Generator], Tensor]:
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--on {name} could not be imported: {error}.") from None
    if not callable(function):
        raise ValueError(f"--on {name} must name a function, but it is a {type(function).__name__}.")
    return function  # type: ignore[no-any-return]


def _function_at(
    function: Callable[[Tensor, int, Generator], Tensor],
    severity: int,
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    generator: Generator,
) -> Tensor:
    moved = function(images, severity, generator)
    if not isinstance(moved, Tensor) or moved.shape != images.shape:
        came = tuple(moved.shape) if isinstance(moved, Tensor) else type(moved).__name__
        raise ValueError(f"--on's function must return images {tuple(images.shape)}, but {came} came.")
    return moved
