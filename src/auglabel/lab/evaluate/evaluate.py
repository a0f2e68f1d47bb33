"""Measure a trained network: accuracy and calibration, with intervals, and with its temperature fitted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn

from auglabel import metrics
from auglabel.augment.base import Augmentation
from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.bootstrap import Figure, bootstrapped, interval, resampled
from auglabel.lab.evaluate.conditions import Condition, as_it_is
from auglabel.lab.evaluate.corrupted import Reordered
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.train import feed
from auglabel.scaling import TemperatureScaling
from auglabel.util.checks import require_whole
from auglabel.util.inference import eval_mode, model_input

STREAMING = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "nll", "brier")
BASIC = ("ece", "max_ce", "equal_mass_ece", "classwise_ece")  # with a basic interval: see bootstrap.py
WHOLE_RESAMPLES = 100  # each is computed anew; and only where there is no severity, since those are many
BLOCK = 250  # rows that share a random stream


@dataclass(frozen=True)
class Row:
    """What a network reaches on one condition, as it is and with its temperature fitted."""

    on: str
    severity: int | None
    count: int
    figures: dict[str, Figure]
    scaled: dict[str, Figure] | None
    bins: dict[str, list[float]] = field(default_factory=dict)  # sums per bin of confidence


@dataclass(frozen=True)
class Evaluation:
    """All rows, and the temperature of lowest NLL on the validation images."""

    rows: list[Row]
    temperature: float | None
    notes: list[str] = field(default_factory=list)

    def means(self) -> list[dict[str, Any]]:
        """Per corruption, and over all (type, severity) pairs: the plain mean of each metric."""
        graded = [row for row in self.rows if row.severity is not None]
        groups = {
            name: [row for row in graded if row.on == name] for name in dict.fromkeys(r.on for r in graded)
        }
        groups |= {"corrupted": graded} if graded else {}
        return [
            {
                "on": name,
                "pairs": len(rows),
                "figures": _mean([row.figures for row in rows]),
                "scaled": _mean([row.scaled for row in rows if row.scaled is not None]),
            }
            for name, rows in groups.items()
        ]


def _mean(parts: Sequence[dict[str, Figure]]) -> dict[str, float]:
    names = parts[0] if parts else ()
    return {name: statistics.fmean(part[name].value for part in parts) for name in names}


def evaluate(
    model: nn.Module,
    test: Source,
    validation: Source,
    rows: Sequence[Condition],
    *,
    seed: int = 0,
    images: int | None = None,
    batch_size: int = 250,
    resamples: int = 1000,
    bins: int = 15,
    workers: int = 0,
    data: DataSet | None = None,
    augment: Augmentation | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Measure `model`, whose device is used, on each condition of the test images.

    `images` takes that many of them, drawn once and the same for every condition. The temperature comes
    from the validation images alone: clean, or a view of each by `augment`. `data` is what copies on disk
    are held against.

    Random numbers come from the seed and the condition, in blocks of 250 rows: `batch_size`, how many images
    the network sees at once, changes none of what a corruption draws. An attack asks the network, so it goes
    by batches itself, and one of another size starts it elsewhere: there, `batch_size` below 250 counts.
    """
    if len(test) == 0:
        raise UserError("there are no test images to measure on.")
    require_whole("batch_size", batch_size, 1)
    require_whole("resamples", resamples, 0)
    if images is not None:
        require_whole("images", images, 1)
    chosen = torch.arange(len(test))
    if images is not None and images < len(test):
        chosen = torch.randperm(len(test), generator=generator_for(seed, "images"))[:images].sort().values
    scaling, notes = _fit(model, validation, augment, seed, batch_size, workers)
    measured = []
    for condition in rows:
        told(f"{condition.on}{'' if condition.severity is None else f', severity {condition.severity}'}")
        seen = test if condition.source is None else condition.source(test, data)
        if isinstance(seen, Reordered) and len(chosen) < len(seen):
            raise UserError(
                "--images takes the same images for every condition, but the copies have them in another "
                "order than the run's data: leave it out."
            )
        logits = predict(model, seen, chosen, condition, seed, batch_size, workers)
        labels = seen.labels[chosen]
        whole = min(resamples, WHOLE_RESAMPLES) if condition.severity is None else 0
        read = partial(figures, labels=labels, resamples=resamples, whole=whole, bins=bins, seed=seed)
        scaled = None if scaling is None else read(scaling(logits.double()))
        row = Row(condition.on, condition.severity, len(labels), read(logits), scaled)
        measured.append(replace(row, bins=_binned(logits, labels, bins)))
    return Evaluation(measured, None if scaling is None else float(scaling.temperature), notes)


