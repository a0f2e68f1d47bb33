"""Networks for the tests to name as module:function."""

from typing import ClassVar

import torch
from torch import Tensor, nn


def with_dropout(num_classes: int, rate: float = 0.5) -> nn.Module:
    return nn.Sequential(nn.Flatten(), ToFloat(), nn.Dropout(rate), nn.Linear(28 * 28, num_classes))


def without_norms(num_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), ToFloat(), nn.Linear(28 * 28, 20), nn.Tanh(), nn.Linear(20, num_classes)
    )


def exact(num_classes: int) -> nn.Module:
    """In float64: how images are shared out between processes then changes a number by 1e-15, and no bin."""
    return nn.Sequential(ToDouble(), without_norms(num_classes).double())


def sure(num_classes: int) -> nn.Module:
    """Sure of itself before it has learnt anything, and exact."""
    model = exact(num_classes)
    nn.init.normal_(model[1][-1].weight, std=5)
    return model


def two_classes() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 2))


def wants_colour(num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, num_classes, 28), nn.Flatten())


class OfSize(nn.Module):
    """Refuses images of another size as timm's ViTs do."""

    def __init__(self, num_classes: int, size: int) -> None:
        super().__init__()
        self.size, self.body = size, nn.Linear(size * size, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        height = images.shape[2]
        torch._assert(height == self.size, f"Input height ({height}) doesn't match model ({self.size}).")
        logits: Tensor = self.body(images.mean(dim=1).flatten(1))
        return logits


class Huge(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return torch.empty(2**55)


def of_size(num_classes: int, img_size: int = 8, memory_at: str = "never") -> nn.Module:
    """A network for one size; or one for which there is not enough memory, once it is built or called."""
    if memory_at == "built":
        torch.empty(2**55)
    return Huge() if memory_at == "called" else OfSize(num_classes, img_size)


def no_network(num_classes: int) -> int:
    return num_classes


class ToDouble(nn.Module):
    def forward(self, images):
        return images.double()


class ToFloat(nn.Module):
    """Bytes as pixels in [0, 1]."""

    def forward(self, images):
        return images if images.is_floating_point() else images.float() / 255


class Recorder(nn.Module):
    """Begins with a convolution, and notes the dtype and the range of all that it is called with."""

    calls: ClassVar[list[tuple[torch.dtype, float, float]]] = []  # of all recorders: commands build their own

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, num_classes, 3, stride=3), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )

    def forward(self, images: Tensor) -> Tensor:
        low, high = images.detach().aminmax()
        self.calls.append((images.dtype, float(low), float(high)))
        logits: Tensor = self.body(images)
        return logits


def recorder(num_classes: int) -> nn.Module:
    return Recorder(num_classes)
