"""Adversarial images: each attacked with an epsilon of its own, which is its distance."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor

from auglabel.attack.pgd import pgd
from auglabel.augment.base import Augmentation
from auglabel.distance import Distance, DistanceGrid
from auglabel.errors import UserError
from auglabel.util.checks import require_number, require_whole
from auglabel.util.inference import eval_mode, model_input, unwrapped
from auglabel.util.randomness import to_device
from auglabel.view import View


class Adversarial(Augmentation):
    """PGD with epsilon uniform over (0, epsilon_max], in steps of epsilon/4.

    It works `against` the hard label, or, for TRADES, the model's own prediction on the clean image.

    `fixed` always takes epsilon_max, in a single bucket: plain adversarial training. `clean_share` of
    the rows of a training batch, the first ones, stay clean at strength 0; asked for a bucket, none do.
    Bytes come back as floating point: rounding to bytes would undo much of a small attack.
    """

    distance_on_host = True

    def __init__(
        self,
        epsilon_max: float = 0.01,
        levels: int = 10,
        steps: int = 10,
        fixed: bool = False,
        clean_share: float = 0.0,
        against: Literal["label", "prediction"] = "label",
    ) -> None:
        require_number("epsilon_max", epsilon_max, 0, 1)
        require_whole("levels", levels, 1)
        require_whole("steps", steps, 1)
        require_number("clean_share", clean_share, 0, 1)
        if against not in ("label", "prediction"):
            raise UserError(f'against must be "label" or "prediction", got {against!r}.')
        self.against = against
        self.epsilon_max = epsilon_max
        self.steps = steps
        self.fixed = fixed
        self.clean_share = clean_share
        self.grid = DistanceGrid((1 if fixed else levels,))

    def draw(self, n: int, device: torch.device, generator: Generator | None) -> Distance:
        kind, strength, _ = self.grid.draw(n, device, generator)
        strength[: round(self.clean_share * n)] = 0
        return self.grid.locate(kind, strength)

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        if model is None:
            raise UserError("Adversarial needs the model: call augment(images, labels, model).")
        images = model_input(images, model)
        strength = distance.strength.ceil() if self.fixed else distance.strength
        rows = (strength > 0).nonzero().squeeze(1) if self.clean_share else slice(None)
        strength, bucket = (to_device(part, images.device) for part in (strength, distance.bucket))
        attacked = to_device(rows, images.device) if isinstance(rows, Tensor) else rows
        epsilon = self.epsilon_max * strength[attacked]
        right = labels[attacked]
        if self.against == "prediction" and len(right):
            model = unwrapped(model)
            with eval_mode(model), torch.no_grad():
                right = model(images[attacked]).float().softmax(dim=1)
        moved = pgd(
            model,
            images[attacked],
            right,
            epsilon,
            steps=self.steps,
            check_range=False,
            generator=generator,
        )
        reach = torch.zeros_like(strength)
        reach[attacked] = _reach(moved - images[attacked], epsilon)
        if self.clean_share:
            images = images.clone()
            images[attacked] = moved
            moved = images
        return View(moved, labels, bucket, strength, reach=reach)


def _reach(moved: Tensor, epsilon: Tensor) -> Tensor:
    """How far each image was moved, in max norm, over the radius that it might be moved by."""
    longest = moved.abs().flatten(1).amax(dim=1) if len(moved) else epsilon
    return (longest / epsilon.clamp(min=torch.finfo(epsilon.dtype).tiny)).clamp(max=1).to(epsilon.dtype)