def _fit(
    model: nn.Module,
    validation: Source,
    augment: Augmentation | None,
    seed: int,
    batch_size: int,
    workers: int,
) -> tuple[TemperatureScaling | None, list[str]]:
    if len(validation) == 0:
        return None, ["There are no validation images, so no temperature was fitted."]
    condition = Condition("clean", as_it_is)
    notes: list[str] = []
    if augment is not None:
        condition = Condition("augmented", partial(_augmented, augment), attacks=True)
        notes = ["The temperature was fitted on augmented validation images."]
    logits = predict(model, validation, torch.arange(len(validation)), condition, seed, batch_size, workers)
    try:
        return TemperatureScaling().fit(logits, validation.labels), notes
    except ValueError as error:
        return None, [f"No temperature was fitted: {error}"]


def _augmented(
    augment: Augmentation, model: nn.Module, images: Tensor, labels: Tensor, generator: Generator
) -> Tensor:
    return augment(images, labels, model, generator=generator).images


def predict(
    model: nn.Module,
    source: Source,
    rows: Tensor,
    condition: Condition,
    seed: int,
    batch_size: int,
    workers: int,
) -> Tensor:
    """Logits (N, K), on the CPU, of the model on `rows` of `source` under a condition."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    purpose, together = f"{condition.on}/{condition.severity}", batch_size if condition.attacks else BLOCK
    logits: list[Tensor] = []
    for number, block in enumerate(feed.batches(source, rows.split(BLOCK), workers=workers)):
        generator = generator_for(seed, purpose, number)
        images, labels = (part.to(device).split(together) for part in block)
        for some, classes in zip(images, labels, strict=True):
            moved = condition.move(model, model_input(some, model), classes, generator)
            with eval_mode(model), torch.no_grad():
                logits += [model(batch).float().cpu() for batch in moved.split(batch_size)]
    return torch.cat(logits)


def _binned(logits: Tensor, labels: Tensor, bins: int) -> dict[str, list[float]]:
    """What a reliability diagram is drawn from; those of several runs can be added up."""
    seen = Calibration(bins=bins)
    seen.update_logits(logits.double(), labels)
    return {
        name: seen.sums[part, 0].tolist()
        for name, part in (("count", COUNT), ("confidence", CONFIDENCE), ("correct", CORRECT))
    }


def figures(
    logits: Tensor, labels: Tensor, resamples: int, whole: int, bins: int, seed: int
) -> dict[str, Figure]:
    """Every metric of these predictions; `resamples` for those that stream, `whole` for the others."""
    logits = logits.double()
    seen = Calibration(bins=bins)
    seen.update_logits(logits, labels)
    generator = generator_for(seed, "bootstrap")
    found = {name: Figure(float(getattr(seen, name)), math.nan, math.nan) for name in STREAMING}
    if resamples:
        again = resampled(logits, labels, resamples, bins, generator)
        found = {name: interval(found[name].value, getattr(again, name), name in BASIC) for name in STREAMING}
    probs = logits.softmax(dim=1)
    metrics_of_all: dict[str, Callable[[Tensor, Tensor], float]] = {
        "equal_mass_ece": partial(metrics.equal_mass_ece, bins=bins),
        "classwise_ece": partial(metrics.classwise_ece, bins=bins),
        "aurc": metrics.aurc,
    }
    return found | {
        name: bootstrapped(metric, probs, labels, whole, generator, name in BASIC)
        for name, metric in metrics_of_all.items()
    }
