"""Label policies: how sure are we of the label of each transformed image?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from auglabel.calibration import BucketCalibration
from auglabel.errors import UserError, UserTypeError
from auglabel.targets import one_class_targets, two_class_targets
from auglabel.util.checks import kind_of, require_number, require_range, require_unit, require_whole
from auglabel.view import View


class LabelPolicy(nn.Module):
    """Soft targets for a view. A policy only says how sure it is of each label."""

    adaptive = False  # True: the training loop measures calibration and calls update()
    needs_prediction = False  # True: views must come with a prediction on the clean image

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 2)
        self.num_classes = num_classes

    def extra_repr(self) -> str:
        plain = {name: value for name, value in vars(self).items() if isinstance(value, int | float | str)}
        return ", ".join(f"{name}={value}" for name, value in plain.items() if name != "training")

    def confidence(self, view: View) -> Tensor:
        """How sure the label of each example is, (B,) in [0, 1]."""
        raise NotImplementedError(f"{type(self).__name__} must define confidence(view).")

    def require_ready(self) -> None:
        """Refuse, before anything is measured for it, an update that cannot be made."""

    def update(self, seen: BucketCalibration) -> None:
        """Learn from the calibration seen on validation views; only adaptive policies can."""
        raise UserTypeError(f"{type(self).__name__} does not learn; update is for adaptive policies.")

    def see(self, logits: Tensor, labels: Tensor) -> None:
        """Notice the network's predictions on a training batch, which a loss hands over; most have no use."""

    def forward(self, view: View) -> Tensor:
        """Soft targets (B, K) of a view; every row sums to 1."""
        require_range("view.labels", view.labels, self.num_classes, "classes")
        sure = self.confidence(view)
        if view.partner is None or view.share is None:
            return one_class_targets(sure, view.labels, self.num_classes)
        require_range("view.partner", view.partner, self.num_classes, "classes")
        return two_class_targets(sure, view.labels, view.partner, view.share, self.num_classes)


class OneHot(LabelPolicy):
    """Confidence 1 at every distance."""

    def confidence(self, view: View) -> Tensor:
        return torch.ones_like(view.strength)


class LabelSmoothing(LabelPolicy):
    """(1 - rho) one-hot + rho / K: the same doubt at every distance."""

    def __init__(self, num_classes: int, rho: float) -> None:
        super().__init__(num_classes)
        require_number("rho", rho, 0, 1)
        self.rho = rho

    def confidence(self, view: View) -> Tensor:
        return torch.full_like(view.strength, 1 - self.rho + self.rho / self.num_classes)


class CCAT(LabelPolicy):
    """Confidence-calibrated adversarial training: g one-hot + (1 - g)/K, g = (1 - d)^rho.

    d is how far an image was moved over the radius `drawn` for it, `view.reach`: an attack that goes to the
    end of its radius gets the uniform distribution, and an image that was not attacked stays one-hot. With
    `radius="largest"` d is the strength: with `Adversarial` the radius drawn over epsilon_max. That is also
    what d is for a view without a reach.
    """

    def __init__(
        self, num_classes: int, rho: float = 10.0, radius: Literal["drawn", "largest"] = "drawn"
    ) -> None:
        super().__init__(num_classes)
        require_number("rho", rho, 0)
        if radius not in ("drawn", "largest"):
            raise UserError(f'radius must be "drawn" or "largest", got {radius!r}.')
        self.rho, self.radius = rho, radius

    def confidence(self, view: View) -> Tensor:
        distance = view.strength if self.radius == "largest" or view.reach is None else view.reach
        g = (1 - distance.clamp(max=1)) ** self.rho
        return g + (1 - g) / self.num_classes


class MixupLabels(LabelPolicy):
    """Each class has the share of its image in the mix; one-hot where nothing was mixed in."""

    def confidence(self, view: View) -> Tensor:
        return torch.ones_like(view.strength) if view.share is None else 1 - view.share


class TablePolicy(LabelPolicy):
    """One confidence per bucket, held in the buffer `table`."""

    table: Tensor  # (num_buckets,) float32

    def __init__(self, num_classes: int, table: Tensor | Sequence[float]) -> None:
        super().__init__(num_classes)
        try:
            values = torch.as_tensor(table, dtype=torch.float32).clone()
        except (TypeError, ValueError, RuntimeError):
            raise UserTypeError(f"table must hold one number per bucket, got {kind_of(table)}.") from None
        if values.dim() != 1 or len(values) == 0:
            raise UserError(f"table must hold one number per bucket, but its shape is {tuple(values.shape)}.")
        require_unit("table", values)
        self.register_buffer("table", values)

    def extra_repr(self) -> str:
        low, high = (float(edge) for edge in self.table.aminmax())
        return f"{super().extra_repr()}, {len(self.table)} buckets from {low:.3f} to {high:.3f}"

    def confidence(self, view: View) -> Tensor:
        require_range("view.bucket", view.bucket, len(self.table), "buckets")
        return self.table[view.bucket]


class FixedTable(TablePolicy):
    """A table that training does not move: read from a file, or made by hand."""
