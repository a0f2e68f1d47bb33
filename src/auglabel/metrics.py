"""Metrics of whole sets of predictions: probabilities (N, K) and labels (N,), in memory at once.

What streams lives on `Calibration`; here is what needs every prediction: sorting or all classes.
All take probabilities, never logits, and none depends on the order of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from auglabel.calibration import Calibration, require_probs
from auglabel.errors import UserError
from auglabel.util.binning import cell
from auglabel.util.checks import require_whole


class RiskCoverage(NamedTuple):
    """The error rate among the most confident `coverage` of the examples."""

    coverage: Tensor  # (N,) float64: 1/N .. 1
    risk: Tensor  # (N,) float64


def ece(probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Expected calibration error over equal-width bins (lo, hi] of the top-class confidence."""
    return float(_seen(probs, labels, bins).ece)


def debiased_ece(probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """`ece` less what sampling noise is expected to add: see `Calibration.debiased_ece`."""
    return float(_seen(probs, labels, bins).debiased_ece)


def max_ce(probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Maximum calibration error: the largest gap of any equal-width bin that is not empty."""
    return float(_seen(probs, labels, bins).max_ce)


def nll(probs: Tensor, labels: Tensor) -> float:
    """Mean of -log(probability of the true class), in nats, unclipped: infinite where one is 0."""
    return float(_seen(probs, labels, bins=1).nll)


def brier(probs: Tensor, labels: Tensor) -> float:
    """Mean squared distance to the one-hot label, summed over classes: 0 is best, 2 the worst."""
    return float(_seen(probs, labels, bins=1).brier)


def accuracy(probs: Tensor, labels: Tensor) -> float:
    """Share of examples whose top class is the label."""
    return float(_seen(probs, labels, bins=1).accuracy)


def equal_mass_ece(probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """ECE over bins of equally many examples, in order of confidence; the first bins take what is left."""
    require_whole("bins", bins, 1)
    confidence, correct = _ranked(probs, labels)
    gaps = (confidence - correct).tensor_split(min(bins, len(correct)))
    return float(torch.stack([gap.sum() for gap in gaps]).abs().sum() / len(correct))


def classwise_ece(probs: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Mean over the K classes of the ECE of "is it class k?", equal-width bins of that probability."""
    require_whole("bins", bins, 1)
    probs, labels = _some(probs, labels), labels.cpu()
    classes = probs.shape[1]
    gap = torch.zeros(classes * bins, dtype=torch.float64)  # correct less confidence, per class and bin
    rows = max(1, 2**22 // classes)  # bounds the memory beyond the predictions themselves
    for chunk, true_class in zip(probs.split(rows), labels.split(rows), strict=True):
        index = torch.arange(classes) * bins + cell(chunk, bins)
        is_class = torch.zeros_like(chunk, dtype=torch.float64).scatter_(1, true_class[:, None], 1.0)
        gap.index_add_(0, index.flatten(), (is_class - chunk).flatten())
    return float(gap.abs().sum() / (len(labels) * classes))


def risk_coverage(probs: Tensor, labels: Tensor) -> RiskCoverage:
    """Error rate as a function of coverage, when the least confident predictions are declined."""
    _, correct = _ranked(probs, labels)
    kept = torch.arange(1, len(correct) + 1, dtype=torch.float64)
    return RiskCoverage(kept / len(correct), (1 - correct.flip(0)).cumsum(0) / kept)


def aurc(probs: Tensor, labels: Tensor) -> float:
    """Area under the risk-coverage curve: the mean risk over the N coverages."""
    return float(risk_coverage(probs, labels).risk.mean())


def _seen(probs: Tensor, labels: Tensor, bins: int) -> Calibration:
    seen = Calibration(bins=bins)
    _some(probs, labels)
    seen.update(probs.detach(), labels)  # as they came: half precision may be off by more
    return seen


def _some(probs: Tensor, labels: Tensor) -> Tensor:
    """Check `probs`, which need at least one row; returns them on the CPU."""
    checked = require_probs(probs, labels).detach().cpu()
    if len(checked) == 0:
        raise UserError("a metric needs at least one prediction, got none.")
    return checked


def _ranked(probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Confidence in rising order, and correctness, shared evenly among equally confident examples."""
    confidence, predicted = _some(probs, labels).max(dim=1)
    correct = (predicted == labels.cpu()).double()
    level, place, count = confidence.unique(return_inverse=True, return_counts=True)
    share = torch.zeros(len(level), dtype=torch.float64).index_add_(0, place, correct) / count
    return level.double().repeat_interleave(count), share.repeat_interleave(count)
