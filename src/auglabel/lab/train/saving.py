"""Save a trainer as a checkpoint and restore it: everything that decides the next steps."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from accelerate.utils import gather_object
from torch import Tensor

from auglabel.errors import UserError
from auglabel.lab.runs.checkpoint import Checkpoint, part_of, require_fitting
from auglabel.lab.runs.records import CheckpointFacts
from auglabel.lab.train.trainer import Trainer

PARTS = {  # of a checkpoint, by the names that SGD and AdamW give to what they remember of a parameter
    "momentum_buffer": "momentum",
    "step": "adam_step",
    "exp_avg": "adam_mean",
    "exp_avg_sq": "adam_square",
}


def checkpoint_of(trainer: Trainer) -> Checkpoint:
    """The trainer's state as a checkpoint; all ranks must call this."""
    trainer.look()
    tensors = {f"model.{name}": value for name, value in trainer.plain.state_dict().items()}
    if trainer.average is not None:
        tensors |= {f"average.{name}": value for name, value in trainer.average.state_dict().items()}
    tensors |= {f"policy.{name}": value for name, value in trainer.learned.policy.state_dict().items()}
    tensors |= {f"pool.{name}": value for name, value in trainer.learned.pool.state_dict().items()}
    for name, parameter in trainer.plain.named_parameters():
        for key, value in trainer.optimizer.state.get(parameter, {}).items():
            if value is not None:  # SGD's without momentum
                tensors[f"{PARTS[key]}.{name}"] = value
    ranks, cpu = {}, trainer.state.cpu
    if trainer.world > 1:
        own = {name: value.cpu() for name, value in trainer.statistics().items()}
        gathered = gather_object([(trainer.state, own)])
        cpu = sum(state.cpu for state, _ in gathered)
        for rank, (state, kept) in enumerate(gathered):
            tensors |= {f"rank{rank}.{name}": value for name, value in kept.items()}
            ranks[f"rank{rank}"] = {"loss": state.loss, "images": state.images}
    scaler = trainer.accelerator.scaler
    scaling = None if scaler is None else scaler.state_dict()
    facts = CheckpointFacts(replace(trainer.state, cpu=cpu), trainer.world, scaling, ranks)
    return Checkpoint(tensors, facts.as_json())


def restore(trainer: Trainer, checkpoint: Checkpoint, where: str) -> None:
    """Restore the state of `trainer` from `checkpoint`; `where` is its file, for error messages."""
    tensors, facts = checkpoint.tensors, _facts(checkpoint, trainer, where)
    if "pool._extra_state" not in tensors:
        raise UserError(f"{where}: the last checkpoint is of another version: it names no distances.")
    modules = {"model": trainer.plain, "policy": trainer.learned.policy, "pool": trainer.learned.pool}
    modules |= {} if trainer.average is None else {"average": trainer.average}
    for part, module in modules.items():
        values = part_of(tensors, part)
        require_fitting(module.state_dict(), values, where)
        module.load_state_dict(values)
    if facts.scaler is not None and trainer.accelerator.scaler is not None:
        trainer.accelerator.scaler.load_state_dict(facts.scaler)
    _restore_optimizer(trainer, tensors, where)
    trainer.state = facts.state if trainer.rank == 0 else replace(facts.state, cpu=0.0)  # ranks are summed
    trainer.learned.updates.fill_(min(trainer.state.epoch, trainer.held_out))
    if facts.processes == trainer.world > 1:
        trainer.state = replace(trainer.state, **facts.rank(trainer.rank))
        own = part_of(tensors, f"rank{trainer.rank}")
        require_fitting(trainer.statistics(), own, where)
        for name, buffer in trainer.statistics().items():
            buffer.copy_(own[name])


def _restore_optimizer(trainer: Trainer, tensors: dict[str, Tensor], where: str) -> None:
    """What the optimiser remembers of each parameter: nothing before the first step."""
    for key, part in PARTS.items():
        kept = part_of(tensors, part)
        ours = {name: p for name, p in trainer.plain.named_parameters() if name in kept}
        like = {name: torch.zeros(()) for name in ours} if key == "step" else ours
        require_fitting(like, kept, where)
        for name, parameter in ours.items():
            value = torch.empty_like(like[name]).copy_(kept[name])  # with the parameter's strides and device
            trainer.optimizer.state[parameter][key] = value


def _facts(checkpoint: Checkpoint, trainer: Trainer, where: str) -> CheckpointFacts:
    """The facts of a checkpoint that this trainer can go on from."""
    try:
        facts = CheckpointFacts.read(checkpoint.facts)
        inside = facts.processes != trainer.world and facts.state.batch != 0
        if not inside:
            _require_possible(facts, trainer)
    except UserError as error:
        raise UserError(f"{where}: the last checkpoint is of another version: {error}.") from None
    if inside:
        raise UserError(
            f"{where}: the last checkpoint was saved inside an epoch by {facts.processes} processes, and "
            f"only as many can go on from it, but there are {trainer.world}."
        )
    return facts


def _require_possible(facts: CheckpointFacts, trainer: Trainer) -> None:
    """Raise a clause that says which of the facts cannot be."""
    state = facts.state
    ranges = {
        "epoch": (state.epoch, 0, trainer.recipe.training.epochs),
        "batch": (state.batch, 0, trainer.steps_in(state.epoch)),
        "images": (state.images, int(state.batch > 0), math.inf),
        "processes": (facts.processes, 1, math.inf),
    }
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise UserError(f"{name} cannot be {value}")
    if facts.processes == trainer.world > 1:
        facts.rank(trainer.rank)
