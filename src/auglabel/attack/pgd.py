"""Projected gradient descent in the max norm: one function to train against and to evaluate with."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import (
    kind_of,
    readable,
    require_images,
    require_number,
    require_range,
    require_same_length,
    require_tensor,
    require_whole,
)
from auglabel.util.inference import eval_mode, unwrapped
from auglabel.util.randomness import drawing_device, to_device

Loss = Literal["cross_entropy", "margin"]
BLIND = "The gradient is zero at every image, so the attack is blind: auglabel.attack.sanity tells more."


def pgd(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float | Tensor,
    *,
    steps: int = 10,
    step: float | Tensor | None = None,
    restarts: int = 1,
    loss: Loss = "cross_entropy",
    early_stop: bool = False,
    check_range: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    """Images within `epsilon` (B,) of `images`, in max norm, that raise the model's loss.

    Moves by `step` (epsilon/4 if None) from a random start and keeps, per image, a restart that
    fools the model if any does, else the one with the highest loss. Pixels are in [0, 1]; labels are
    classes (B,), or probabilities (B, K) for cross-entropy. The model is in evaluation mode meanwhile.
    Gradients reach neither the parameters nor the returned images.

    `early_stop` spends nothing more on an image once it fools the model. That is for adversarial
    accuracy alone: training, and calibration under attack, need every step. `check_range=False` does not look
    whether pixels are in [0, 1], for which an accelerator has to wait.
    """
    images = require_attackable(model, images, labels, loss, check_range=check_range)
    require_whole("steps", steps, 1)
    require_whole("restarts", restarts, 1)
    if torch.is_inference_mode_enabled():
        raise RuntimeError("pgd needs gradients, but torch.inference_mode is on. Use torch.no_grad instead.")
    model = unwrapped(model)
    radius = _per_image("epsilon", epsilon, images)
    stride = radius / 4 if step is None else _per_image("step", step, images, above_zero=True)
    task = _Task(images, labels.detach(), radius, stride, *box(images, radius))
    if len(images) == 0:
        return images.clone()
    with eval_mode(model), torch.no_grad():
        if restarts == 1:
            moved = _climb(model, task, _start(task, _noise(images, generator)), steps, loss, early_stop)
        else:
            moved = _best_of(restarts, model, task, steps, loss, early_stop, generator)
    return torch.where(radius > 0, moved, images)  # epsilon 0 keeps every bit, the sign of -0 too


def box(images: Tensor, radius: float | Tensor) -> tuple[Tensor, Tensor]:
    """Lowest and highest pixels within `radius` of `images` and inside [0, 1]."""
    return (images - radius).clamp_(min=0), (images + radius).clamp_(max=1)


def gradient_of(model: nn.Module, images: Tensor, labels: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    """Gradient of the summed loss at `images`, and which of them (B,) fool the model."""
    with torch.enable_grad():
        images = images.detach().requires_grad_()
        value, fooled = _look(model, images, labels, loss)
        total = value.sum()
    gradient = None
    if total.requires_grad:
        gradient = torch.autograd.grad(total, images, allow_unused=True)[0]
    if gradient is None:
        raise UserError(
            "The model gives no gradient to its input, so the attack would be blind. Take no_grad, detach "
            'and casts to bytes out of its forward, or use the query-only "hop_skip_jump" of foolbox_attack.'
        )
    return gradient, fooled


class _Task(NamedTuple):
    images: Tensor  # (B, C, H, W)
    labels: Tensor  # (B,) or (B, K)
    radius: Tensor  # (B, 1, 1, 1)
    stride: Tensor  # (B, 1, 1, 1)
    low: Tensor  # (B, C, H, W)
    high: Tensor  # (B, C, H, W)

    def only(self, rows: Tensor) -> _Task:
        return _Task(*(part[rows] for part in self))


def _climb(model: nn.Module, task: _Task, moved: Tensor, steps: int, loss: Loss, early_stop: bool) -> Tensor:
    """`moved` after `steps`, in place; with `early_stop` an image that fools the model leaves the batch."""
    done, rows = moved, torch.arange(len(moved), device=moved.device)
    for count in range(steps):
        gradient, fooled = gradient_of(model, moved, task.labels, loss)
        if count == 0 and readable(gradient) and not bool(gradient.any()):
            warnings.warn(BLIND, stacklevel=3)
        if early_stop and fooled.any():
            done[rows[fooled]] = moved[fooled]
            going = ~fooled
            rows, moved, gradient, task = rows[going], moved[going], gradient[going], task.only(going)
            if len(rows) == 0:
                return done
        moved.addcmul_(gradient.sign(), task.stride).clamp_(task.low, task.high)
    if moved is not done:
        done[rows] = moved
    return done


def _best_of(
    restarts: int,
    model: nn.Module,
    task: _Task,
    steps: int,
    loss: Loss,
    early_stop: bool,
    generator: Generator | None,
) -> Tensor:
    """Per image a restart that fools the model, if any does; among equals the highest loss."""
    images, rows = task.images, torch.arange(len(task.images), device=task.images.device)
    best, fooled, value = images.clone(), rows < 0, torch.full_like(rows, -math.inf, dtype=torch.float32)
    for _ in range(restarts):
        start = _start(task, _noise(images, generator)[rows])
        moved = _climb(model, task, start, steps, loss, early_stop)
        reached, fools = _look(model, moved, task.labels, loss)
        better = torch.where(fools == fooled[rows], reached > value[rows], fools)
        chosen = rows[better]
        best[chosen], fooled[chosen], value[chosen] = moved[better], fools[better], reached[better].float()
        if early_stop:
            rows, task = rows[~fools], task.only(~fools)
            if len(rows) == 0:
                break
    return best


def _noise(images: Tensor, generator: Generator | None) -> Tensor:
    """Uniform in [-1, 1), for every image whether still attacked or not, so that early stop shifts none."""
    source = drawing_device(images.device, generator)
    noise = torch.rand(images.shape, dtype=images.dtype, device=source, generator=generator)
    return to_device(noise, images.device).mul_(2).sub_(1)


def _start(task: _Task, noise: Tensor) -> Tensor:
    return task.images.clone().addcmul_(noise, task.radius).clamp_(task.low, task.high)


def _look(model: nn.Module, images: Tensor, labels: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    """Loss (B,) in at least float32, also under autocast, and which images (B,) fool the model."""
    logits = model(images)
    require_logits(logits, labels)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    classes = labels if labels.dim() == 1 else labels.argmax(dim=1)
    if loss == "margin":
        value = margin(logits, classes)
    else:
        targets = labels if labels.dim() == 1 else labels.to(logits.dtype)
        value = F.cross_entropy(logits, targets, reduction="none")
    return value, logits.argmax(dim=1) != classes


def margin(logits: Tensor, labels: Tensor) -> Tensor:
    """Largest other logit minus the true one, (B,): above 0 where the model is fooled."""
    true = labels[:, None]
    return logits.scatter(1, true, -math.inf).amax(dim=1) - logits.gather(1, true).squeeze(1)


def require_attackable(
    model: nn.Module, images: Tensor, labels: Tensor, loss: str, *, check_range: bool = True
) -> Tensor:
    """Check the arguments of an attack; returns the images, detached.

    That takes a module, floating point images in [0, 1], hard or soft labels, and a loss for such labels.
    """
    if not isinstance(model, nn.Module):
        raise UserTypeError(f"model must be a torch.nn.Module, got {kind_of(model)}.")
    require_tensor("images", images)
    images = require_images("images", images.detach()) if check_range else images.detach()
    if images.dtype == torch.uint8:
        raise UserTypeError(
            f"Attacks need images in floating point in [0, 1], got {kind_of(images)}. "
            "Pass images.float() / 255."
        )
    require_same_length("An attack", images=images, labels=labels)
    if loss not in get_args(Loss):
        raise UserError(f'loss must be "cross_entropy" or "margin", got {loss!r}.')
    if labels.dim() != 2 or not labels.is_floating_point():
        if labels.dim() != 1 or labels.dtype != torch.int64:
            raise UserTypeError(
                "labels must be classes (B,) in int64 or probabilities (B, K) in floating point, "
                f"got {kind_of(labels)}."
            )
        return images
    if loss == "margin":
        raise UserError('loss "margin" needs hard labels, got soft ones. Pass labels.argmax(dim=1).')
    if readable(labels) and not bool(
        ((labels >= 0).all(dim=1) & ((labels.sum(dim=1) - 1).abs() < 1e-2)).all()
    ):
        raise UserError("Soft labels must be probabilities, each row adding up to 1, but some rows are not.")
    return images


def require_logits(logits: Tensor, labels: Tensor) -> None:
    """Check for logits (B, K), K >= 2, that fit hard or soft labels."""
    require_tensor("The model's output", logits)
    if logits.dim() != 2 or len(logits) != len(labels) or logits.shape[1] < 2:
        raise UserError(
            f"The model must return logits ({len(labels)}, K) with K >= 2, got {kind_of(logits)}."
        )
    if readable(logits) and bool(logits.isnan().any()):
        raise UserError("The model must return numbers, but its logits hold nan: it has diverged.")
    if labels.dim() == 1:
        require_range("labels", labels, logits.shape[1], "classes")
    elif labels.shape[1] != logits.shape[1]:
        raise UserError(
            f"Soft labels must have one column for each of the model's {logits.shape[1]} classes, "
            f"got {labels.shape[1]}."
        )


def _per_image(what: str, value: float | Tensor, images: Tensor, *, above_zero: bool = False) -> Tensor:
    """A number, or one per image, as (B, 1, 1, 1), checked to be finite and at least (or above) zero."""
    if not isinstance(value, Tensor):
        require_number(what, value, 0)
        if above_zero and value == 0:
            raise UserError(f"{what} must be above 0, got {value}.")
        return images.new_full((len(images), 1, 1, 1), value)
    if value.shape != images.shape[:1] or not value.is_floating_point():
        raise UserTypeError(
            f"{what} must be a number or a floating point tensor of shape ({len(images)},), "
            f"got {kind_of(value)}."
        )
    wrong = ~(value.isfinite() & (value > 0 if above_zero else value >= 0))
    if readable(value) and wrong.any():
        wanted = "above" if above_zero else "at least"
        raise UserError(f"{what} must be finite and {wanted} 0, got {value[wrong][0].item()}.")
    return value.detach().to(images)[:, None, None, None]
