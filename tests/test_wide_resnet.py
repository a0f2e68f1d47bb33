import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auglabel.models.wide_resnet import WideResNet


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def by_arithmetic(depth, width, classes):
    """Convolutions 9ab (shortcuts ab), two numbers per normalised channel, the last layer with its bias."""
    total, inputs = 3 * 16 * 9, 16
    for outputs in (16 * width, 32 * width, 64 * width):
        for _ in range((depth - 4) // 6):
            total += 2 * inputs + 9 * inputs * outputs + 2 * outputs + 9 * outputs * outputs
            total += inputs * outputs if inputs != outputs else 0
            inputs = outputs
    return total + 2 * inputs + inputs * classes + classes


@pytest.mark.parametrize(
    ("depth", "width", "classes", "published"),
    [(28, 10, 100, 36_536_884), (28, 10, 10, 36_479_194), (16, 4, 10, 2_748_890), (10, 1, 10, None)],
)
def test_the_number_of_parameters_is_the_published_one(depth, width, classes, published):
    with torch.device("meta"):
        found = count(WideResNet(classes, depth, width))
    assert found == by_arithmetic(depth, width, classes)
    assert published is None or found == published


@pytest.mark.parametrize("size", [8, 28, 32, 33])
def test_any_image_size_works_and_every_parameter_learns(size):
    torch.manual_seed(0)
    model = WideResNet(5, depth=10, width=1)
    logits = model(torch.rand(6, 3, size, size))
    assert logits.shape == (6, 5)
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_the_resolution_is_halved_twice():
    model = WideResNet(5, depth=16, width=1).eval()
    shapes = []
    for block in model.blocks:
        block.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape[1:])))
    model(torch.rand(1, 3, 32, 32))
    assert shapes == [(16, 32, 32)] * 2 + [(32, 16, 16)] * 2 + [(64, 8, 8)] * 2


def normed(x, state, name):
    stats = (state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
    return F.batch_norm(x, *stats, eps=1e-5).relu()


def by_hand(state, images):
    """Depth 10, block by block, from the weights alone."""
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    std = torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1)
    x = F.conv2d((images - mean) / std, state["stem.weight"], padding=1)
    for i, stride in enumerate((1, 2, 2)):
        y = F.conv2d(
            normed(x, state, f"blocks.{i}.norm1"), state[f"blocks.{i}.conv1.weight"], None, stride, 1
        )
        y = F.conv2d(normed(y, state, f"blocks.{i}.norm2"), state[f"blocks.{i}.conv2.weight"], padding=1)
        shortcut = state.get(f"blocks.{i}.shortcut.weight")
        x = y + (x if shortcut is None else F.conv2d(x, shortcut, stride=stride))
    return normed(x, state, "norm").mean(dim=(2, 3)) @ state["head.weight"].T + state["head.bias"]


@pytest.mark.parametrize("width", [1, 2])  # of width 1 the first block has no 1x1 shortcut, of width 2 it has
def test_the_output_is_what_the_layers_give_written_out(width):
    torch.manual_seed(0)
    model = WideResNet(5, depth=10, width=width).eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for part in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                part.uniform_(0.5, 1.5)
    assert ("blocks.0.shortcut.weight" in model.state_dict()) == (width == 2)
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        torch.testing.assert_close(model(images), by_hand(model.state_dict(), images))


def test_bytes_are_255ths():
    model = WideResNet(5, depth=10, width=1, mean=(0.5,), std=(0.2,)).eval()
    images = torch.randint(256, (2, 1, 16, 16), dtype=torch.uint8)
    torch.testing.assert_close(model(images), model(images / 255))


def test_weights_start_he_normal_over_the_inputs():
    torch.manual_seed(0)
    model = WideResNet(100, depth=10, width=8)
    for layer, fan_in in (
        (model.blocks[2].conv1, 9 * 256),
        (model.blocks[2].shortcut, 256),
        (model.head, 512),
    ):
        assert layer.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.02)
    assert model.head.bias.abs().sum() == 0


@pytest.mark.parametrize(
    ("depth", "sentence"), [(27, "6n \\+ 4"), (4, "in 10\\.\\.3000"), (28.0, "whole number")]
)
def test_a_depth_that_cannot_be_is_refused_in_one_sentence(depth, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^depth must be .*{sentence}.*{depth}\\.$"):
        WideResNet(10, depth=depth)
