"""Losses beyond the plain mean with soft targets, which `torch.nn.functional.cross_entropy` has."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.errors import UserError
from auglabel.util.checks import require_number, require_same_length
from auglabel.util.inference import model_input
from auglabel.view import View

GAMMA = 3.0  # of the focal loss


def soft_cross_entropy(
    logits: Tensor, targets: Tensor, weight: Tensor | None = None, ignore_index: int = -100
) -> Tensor:
    """Mean cross-entropy for soft targets t (B, K), or labels (B,); class k counts by `weight` w (K,).

    sum of w_k t_nk (-log p_nk) over sum of w_k t_nk, both over images n and classes k: an average, whatever
    the weights. For labels that is torch's weighted mean; for soft targets torch divides by B instead. Rows
    of zeros, and labels equal to `ignore_index`, do not count.
    """
    require_same_length("soft_cross_entropy", logits=logits, targets=targets)
    if targets.dim() == 1:
        return F.cross_entropy(logits, targets, weight, ignore_index=ignore_index)
    total = targets.sum() if weight is None else (targets * weight).sum()
    return F.cross_entropy(logits, targets, weight, reduction="sum") / total


def trades(model: nn.Module, images: Tensor, view: View, beta: float = 6.0) -> Tensor:
    """Cross-entropy on `images` plus `beta` times KL(p(images) || p(view)), mean over the batch.

    TRADES attacks the second term: craft the view with `pgd` on `model(images).softmax(dim=1)` as soft
    labels, whose loss is that divergence up to a constant.
    """
    require_number("beta", beta, 0)
    require_same_length("trades", images=images, view=view.images)
    clean = model(model_input(images, model))
    moved = model(model_input(view.images, model))
    apart = F.kl_div(
        moved.log_softmax(dim=1), clean.log_softmax(dim=1), reduction="batchmean", log_target=True
    )
    return F.cross_entropy(clean, view.labels) + beta * apart


def jensen_shannon(*logits: Tensor) -> Tensor:
    """Mean divergence of predictions on several views (each (B, K)) of the same images from their mean.

    AugMix's consistency term: there with the clean images and two views, times 12.
    """
    if len(logits) < 2:
        raise UserError(f"jensen_shannon compares the logits of at least 2 views, got {len(logits)}.")
    require_same_length("jensen_shannon", **{f"view {i}": part for i, part in enumerate(logits, start=1)})
    log_probs = [
        part.to(torch.promote_types(part.dtype, torch.float32)).log_softmax(dim=1) for part in logits
    ]
    middle = torch.stack(log_probs).logsumexp(dim=0) - math.log(len(logits))
    apart = [F.kl_div(middle, part, reduction="batchmean", log_target=True) for part in log_probs]
    return torch.stack(apart).mean()


def focal_loss(logits: Tensor, targets: Tensor, gamma: float = GAMMA) -> Tensor:
    """Mean of sum_k t_k (1 - p_k)^gamma (-log p_k) for soft targets t (B, K), p being softmax(logits).

    That is the focal loss (Lin et al., 2017), expected for a label drawn from t: with one-hot targets it is
    (1 - p_y)^gamma (-log p_y), with gamma 0 the cross-entropy. Above 0 it is no proper score: the best p is
    less sure than t. Mukhoti et al. (2020) calibrate networks with gamma 3.
    """
    require_number("gamma", gamma, 0)
    require_same_length("focal_loss", logits=logits, targets=targets)
    log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=1)
    doubt = (-log_probs.expm1()).clamp(min=torch.finfo(log_probs.dtype).tiny)  # 1 - p
    return -(targets * doubt**gamma * log_probs).sum(dim=1).mean()


def weighted_cross_entropy(logits: Tensor, targets: Tensor, confidence: Tensor) -> Tensor:
    """Cross-entropy with soft targets (B, K), each example weighted by its `confidence` (B,); their mean.

    Soft Augmentation's: mean of c_i CE(t_i, p_i), not divided by the mean of the weights.
    """
    require_same_length("weighted_cross_entropy", logits=logits, targets=targets, confidence=confidence)
    return (confidence * F.cross_entropy(logits, targets, reduction="none")).mean()
