"""From one confidence per example to a distribution over the classes."""

import torch
from torch import Tensor


def one_class_targets(confidence: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Eqn (2): `confidence` on the label, the rest spread evenly over the other classes."""
    rest = (1 - confidence) / (num_classes - 1)
    return rest[:, None].repeat(1, num_classes).scatter(1, labels[:, None], confidence[:, None])


def two_class_targets(
    confidence: Tensor, labels: Tensor, partner: Tensor, share: Tensor, num_classes: int
) -> Tensor:
    """As above for a mixed pair; `share` <= 1/2 is the partner's part of the image."""
    others = num_classes - 2 + (partner == labels).long()
    left = 1 - confidence
    second = torch.minimum(left, confidence * share / (1 - share))
    if num_classes == 2:
        second = torch.where(others == 0, left, second)  # no one else is left
        others = others.clamp(min=1)
    rest = (left - second).clamp_(min=0) / others
    pair = torch.stack([labels, partner], dim=1)
    targets = rest[:, None].repeat(1, num_classes).scatter_(1, pair, 0.0)
    return targets.scatter_add_(1, pair, torch.stack([confidence, second], dim=1))
