"""Metrics of whole sets of predictions: probabilities (N, K) and labels (N,), in memory at once.

What streams lives on `Calibration`; here is what needs every prediction: sorting or all classes.
All take probabilities, never logits, and none depends on the order of the rows. Both may be tensors or numpy
arrays, and labels of any integer type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from auglabel.calibration import Calibration, require_probs
from auglabel.errors import UserError
from auglabel.util.binning import cell
from auglabel.util.checks import Array, as_predictions, require_whole

WAVES = 2048  # cosines that `smooth_ece` sums: at its narrowest kernel the next one adds less than 1e-9
NARROWEST = 0.001  # kernel of `smooth_ece`
NOTICED = 0.01  # least gap between confidence and accuracy to speak of


class RiskCoverage(NamedTuple):
    """The error rate among the most confident `coverage` of the examples."""

    coverage: Tensor  # (N,) float64: 1/N .. 1
    risk: Tensor  # (N,) float64


def ece(probs: Array, labels: Array, bins: int = 15) -> float:
    """Expected calibration error over equal-width bins (lo, hi] of the top-class confidence."""
    return float(_seen(probs, labels, bins).ece)


def debiased_ece(probs: Array, labels: Array, bins: int = 15) -> float:
    """`ece` less what sampling noise is expected to add: see `Calibration.debiased_ece`."""
    return float(_seen(probs, labels, bins).debiased_ece)


def max_ce(probs: Array, labels: Array, bins: int = 15) -> float:
    """Maximum calibration error: the largest gap of any equal-width bin that is not empty."""
    return float(_seen(probs, labels, bins).max_ce)


def nll(probs: Array, labels: Array) -> float:
    """Mean of -log(probability of the true class), in nats, unclipped: infinite where one is 0."""
    return float(_seen(probs, labels, bins=1).nll)


def brier(probs: Array, labels: Array) -> float:
    """Mean squared distance to the one-hot label, summed over classes: 0 is best, 2 the worst."""
    return float(_seen(probs, labels, bins=1).brier)


def accuracy(probs: Array, labels: Array) -> float:
    """Share of examples whose top class is the label."""
    return float(_seen(probs, labels, bins=1).accuracy)


def top_k_accuracy(probs: Array, labels: Array, k: int = 5) -> float:
    """Share of examples whose label is among the `k` most probable classes; of equal ones the first count."""
    require_whole("k", k, 1)
    probs, labels = _some(probs, labels)
    own = probs.gather(1, labels[:, None])
    earlier = torch.arange(probs.shape[1]) < labels[:, None]
    before = (probs > own) | ((probs == own) & earlier)
    return float((before.sum(dim=1) < k).double().mean())


def equal_mass_ece(probs: Array, labels: Array, bins: int = 15) -> float:
    """ECE over bins of equally many examples, in order of confidence; the first bins take what is left."""
    require_whole("bins", bins, 1)
    confidence, correct = _ranked(probs, labels)
    gaps = (confidence - correct).tensor_split(min(bins, len(correct)))
    return float(torch.stack([gap.sum() for gap in gaps]).abs().sum() / len(correct))


def smooth_ece(probs: Array, labels: Array) -> float:
    """smECE (Blasiok and Nakkiran, *Smooth ECE*, 2023) of the top-class confidence: no bins, no options.

    The gaps `confidence - correct` are smoothed by a Gaussian reflected at 0 and 1, and the absolute value of
    the smoothed gap is integrated. The kernel is as wide as the result, which fixes both; at least 0.001.
    """
    confidence, correct = _ranked(probs, labels)
    at = _smoothed(confidence, confidence - correct)
    low, high = NARROWEST, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > middle else (low, middle)
    return at(high)


def _smoothed(place: Tensor, gap: Tensor) -> Callable[[float], float]:
    """The integral of |gap smoothed by a reflected Gaussian| as a function of the Gaussian's width.

    On [0, 1] with reflection the cosines cos(pi k t) are only damped, by exp(-(pi k width)^2 / 2).
    """
    wave = torch.pi * torch.arange(WAVES + 1, dtype=torch.float64)
    heights = torch.zeros_like(wave)
    for some, gaps in zip(place.split(WAVES), gap.split(WAVES), strict=True):  # bounds the memory
        heights += gaps @ torch.cos(some[:, None] * wave)

    def integral(width: float) -> float:
        damped = heights / len(gap) * torch.exp(-((wave * width) ** 2) / 2)
        curve = torch.fft.irfft(damped, n=2 * WAVES, norm="forward")[: WAVES + 1]
        return float(torch.trapezoid(curve.abs(), dx=1 / WAVES))

    return integral


def classwise_ece(probs: Array, labels: Array, bins: int = 15) -> float:
    """Mean over the K classes of the ECE of "is it class k?", equal-width bins of that probability."""
    require_whole("bins", bins, 1)
    probs, labels = _some(probs, labels)
    classes = probs.shape[1]
    gap = torch.zeros(classes * bins, dtype=torch.float64)  # correct less confidence, per class and bin
    rows = max(1, 2**22 // classes)  # bounds the memory beyond the predictions themselves
    for chunk, true_class in zip(probs.split(rows), labels.split(rows), strict=True):
        index = torch.arange(classes) * bins + cell(chunk, bins)
        is_class = torch.zeros_like(chunk, dtype=torch.float64).scatter_(1, true_class[:, None], 1.0)
        gap.index_add_(0, index.flatten(), (is_class - chunk).flatten())
    return float(gap.abs().sum() / (len(labels) * classes))


def risk_coverage(probs: Array, labels: Array) -> RiskCoverage:
    """Error rate as a function of coverage, when the least confident predictions are declined."""
    _, correct = _ranked(probs, labels)
    kept = torch.arange(1, len(correct) + 1, dtype=torch.float64)
    return RiskCoverage(kept / len(correct), (1 - correct.flip(0)).cumsum(0) / kept)


def aurc(probs: Array, labels: Array) -> float:
    """Area under the risk-coverage curve: the mean risk over the N coverages."""
    return float(risk_coverage(probs, labels).risk.mean())


def auroc(probs: Array, labels: Array) -> float:
    """How well confidence tells right predictions from wrong ones: the area under that ROC curve.

    The share of pairs of a right and a wrong prediction in which the right one is more confident, equal ones
    counting half: 0.5 is chance. nan where all are right, or all wrong.
    """
    _, correct = _ranked(probs, labels)
    wrong = 1 - correct
    wins = correct @ (wrong.cumsum(0) - wrong / 2)
    return float(wins / (correct.sum() * wrong.sum()))


def leaning(
    confidence: float, accuracy: float, count: int, errors: float = 2
) -> Literal["over", "under", ""]:
    """Whether predictions are over- or under-confident; "" where the gap may be noise.

    Noise is up to a point, or `errors` standard errors of accuracy or confidence, whichever has more.
    """
    error = math.sqrt(max(share * (1 - share) for share in (confidence, accuracy)) / count)
    if not abs(confidence - accuracy) > max(NOTICED, errors * error):
        return ""
    return "over" if confidence > accuracy else "under"


def _seen(probs: Array, labels: Array, bins: int) -> Calibration:
    seen = Calibration(bins=bins)
    _some(probs, labels)
    probs, labels = as_predictions(probs, labels)
    seen.update(probs.detach(), labels)  # as they came: half precision may be off by more
    return seen


def _some(probs: Array, labels: Array) -> tuple[Tensor, Tensor]:
    """Check predictions, of which there must be at least one; returns them on the CPU."""
    probs, labels = as_predictions(probs, labels)
    checked = require_probs(probs, labels).detach().cpu()
    if len(checked) == 0:
        raise UserError("a metric needs at least one prediction, got none.")
    return checked, labels.cpu()


def _ranked(probs: Array, labels: Array) -> tuple[Tensor, Tensor]:
    """Confidence in rising order, and correctness, shared evenly among equally confident examples."""
    probs, labels = _some(probs, labels)
    confidence, predicted = probs.max(dim=1)
    correct = (predicted == labels).double()
    level, place, count = confidence.unique(return_inverse=True, return_counts=True)
    share = torch.zeros(len(level), dtype=torch.float64).index_add_(0, place, correct) / count
    return level.double().repeat_interleave(count), share.repeat_interleave(count)
