"""Measure a trained network: each condition is predicted once and measured as trained, at T and at TA."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Condition
from auglabel.lab.evaluate.corrupted import Reordered
from auglabel.lab.evaluate.predict import Fitted, Predictor, fit_temperatures
from auglabel.lab.predictions.figures import Figures, bins_of, figures
from auglabel.lab.recipe.seeding import generator_for
from auglabel.util.checks import require_whole

WHOLE_RESAMPLES = 100  # each is computed anew; and only where there is no severity, since those are many


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
    return Row(condition.on, condition.severity, len(labels), as_trained, scaled, bins_of(seen))
