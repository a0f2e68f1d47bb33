"""A run's directory: the recipe, what it ran with, what it measured, and its checkpoints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.recipe.build import model_for
from auglabel.lab.recipe.options import RecipeError
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.yamlfile import with_checksum
from auglabel.lab.runs.checkpoint import (
    Checkpoint,
    load_checkpoint,
    part_of,
    require_fitting,
    save_checkpoint,
)
from auglabel.lab.runs.files import append_line, locked, read_lines
from auglabel.lab.runs.label_tables import Confidences, LabelTable, read_history
from auglabel.lab.runs.records import Epoch, Resumed, RunFacts, SplitRows, read_epochs, versions
from auglabel.util.atomic_write import write_atomically, write_text
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import checksummed_line, mismatch


class Weights(NamedTuple):
    """The weights of a run's network."""

    tensors: dict[str, Tensor]
    checkpoint: str  # last or best
    epoch: int
    averaged: bool
    batch: int = 0  # finished in the epoch after that one

    @property
    def about(self) -> dict[str, Any]:
        """Which weights these are, as results say it."""
        return {"checkpoint": self.checkpoint, "epoch": self.epoch, "averaged": self.averaged}

    def saw_validation(self, recipe: Recipe) -> bool:
        """Whether they were trained on the validation images, which then fit and measure nothing."""
        training = recipe.training
        return training.give_back is not None and (self.epoch, self.batch) > (training.held_out_epochs, 0)


