"""Running accuracy, confidence and calibration error: one small table of sums.

Everything that is measured is added into such a table; only what the groups mean differs. Memory
grows with groups x bins, never with examples, and tables of batches, ranks and runs add up.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor

from auglabel.errors import UserError, UserTypeError
from auglabel.util.binning import cell
from auglabel.util.checks import (
    kind_of,
    require_integers,
    require_range,
    require_same_length,
    require_tensor,
    require_whole,
)
from auglabel.util.ranks import distributed

COUNT, CONFIDENCE, CORRECT, NLL, BRIER = range(5)


@runtime_checkable
class BucketCalibration(Protocol):
    """What labels are learned from: a `Calibration`, or what a `Pool` makes of one.

    Readings have one entry per bucket, which is nan where nothing is known of it.
    """

    sums: Tensor  # (at least 3, buckets, ...) float64: count, confidence and correct, then others

    @property
    def count(self) -> Tensor: ...

    @property
    def accuracy(self) -> Tensor: ...

    @property
    def confidence(self) -> Tensor: ...

    @property
    def ece(self) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Reliability:
    """The reliability curve; confidence and accuracy of an empty bin are nan."""

    count: Tensor  # (groups, bins) float64
    confidence: Tensor  # (groups, bins) float64
    accuracy: Tensor  # (groups, bins) float64


class Calibration:
    """Accuracy, confidence, ECE, NLL and Brier score of several groups of predictions.

    Predictions are binned by top-class confidence into `bins` equal intervals (lo, hi]; 1 falls in
    the last and 0 in the first. Sums are kept in float64 on the CPU, so the order and size of
    batches do not matter and ranks combine with one small all-reduce. A reading has one entry per
    group, and that of an empty group is nan.
    """

    def __init__(self, groups: int = 1, bins: int = 15) -> None:
        require_whole("groups", groups, 1)
        require_whole("bins", bins, 1)
        self.sums = torch.zeros(5, groups, bins, dtype=torch.float64, device="cpu")

    @property
    def groups(self) -> int:
        return self.sums.shape[1]

    @property
    def bins(self) -> int:
        return self.sums.shape[2]

    def __repr__(self) -> str:
        count, confidence, correct = self.sums[:3].sum(dim=(1, 2)).tolist()
        means = f", accuracy={correct / count:.3f}, confidence={confidence / count:.3f}" if count else ""
        return f"Calibration(groups={self.groups}, bins={self.bins}, count={count:.0f}{means})"

    @torch.no_grad()
    def update(self, probs: Tensor, labels: Tensor, group: Tensor | None = None) -> None:
        """Add predictions given as probabilities (B, K); NLL is infinite where a true class has 0."""
        probs = require_probs(probs, labels)
        self._add(probs, probs.log(), labels, group)

    @torch.no_grad()
    def update_logits(self, logits: Tensor, labels: Tensor, group: Tensor | None = None) -> None:
        """Add predictions given as logits (B, K): NLL stays finite where a probability underflows."""
        log_probs = require_logits(logits, labels).log_softmax(dim=1)
        self._add(log_probs.exp(), log_probs, labels, group)

    def _add(self, probs: Tensor, log_probs: Tensor, labels: Tensor, group: Tensor | None) -> None:
        labels = labels.to(probs.device)
        confidence, predicted = probs.max(dim=1)
        true_class = labels[:, None]
        nll = -log_probs.gather(1, true_class).squeeze(1)
        brier = probs.square().sum(dim=1) - 2 * probs.gather(1, true_class).squeeze(1) + 1
        row = torch.stack([torch.ones_like(nll), confidence, predicted == labels, nll, brier]).cpu().double()
        if group is None:
            group = torch.zeros(len(labels), dtype=torch.int64)
        require_tensor("group", group)
        group = group.cpu()
        require_same_length("predictions", labels=labels, group=group)
        require_range("group", group, self.groups, "groups")
        index = group * self.bins + cell(row[CONFIDENCE], self.bins)
        self.sums.view(5, -1).index_add_(1, index, row)

    def __add__(self, other: Calibration) -> Calibration:
        if self.sums.shape != other.sums.shape:
            raise UserError(
                f"Calibrations of equal size add up, but one has {self.groups} groups x {self.bins} bins "
                f"and the other {other.groups} x {other.bins}."
            )
        total = copy.deepcopy(self)
        total.sums += other.sums
        return total

    def __radd__(self, other: object) -> Calibration:
        """Lets `sum` add up a list of them: 0 + first."""
        return copy.deepcopy(self) if other == 0 else NotImplemented

    def parted(self, groups: int) -> tuple[Calibration, Calibration]:
        """The first so many groups, and the rest."""
        parts = copy.copy(self), copy.copy(self)
        for part, sums in zip(parts, (self.sums[:, :groups], self.sums[:, groups:]), strict=True):
            part.sums = sums.clone()
        return parts

    def summed_over_ranks(self) -> Calibration:
        """A copy that holds the sum over all processes; of one process, its own."""
        total = copy.deepcopy(self)
        if distributed():
            device = {"nccl": "cuda", "xccl": "xpu", "hccl": "hpu"}.get(dist.get_backend(), "cpu")
            sums = total.sums.to(device)
            dist.all_reduce(sums)
            total.sums = sums.cpu()
        return total

    @property
    def count(self) -> Tensor:
        return self.sums[COUNT].sum(dim=1)

    @property
    def confidence(self) -> Tensor:
        return self.sums[CONFIDENCE].sum(dim=1) / self.count

    @property
    def accuracy(self) -> Tensor:
        return self.sums[CORRECT].sum(dim=1) / self.count

    @property
    def nll(self) -> Tensor:
        """Mean of -log(probability of the true class), in nats, unclipped."""
        return self.sums[NLL].sum(dim=1) / self.count

    @property
    def brier(self) -> Tensor:
        """Mean over examples of the squared distance to the one-hot label, summed over classes: 0..2."""
        return self.sums[BRIER].sum(dim=1) / self.count

    @property
    def ece(self) -> Tensor:
        """sum_r |B_r|/m |acc(B_r) - conf(B_r)|; the bin sizes cancel, so empty bins add nothing."""
        return (self.sums[CORRECT] - self.sums[CONFIDENCE]).abs().sum(dim=1) / self.count

    @property
    def debiased_ece(self) -> Tensor:
        """ECE less what sampling noise alone is expected to add to it; may fall a little below zero.

        A bin's gap has variance v = p(1 - p)/n, with p its accuracy shrunk towards its confidence by
        one pseudo-example. Its true gap d is taken as sqrt(max(0, gap^2 - v)), and the excess
        E|N(d, v)| - d, that of a folded normal, is taken off. The published formula (Kumar et al. 2019) has
        d = gap, which leaves more of the noise where the error is small, and takes off less where it is
        large: docs/design.md has the bias of both.
        """
        curve = self.reliability
        count, confidence, accuracy = curve.count, curve.confidence, curve.accuracy
        p = (accuracy * count + confidence) / (count + 1)
        noise = (p * (1 - p) / count).clamp(min=0).sqrt()
        gap = (accuracy - confidence).abs()
        true_gap = (gap.square() - noise.square()).clamp(min=0).sqrt()
        ratio = torch.where(noise > 0, true_gap / noise, math.inf)
        folded = noise * math.sqrt(2 / math.pi) * torch.exp(-ratio.square() / 2)
        folded = folded + true_gap * torch.erf(ratio / math.sqrt(2))
        return (count * (gap - (folded - true_gap))).nansum(dim=1) / self.count

    @property
    def max_ce(self) -> Tensor:
        """Maximum calibration error: the largest gap of any bin that is not empty."""
        curve = self.reliability
        gap = (curve.accuracy - curve.confidence).abs()
        return torch.where(self.count > 0, gap.nan_to_num(nan=0.0).amax(dim=1), math.nan)

    @property
    def reliability(self) -> Reliability:
        count = self.sums[COUNT]
        return Reliability(count, self.sums[CONFIDENCE] / count, self.sums[CORRECT] / count)


def require_seen(what: str, seen: object, buckets: int) -> None:
    """Check that `seen` is a `BucketCalibration` with this many buckets and finite sums."""
    if not isinstance(seen, BucketCalibration):
        raise UserTypeError(f"{what} takes a Calibration, got {kind_of(seen)}.")
    if (groups := seen.sums.shape[1]) != buckets:
        raise UserError(
            f"{what} takes one group per bucket: there are {buckets} buckets, but the Calibration has "
            f"{groups} groups. Pass calibrate(model, augment, loader)."
        )
    if not bool(seen.sums[[COUNT, CONFIDENCE, CORRECT]].isfinite().all()):
        raise UserError(f"{what} takes finite sums, but the Calibration holds nan or infinity.")


TAKE_SOFTMAX = "Pass model(images).softmax(dim=1); Calibration.update_logits takes logits."
DROP_SOFTMAX = "Drop the softmax at the model's end; Calibration.update takes probabilities."


def require_probs(probs: Tensor, labels: Tensor, way_out: str = TAKE_SOFTMAX) -> Tensor:
    """Check that rows of `probs` (B, K) are distributions and labels fit; returns at least float32."""
    _require_scores("probs", probs, labels)
    if len(probs) == 0:
        return probs.float()
    low, high = (float(edge) for edge in probs.aminmax())
    if math.isnan(low) or math.isnan(high):
        wrong = int(probs.isnan().any(dim=1).sum())
        raise UserError(f"probs must be probabilities, but {wrong} of {len(probs)} rows hold nan.")
    slack = max(1e-3, 2 * torch.finfo(probs.dtype).eps)
    total = probs.sum(dim=1, dtype=torch.promote_types(probs.dtype, torch.float32))
    off = total[(total - 1).abs().argmax()].item()
    if low < 0 or high > 1 + slack:
        got = f"the value {low if low < 0 else high:.3g}"
    elif abs(off - 1) > slack:
        got = f"a row that sums to {off:.6g}"
    else:
        return probs.to(torch.promote_types(probs.dtype, torch.float32))
    raise UserError(f"probs must be probabilities that sum to 1 in each row, got {got}. {way_out}")


def require_logits(logits: Tensor, labels: Tensor, way_out: str = DROP_SOFTMAX) -> Tensor:
    """Check that `logits` (B, K) are finite logits and labels fit; returns them in at least float32."""
    _require_scores("logits", logits, labels)
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if len(logits) == 0:
        return exact
    wrong, low, least_top, off = _look(exact)
    if wrong:
        raise UserError(
            f"logits must be numbers, but {wrong:.0f} of {len(logits)} rows hold nan or infinity. "
            "The model has diverged, or its input was not finite."
        )
    slack = max(1e-4, torch.finfo(logits.dtype).eps)
    # rows of zeros and a one may be logits, such as votes
    if len(logits) > 1 and low >= 0 and off <= slack and least_top < 1 - slack:
        raise UserError(
            f"logits must be given, but these look like probabilities: all {len(logits)} rows are in [0, 1] "
            f"and sum to 1. {way_out}"
        )
    return exact


def _look(logits: Tensor) -> list[float]:
    """Rows with nan or infinity, the lowest value, the lowest top, and how far a row's sum is from 1 at most.

    In one wait for an accelerator.
    """
    top = logits.amax(dim=1)  # nan or inf where the row holds one; -inf where it holds nothing else
    wrong, off = (~top.isfinite()).sum().to(top), (logits.sum(dim=1) - 1).abs().amax()
    found: list[float] = torch.stack([wrong, logits.amin(), top.amin(), off]).tolist()
    return found


def _require_scores(what: str, scores: Tensor, labels: Tensor) -> None:
    require_tensor(what, scores)
    if scores.dim() != 2 or not scores.is_floating_point() or scores.shape[1] < 2:
        raise UserError(f"{what} must be floating point of shape (B, K) with K >= 2, got {kind_of(scores)}.")
    require_integers("labels", labels)
    require_same_length("predictions", **{what: scores, "labels": labels})
    require_range("labels", labels.cpu(), scores.shape[1], "classes")
