"""timm: takes the place of its `Mixup` in a training loop.

    mixup_fn = TimmMixup(AugMix(), num_classes, epochs=args.epochs, mean=config["mean"], std=config["std"])
    images, targets = mixup_fn(images, labels)      # as timm's loop does
    mixup_fn.update(model, loader_eval)             # after each epoch

Nothing of timm is needed for it: the calls are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.randaug import RandAug
from auglabel.augment_and_label import AugmentAndLabel
from auglabel.integrations.common import learned_for, own_share
from auglabel.measure import Batches
from auglabel.util.checks import as_labels

__all__ = ["AugMix", "AugmentAndLabel", "RandAug", "TimmMixup"]


class TimmMixup(nn.Module):
    """Moves a batch of normalised images, and gives soft targets (B, K) for it.

    timm's loaders hand over normalised images: `mean` and `std` are those of its data config. Other options
    are those of `AugmentAndLabel`. With `mixup_enabled` False, which timm sets for the last epochs, images
    and labels stay as they are. Attacks need `model=`.
    """

    def __init__(
        self,
        augment: Augmentation | AugmentAndLabel,
        num_classes: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        model: nn.Module | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.learned = learned_for(augment, num_classes, alpha, mean, std, options)
        self.mixup_enabled = True
        self._model = [model]  # in a list: not a part of this module

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if not self.mixup_enabled:
            labels, ignored = as_labels(labels), self.learned.ignore_index
            known = torch.ones_like(labels) if ignored is None else (labels != ignored).long()
            targets = F.one_hot(labels * known, self.learned.policy.num_classes) * known[:, None]
            return images, targets.to(images.dtype)
        self._follow(images)
        moved, targets = self.learned(images, labels, self._model[0])
        return moved, targets

    def update(self, model: nn.Module, loader: Batches) -> None:
        """Learn from the model on the evaluation loader, once after each epoch."""
        self.learned.update(model, own_share(loader, loader))

    def _follow(self, images: Tensor) -> None:
        """Move to the device of the images, as timm's Mixup needs no `.to()` either."""
        if self.learned.updates.device != images.device:
            self.learned.to(images.device)
