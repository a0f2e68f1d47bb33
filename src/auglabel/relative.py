"""Labels that carry only what distortion adds to over-confidence; a temperature does the rest."""

from __future__ import annotations

import torch

from auglabel.autolabel import AutoLabel
from auglabel.calibration import COUNT, BucketCalibration, Calibration, require_clean, require_seen


class RelativeAutoLabel(AutoLabel):
    """AutoLabel on the gap of each bucket less the gap on images as they are.

        d[n]  = (confidence[n] - accuracy[n]) - (confidence - accuracy on images as they are)
        c[n] <- clip(c[n] - alpha d[n], accuracy[n], 1)

    With alpha "auto" its step takes d in place of the gap. A network that is equally over-confident on all
    images, distorted or not, keeps one-hot labels: one temperature, fitted after training, cures that. Labels
    are softened where distortion makes over-confidence worse, which no single temperature can cure.
    """

    needs_clean = True

    @torch.no_grad()
    def update(self, seen: BucketCalibration, clean: Calibration | None = None) -> None:
        """Move labels by what was seen in every bucket and on the images as they are."""
        require_seen("RelativeAutoLabel.update", seen, len(self.table))
        clean = require_clean("RelativeAutoLabel.update", clean)
        weight = seen.sums[COUNT].reshape(len(self.table), -1).sum(dim=1)
        real = seen.count / weight  # below 1 where a pool adds made-up examples without a gap
        gap = seen.confidence - seen.accuracy - real * (clean.confidence - clean.accuracy)
        self.move(seen, gap, gap.abs(), seen.accuracy)
