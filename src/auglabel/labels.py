"""Label policies: how sure are we of the label of each transformed image?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from auglabel.checks import require_number, require_range, require_whole
from auglabel.targets import one_class_targets, two_class_targets
from auglabel.view import View


class LabelPolicy(nn.Module):
    """Soft targets for a view. A policy only says how sure it is of each label."""

    adaptive = False  # True: the training loop measures calibration and calls update()

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 2)
        self.num_classes = num_classes

    def confidence(self, view: View) -> Tensor:
        """How sure the label of each example is, (B,) in [0, 1]."""
        raise NotImplementedError(f"{type(self).__name__} must define confidence(view).")

    def forward(self, view: View) -> Tensor:
        """Targets (B, K); every row sums to 1."""
        require_range("view.labels", view.labels, self.num_classes, "classes")
        sure = self.confidence(view)
        if view.partner is None or view.share is None:
            return one_class_targets(sure, view.labels, self.num_classes)
        require_range("view.partner", view.partner, self.num_classes, "classes")
        return two_class_targets(sure, view.labels, view.partner, view.share, self.num_classes)


class OneHot(LabelPolicy):
    """The label as it is, however distorted the image."""

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


class TablePolicy(LabelPolicy):
    """One confidence per bucket, held in the buffer `table`."""

    table: Tensor  # (num_buckets,) float32

    def __init__(self, num_classes: int, table: Tensor | Sequence[float]) -> None:
        super().__init__(num_classes)
        table = torch.as_tensor(table, dtype=torch.float32).clone()
        if table.dim() != 1 or len(table) == 0:
            raise ValueError(f"table must hold one number per bucket, but its shape is {tuple(table.shape)}.")
        if not bool(((table >= 0) & (table <= 1)).all()):
            raise ValueError(f"table must hold confidences in [0, 1], but {table.tolist()} came.")
        self.register_buffer("table", table)

    def confidence(self, view: View) -> Tensor:
        require_range("view.bucket", view.bucket, len(self.table), "buckets")
        return self.table[view.bucket]


class FixedTable(TablePolicy):
    """A table that training does not move: read from a file, or made by hand."""
