"""alpha="auto": how far labels move when nobody sets a step.

After update t of E, with the gap d[n] = confidence[n] - accuracy[n] measured on m[n] images,

    f[n] <- f[n] + (c[n] - f[n]) / L                  the label that the network has followed so far
    c[n] <- c[n] - k (w[n] d[n] + c[n] - f[n])        then clipped as ever, to accuracy[n] .. 1

    k    = min(0.6, 10 (t / E)^2 / (E - t + 1))       small at first, larger the fewer updates are left
    L    = 1 + E / 20                                 updates that a network takes to follow its labels
    w[n] = 0.1^2 / (0.1^2 + p (1 - p) / m[n])         the part of a gap of about 0.1 that is not noise
    p    = (m[n] accuracy[n] + 1) / (m[n] + 2)        the accuracy, kept off 0 and 1

c - f is the part of past steps that the network has not answered yet. It counts as if it had been answered
in full, one for one, so that labels do not overshoot while confidence lags behind. Early gaps are those of a
network that has hardly learned, and move labels little; the last steps take most of what is left, whatever
the length of the schedule. Without E every update is made as if half way through 40: k = 0.12, L = 3.
docs/method.md has the reasons.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from auglabel.calibration import BucketCalibration
from auglabel.util.checks import require_whole

GAIN, LARGEST = 10.0, 0.6
USUAL = 0.1  # size of a gap
HALF_WAY = (20, 40)  # t and E for a schedule of unknown length


class AutoStep(nn.Module):
    """Moves a table by what was seen; `epochs` is the number of updates until labels are final."""

    followed: Tensor  # (num_buckets,) float32: the label that the network's confidence has followed so far
    updates: Tensor  # () int64

    def __init__(self, num_buckets: int, epochs: int | None = None) -> None:
        super().__init__()
        if epochs is not None:
            require_whole("epochs", epochs, 1)
        self.epochs = epochs
        self.register_buffer("followed", torch.ones(num_buckets))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, table: Tensor, gap: Tensor, seen: BucketCalibration) -> Tensor:
        """`table` (num_buckets,) moved by `gap`, not yet clipped; nan where nothing is known."""
        self.updates += 1
        done, epochs = HALF_WAY if self.epochs is None else (int(self.updates), self.epochs)
        done = min(done, epochs)  # labels that go on being updated stay at the last step's gain
        followed = table if self.updates == 1 else self.followed.cpu().double()
        followed = followed + (table - followed) / (1 + epochs / 20)
        self.followed.copy_(followed)
        gain = min(LARGEST, GAIN * (done / epochs) ** 2 / (epochs - done + 1))
        share = (seen.accuracy * seen.count + 1) / (seen.count + 2)  # never 0 or 1, however few images
        noise = share * (1 - share) / seen.count
        real = USUAL**2 / (USUAL**2 + noise)
        return table - gain * (real * gap + table - followed)
