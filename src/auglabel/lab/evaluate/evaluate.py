"""Measure a trained network: each condition is predicted once and measured as trained, at T and at TA."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Condition
from auglabel.lab.evaluate.corrupted import Reordered
from auglabel.lab.evaluate.figures import Figures, bins_of, figures, seen_of
from auglabel.lab.evaluate.predict import Fitted, Predictor, fit_temperatures
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
                "scaled": {at: _mean([row.scaled[at] for row in rows]) for at in rows[0].scaled},
            }
            for name, rows in groups.items()
        ]


def _mean(parts: Sequence[Figures]) -> dict[str, float]:
    return {name: statistics.fmean(part[name].value for part in parts) for name in parts[0]}


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
    chosen = _chosen(len(test), images, seed)
    predictor = Predictor(model, seed, batch_size, workers)
    if fitted is None:
        fitted = fit_temperatures(predictor, validation, augment, bins=bins)
    rows = []
    for condition in conditions:
        told(f"{condition.on}{'' if condition.severity is None else f', severity {condition.severity}'}")
        source = images_under(condition, test, data, chosen)
        logits = predictor.logits(source, chosen, condition)
        rows.append(measured(condition, logits, source.labels[chosen], fitted, resamples, bins, seed))
    return Evaluation(rows, fitted.temperatures, list(fitted.notes))


def _chosen(count: int, images: int | None, seed: int) -> Tensor:
    """The rows of the test images to use: `images` of them, drawn by the seed, or all."""
    if images is not None:
        require_whole("images", images, 1)
    if images is None or images >= count:
        return torch.arange(count)
    return torch.randperm(count, generator=generator_for(seed, "images"))[:images].sort().values


def images_under(condition: Condition, test: Source, data: DataSet | None, chosen: Tensor) -> Source:
    """The test images under a condition: from memory, from disk, or made as they are fetched."""
    source = test if condition.source is None else condition.source(test, data)
    if isinstance(source, Reordered) and len(chosen) < len(source):
        raise UserError(
            "--images takes the same images for every condition, but the copies have them in another "
            "order than the run's data: leave it out."
        )
    return source


def measured(
    condition: Condition,
    logits: Tensor,
    labels: Tensor,
    fitted: Fitted,
    resamples: int,
    bins: int,
    seed: int,
) -> Row:
    """A row of the table, out of one set of predictions: as trained, and at each fitted temperature."""
    whole = min(resamples, WHOLE_RESAMPLES) if condition.severity is None else 0
    read = partial(figures, labels=labels, resamples=resamples, whole=whole, seed=seed)
    logits = logits.double()
    seen = seen_of(logits, labels, bins)
    scaled = {name: scaling(logits) for name, scaling in fitted.scalings.items()}
    return Row(
        condition.on,
        condition.severity,
        len(labels),
        read(logits, seen),
        {name: read(each, seen_of(each, labels, bins)) for name, each in scaled.items()},
        bins_of(seen),
    )
