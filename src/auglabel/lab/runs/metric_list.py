"""Every metric once: its title, its unit, and how its numbers are written."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

SCALES = {"": 1.0, "%": 100.0, "x 1000": 1000.0}
DIGITS = {"": 3, "%": 1, "x 1000": 0}  # after the point


class OverSeeds(NamedTuple):
    """Mean and standard deviation over seeds; one run has no spread."""

    mean: float
    spread: float | None


def over_seeds(values: Sequence[float]) -> OverSeeds:
    return OverSeeds(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Metric:
    """How a metric is shown. Values are fractions, or plain numbers; `unit` says what they are shown in."""

    title: str
    unit: Literal["", "%", "x 1000"] = ""
    higher_is_better: bool = False

    @property
    def heading(self) -> str:
        """The title with its unit, for the head of a column."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def shown(self, value: float, fewer: int = 0) -> str:
        """A value in the metric's unit, with `fewer` digits after the point than usual."""
        return f"{SCALES[self.unit] * value:.{max(0, DIGITS[self.unit] - fewer)}f}"

    def mean_and_spread(self, values: Sequence[float], between: str = " ± ", fewer: int = 0) -> str:
        """Mean ± standard deviation over seeds; the mean alone where there is one seed."""
        both = (self.shown(each, fewer) for each in over_seeds(values) if each is not None)
        return between.join(both)


METRICS = {
    "accuracy": Metric("accuracy", "%", higher_is_better=True),
    "top_k_accuracy": Metric("top-k accuracy", "%", higher_is_better=True),
    "confidence": Metric("confidence", "%"),
    "over_confidence": Metric("over-confidence", "%"),
    "ece": Metric("ECE", "%"),
    "debiased_ece": Metric("debiased ECE", "%"),
    "smooth_ece": Metric("smooth ECE", "%"),
    "equal_mass_ece": Metric("equal-mass ECE", "%"),
    "classwise_ece": Metric("class-wise ECE", "%"),
    "max_ce": Metric("maximum calibration error", "%"),
    "nll": Metric("NLL"),
    "brier": Metric("Brier"),
    "aurc": Metric("AURC", "x 1000"),
    "auroc": Metric("AUROC of errors", "%", higher_is_better=True),
    "adversarial_accuracy": Metric("adversarial accuracy", "%", higher_is_better=True),
    "label_mean": Metric("mean label", "%"),
    "gap": Metric("gap", "%"),
    "delta": Metric("Delta", "%", higher_is_better=True),
}
OVER_CORRUPTIONS = {  # the mean over all pairs of corruption and severity, as the paper writes it
    "caccuracy": "cAccuracy",
    "cece": "cECE",
    "cdebiased_ece": "debiased cECE",
    "cnll": "cNLL",
    "cbrier": "cBrier",
    "caurc": "cAURC",
    "cgap": "cGap",
}


def metric_named(name: str) -> Metric:
    """A metric by its name: ece, cece over corruptions, ece@3 at a severity, "ece T" at a temperature."""
    plain, _, temperature = name.partition(" ")
    plain = plain.partition("@")[0]
    if plain in OVER_CORRUPTIONS:
        metric = replace(METRICS[plain[1:]], title=OVER_CORRUPTIONS[plain])
    else:
        metric = METRICS.get(plain) or Metric(plain, "%")
    return replace(metric, title=f"{metric.title} at {temperature}") if temperature else metric
