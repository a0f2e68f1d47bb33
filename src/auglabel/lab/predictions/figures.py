"""Every metric of one set of predictions, with its interval; needs torch alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from torch import Tensor

from auglabel import metrics
from auglabel.calibration import CONFIDENCE, CORRECT, COUNT, Calibration
from auglabel.lab.predictions.bootstrap import Figure, bootstrapped, interval, resampled
from auglabel.lab.recipe.seeding import generator_for

STREAMING = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "nll", "brier")
BASIC = ("ece", "max_ce", "equal_mass_ece", "classwise_ece")  # with a basic interval: see bootstrap.py

Figures = dict[str, Figure]  # by metric


def bins_of(seen: Calibration) -> dict[str, list[float]]:
    """What a reliability diagram is drawn from; those of several runs can be added up."""
    parts = {"count": COUNT, "confidence": CONFIDENCE, "correct": CORRECT}
    return {name: seen.sums[part, 0].tolist() for name, part in parts.items()}


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
