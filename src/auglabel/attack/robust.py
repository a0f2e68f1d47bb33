"""Adversarial accuracy, and whether to believe it: soft labels can hide gradients from an attack."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor, nn

from auglabel.attack.pgd import BLIND, Loss, gradient_of, pgd, require_attackable, require_logits
from auglabel.errors import UserError
from auglabel.util.checks import require_integers, require_number, require_whole
from auglabel.util.inference import eval_mode, unwrapped


def adversarial_accuracy(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float,
    *,
    steps: int = 50,
    restarts: int = 3,
    loss: Loss = "cross_entropy",
    batch: int = 250,
    generator: Generator | None = None,
) -> float:
    """Share of images that the model gets right when clean and that no restart of `pgd` makes wrong.

    Steps are 2.5 * epsilon / steps long. `batch` images are attacked at a time; those already lost are
    not attacked on. epsilon 0 gives the clean accuracy.
    """
    images = require_attackable(model, images, labels, loss)
    require_integers("labels", labels)
    require_number("epsilon", epsilon, 0)
    require_whole("steps", steps, 1)
    require_whole("restarts", restarts, 1)
    require_whole("batch", batch, 1)
    if len(images) == 0:
        raise UserError("adversarial_accuracy needs images, got none.")
    model, standing = unwrapped(model), 0
    for some, classes in zip(images.split(batch), labels.split(batch), strict=True):
        right = _right(model, some, classes)
        if epsilon > 0 and right.any():
            some, classes = some[right], classes[right]
            moved = pgd(
                model,
                some,
                classes,
                epsilon,
                steps=steps,
                step=2.5 * epsilon / steps,
                restarts=restarts,
                loss=loss,
                early_stop=True,
                check_range=False,
                generator=generator,
            )
            right = _right(model, moved, classes)
        standing += int(right.sum())
    return standing / len(images)


@dataclass(frozen=True)
class Sanity:
    """Accuracy under increasingly strong attacks; `suspicions` says what points to hidden gradients."""

    count: int  # images
    by_epsilon: dict[float, float]  # from 0, clean, to 1, where an attack may paint any image
    by_steps: dict[int, float]
    by_loss: dict[Loss, float]
    blind: float  # share of images at which the gradient of the cross-entropy is zero

    @property
    def suspicions(self) -> list[str]:
        """Sentences on what suggests hidden gradients; empty if nothing does."""
        noise = max(0.02, 2 / self.count)
        found = []
        if (left := self.by_epsilon[1.0]) > 0:
            found.append(f"At epsilon 1 any image is allowed, yet accuracy is {left:.1%}, not 0.")
        for what, curve in (("epsilon", self.by_epsilon), ("number of steps", self.by_steps)):
            values = list(curve.values())
            rise = max(value - min(values[: place + 1]) for place, value in enumerate(values))
            if rise > noise:
                found.append(f"Accuracy rises by {rise:.1%} as the {what} grows; it can only fall.")
        gap = self.by_loss["cross_entropy"] - self.by_loss["margin"]
        if gap > 0.05 + noise:
            found.append(f"On the margin loss accuracy is {gap:.1%} lower than on the cross-entropy.")
        if self.blind > noise:
            found.append(
                f"At {self.blind:.1%} of the images the gradient is zero: the attack is blind there."
            )
        return found


def sanity(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float,
    *,
    steps: Sequence[int] = (1, 5, 10, 20, 50),
    batch: int = 250,
    generator: Generator | None = None,
) -> Sanity:
    """Attack with growing epsilon, growing `steps` and both losses; read `.suspicions` of the answer.

    One restart each. The curve over epsilon and the two losses use the last of `steps`. A few hundred
    images are enough.
    """
    require_number("epsilon", epsilon, 0, 1)
    if epsilon == 0 or not steps or list(steps) != sorted(set(steps)):
        raise UserError(
            f"sanity takes an epsilon above 0 and growing steps, got {epsilon} and {list(steps)}."
        )
    model, most = unwrapped(model), steps[-1]
    attacked = partial(
        adversarial_accuracy, model, images, labels, restarts=1, batch=batch, generator=generator
    )
    with warnings.catch_warnings():  # that the attack is blind is what `blind` says
        warnings.filterwarnings("ignore", message=BLIND)
        by_steps = {count: attacked(epsilon, steps=count) for count in steps}
        radii = sorted({0.0, epsilon / 2, epsilon, min(2 * epsilon, 1.0), min(4 * epsilon, 1.0), 1.0})
        by_epsilon = {e: by_steps[most] if e == epsilon else attacked(e, steps=most) for e in radii}
        by_loss: dict[Loss, float] = {"cross_entropy": by_steps[most]}
        by_loss["margin"] = attacked(epsilon, steps=most, loss="margin")
    return Sanity(len(images), by_epsilon, by_steps, by_loss, _blind(model, images, labels, batch))


def _right(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    with eval_mode(model), torch.no_grad():
        logits: Tensor = model(images)
    require_logits(logits, labels)
    return logits.argmax(dim=1) == labels


def _blind(model: nn.Module, images: Tensor, labels: Tensor, batch: int) -> float:
    with eval_mode(model):
        blind = sum(
            int((gradient_of(model, some, classes, "cross_entropy")[0] == 0).all(dim=(1, 2, 3)).sum())
            for some, classes in zip(images.split(batch), labels.split(batch), strict=True)
        )
    return blind / len(images)
