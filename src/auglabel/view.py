"""A transformed batch that remembers where it came from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from auglabel.errors import UserError
from auglabel.util.checks import kind_of, require_integers, require_same_length, require_unit


@dataclass(frozen=True, eq=False)
class View:
    """Transformed images with their labels, buckets and strengths.

    `partner` and `share` are set where a second image was mixed in: its label, and its part of the
    picture, at most one half. `reach` is set by attacks: how far an image was moved, as a part of how far it
    might have been. `visible` is set where a part of the image is hidden: the share that is not.
    `prediction` is another network's, or an averaged one's, on the images before they were transformed.
    """

    images: Tensor  # (B, C, H, W)
    labels: Tensor  # (B,) int64
    bucket: Tensor  # (B,) int64
    strength: Tensor  # (B,) float in [0, 1]
    partner: Tensor | None = None  # (B,) int64
    share: Tensor | None = None  # (B,) float in [0, 1/2]
    reach: Tensor | None = None  # (B,) float in [0, 1]
    visible: Tensor | None = None  # (B,) float in [0, 1]
    prediction: Tensor | None = None  # (B, K) probabilities

    def __post_init__(self) -> None:
        if (self.partner is None) != (self.share is None):
            raise UserError("View takes partner and share together, got only one of them.")
        parts = self._parts()
        require_same_length("View", **parts)
        for name in ("labels", "bucket", "partner"):
            if name in parts:
                require_integers(f"View's {name}", parts[name])
        require_unit("View's strength", self.strength)
        if self.share is not None:
            require_unit("View's share", self.share, 0.5)
        for name in ("reach", "visible"):
            if name in parts:
                require_unit(f"View's {name}", parts[name])

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        """The shapes; tensors would fill screens."""
        return f"View({', '.join(f'{name}={kind_of(part)}' for name, part in self._parts().items())})"

    def to(self, device: torch.device | str, non_blocking: bool = False) -> View:
        moved = {name: part.to(device, non_blocking=non_blocking) for name, part in self._parts().items()}
        return replace(self, **moved)

    def _parts(self) -> dict[str, Tensor]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: part for name, part in named.items() if part is not None}
