"""Wide ResNet (Zagoruyko and Komodakis, 2016), the paper's network for 32x32 images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from auglabel.errors import UserError
from auglabel.models.normalize import Normalize
from auglabel.util.checks import require_whole

MOST_LAYERS = 3000


class WideResNet(nn.Module):
    """Pre-activation, three groups of (depth - 4) / 6 blocks, of width 16, 32 and 64 times `width`.

    36,536,884 parameters at the defaults (28-10) for 3 channels and 100 classes. Any image size works.
    """

    def __init__(
        self,
        num_classes: int,
        depth: int = 28,
        width: int = 10,
        mean: Sequence[float] = (0.4914, 0.4822, 0.4465),
        std: Sequence[float] = (0.2470, 0.2435, 0.2616),
    ) -> None:
        super().__init__()
        require_whole("num_classes", num_classes, 1)
        require_whole("depth", depth, 10, MOST_LAYERS)
        require_whole("width", width, 1)
        if (depth - 4) % 6:
            raise UserError(f"depth must be 6n + 4, such as 10, 16, 22, 28 or 40, got {depth}.")
        self.normalize = Normalize(mean, std)
        self.stem = nn.Conv2d(len(mean), 16, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        inputs = 16
        for outputs, stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
            for i in range((depth - 4) // 6):
                blocks.append(_Block(inputs, outputs, stride if i == 0 else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(inputs)
        self.head = nn.Linear(inputs, num_classes)
        _initialize(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.blocks(self.stem(self.normalize(images)))
        logits: Tensor = self.head(self.norm(x).relu_().mean(dim=(2, 3)))
        return logits


class _Block(nn.Module):
    """Norm, ReLU, 3x3, norm, ReLU, 3x3, beside the shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        # The 1x1 shortcut reads the block's input as it is, as in the code base the paper trained with;
        # others let it read the first ReLU's output.
        y = self.conv1(self.norm1(x).relu_())
        out: Tensor = self.shortcut(x) + self.conv2(self.norm2(y).relu_())
        return out


def _initialize(model: nn.Module) -> None:
    # He-normal over fan_in, the last layer too: Keras's he_normal, which the paper's code base used, has this
    # deviation, though it draws from a normal distribution cut off at two deviations.
    if next(model.parameters()).is_meta:
        return  # an outline, without values
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
