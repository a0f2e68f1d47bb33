"""A run's directory: the recipe, what it ran with, what it measured, and its checkpoints."""

from __future__ import annotations

import math
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auglabel import __version__
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.recipe.options import RecipeError
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.yamlfile import sealed_text
from auglabel.lab.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from auglabel.lab.runs.files import append_line, locked, read_lines
from auglabel.pooling import RULE
from auglabel.util.atomic_write import write_atomically, write_text
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import checksummed_line, mismatch, read_checksummed, write_checksummed

RUN_FORMAT = "auglabel run, version 1"
FACTS = {  # what going on needs of run.json
    **{"data?": {"checksum": str}, "versions?": {...: str}},
    **{"resumed?": [{"epoch": int, "versions": {...: str}}]},
}
PARTS = ("train", "validation", "test")
EPOCH = {  # what is read of one; a loss that is no number is of a step that half precision skipped
    **{"epoch": int, "loss": math.inf, "validation?": {...: (math.inf, None)}},
    **{"seconds?": {...: float}, "images_per_second?": float},
}
TIMES = ("seconds", "images_per_second", "calibration_share")  # what differs between two equal runs


def versions() -> dict[str, str]:
    """Of what the results depend on."""
    return {
        "auglabel": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pooled_rule": RULE,
    }


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

    def require_free(self, recipe: Recipe, resume: bool) -> None:
        """A directory where `recipe` can begin, or, to resume, one that holds that very recipe."""
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
        """Make the directory, unless it is there."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        if not self.exists():
            write_text(self.recipe_file, sealed_text(recipe.as_yaml()))

    def _foreign(self) -> Iterator[Path]:
        """What a run that was stopped while it began would not leave behind."""
        ours = {"checkpoints", ".lock"}
        return (p for p in self.path.iterdir() if p.name not in ours and not p.name.endswith(".partial"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here; the system lets go when this one ends, however."""
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path, f"another process is training in {self.path}."):
            yield

    def recipe(self, *typed: str) -> Recipe:
        """The recipe; a part of the user's own module is taken only if its name was `typed`."""
        if not self.exists():
            raise FileNotFoundError(f"{self.path} is not a run: it has no recipe.yaml.")
        return read_recipe(str(self.recipe_file), typed=typed)

    def require_data(self, data: DataSet, parts: Parts) -> None:
        """The images that the run was begun with, cut as they were then."""
        known = self.facts().get("data", {}).get("checksum")
        if known is not None and known != data.checksum:
            raise UserError(
                f"{self.path} was begun with other images: their checksum was {known[:12]}..., but that of "
                f"{data.name} is now {data.checksum[:12]}...."
            )
        rows = self.split_rows() if self.split_file.exists() else None
        if rows is not None and not all(torch.equal(rows[name], getattr(parts, name).rows) for name in PARTS):
            raise UserError(f"{self.path} was begun with another split than its recipe makes now.")

    def facts(self) -> dict[str, Any]:
        """What `record_facts` wrote; empty before that."""
        if not self.facts_file.is_file():
            return {}
        return read_checksummed(self.facts_file, RUN_FORMAT, what="what a run was begun with", shape=FACTS)

    def record_facts(self, facts: Mapping[str, Any]) -> None:
        write_checksummed(self.facts_file, {"format": RUN_FORMAT, "versions": versions(), **facts})

    def record_versions(self, epoch: int) -> str:
        """Record other versions than before to go on with after `epoch`; a line that says so, or ""."""
        facts, now = self.facts(), versions()
        resumed = facts.get("resumed", [])
        before = resumed[-1]["versions"] if resumed else facts.get("versions", {})
        changed = [name for name in now if before.get(name, now[name]) != now[name]]
        if not changed:
            return ""
        more = {"resumed": [*resumed, {"epoch": epoch, "versions": now}]}
        write_checksummed(self.facts_file, {**facts, **more})
        told = ", ".join(f"{name} {shown(before[name])}, now {now[name]}" for name in changed)
        return f"note: after epoch {epoch} this run goes on with other versions than before: {told}"

    def record_split(self, rows: Mapping[str, Tensor]) -> None:
        save_checkpoint(self.split_file, dict(rows), {})

    def split_rows(self) -> dict[str, Tensor]:
        found = load_checkpoint(self.split_file).tensors
        if found.keys() != set(PARTS):
            raise UserError(f"{self.split_file} is not a run's split: it must hold {', '.join(PARTS)}.")
        return found

    def metrics(self) -> list[dict[str, Any]]:
        return self._lines(self.metrics_file, EPOCH)

    def _lines(self, path: Path, shape: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.facts()  # its version is that of the lines
        lines = read_lines(path)
        for number, line in enumerate(lines, start=1):
            if wrong := mismatch(line, shape):
                raise UserError(f"{path}, line {number} is damaged or of another version: {wrong}.")
        return lines

    def record_epoch(self, record: Mapping[str, Any], table: Mapping[str, list[float]] | None) -> None:
        if table is not None:
            append_line(self.tables_file, {"epoch": record["epoch"], "confidence": table})
        append_line(self.metrics_file, record)

    def forget_after(self, epoch: int) -> None:
        """Drop what was recorded after `epoch`: it will be computed again."""
        for path in (self.metrics_file, self.tables_file):
            if path.exists():
                kept = [line for line in self._lines(path, {"epoch": int}) if line["epoch"] <= epoch]
                write_text(path, "".join(checksummed_line(line) + "\n" for line in kept))

    def save(self, step: int, checkpoint: Checkpoint, *, keep: int, best: bool) -> None:
        """A checkpoint of `step`, the last `keep` of which stay, and the best one.

        The best is in place first: a run killed in between computes the same one again.
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
        """The newest checkpoint that is whole; `told` hears of those that are not."""
        steps = self.steps()
        for number, path in enumerate(reversed(steps), start=1):
            try:
                return load_checkpoint(path)
            except ValueError as error:
                if number == len(steps):
                    raise UserError(f"{self.path} has no checkpoint that can be read: {error}") from None
                told(f"{error} The one before it is used.")
        return None
