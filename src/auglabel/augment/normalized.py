"""Any augmentation on images that were normalised already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.errors import UserError, UserTypeError
from auglabel.models.normalize import Normalize
from auglabel.util.checks import OVERSHOOT, kind_of, readable, require_tensor
from auglabel.util.inference import unwrapped
from auglabel.view import View


class OnNormalized(Augmentation):
    """An augmentation for images that are already normalised; it returns normalised images.

    Pixels are brought back to [0, 1], where strengths mean the same for every model, and normalised again.
    """

    def __init__(self, augment: Augmentation, mean: Sequence[float], std: Sequence[float]) -> None:
        fit = all(hasattr(each, "__len__") for each in (mean, std)) and len(mean) == len(std)
        if not fit or not all(spread > 0 for spread in std):
            raise UserError(f"mean and std take a number per channel, std above 0, got {mean}, {std}.")
        self.inner, self.grid, self.level_name = augment, augment.grid, augment.level_name
        self.mean, self.std = tuple(mean), tuple(std)
        self.distance_on_host = augment.distance_on_host

    def draw(self, n, device, generator):  # type: ignore[no-untyped-def]
        return self.inner.draw(n, device, generator)

    def require(self, images: Tensor) -> None:
        require_tensor("images", images)
        if not images.is_floating_point() or images.dim() != 4 or images.shape[1] != len(self.mean):
            raise UserTypeError(
                f"images must be normalised, floating point and of shape (B, {len(self.mean)}, H, W), "
                f"got {kind_of(images)}."
            )

    def _checked(self, images: Tensor, measuring: bool) -> Tensor:
        images = super()._checked(images, measuring)
        if measuring or readable(images) or not self._looked:  # a look makes an accelerator wait
            self._require_pixels(images)
            self._looked = self._looked or (not measuring and images.numel() > 0)
        return images

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        normalize = Normalize(self.mean, self.std).to(images.device)
        pixels = images.float() * normalize.std + normalize.mean
        inside = None if model is None else nn.Sequential(normalize, unwrapped(model))
        view = self.inner.apply(pixels.clamp_(0, 1), labels, distance, inside, generator)
        return replace(view, images=normalize(view.images).to(images.dtype))

    def _require_pixels(self, images: Tensor) -> None:
        """Check that pixels are in [0, 1] once mean and std are undone, up to float error."""
        if not images.numel():
            return
        mean, std = (torch.tensor(each, device=images.device) for each in (self.mean, self.std))
        ends = [end(images, dim=(0, 2, 3)).float() * std + mean for end in (torch.amin, torch.amax)]
        low, high = float(ends[0].min()), float(ends[1].max())
        slack = max(1e-3, 4 * torch.finfo(images.dtype).eps)
        if not (low >= -slack and high <= 1 + slack):
            way_in = (
                ", or, if they are, clamp pixels after resizing, which overshoots by as much."
                if low >= -OVERSHOOT and high <= 1 + OVERSHOOT
                else "; what draws noise into normalised images, such as timm's random erasing, must be off."
            )
            raise UserError(
                f"images must be in [0, 1] once mean {self.mean} and std {self.std} are undone, got values "
                f"from {low:.3g} to {high:.3g}. Pass those the loader normalises with{way_in}"
            )
