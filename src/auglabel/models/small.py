"""A small convolutional network that trains in a minute on one core."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from auglabel.models.normalize import Normalize


class SmallNet(nn.Module):
    """A 4x4 stride-2 stem, two 3x3 convolutions with pooling, and a residual one.

    137,434 parameters at the default widths for 3 channels and 10 classes.
    """

    def __init__(
        self,
        num_classes: int,
        widths: tuple[int, int, int] = (24, 48, 96),
        mean: Sequence[float] = (0.4914, 0.4822, 0.4465),
        std: Sequence[float] = (0.2470, 0.2435, 0.2616),
    ) -> None:
        super().__init__()
        first, second, third = widths
        self.normalize = Normalize(mean, std)
        self.stem = _block(len(mean), first, size=4, stride=2, padding=1)
        self.middle = nn.Sequential(
            _block(first, second), nn.MaxPool2d(2), _block(second, third), nn.MaxPool2d(2)
        )
        self.residual = _block(third, third)
        self.head = nn.Linear(third, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.middle(self.stem(self.normalize(images)))
        logits: Tensor = self.head((x + self.residual(x)).mean(dim=(2, 3)))
        return logits


def _block(inputs: int, outputs: int, size: int = 3, stride: int = 1, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )
