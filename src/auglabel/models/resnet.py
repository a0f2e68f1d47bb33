"""ResNet v1.5 (He et al., 2015; stride in the bottleneck's 3x3), the paper's network for ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from auglabel.errors import UserError
from auglabel.models.normalize import Normalize
from auglabel.util.checks import require_whole

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


class ResNet(nn.Module):
    """ResNet-50, of bottlenecks, or ResNet-18, of basic blocks.

    25,557,032 and 11,689,512 parameters for 3 channels and 1,000 classes. Parameters are named as
    torchvision names them, so its weights load with `load_state_dict`; `mean` and `std` stay as they are
    where the weights bring none.
    """

    def __init__(
        self,
        num_classes: int,
        depth: int = 50,
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225),
    ) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 1)
        if depth not in BLOCKS:
            raise UserError(f"depth must be 18 or 50, got {depth!r}.")
        self.normalize = Normalize(mean, std)
        self.conv1 = nn.Conv2d(len(mean), 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        block = _Bottleneck if depth == 50 else _Basic
        one, two, three, four = BLOCKS[depth]
        grown = block.expansion
        self.layer1 = _layer(block, 64, 64, one, stride=1)
        self.layer2 = _layer(block, 64 * grown, 128, two, stride=2)
        self.layer3 = _layer(block, 128 * grown, 256, three, stride=2)
        self.layer4 = _layer(block, 256 * grown, 512, four, stride=2)
        self.fc = nn.Linear(512 * grown, num_classes)
        _initialize(self)
        self.register_load_state_dict_pre_hook(_keep_normalization)  # type: ignore[no-untyped-call]

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(self.normalize(images)))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


class _Residual(nn.Module):
    """A branch beside a shortcut, then ReLU. Layers are made in torchvision's order, the shortcut last."""

    expansion = 1  # outputs per unit of width

    relu: nn.ReLU
    downsample: nn.Module

    def branch(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu(self.branch(x) + self.downsample(x))
        return out


class _Basic(_Residual):
    """Two 3x3 convolutions, the first with the stride."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3), nn.BatchNorm2d(width)
        self.relu, self.downsample = nn.ReLU(inplace=True), _downsample(inputs, width, stride)

    def branch(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.bn2(self.conv2(x))
        return out


class _Bottleneck(_Residual):
    """1x1, 3x3 with the stride, and 1x1 to four times the width."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _conv(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.relu, self.downsample = nn.ReLU(inplace=True), _downsample(inputs, 4 * width, stride)

    def branch(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        out: Tensor = self.bn3(self.conv3(x))
        return out


def _layer(block: type[_Residual], inputs: int, width: int, count: int, stride: int) -> nn.Sequential:
    others = (block(width * block.expansion, width, stride=1) for _ in range(count - 1))
    return nn.Sequential(block(inputs, width, stride), *others)


def _downsample(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(_conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


def _initialize(model: nn.Module) -> None:
    # Every batch norm starts at one, the last of a branch too: starting that one at zero is an addition of
    # large-batch recipes, and neither torchvision's default nor the code base the paper trained with has it.
    if next(model.parameters()).is_meta:
        return  # an outline, without values
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)


def _keep_normalization(model: ResNet, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Weights from elsewhere know no `normalize`: ours stays."""
    for name, value in model.normalize.named_buffers():
        state.setdefault(f"{prefix}normalize.{name}", value)
