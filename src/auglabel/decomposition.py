"""NLL and Brier score in two parts: calibration, which recalibrating mends, and refinement, which it cannot.

The calibration part is the loss less that after the best recalibration of the same rows, in two steps: the
temperature of lowest NLL, then the best rising function of the confidence (isotonic regression, as in the
CORP decomposition of Dimitriadis, Gneiting and Jordan, 2021), the other classes keeping their proportions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from auglabel.calibration import Calibration
from auglabel.errors import UserError
from auglabel.scaling import TemperatureScaling
from auglabel.util.checks import Array, as_predictions
from auglabel.util.isotonic import interpolated, rising


class Parts(NamedTuple):
    """A loss: `by_temperature` + `by_isotonic` (together its calibration part) + `refinement` = `total`."""

    total: float
    by_temperature: float
    by_isotonic: float
    refinement: float


class Decomposition(NamedTuple):
    """The parts of both losses, and the temperature of lowest NLL; None where there is none, as `note` says.

    Neither step can raise the NLL; a Brier score may rise a little in either. The isotonic step follows noise
    where rows are few, and then promises too much.
    """

    nll: Parts
    brier: Parts
    temperature: float | None
    note: str = ""


@torch.no_grad()
def decompose(logits: Array, labels: Array) -> Decomposition:
    """Split the losses of logits (N, K) and labels (N,): see the head of this module."""
    logits, labels = as_predictions(logits, labels)
    logits, labels = logits.cpu().double(), labels.cpu()
    as_given = _losses(logits, labels)
    temperature, note, scaled = None, "", logits
    try:
        scaling = TemperatureScaling().double().fit(logits, labels)
        temperature, scaled = float(scaling.temperature), scaling(logits)
    except UserError as error:
        note = str(error)
    at_best, after = _losses(scaled, labels), _losses(_with_rising_confidence(scaled, labels), labels)
    nll, brier = (
        Parts(first, first - second, second - third, third)
        for first, second, third in zip(as_given, at_best, after, strict=True)
    )
    return Decomposition(nll, brier, temperature, note)


def _losses(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    seen = Calibration(bins=1)
    seen.update_logits(logits, labels)
    return float(seen.nll), float(seen.brier)


def _with_rising_confidence(logits: Tensor, labels: Tensor) -> Tensor:
    """Logarithms of probabilities after isotonic regression of correctness on confidence, on these rows."""
    top, predicted = logits.max(dim=1, keepdim=True)
    others = logits.scatter(1, predicted, -torch.inf)
    rest = others.logsumexp(dim=1, keepdim=True)
    confidence = torch.sigmoid(top - rest).squeeze(1)
    places, values = rising(confidence, (predicted.squeeze(1) == labels).double())
    risen = interpolated(places[None], values[None], confidence[None])[0, :, None]
    return (others - rest + (1 - risen).log()).scatter(1, predicted, risen.log())