class Run:
    """Paths and files of one run; nothing here trains."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe_file = path / "recipe.yaml"
        self.facts_file = path / "run.json"
        self.split_file = path / "split.safetensors"
        self.metrics_file = path / "metrics.jsonl"
        self.tables_file = path / "tables.jsonl"
        self.table_file = path / "table.json"
        self.model_file = path / "model.safetensors"
        self.checkpoints = path / "checkpoints"
        self.best_file = self.checkpoints / "best.safetensors"

    def exists(self) -> bool:
        return self.recipe_file.is_file()

    def require(self) -> None:
        """Raise unless there is a run."""
        if not self.exists():
            raise FileNotFoundError(f"{self.path} is not a run: it has no recipe.yaml.")

    def require_free(self, recipe: Recipe, resume: bool) -> None:
        """Raise unless `recipe` can begin in this directory, or, to resume, was begun here."""
        if self.exists():
            if not resume:
                raise UserError(
                    f"{self.path} holds a run already: --resume continues it, --out names another place."
                )
            if differences := self.recipe(*recipe.own_parts.values()).differences(recipe):
                raise RecipeError(
                    f"{self.path} was begun with another recipe and cannot go on with this one. "
                    f"This one has {'; '.join(differences)}."
                )
            return
        if self.path.exists() and (not self.path.is_dir() or any(self._foreign())):
            raise UserError(f"{self.path} is not an empty directory, nor a run: --out names another place.")

    def begin(self, recipe: Recipe) -> None:
        """Make the directory and write the recipe, unless they are there."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        if not self.exists():
            write_text(self.recipe_file, with_checksum(recipe.as_yaml()))

    def _foreign(self) -> Iterator[Path]:
        """Files that a run which was stopped at its start would not leave behind."""
        ours = {"checkpoints", ".lock"}
        return (p for p in self.path.iterdir() if p.name not in ours and not p.name.endswith(".partial"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here until this one ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path, f"another process is training in {self.path}."):
            yield

    def recipe(self, *typed: str) -> Recipe:
        """The recipe; a part of the user's own module is taken only if its name was `typed`."""
        self.require()
        return read_recipe(str(self.recipe_file), typed=typed)

    def recipe_with(self, words: Sequence[str], done: str) -> Recipe:
        """The recipe, where `words` may say no more than where data lie; the run is `done`: "measured"."""
        self.require()
        recipe = read_recipe(str(self.recipe_file), words)
        if differences := self.recipe(*recipe.own_parts.values()).differences(recipe):
            raise UserError(f"a run is {done} as it was trained, but {'; '.join(differences)} was asked for.")
        return recipe

    def require_data(self, data: DataSet, parts: Parts) -> None:
        """Raise unless these are the images that the run was begun with, in the same split."""
        facts = self.facts()
        if facts is not None and facts.data.checksum != data.checksum:
            raise UserError(
                f"{self.path} was begun with other images: their checksum was {facts.data.checksum[:12]}..., "
                f"but that of {data.name} is now {data.checksum[:12]}...."
            )
        pairs = zip(self.split(), SplitRows.of(parts), strict=True) if self.split_file.exists() else ()
        if not all(torch.equal(before, now) for before, now in pairs):
            raise UserError(f"{self.path} was begun with another split than its recipe makes now.")

    def facts(self) -> RunFacts | None:
        """What the run was begun with; None before that was recorded."""
        return RunFacts.read(self.facts_file) if self.facts_file.is_file() else None

    def record_facts(self, facts: RunFacts) -> None:
        facts.write(self.facts_file)

    def record_versions(self, epoch: int) -> str:
        """Record that the run goes on after `epoch` with other versions; a line that says so, or ""."""
        facts, now = self.facts(), versions()
        if facts is None:
            return ""
        resumed = facts.resumed or []
        before = resumed[-1].versions if resumed else facts.versions
        changed = [name for name in now if before.get(name, now[name]) != now[name]]
        if not changed:
            return ""
        self.record_facts(replace(facts, resumed=[*resumed, Resumed(epoch, now)]))
        told = ", ".join(f"{name} {shown(before[name])}, now {now[name]}" for name in changed)
        return f"note: after epoch {epoch} this run goes on with other versions than before: {told}"

    def record_processor(self, kind: str) -> None:
        """Forget the processor where a run goes on with another: its seconds are then of both."""
        if (facts := self.facts()) is not None and facts.processor not in (None, kind):
            self.record_facts(replace(facts, processor=None))

    def record_split(self, rows: SplitRows) -> None:
        rows.write(self.split_file)

    def split(self) -> SplitRows:
        return SplitRows.read(self.split_file)

    def epochs(self) -> list[Epoch]:
        """What was measured after each epoch so far."""
        self.facts()  # checks the version, which is that of the lines too
        return read_epochs(self.metrics_file)

    def history(self) -> list[LabelTable]:
        """The learned labels after each epoch so far."""
        self.facts()
        return read_history(self.tables_file)

    def record_epoch(self, record: Epoch, table: Confidences | None) -> None:
        if table is not None:
            append_line(self.tables_file, {"epoch": record.epoch, "confidence": table})
        append_line(self.metrics_file, record.as_json())

    def forget_after(self, epoch: int) -> None:
        """Drop the lines recorded after `epoch`, which will be computed again."""
        self.facts()
        for path in (self.metrics_file, self.tables_file):
            if path.exists():
                lines = read_lines(path, {"epoch": int}).values()
                kept = [line for line in lines if line["epoch"] <= epoch]
                write_text(path, "".join(checksummed_line(line) + "\n" for line in kept))

    def save(self, step: int, checkpoint: Checkpoint, *, keep: int, best: bool) -> None:
        """Save a checkpoint of `step`, and keep the last `keep` of them and the best one.

        The best is written first: a run killed in between computes the same one again.
        """
        path = self.checkpoints / f"step-{step:08d}.safetensors"
        save_checkpoint(self.best_file if best else path, *checkpoint)
        if best:
            write_atomically(path, self._same_as_best)
        for old in self.steps()[:-keep]:
            old.unlink(missing_ok=True)
        for torn in self.checkpoints.glob(".*.partial"):
            torn.unlink(missing_ok=True)

    def _same_as_best(self, path: Path) -> None:
        """The best checkpoint under a second name; copied where a file can have only one."""
        try:
            os.link(self.best_file, path)
        except OSError:
            shutil.copyfile(self.best_file, path)

    def steps(self) -> list[Path]:
        """The checkpoints kept, the oldest first."""
        return sorted(self.checkpoints.glob("step-*.safetensors"))

    def last(self, told: Callable[[str], object] = lambda line: None) -> Checkpoint | None:
        """The newest checkpoint that can be read; `told` gets a line for each that cannot."""
        steps = self.steps()
        for number, path in enumerate(reversed(steps), start=1):
            try:
                return load_checkpoint(path)
            except UserError as error:
                if number == len(steps):
                    raise UserError(f"{self.path} has no checkpoint that can be read: {error}") from None
                told(f"{error} The one before it is used.")
        return None

    def weights(self, checkpoint: str = "last") -> Weights:
        """The weights in the last or the best checkpoint: averaged ones, if the run has them."""
        found = load_checkpoint(self.best_file) if checkpoint == "best" else self.last()
        if found is None:
            raise UserError(f"{self.path} has no checkpoint yet: auglabel train --resume --out {self.path}.")
        if wrong := mismatch(found.facts, {"epoch": int, "batch?": int}):
            raise UserError(f"{self.path} has a checkpoint of another version: {wrong}.")
        average = part_of(found.tensors, "average.module")
        tensors = average or part_of(found.tensors, "model")
        return Weights(tensors, checkpoint, found.facts["epoch"], bool(average), found.facts.get("batch", 0))

    def network(self, recipe: Recipe, data: DataSet, checkpoint: str = "last") -> tuple[nn.Module, Weights]:
        """The network that the run trained, and which weights it has; `recipe` is the run's own."""
        weights = self.weights(checkpoint)
        model = model_for(recipe, data)
        require_fitting(model.state_dict(), weights.tensors, str(self.path))
        model.load_state_dict(weights.tensors)
        return model, weights
