"""Soft Augmentation's labels (Liu et al., CVPR 2023): a fixed curve of how much of the image is visible."""

from __future__ import annotations

from torch import Tensor

from auglabel.errors import UserError
from auglabel.labels import LabelPolicy
from auglabel.util.checks import require_number
from auglabel.view import View


class SoftAugmentation(LabelPolicy):
    """Confidence 1 - (1 - 1/K)(1 - v)^k of an image of which the share v is visible.

    v is `view.visible`, counted in pixels by `WideCrop` and `Erasing`; for views of other augmentations it is
    1 - strength. Nothing visible means chance, 1/K. The paper has k = 2 for crops, and weights the loss by
    the confidence: the loss `weighted_cross_entropy`.
    """

    def __init__(self, num_classes: int, k: float = 2.0) -> None:
        super().__init__(num_classes)
        require_number("k", k, 0)
        if k == 0:
            raise UserError("k must be above 0, got 0, at which every image has chance as its label.")
        self.k = k

    def confidence(self, view: View) -> Tensor:
        hidden = view.strength if view.visible is None else 1 - view.visible
        return 1 - (1 - 1 / self.num_classes) * hidden**self.k
