"""AutoLabel: learn how confident the label of a transformed image should be.

The method in full. Each distance bucket n has one number, the confidence c[n] of the true class.
It starts at 1 (one-hot), and after every epoch the paper's Eqn (1), clipped, moves it:

    c[n] <- clip(c[n] - alpha * ECE[n] * sign(conf[n] - acc[n]), acc[n], 1)

where accuracy, mean confidence and ECE are those of the model on the validation set transformed by
distances of that same bucket. `TablePolicy.confidence` looks c up; `targets.py` is Eqn (2).
"""

from __future__ import annotations

import torch

from auglabel.calibration import BucketCalibration, require_seen
from auglabel.errors import UserError
from auglabel.labels import TablePolicy
from auglabel.util.checks import require_number, require_whole


class AutoLabel(TablePolicy):
    """Label confidence per distance bucket, learned from validation calibration.

    Starts from one-hot labels. After each epoch `update` lowers the confidence of buckets on
    which the model is over-confident and raises it where the model is under-confident, in
    proportion to the calibration error, and never below the accuracy reached there.
    """

    adaptive = True

    def __init__(self, num_classes: int, num_buckets: int, alpha: float) -> None:
        require_whole("num_buckets", num_buckets, 1)
        require_number("alpha", alpha, 0)
        if alpha > 1:
            raise UserError(
                f"alpha must be in [0, 1], got {alpha}: above 1, a label moves by more than the whole "
                "calibration error at once. The paper's are from 0.005 to 1."
            )
        super().__init__(num_classes, torch.ones(num_buckets))
        self.alpha = alpha

    @torch.no_grad()
    def update(self, seen: BucketCalibration) -> None:
        """Apply Eqn (1) to every bucket that `seen` knows of; the others keep their value."""
        require_seen("AutoLabel.update", seen, len(self.table))
        table = self.table.cpu().double()
        direction = torch.sign(seen.confidence - seen.accuracy)
        moved = table - self.alpha * seen.ece * direction
        clipped = torch.maximum(moved, seen.accuracy).clamp(max=1)
        self.table.copy_(torch.where(seen.accuracy.isnan(), table, clipped))
