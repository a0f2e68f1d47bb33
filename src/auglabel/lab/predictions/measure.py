"""Every number of a set of predictions: as given, and after scalings fitted on another set; and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from auglabel import metrics
from auglabel.calibration import Calibration
from auglabel.decomposition import Decomposition, decompose
from auglabel.errors import UserError
from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.predictions.figures import Figures, bins_of, figures
from auglabel.lab.predictions.files import Predictions
from auglabel.lab.runs.diagnosis import TemperatureFit, diagnosis
from auglabel.scaling import IsotonicScaling, TemperatureScaling, VectorScaling
from auglabel.util.checks import require_whole

Scaling = TemperatureScaling | VectorScaling | IsotonicScaling
ON_THESE = "these rows"


@dataclass(frozen=True)
class MetricOptions:
    """How predictions are measured."""

    bins: int = 15
    resamples: int = 1000  # of the bootstrap
    top: int = 5  # of top-k accuracy
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in {"bins": 1, "resamples": 0, "top": 1, "seed": 0}.items():
            require_whole(f"--{name}", getattr(self, name), least)


@dataclass(frozen=True)
class Report:
    """What was found. `scaled` are the metrics after each scaling, which was fitted on `fitted_on`."""

    source: str
    count: int
    classes: int
    figures: Figures
    decomposition: Decomposition
    bins: dict[str, list[float]]
    scaled: dict[str, Figures] = field(default_factory=dict)
    temperature: float | None = None
    fitted_on: str = ON_THESE
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Over- or under-confident, by how much, and what a temperature or softer labels would do."""
        fit = None
        if self.temperature is not None:
            fit = TemperatureFit(self.temperature, self.fitted_on, self.scaled["temperature"]["ece"].value)
        values = {name: figure.value for name, figure in self.figures.items()}
        low = self.figures["ece"].low
        return diagnosis(values, self.count, fit, "and no temperature could be fitted", low)

    def as_json(self) -> dict[str, Any]:
        """For machines; null where a number is not finite."""
        parts = {name: getattr(self.decomposition, name)._asdict() for name in ("nll", "brier")}
        return {
            "file": self.source,
            "predictions": self.count,
            "classes": self.classes,
            "figures": _plain(self.figures),
            "decomposition": {name: _finite(each) for name, each in parts.items()},
            "best_temperature": self.decomposition.temperature,
            "fitted_on": self.fitted_on,
            "temperature": self.temperature,
            "scaled": {name: _plain(found) for name, found in self.scaled.items()},
            "bins": self.bins,
            "notes": self.notes,
            "verdict": self.verdict,
        }


def measure_predictions(given: Predictions, fit_on: Predictions | None, options: MetricOptions) -> Report:
    """Measure `given`; with `fit_on`, also after a temperature, vector and isotonic scaling fitted on that.

    Without it, a temperature is fitted on the rows themselves: one number, which hardly follows their noise.
    """
    found, seen = _figures(given.logits, given.labels, options, options.resamples)
    parts, scaled, notes = decompose(given.finite, given.labels), dict[str, Figures](), list[str]()
    if math.isinf(found["nll"].value):
        notes.append("NLL is infinite: the true class of some rows was given a probability of 0.")
        nll = parts.nll._replace(total=math.inf, by_temperature=math.inf)
        parts = parts._replace(nll=nll)
    scalings = _fitted(fit_on or given, notes, all_of_them=fit_on is not None)
    for name, scaling in scalings.items():
        scaled[name], _ = _figures(scaling(given.finite), given.labels, options, 0)
        if math.isinf(scaled[name]["nll"].value):
            notes.append(
                f"After {name} scaling NLL is infinite: it gives some true classes a probability of 0."
            )
    temperature = scalings.get("temperature")
    return Report(
        given.source,
        len(given.labels),
        given.logits.shape[1],
        found,
        parts,
        bins_of(seen),
        scaled,
        float(temperature.temperature) if isinstance(temperature, TemperatureScaling) else None,
        fit_on.source if fit_on else ON_THESE,
        notes,
    )


def _figures(
    logits: Tensor, labels: Tensor, options: MetricOptions, resamples: int
) -> tuple[Figures, Calibration]:
    found, seen = figures(logits, labels, options.bins, resamples, whole=0, seed=options.seed)
    probs = logits.softmax(dim=1)
    more = {
        "over_confidence": found["confidence"].value - found["accuracy"].value,
        "smooth_ece": metrics.smooth_ece(probs, labels),
        "auroc": metrics.auroc(probs, labels),
    }
    if options.top < logits.shape[1]:
        more["top_k_accuracy"] = metrics.top_k_accuracy(probs, labels, options.top)
    return found | {name: Figure(value, math.nan, math.nan) for name, value in more.items()}, seen


def _fitted(on: Predictions, notes: list[str], *, all_of_them: bool) -> dict[str, Scaling]:
    """The scalings that can be fitted on these rows; `notes` gets a sentence on those that cannot."""
    classes = on.logits.shape[1]
    scalings: dict[str, Scaling] = {"temperature": TemperatureScaling().double()}
    if all_of_them:
        scalings |= {"vector": VectorScaling(classes).double(), "isotonic": IsotonicScaling(classes)}
    found: dict[str, Scaling] = {}
    for name, scaling in scalings.items():
        try:
            found[name] = scaling.fit(on.finite, on.labels)
        except UserError as error:
            notes.append(f"No {name} scaling: {error}")
    return found


def _plain(found: Figures) -> dict[str, Any]:
    return {name: _finite(figure._asdict()) for name, figure in found.items()}


def _finite(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
