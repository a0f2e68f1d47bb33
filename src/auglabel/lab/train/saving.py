"""Save a trainer as a checkpoint and restore it: everything that decides the next steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from auglabel.errors import UserError
from auglabel.lab.runs.checkpoint import Checkpoint, require_fitting
from auglabel.lab.train.trainer import State, Trainer
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import mismatch

FACTS = {  # of a checkpoint
    **{"epoch": int, "batch": int, "loss": math.inf, "images": int, "best": math.inf},
    **{"training": float, "calibrating": float, "processes": int, "scaler?": {...: math.inf}},
}
RANK = {"loss": math.inf, "images": int}  # of each, where there are several


def checkpoint_of(trainer: Trainer) -> Checkpoint:
    """The trainer's state as a checkpoint; all ranks must call this."""
    trainer.look()
    tensors = {f"model.{name}": value for name, value in trainer.plain.state_dict().items()}
    if trainer.average is not None:
        tensors |= {f"average.{name}": value for name, value in trainer.average.state_dict().items()}
    tensors |= {f"policy.{name}": value for name, value in trainer.learned.policy.state_dict().items()}
    tensors |= {f"pool.{name}": value for name, value in trainer.learned.pool.state_dict().items()}
    for name, parameter in trainer.plain.named_parameters():
        if (momentum := trainer.optimizer.state[parameter].get("momentum_buffer")) is not None:
            tensors[f"momentum.{name}"] = momentum
    facts = {**asdict(trainer.state), "processes": trainer.world}
    if trainer.accelerator.scaler is not None:
        facts["scaler"] = trainer.accelerator.scaler.state_dict()
    if trainer.world > 1:
        own = {name: value.cpu() for name, value in trainer.statistics().items()}
        for rank, (state, kept) in enumerate(gather_object([(trainer.state, own)])):
            tensors |= {f"rank{rank}.{name}": value for name, value in kept.items()}
            facts[f"rank{rank}"] = {"loss": state.loss, "images": state.images}
    return Checkpoint(tensors, facts)


def restore(trainer: Trainer, checkpoint: Checkpoint, where: str) -> None:
    """Restore the state of `trainer` from `checkpoint`; `where` is its file, for error messages."""
    tensors, facts = checkpoint.tensors, dict(checkpoint.facts)
    ranks = {name: facts.pop(name) for name in list(facts) if name.startswith("rank")}
    _require_facts(facts, ranks, trainer, where)
    if "pool._extra_state" not in tensors:
        raise UserError(f"{where}: the last checkpoint is of another version: it names no distances.")
    processes, scaler = facts.pop("processes"), facts.pop("scaler", None)
    modules = {"model": trainer.plain, "policy": trainer.learned.policy, "pool": trainer.learned.pool}
    modules |= {} if trainer.average is None else {"average": trainer.average}
    for part, module in modules.items():
        values = part_of(tensors, part)
        require_fitting(module.state_dict(), values, where)
        module.load_state_dict(values)
    if scaler is not None and trainer.accelerator.scaler is not None:
        trainer.accelerator.scaler.load_state_dict(scaler)
    momenta = part_of(tensors, "momentum")
    require_fitting({n: p for n, p in trainer.plain.named_parameters() if n in momenta}, momenta, where)
    for name, parameter in trainer.plain.named_parameters():
        if name in momenta:
            momentum = torch.empty_like(parameter).copy_(momenta[name])  # with the parameter's strides
            trainer.optimizer.state[parameter]["momentum_buffer"] = momentum
    trainer.state = State(**facts)
    trainer.learned.updates.fill_(trainer.state.epoch)
    if processes == trainer.world > 1:
        trainer.state = replace(trainer.state, **ranks[f"rank{trainer.rank}"])
        own = part_of(tensors, f"rank{trainer.rank}")
        require_fitting(trainer.statistics(), own, where)
        for name, buffer in trainer.statistics().items():
            buffer.copy_(own[name])


def _require_facts(facts: Mapping[str, Any], ranks: Mapping[str, Any], trainer: Trainer, where: str) -> None:
    """Check the facts of a checkpoint: their shape, their ranges, and the number of processes."""
    strange = sorted(facts.keys() - {name.rstrip("?") for name in FACTS})
    wrong = mismatch(facts, FACTS) or (f"it has {shown(strange[0])}" if strange else "")
    if not wrong and facts["processes"] != trainer.world and facts["batch"]:
        raise UserError(
            f"{where}: the last checkpoint was saved inside an epoch by {facts['processes']} processes, and "
            f"only as many can go on from it, but there are {trainer.world}."
        )
    wrong = wrong or _impossible(facts, trainer)
    if not wrong and facts["processes"] == trainer.world > 1:
        wrong = mismatch(ranks, {f"rank{trainer.rank}": RANK})
    if wrong:
        raise UserError(f"{where}: the last checkpoint is of another version: {wrong}.")


def _impossible(facts: Mapping[str, Any], trainer: Trainer) -> str:
    """A clause on the first fact out of range; "" if there is none."""
    least = {"epoch": 0, "batch": 0, "images": int(facts["batch"] > 0), "processes": 1}
    most = {"epoch": trainer.recipe.training.epochs, "batch": trainer.per_epoch}
    return next(
        (
            f"{name} cannot be {facts[name]}"
            for name, low in least.items()
            if not low <= facts[name] <= most.get(name, math.inf)
        ),
        "",
    )


def part_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors of one part of a checkpoint, under their own names."""
    return {n.removeprefix(f"{part}."): t for n, t in tensors.items() if n.startswith(f"{part}.")}
