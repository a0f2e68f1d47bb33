"""`auglabel train`: train a recipe in this process or in several, or go on with a run."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.process.launch import end_with_launcher, launch
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.run import Run
from auglabel.lab.train.train import TrainOptions, train
from auglabel.util.checks import require_whole


@dataclass(frozen=True)
class PlaceOptions:
    """Where a run goes and who computes it"""

    out: str | None = None
    """directory of the run; runs/RECIPE-SEED if not given"""
    processes: int = 1
    """processes on this machine; for several machines use torchrun"""
    port: int | None = None
    """for --processes: where they meet; a free one if not given"""

    def __post_init__(self) -> None:
        require_whole("processes", self.processes, 1)


USAGE, OPTIONS, TAKES_RECIPE = "[RECIPE]", (PlaceOptions, TrainOptions), True


def run(words: list[str]) -> int | None:
    name, rest = name_first(words)
    place, rest = flags(PlaceOptions, rest)
    options, rest = flags(TrainOptions, rest)
    recipe = _recipe(name, rest, place.out if options.resume else None)
    if place.processes > 1 and "LOCAL_RANK" not in os.environ:  # else this is one of them
        return launch([sys.executable, "-m", "auglabel.cli", "train", *words], place.processes, place.port)
    if "LOCAL_RANK" in os.environ:
        end_with_launcher()
    train(recipe, Path(place.out or f"runs/{Path(name or 'run').stem}-{recipe.training.seed}"), options)
    return None


def _recipe(name: str | None, words: list[str], begun: str | None) -> Recipe:
    """The recipe asked for, or that of the run to go on with if none is."""
    if name is None and begun is not None and Run(Path(begun)).exists():
        name = begun
    if name is None and not words:
        raise UserError(
            "which recipe? Give a .yaml file or a name: auglabel train cpu-cifar10. auglabel list recipes."
        )
    return read_recipe(name, words)
