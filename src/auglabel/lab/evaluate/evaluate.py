"""Measure a trained network: each condition is predicted once and measured as trained, at T and at TA."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from auglabel import metrics
from auglabel.augment.base import Augmentation
from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.bootstrap import Figure, bootstrapped, interval, resampled
from auglabel.lab.evaluate.conditions import Condition
from auglabel.lab.evaluate.corrupted import Reordered
from auglabel.lab.evaluate.predict import Fitted, Predictor, fit_temperatures
from auglabel.lab.recipe.seeding import generator_for
from auglabel.util.checks import require_whole

STREAMING = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "nll", "brier")
BASIC = ("ece", "max_ce", "equal_mass_ece", "classwise_ece")  # with a basic interval: see bootstrap.py
WHOLE_RESAMPLES = 100  # each is computed anew; and only where there is no severity, since those are many

Figures = dict[str, Figure]  # by metric


@dataclass(frozen=True)
class Row:
    """What a network reaches on one condition: as trained, and `scaled` at each fitted temperature."""

    on: str
    severity: int | None
    count: int
    figures: Figures
    scaled: dict[str, Figures] = field(default_factory=dict)  # by T, TA
    bins: dict[str, list[float]] = field(default_factory=dict)  # sums per bin of confidence, as trained


@dataclass(frozen=True)
class Evaluation:
    """All rows, and the temperatures by their names: T, TA."""

    rows: list[Row]
    temperatures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def evaluate(
    model: nn.Module,
    test: Source,
    validation: Source,
    conditions: Iterable[Condition],
    *,
    seed: int = 0,
    images: int | None = None,
    batch_size: int = 250,
    resamples: int = 1000,
    bins: int = 15,
    workers: int = 0,
    data: DataSet | None = None,
    augment: Augmentation | None = None,
    fitted: Fitted | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Measure `model`, whose device is used, on each condition of the test images.

    `images` takes that many of them, drawn once and the same for every condition. Temperatures come from
    the validation images alone, clean and, if given, as `augment` draws them; or they are `fitted` already.
    `data` is what copies on disk are held against.

    Random numbers come from the seed and the condition, in blocks of 250 rows: `batch_size`, how many images
    the network sees at once, changes none of what a corruption draws. An attack asks the network, so it goes
    by batches itself, and one of another size starts it elsewhere: there, `batch_size` below 250 counts.
    """
    if len(test) == 0:
        raise UserError("there are no test images to measure on.")
    require_whole("batch_size", batch_size, 1)
    require_whole("resamples", resamples, 0)
    chosen = some_rows(len(test), images, seed)
    predictor = Predictor(model, seed, batch_size, workers)
    if fitted is None:
        fitted = fit_temperatures(predictor, validation, augment, bins=bins)
    rows = []
    for condition in conditions:
        told(f"{condition.on}{'' if condition.severity is None else f', severity {condition.severity}'}")
        source = test if condition.source is None else condition.source(test, data)
        if isinstance(source, Reordered) and len(chosen) < len(source):
            raise UserError(
                "--images takes the same images for every condition, but the copies have them in another "
                "order than the run's data: leave it out."
            )
        logits = predictor.logits(source, chosen, condition)
        rows.append(measured(condition, logits, source.labels[chosen], fitted, resamples, bins, seed))
    return Evaluation(rows, fitted.temperatures, list(fitted.notes))


def some_rows(count: int, images: int | None, seed: int) -> Tensor:
    """The rows to use of `count`: `images` of them, drawn by the seed, or all."""
    if images is not None:
        require_whole("images", images, 1)
    if images is None or images >= count:
        return torch.arange(count)
    return torch.randperm(count, generator=generator_for(seed, "images"))[:images].sort().values


def measured(
    condition: Condition, logits: Tensor, labels: Tensor, fitted: Fitted, resamples: int, bins: int, seed: int
) -> Row:
    """A row of the table, out of one set of predictions: as trained, and at each fitted temperature."""
    whole = min(resamples, WHOLE_RESAMPLES) if condition.severity is None else 0
    read = partial(figures, labels=labels, bins=bins, resamples=resamples, whole=whole, seed=seed)
    logits = logits.double()
    as_trained, seen = read(logits)
    scaled = {name: read(scaling(logits))[0] for name, scaling in fitted.scalings.items()}
    sums = {"count": COUNT, "confidence": CONFIDENCE, "correct": CORRECT}
    drawn = {name: seen.sums[part, 0].tolist() for name, part in sums.items()}
    return Row(condition.on, condition.severity, len(labels), as_trained, scaled, drawn)


def figures(
    logits: Tensor, labels: Tensor, bins: int, resamples: int, whole: int, seed: int
) -> tuple[Figures, Calibration]:
    """Every metric of these predictions, and their sums; `whole` resamples for metrics that do not stream."""
    seen, generator = Calibration(bins=bins), generator_for(seed, "bootstrap")
    seen.update_logits(logits, labels)
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
    }, seen
