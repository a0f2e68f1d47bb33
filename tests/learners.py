"""A network that is not there: its confidence follows its labels with a known response and delay."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from auglabel import Calibration


@dataclass
class Learner:
    """Confidence = accuracy + over-confidence + what it has made of its labels so far.

    Labels lowered by d lower the confidence by `response` x d in the end, with a first-order lag of `lag`
    epochs (1: at once). With `late`, accuracy and over-confidence rise over the schedule as they do with a
    learning rate that falls along a cosine; else both have their last value from the start.
    """

    epochs: int
    response: float
    lag: float
    sure: float = 0.12  # over-confidence of one-hot labels at the end
    accuracy: float = 0.75  # at the end
    late: bool = False
    buckets: int = 40
    answered: float | Tensor = 0.0

    def epoch(self, number: int, table: Tensor) -> tuple[float, Tensor]:
        """Accuracy, and the gap of each bucket, after training epoch `number` with these labels."""
        risen = (1 - math.cos(math.pi * number / self.epochs)) / 2 if self.late else 1.0
        self.answered = self.answered + (self.response * (table.double() - 1) - self.answered) / self.lag
        return self.accuracy * (0.5 + risen / 2), self.sure * (0.2 + 0.8 * risen) + self.answered


def seen_exactly(accuracy: float, gap: Tensor, images: float = 1e9) -> Calibration:
    """A measurement without noise on so many images."""
    seen = Calibration(groups=len(gap), bins=1)
    rows = torch.ones(len(gap), dtype=torch.float64), accuracy + gap, torch.full((len(gap),), accuracy)
    seen.sums[:3, :, 0] = images * torch.stack([row.double() for row in rows])
    return seen


def seen_on(images: int, accuracy: float, gap: Tensor, generator: torch.Generator) -> Calibration:
    """The same on `images` in each bucket, which the network gets right or wrong by chance."""
    right = torch.rand(images, len(gap), generator=generator) < accuracy
    seen = seen_exactly(accuracy, gap, images)
    seen.sums[2, :, 0] = right.double().sum(dim=0)
    return seen
