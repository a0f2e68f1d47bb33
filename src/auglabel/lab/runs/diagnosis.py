"""Whether predictions are over- or under-confident, in words: what train, eval, metrics and report say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from auglabel.metrics import NOTICED, leaning

LABELS = {  # about the predictions that were measured: distorted images may be another matter
    "over": "Softer labels can lower its confidence.",
    "perhaps over": "If it is, softer labels can lower its confidence.",
    "under": "These predictions show no over-confidence for softer labels to lower.",
    "calibrated": "These predictions show no over-confidence for softer labels to lower.",
    "uneven": "On average these predictions show no over-confidence for softer labels to lower.",
}


class TemperatureFit(NamedTuple):
    """A temperature, which rows it was fitted on, and the ECE with it."""

    temperature: float
    fitted_on: str
    ece: float


def diagnosis(
    seen: Mapping[str, float | None],
    count: int,
    fit: TemperatureFit | None,
    unfitted: str,
    low: float = math.nan,
) -> str:
    """Over- or under-confident, by how much, what a temperature would do, and whether softer labels can help.

    `seen` has confidence, accuracy, ece and debiased_ece; "" where one of them is not known. `low` is the
    lower end of the ECE's interval, if there is one, and `unfitted` says why there is no temperature.
    """
    found = [seen.get(name) for name in ("confidence", "accuracy", "ece", "debiased_ece")]
    confidence, accuracy, ece, debiased = (math.nan if value is None else value for value in found)
    if not count or math.isnan(confidence + accuracy + ece + debiased):
        return ""
    says = f"says {100 * confidence:.1f} %, right {100 * accuracy:.1f} %"
    lean = leaning(confidence, accuracy, count)
    doubt = "" if lean else leaning(confidence, accuracy, count, errors=1)
    if doubt:
        kind = f"perhaps {doubt}-confident, which {count:,} predictions do not settle"
        labels = LABELS["perhaps over" if doubt == "over" else "under"]
    elif not lean and (debiased if math.isnan(low) else low) <= NOTICED:
        told = f"calibrated, as far as {count:,} predictions show: {says}; ECE {100 * ece:.1f} %"
        return f"{told}. {LABELS['calibrated']}"
    else:
        whole = "neither over- nor under-confident on the whole, yet miscalibrated"
        kind, labels = (f"{lean}-confident" if lean else whole), LABELS[lean or "uneven"]
    return f"{kind}: {says}; {_mended(ece, fit, unfitted)}. {labels}"


def _mended(ece: float, fit: TemperatureFit | None, unfitted: str) -> str:
    before = f"{100 * ece:.1f}"
    if fit is None:
        return f"ECE {before} %, {unfitted}"
    now = f"{100 * fit.ece:.1f}"
    told = f"a temperature of {fit.temperature:.3g}, fitted on {fit.fitted_on},"
    if fit.ece >= ece or before == now:
        return f"ECE {before} %, and {told} would not lower it ({now} %)"
    return f"{told} would bring ECE from {before} to {now} %"
