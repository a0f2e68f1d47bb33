"""What several integrations share: images that were normalised already, and each rank's share of a loader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.augment_and_label import AugmentAndLabel
from auglabel.errors import UserError, UserTypeError
from auglabel.measure import pair
from auglabel.models.normalize import Normalize
from auglabel.util.checks import kind_of, readable, require_tensor
from auglabel.util.inference import unwrapped
from auglabel.util.ranks import rank_and_world
from auglabel.view import View

Batch = tuple[Tensor, Tensor]


class Around(Augmentation):
    """Base of augmentations that wrap another one."""

    def __init__(self, augment: Augmentation) -> None:
        self.inner, self.grid = augment, augment.grid

    def draw(self, n, device, generator):  # type: ignore[no-untyped-def]
        return self.inner.draw(n, device, generator)

    def apply(self, images, labels, distance, model, generator) -> View:  # type: ignore[no-untyped-def]
        return self.inner.apply(images, labels, distance, model, generator)


class OnPixels(Around):
    """An augmentation unchanged, except that its error for normalised images names `mean` and `std`."""

    def __call__(self, images, labels, model=None, **options) -> View:  # type: ignore[no-untyped-def]
        try:
            return self.inner(images, labels, model, **options)
        except UserError:
            if images.dim() != 4 or not images.numel():
                raise
            low, high = (float(edge) for edge in images.aminmax())
            if not -math.inf < low < -0.1:  # as no overshoot of a resize is
                raise
            raise UserError(
                f"images must be in [0, 1], got values from {low:.3g} to {high:.3g}, which look normalised: "
                "pass the mean= and std= that they were normalised with."
            ) from None


class OnNormalized(Around):
    """An augmentation for images that are already normalised; it returns normalised images.

    Pixels are brought back to [0, 1], where strengths mean the same for every model, and normalised again.
    """

    def __init__(self, augment: Augmentation, mean: Sequence[float], std: Sequence[float]) -> None:
        if len(mean) != len(std) or not all(spread > 0 for spread in std):
            raise UserError(f"mean and std take a number per channel, std above 0, got {mean}, {std}.")
        super().__init__(augment)
        self.mean, self.std = tuple(mean), tuple(std)

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
            raise UserError(
                f"images must be in [0, 1] once mean {self.mean} and std {self.std} are undone, got values "
                f"from {low:.3g} to {high:.3g}. Pass those the loader normalises with; what draws noise "
                "into normalised images, such as timm's random erasing, must be off."
            )


def learned_for(
    augment: Augmentation | AugmentAndLabel,
    num_classes: int | None,
    alpha: float | Literal["auto"],
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    options: dict[str, Any],
) -> AugmentAndLabel:
    """`augment`, or an AugmentAndLabel made of it; `mean` and `std` are of normalised images."""
    if (mean is None) != (std is None):
        raise UserError("mean and std come together, got only one of them.")
    if isinstance(augment, AugmentAndLabel):
        if num_classes is not None or alpha != "auto" or mean is not None or options:
            raise UserTypeError("an AugmentAndLabel comes with its options; give them where it is made.")
        return augment
    if mean is not None and std is not None:
        augment = OnNormalized(augment, mean, std)
    elif isinstance(augment, Augmentation) and type(augment).require is Augmentation.require:  # for images
        augment = OnPixels(augment)
    return AugmentAndLabel(augment, num_classes, alpha, **options)


def own_share(loader: object, batches: Iterable[Batch]) -> Iterator[Batch]:
    """This rank's share of the `batches` of `loader`; no image is in two shares or in one twice.

    Rank r of w takes images r, r + w, ...: out of all, or, where a distributed sampler deals them out,
    without those that it repeats at the end so that every rank gets equally many.
    """
    rank, world = rank_and_world()
    if world == 1:
        yield from batches
    elif hasattr(getattr(loader, "sampler", None), "num_replicas"):
        yield from _first(batches, len(range(rank, len(loader.dataset), world)))  # type: ignore[attr-defined]
    else:
        start = 0
        for images, labels in map(pair, batches):
            rows = slice((rank - start) % world, None, world)
            start += len(labels)
            if len(labels[rows]):
                yield images[rows], labels[rows]


def _first(batches: Iterable[Batch], count: int) -> Iterator[Batch]:
    for images, labels in map(pair, batches):
        if count <= 0:
            return
        yield images[:count], labels[:count]
        count -= len(labels)
