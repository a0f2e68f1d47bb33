"""AutoLabel: learn how confident the label of a transformed image should be.

The method in full. Each distance bucket n has one number, the confidence c[n] of the true class.
It starts at 1 (one-hot), and after every epoch the paper's Eqn (1), clipped, moves it:

    c[n] <- clip(c[n] - alpha * ECE[n] * sign(conf[n] - acc[n]), acc[n], 1)

where accuracy, mean confidence and ECE are those of the model on the validation set transformed by
distances of that same bucket. `TablePolicy.confidence` looks c up; `targets.py` is Eqn (2). With
alpha "auto", `auto_step.py` moves c instead, and the clip is the same.
"""

from __future__ import annotations

from typing import Literal

import torch

from auglabel.auto_step import AutoStep
from auglabel.calibration import BucketCalibration, require_seen
from auglabel.errors import UserError
from auglabel.labels import TablePolicy
from auglabel.util.checks import require_number, require_whole


class AutoLabel(TablePolicy):
    """Label confidence per distance bucket, learned from validation calibration.

    Starts from one-hot labels. After each epoch `update` lowers the confidence of buckets on
    which the model is over-confident and raises it where the model is under-confident, and never
    below the accuracy reached there. A number for `alpha` is the paper's rule: a step of alpha times
    the calibration error. "auto" finds the step, best if told in `epochs` how many updates there will
    be until labels are final.
    """

    adaptive = True

    def __init__(
        self,
        num_classes: int,
        num_buckets: int,
        alpha: float | Literal["auto"] = "auto",
        epochs: int | None = None,
    ) -> None:
        require_whole("num_buckets", num_buckets, 1)
        _require_alpha(alpha)
        super().__init__(num_classes, torch.ones(num_buckets))
        self.alpha = alpha
        self.auto = AutoStep(num_buckets, epochs) if isinstance(alpha, str) else None

    @torch.no_grad()
    def update(self, seen: BucketCalibration) -> None:
        """Move the label of every bucket that `seen` knows of; the others keep their value."""
        require_seen("AutoLabel.update", seen, len(self.table))
        self.move(seen)

    def move(self, seen: BucketCalibration) -> None:
        """Eqn (1), or the step of "auto"; then the clip."""
        table, gap = self.table.cpu().double(), seen.confidence - seen.accuracy
        if self.auto is None:
            moved = table - float(self.alpha) * seen.ece * torch.sign(gap)
        else:
            moved = self.auto(table, gap, seen)
        clipped = torch.maximum(moved, seen.accuracy).clamp(max=1)
        self.table.copy_(torch.where(seen.accuracy.isnan(), table, clipped))


def _require_alpha(alpha: float | str) -> None:
    if isinstance(alpha, str):
        if alpha != "auto":
            raise UserError(f'alpha must be "auto" or a number, got {alpha!r}.')
        return
    require_number("alpha", alpha, 0)
    if alpha > 1:
        raise UserError(
            f"alpha must be in [0, 1], got {alpha}: above 1, a label moves by more than the whole "
            "calibration error at once. The paper's are from 0.005 to 1."
        )
