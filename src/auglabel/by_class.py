"""AutoLabel whose remainder goes by class: to the classes that the true one is confused with."""

from __future__ import annotations

from typing import Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from auglabel.autolabel import AutoLabel
from auglabel.calibration import BucketCalibration
from auglabel.errors import UserError
from auglabel.util.checks import require_same_length
from auglabel.util.ranks import distributed
from auglabel.view import View


class AutoLabelByClass(AutoLabel):
    """AutoLabel's confidence c on the true class y; the rest is spread by S, not evenly:

        t_y = c,   t_k = (1 - c) S[y, k] / sum of S[y, j] over j other than y

    S[y] is the mean prediction on training views of class y that were predicted right, over the last epoch:
    online label smoothing's table (Zhang et al., 2021). It is even at first, and a row stays as it is in an
    epoch in which no view of its class is predicted right. In a mixed image main class and partner keep what
    AutoLabel gives them, and S spreads what is left.

    Call `see` on every training batch; `update` ends the epoch. Sums of all ranks are added.
    """

    shares: Tensor  # (K, K) float32: S without its diagonal, rows that sum to 1
    sums: Tensor  # (K, K) float32: of this epoch's right predictions, by true class
    count: Tensor  # () float32: images seen in this epoch

    def __init__(
        self,
        num_classes: int,
        num_buckets: int,
        alpha: float | Literal["auto"] = "auto",
        epochs: int | None = None,
    ) -> None:
        super().__init__(num_classes, num_buckets, alpha, epochs)
        self.register_buffer("shares", (1 - torch.eye(num_classes)) / (num_classes - 1))
        self.register_buffer("sums", torch.zeros(num_classes, num_classes))
        self.register_buffer("count", torch.zeros(()))

    @torch.no_grad()
    def see(self, logits: Tensor, labels: Tensor) -> None:
        require_same_length("AutoLabelByClass.see", logits=logits, labels=labels)
        right = F.one_hot(labels, self.num_classes) * (logits.argmax(dim=1) == labels)[:, None]
        with torch.autocast(logits.device.type, enabled=False):
            self.sums += right.float().T @ logits.float().softmax(dim=1)
        self.count += len(labels)

    def require_ready(self) -> None:
        if not self.count:
            raise UserError(
                "AutoLabelByClass has seen no prediction this epoch: call see(logits, labels) in each step."
            )

    @torch.no_grad()
    def update(self, seen: BucketCalibration) -> None:
        """Move the confidences as AutoLabel does, and begin to spread by what this epoch has seen."""
        self.require_ready()
        super().update(seen)
        sums = self.sums.clone()
        if distributed():
            dist.all_reduce(sums)
        sums.fill_diagonal_(0)
        total = sums.sum(dim=1, keepdim=True)
        self.shares.copy_(torch.where(total > 0, sums / total, self.shares))
        self.sums.zero_()
        self.count.zero_()

    def forward(self, view: View) -> Tensor:
        even = super().forward(view)
        named = F.one_hot(view.labels, self.num_classes).bool()
        if view.partner is not None:
            named |= F.one_hot(view.partner, self.num_classes).bool()
        share = (self.shares[view.labels] + 1e-12).masked_fill(named, 0)  # not 0: the partner may have all
        share = share / share.sum(dim=1, keepdim=True).clamp(min=1e-12)
        rest = even.masked_fill(named, 0).sum(dim=1, keepdim=True)
        return torch.where(named, even, rest * share)
