"""Post-hoc calibration: rescale a trained model's logits so that they fit validation data.

Temperature and vector scaling (Guo et al., *On Calibration of Modern Neural Networks*) have the lowest NLL,
without regularisation; isotonic scaling (Zadrozny and Elkan, 2002) is the usual one-against-rest regression.
All fit in float64 on the CPU, and a fit that fails leaves the module as it was. They are fitted on tensors or
numpy arrays, with labels of any integer type:

    calibrated = nn.Sequential(model, TemperatureScaling().fit(val_logits, val_labels))
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from auglabel.calibration import require_logits
from auglabel.errors import UserError
from auglabel.util.checks import (
    Array,
    as_predictions,
    kind_of,
    require_same_length,
    require_tensor,
    require_whole,
)
from auglabel.util.isotonic import interpolated, rising

if TYPE_CHECKING:
    from typing_extensions import Self

STEPS = 200  # of Newton's method or bisection; real logits take about 10
ROUNDS = 20  # of at most 40 L-BFGS steps; real logits take one or two


class TemperatureScaling(nn.Module):
    """logits / temperature: confidence changes, the predicted class does not."""

    temperature: Tensor  # () float32

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("temperature", torch.tensor(1.0))

    @torch.no_grad()
    def fit(self, logits: Array, labels: Array) -> Self:
        """Take the temperature of lowest NLL on `logits` (N, K) and `labels` (N,)."""
        logits, labels = _checked("TemperatureScaling.fit", logits, labels)
        lead = _lead(logits, labels)
        _require_better_than_chance(lead)
        _require_mistake("TemperatureScaling.fit", lead)
        scale = lead.abs().max()
        best = scale / _best_inverse_temperature(lead / scale)
        self.temperature.copy_(_held("temperature", best, self.temperature.dtype, above=0))
        return self

    def forward(self, logits: Tensor) -> Tensor:
        return logits / self.temperature


class VectorScaling(nn.Module):
    """logits * weight + bias, with one weight and one bias per class: the predicted class may change.

    Nothing keeps a weight positive. Only differences between biases matter; fitted ones sum to 0.
    """

    weight: Tensor  # (K,) float32
    bias: Tensor  # (K,) float32

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 2)
        self.register_buffer("weight", torch.ones(num_classes))
        self.register_buffer("bias", torch.zeros(num_classes))

    @torch.no_grad()
    def fit(self, logits: Array, labels: Array) -> Self:
        """Take the weights and biases of lowest NLL on `logits` (N, K) and `labels` (N,)."""
        logits, labels = _checked("VectorScaling.fit", logits, labels)
        _require_classes(self, len(self.weight), logits)
        _require_every_class(labels, len(self.weight))
        _require_mistake("VectorScaling.fit", _lead(logits, labels))
        weight, bias = _lowest_nll(logits, labels)
        best = torch.stack([weight, bias - bias.mean()])
        weight, bias = _held("weight or bias", best, self.weight.dtype, above=-math.inf)
        self.weight.copy_(weight)
        self.bias.copy_(bias)
        return self

    def forward(self, logits: Tensor) -> Tensor:
        _require_classes(self, len(self.weight), logits)
        return logits * self.weight + self.bias


class IsotonicScaling(nn.Module):
    """Per class a rising function of its probability, then normalised: the predicted class may change.

    Gives logarithms of probabilities. One that no row of the class reached is 0, and its logarithm -infinity.
    """

    places: Tensor  # (K, M) float64: probabilities of a class, rising
    values: Tensor  # (K, M) float64: what becomes of them; in between on straight lines

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 2)
        ends = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(num_classes, 1)
        self.register_buffer("places", ends)
        self.register_buffer("values", ends.clone())

    @torch.no_grad()
    def fit(self, logits: Array, labels: Array) -> Self:
        """Take each class's least squares on `logits` (N, K) and `labels` (N,)."""
        logits, labels = _checked("IsotonicScaling.fit", logits, labels)
        _require_classes(self, len(self.places), logits)
        probs = logits.softmax(dim=1)
        knots = [rising(column, labels == number) for number, column in enumerate(probs.unbind(1))]
        most = max(len(places) for places, _ in knots)
        self.places, self.values = (
            torch.stack([F.pad(part, (0, most - len(part)), value=float(part[-1])) for part in parts]).to(
                self.places
            )
            for parts in zip(*knots, strict=True)
        )
        return self

    def forward(self, logits: Tensor) -> Tensor:
        _require_classes(self, len(self.places), logits)
        probs = logits.double().softmax(dim=1)
        found = interpolated(self.places.double(), self.values.double(), probs.T.contiguous()).T
        total = found.sum(dim=1, keepdim=True)
        return torch.where(total > 0, found / total, 1 / len(self.places)).log().to(logits.dtype)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in ("places", "values"):  # how many knots there are is known when they are loaded
            if (found := state_dict.get(prefix + name)) is not None:
                setattr(self, name, self.places.new_empty(found.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _require_classes(module: nn.Module, classes: int, logits: Tensor) -> None:
    require_tensor("logits", logits)
    if logits.dim() == 0 or logits.shape[-1] != classes:
        raise UserError(
            f"{type(module).__name__}({classes}) takes logits of {classes} classes, got {kind_of(logits)}. "
            "Give it the number of classes that the model has."
        )


def _checked(what: str, logits: Array, labels: Array) -> tuple[Tensor, Tensor]:
    """Check that logits are finite and labels fit; returns both on the CPU, logits in float64."""
    logits, labels = as_predictions(logits, labels)
    require_same_length(what, logits=logits, labels=labels)
    logits = require_logits(logits, labels).cpu().double()
    if len(logits) == 0:
        raise UserError(f"{what} needs at least one row of logits, got none.")
    endless = logits.isinf().any(dim=1)
    if bool(endless.any()):
        raise UserError(
            f"{what} takes finite logits, but {int(endless.sum())} of {len(endless)} rows hold -infinity. "
            "If they are logarithms of probabilities, clip those above 0 first."
        )
    return logits, labels.cpu()


def _lead(logits: Tensor, labels: Tensor) -> Tensor:
    """By how much each class's logit exceeds that of the true class, (N, K)."""
    return logits - logits.gather(1, labels[:, None])


def _require_better_than_chance(lead: Tensor) -> None:
    """NLL is convex in 1/T, so it must fall at 1/T = 0, where its slope is the mean lead."""
    if float(lead.mean()) >= -1e-12 * float(lead.abs().mean()):
        raise UserError(
            "TemperatureScaling.fit found no best temperature: the logit of the true class is on average no "
            "higher than the mean of its row, so no temperature beats a uniform guess. Check that the labels "
            "belong to these rows and number the classes as the model does."
        )


def _require_mistake(what: str, lead: Tensor) -> None:
    """NLL must rise at last as the logits are scaled up, so in some row another class must lead."""
    if bool((lead <= 0).all() and (lead < 0).any()):
        raise UserError(
            f"{what} found no lowest NLL: the true class has the highest logit in all {len(lead)} rows, so "
            "NLL falls for ever as the logits are scaled up (temperature to 0). Fit on rows that the model "
            "was not trained on, and on enough of them to hold a mistake."
        )


def _require_every_class(labels: Tensor, classes: int) -> None:
    missing = (labels.bincount(minlength=classes) == 0).nonzero().flatten().tolist()
    if missing:
        raise UserError(
            f"VectorScaling.fit needs rows of every class, but {len(missing)} of {classes} have none, the "
            f"first being class {missing[0]}: its bias would fall for ever. Fit on more rows, or use "
            "TemperatureScaling."
        )


def _held(what: str, value: Tensor, dtype: torch.dtype, above: float) -> Tensor:
    """`value` rounded to the module's dtype."""
    rounded = value.to(dtype)
    if not bool(((rounded > above) & (rounded < math.inf)).all()):
        raise UserError(
            f"the best {what} is {float(value.abs().max()):.3g}, which {str(dtype).removeprefix('torch.')} "
            "cannot hold. Bring the logits to a usual size, or the module to float64 with .double()."
        )
    return rounded


def _best_inverse_temperature(lead: Tensor) -> float:
    """Where mean(logsumexp(lead / T)), the NLL, is flat in 1/T: Newton's method, kept in a bracket."""
    low, inverse, high = 0.0, 1.0, math.inf
    for _ in range(STEPS):
        probs = (inverse * lead).softmax(dim=1)
        expected = (probs * lead).sum(dim=1, keepdim=True)
        slope = expected.mean()
        if abs(slope) < 1e-12 * (probs * lead.abs()).sum(dim=1).mean():
            return inverse
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        curvature = (probs * (lead - expected).square()).sum(dim=1).mean()
        newton = inverse - float(slope / curvature)
        limit = min(high, 4 * inverse)  # where NLL hardly bends yet, Newton's step is far too long
        inverse = newton if low < newton < limit else (low + limit) / 2
    raise UserError(
        f"TemperatureScaling.fit found no best temperature in {STEPS} steps. "
        "Some logits are many orders of magnitude larger than the rest: look for a row that went wrong."
    )


def _lowest_nll(logits: Tensor, labels: Tensor) -> Tensor:
    """Weights and biases (2, K) at which the gradient of the NLL vanishes against its own terms.

    Where NLL falls for ever its gradient goes to 0 as well, but so do the terms that it sums. Rows on
    the very border of two classes keep theirs and may hide this; NLL is then near what it falls to.
    """
    true_class = F.one_hot(labels, logits.shape[1]).double()
    centred = logits - logits.mean(dim=0)
    found = torch.stack([torch.ones_like(logits[0]), torch.zeros_like(logits[0])])
    for _ in range(ROUNDS):
        found = _descend(found, logits, true_class)
        error = _log_probs(found, logits).exp() - true_class
        terms = _gradient(error.abs(), centred.abs())
        if bool((_gradient(error, centred).abs() <= 1e-6 * terms).all() and (terms[1] > 0).all()):
            return found
    raise UserError(
        f"VectorScaling.fit found no lowest NLL in {ROUNDS} rounds: most often a class can be told from the "
        "rest without a mistake on these rows, so that its weight would grow for ever. Fit on more rows that "
        "the model was not trained on, or use TemperatureScaling."
    )


def _descend(start: Tensor, logits: Tensor, true_class: Tensor) -> Tensor:
    """One round of L-BFGS, in coordinates in which every class bends the NLL about equally at the start."""
    probs = _log_probs(start, logits).exp()
    share = probs * (1 - probs) + 1e-3 / logits.shape[1]  # some even where every prediction is certain
    bend = share.mean(dim=0)
    centre = (share * logits).mean(dim=0) / bend
    spread = ((share * (logits - centre).square()).mean(dim=0) / bend).sqrt()
    spread = torch.where(spread > 1e-12 * logits.abs().amax(dim=0), spread, 1.0)  # 1: a constant logit
    standard, unit = (logits - centre) / spread, bend.sqrt()
    values = torch.stack([start[0] * spread, start[1] + start[0] * centre]) * unit
    optimizer = torch.optim.LBFGS(
        [values], max_iter=40, tolerance_grad=1e-14, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def nll() -> float:
        log_probs = _log_probs(values / unit, standard)
        values.grad = _gradient(log_probs.exp() - true_class, standard) / unit
        return -float((log_probs * true_class).sum(dim=1).mean())

    optimizer.step(nll)
    slope, offset = values / unit
    return torch.stack([slope / spread, offset - slope / spread * centre])


def _log_probs(found: Tensor, logits: Tensor) -> Tensor:
    return (logits * found[0] + found[1]).log_softmax(dim=1)


def _gradient(error: Tensor, logits: Tensor) -> Tensor:
    """Gradient of the NLL in weight and bias (2, K); `error` (N, K) is predicted minus true probability."""
    return torch.stack([(error * logits).mean(dim=0), error.mean(dim=0)])
