"""A network of the CIFAR speed runs: a few wide convolutions that learn 32x32 images in minutes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from auglabel.models.normalize import Normalize
from auglabel.util.checks import require_whole


class FastNet(nn.Module):
    """A 2x2 stem and three stages of two 3x3 convolutions, each stage at half the size of the one before.

    The first convolution of a stage is pooled before its norm: all that follows works on a quarter of the
    pixels. Convolutions begin as the identity as far as their widths allow, and norms have no scale of their
    own. Logits are multiplied by `scale`, which keeps the first ones small. 1,146,232 parameters at the
    defaults for 3 channels and 100 classes. Images need at least 9 pixels a side.
    """

    def __init__(
        self,
        num_classes: int,
        widths: tuple[int, int, int] = (48, 128, 256),
        stem: int = 24,
        scale: float = 0.125,
        mean: Sequence[float] = (0.4914, 0.4822, 0.4465),
        std: Sequence[float] = (0.2470, 0.2435, 0.2616),
    ) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 1)
        self.normalize = Normalize(mean, std)
        self.stem = nn.Sequential(nn.Conv2d(len(mean), stem, 2), nn.ReLU(inplace=True))
        inputs = (stem, *widths[:2])
        self.stages = nn.Sequential(*(_stage(*pair) for pair in zip(inputs, widths, strict=True)))
        self.head = nn.Linear(widths[2], num_classes, bias=False)
        self.scale = scale

    def forward(self, images: Tensor) -> Tensor:
        x = self.stages(self.stem(self.normalize(images)))
        logits: Tensor = self.head(x.amax(dim=(2, 3))) * self.scale
        return logits


def _stage(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        _convolution(inputs, outputs),
        nn.MaxPool2d(2),
        _norm(outputs),
        nn.ReLU(inplace=True),
        _convolution(outputs, outputs),
        _norm(outputs),
        nn.ReLU(inplace=True),
    )


def _convolution(inputs: int, outputs: int) -> nn.Conv2d:
    layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    with torch.no_grad():
        nn.init.dirac_(layer.weight[:inputs])
    return layer


def _norm(channels: int) -> nn.BatchNorm2d:
    """Its weight, the scale, stays 1."""
    norm = nn.BatchNorm2d(channels)
    norm.weight.requires_grad_(False)
    return norm
