"""What an augmentation is: a grid of distances, and a way to move images by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn

from auglabel.distance import Distance, DistanceGrid
from auglabel.errors import UserError
from auglabel.util.checks import as_labels, brief, readable, require_images, require_same_length
from auglabel.view import View

if TYPE_CHECKING:
    from typing_extensions import Self


class Augmentation:
    """Transforms a batch by a drawn distance. Subclasses set `grid` and write `apply`.

    Images are (B, C, H, W), floating point in [0, 1] or uint8, and come back in the same dtype
    unless another is asked for; attacked bytes come back as floating point. Labels (B,) are of any
    integer type. Randomness comes from
    `generator` alone (torch's own if None); nothing is remembered.
    """

    grid: DistanceGrid
    level_name = "level"  # what the levels of the grid are called
    _given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})  # to the constructor
    distance_on_host = False  # True: `apply` takes distances that are on the CPU, images being elsewhere
    _looked = False  # at the pixel values of a first training batch

    def __new__(cls, *given: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        object.__setattr__(made, "_given", (given, named))
        return made

    def __repr__(self) -> str:
        """As it was made: RandAug(m_max=3)."""
        given, named = self._given
        words = [*map(brief, given), *(f"{name}={brief(value)}" for name, value in named.items())]
        return f"{type(self).__name__}({', '.join(words)})"

    def draw(self, n: int, device: torch.device, generator: Generator | None) -> Distance:
        """Distances for training; uniform over the grid unless overridden."""
        return self.grid.draw(n, device, generator)

    def apply(
        self,
        images: Tensor,
        labels: Tensor,
        distance: Distance,
        model: nn.Module | None,
        generator: Generator | None,
    ) -> View:
        """`images` moved by `distance`. Only attacks call `model`, with `model_input(images, model)`."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(...).")

    def require(self, images: Tensor) -> Tensor | None:
        """Refuse what this augmentation cannot move; one for other things than images overrides it.

        Returns what to move in place of `images`, or None for `images` as they are.
        """
        return require_images("images", images)

    def __call__(
        self,
        images: Tensor,
        labels: Tensor,
        model: nn.Module | None = None,
        *,
        bucket: Tensor | None = None,
        dtype: torch.dtype | None = None,
        generator: Generator | None = None,
    ) -> View:
        """Draw distances, or draw them inside `bucket` (B,) when given, and apply them.

        `dtype`, a floating point one, turns bytes into numbers in [0, 1] on the way out.
        """
        if dtype is not None and not dtype.is_floating_point:
            raise UserError(f"dtype must be a floating point one, got {dtype}.")
        images = self._checked(images, measuring=bucket is not None)
        labels = as_labels(labels)
        require_same_length(type(self).__name__, images=images, labels=labels)
        if bucket is None:
            home = torch.device("cpu") if self.distance_on_host else images.device
            distance = self.draw(len(images), home if generator is None else generator.device, generator)
        else:
            require_same_length(type(self).__name__, images=images, bucket=bucket)
            distance = self.grid.draw_in(bucket, generator)
        if not self.distance_on_host:
            distance = distance.to(images.device)
        view = self.apply(images, labels, distance, model, generator)
        if dtype is None or view.images.dtype == dtype:
            return view
        scale = 255 if view.images.dtype == torch.uint8 else 1
        return replace(view, images=view.images.to(dtype) / scale)

    def _checked(self, images: Tensor, measuring: bool) -> Tensor:
        """Check the images; returns those to move.

        Looking at pixel values makes an accelerator wait. There, only the first training batch is looked at,
        and later ones are cut to [0, 1]. Batches on the CPU are all looked at, and so are those to measure,
        where the sums wait anyway.
        """
        own_check = type(self).require is not Augmentation.require
        if own_check or measuring or not self._looked or not isinstance(images, Tensor) or readable(images):
            checked = self.require(images)
            if not (own_check or measuring) and images.is_floating_point() and images.numel():
                object.__setattr__(self, "_looked", True)
            return images if checked is None else checked
        return require_images("images", images, look=False)
