"""The demo's experiment: RandAug with three kinds of labels on the embedded images.

A small network learns from 1,000 images a seed, with one-hot labels, label smoothing and AutoLabel;
all three see the same images, initial weights and transformations. Then it is measured on clean test
images and on four distortions that RandAug does not contain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from auglabel.lab.evaluate.conditions import Condition, as_it_is
from auglabel.lab.evaluate.evaluate import Evaluation, evaluate
from auglabel.lab.evaluate.results import as_json
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.report.methods import TrainedRun
from auglabel.lab.runs.evaluations import MeasuredRun
from auglabel.lab.runs.label_tables import LabelTable
from auglabel.lab.runs.records import Epoch
from auglabel.lab.train.train import facts_of, labels_of
from auglabel.lab.train.trainer import Trainer

METHODS = {  # words beyond those of the recipe "embedded"
    "one-hot": ["--regime=randaug"],
    "label smoothing": ["--regime=randaug_ls", "--labels.rho=0.01"],  # chosen by benchmarks/demo_choice.py
    "AutoLabel": [],
}


class Reading(NamedTuple):
    """What a network reaches on one set of images."""

    accuracy: float
    ece: float
    debiased_ece: float
    nll: float
    brier: float


@dataclass(frozen=True)
class Outcome:
    """What one run measured; `readings` by the images' name, "clean" or one of DISTORTIONS."""

    method: str
    seed: int
    readings: dict[str, Reading]
    table: list[float] | None  # AutoLabel's confidence per bucket
    seconds: float
    calibrating: float  # seconds of them
    trained: TrainedRun | None = None  # the same for the page


def recipe_for(method: str, seed: int, epochs: int) -> Recipe:
    return read_recipe("embedded", [*METHODS[method], f"--seed={seed}", f"--epochs={epochs}"])


def run(method: str, seed: int, epochs: int, tick: Callable[[], None] | None = None) -> Outcome:
    """Train one network, with a `tick` after each epoch, and measure it on the test images."""
    start = time.perf_counter()
    recipe, seen = recipe_for(method, seed, epochs), Seen()
    trainer = trained(recipe, tick, seen)
    table = trainer.table()
    measured = test(trainer, seed)
    readings = {
        row.on: Reading(*(row.figures[name].value for name in Reading._fields)) for row in measured.rows
    }
    seconds = time.perf_counter() - start
    kept = None if table is None else table.tolist()
    kept_run = _trained_run(recipe, trainer, seen, measured)
    return Outcome(method, seed, readings, kept, seconds, trainer.state.calibrating, kept_run)


@dataclass
class Seen:
    """What was measured after each epoch, and the labels learned so far."""

    epochs: list[Epoch] = field(default_factory=list)
    history: list[LabelTable] = field(default_factory=list)


def trained(recipe: Recipe, tick: Callable[[], None] | None = None, seen: Seen | None = None) -> Trainer:
    """A trainer at the end of its recipe; `seen` is filled on the way."""
    trainer = Trainer(recipe, *data_for(recipe), device="cpu")
    for _ in range(recipe.training.epochs):
        start = time.perf_counter()
        for _ in trainer.epoch(lambda step: False):
            pass
        speed = len(trainer.parts.train) / (time.perf_counter() - start)
        record, labels = trainer.end_epoch(), labels_of(trainer)
        if seen is not None:
            seen.epochs.append(replace(record, images_per_second=speed))
            seen.history += [] if labels is None else [LabelTable(record.epoch, labels)]
        if tick is not None:
            tick()
    return trainer


def _trained_run(recipe: Recipe, trainer: Trainer, seen: Seen, measured: Evaluation) -> TrainedRun:
    data, parts = data_for(recipe)
    facts = facts_of(recipe, data, parts, trainer)
    about = {"checkpoint": "last", "epoch": len(seen.epochs), "data": {"checksum": data.checksum}}
    evaluations = {"demo": MeasuredRun.of(as_json(measured, about))}
    name = f"{recipe.labels.name}-{recipe.training.seed}"
    return TrainedRun(name, recipe.as_dict(), facts, seen.epochs, seen.history, evaluations)


def test(trainer: Trainer, seed: int) -> Evaluation:
    """What the network reaches on the test images as they are, and under each of DISTORTIONS."""
    rows = [Condition("clean", as_it_is)]
    rows += [Condition(name, _moving(distort)) for name, distort in DISTORTIONS.items()]
    parts = trainer.parts
    return evaluate(trainer.measured, parts.test, parts.validation, rows, seed=seed, resamples=0)


def _moving(distort: Callable[[Tensor, Generator], Tensor]) -> Callable[..., Tensor]:
    def move(model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        return distort(images, generator)

    return move


def noise(images: Tensor, generator: Generator) -> Tensor:
    return (images + 0.15 * torch.randn(images.shape, generator=generator)).clamp(0, 1)


def blur(images: Tensor, generator: Generator) -> Tensor:
    return F.avg_pool2d(F.pad(images, (2, 2, 2, 2), mode="replicate"), 5, stride=1)


def pixelate(images: Tensor, generator: Generator) -> Tensor:
    return F.interpolate(F.avg_pool2d(images, 4), scale_factor=4, mode="nearest")


def occlude(images: Tensor, generator: Generator) -> Tensor:
    """A grey square of 10 pixels, anywhere inside."""
    side, (height, width) = 10, images.shape[2:]
    top = torch.randint(height - side + 1, (len(images), 1, 1, 1), generator=generator)
    left = torch.randint(width - side + 1, (len(images), 1, 1, 1), generator=generator)
    row, column = torch.arange(height)[:, None], torch.arange(width)
    covered = (row >= top) & (row < top + side) & (column >= left) & (column < left + side)
    return images.masked_fill(covered, 0.5)


DISTORTIONS: dict[str, Callable[[Tensor, Generator], Tensor]] = {
    "noise": noise,
    "blur": blur,
    "pixelate": pixelate,
    "occlude": occlude,
}
