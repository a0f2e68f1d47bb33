"""Optimisers by name, their options, and which parameters their weight decay is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from auglabel.errors import UserError
from auglabel.util.checks import require_number, require_whole

NORMS = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm, nn.modules.instancenorm._InstanceNorm)
Decay = Literal["everything", "not_norms", "not_norms_or_biases"]


@dataclass(frozen=True)
class Optimizer:
    """What every optimiser takes"""

    name: str = field(default="", init=False)
    learning_rate: float = 0.1
    """the highest of the schedule"""
    per_batch: int | None = None
    """learning_rate is for this batch size, and grows in proportion to the real one"""
    weight_decay: float = 4e-4
    """as PyTorch's optimiser of that name means it: SGD adds it to the gradient, AdamW shrinks the weight"""
    decay: Decay = "everything"
    """which parameters decay: all, all but those of normalisation layers, or neither these nor biases"""
    clip: float | None = None
    """longest gradient, in the 2-norm over all parameters"""

    def __post_init__(self) -> None:
        require_number("learning_rate", self.learning_rate, 0)
        require_number("weight_decay", self.weight_decay, 0)
        if self.per_batch is not None:
            require_whole("per_batch", self.per_batch, 1)
        if self.clip is not None:
            require_number("clip", self.clip, 0)
            if self.clip == 0:
                raise UserError("clip must be above 0, or null: no gradient would be left.")

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """The parameters that decay, and, if there are any, those that do not."""
        norms = {p for module in model.modules() if isinstance(module, NORMS) for p in module.parameters()}
        spared = [] if self.decay == "everything" else [p for p in model.parameters() if p in norms]
        if self.decay == "not_norms_or_biases":
            spared = [p for p in model.parameters() if p in norms or p.dim() < 2]
        left = {*spared}
        groups: list[dict[str, Any]] = [{"params": [p for p in model.parameters() if p not in left]}]
        return groups + ([{"params": spared, "weight_decay": 0.0}] if spared else [])

    def make(self, groups: Iterable[dict[str, Any]], rate: float) -> torch.optim.Optimizer:
        raise NotImplementedError(f"{type(self).__name__} must define make(groups, rate).")


@dataclass(frozen=True)
class SGD(Optimizer):
    """SGD, and what is done to its gradients"""

    name: str = field(default="sgd", init=False)
    momentum: float = 0.9
    """of SGD"""
    nesterov: bool = True
    """Nesterov's momentum"""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("momentum", self.momentum, 0, 1)
        if self.nesterov and self.momentum == 0:
            raise UserError("nesterov needs a momentum above 0; set optimizer.nesterov to false.")

    def make(self, groups: Iterable[dict[str, Any]], rate: float) -> torch.optim.Optimizer:
        decay = self.weight_decay
        return torch.optim.SGD(groups, rate, self.momentum, weight_decay=decay, nesterov=self.nesterov)


@dataclass(frozen=True)
class AdamW(Optimizer):
    """AdamW, and what is done to its gradients"""

    name: str = field(default="adamw", init=False)
    learning_rate: float = 1e-3
    """the highest of the schedule; to fine-tune a transformer, 2e-5 to 1e-4"""
    weight_decay: float = 0.05
    """the weight shrinks by this times the learning rate in each step"""
    decay: Decay = "not_norms_or_biases"
    """which parameters decay: all, all but those of normalisation layers, or neither these nor biases"""
    betas: tuple[float, float] = (0.9, 0.999)
    """decay of the averages of the gradient and of its square"""
    epsilon: float = 1e-8
    """added to the root of the second average"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for beta in self.betas:
            require_number("betas", beta, 0, 1)
            if beta == 1:
                raise UserError("betas must be below 1, which would never leave the first average.")
        require_number("epsilon", self.epsilon, 0)

    def make(self, groups: Iterable[dict[str, Any]], rate: float) -> torch.optim.Optimizer:
        first, second = self.betas
        return torch.optim.AdamW(groups, rate, (first, second), self.epsilon, self.weight_decay)


OPTIMIZERS: dict[str, type[Optimizer]] = {"sgd": SGD, "adamw": AdamW}
