import pytest
import torch
from torch import nn

from auglabel.models.resnet import ResNet


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def by_arithmetic(depth, classes):
    """Convolutions, two numbers per normalised channel, the last layer with its bias."""
    total, inputs = 3 * 64 * 49 + 2 * 64, 64
    for width, blocks in zip((64, 128, 256, 512), {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth], strict=True):
        for _ in range(blocks):
            outputs = width if depth == 18 else 4 * width
            if depth == 18:
                total += 9 * inputs * width + 9 * width * width + 4 * width
            else:
                total += inputs * width + 9 * width * width + width * outputs + 4 * width + 2 * outputs
            total += inputs * outputs + 2 * outputs if inputs != outputs else 0
            inputs = outputs
    return total + inputs * classes + classes


@pytest.mark.parametrize(("depth", "published"), [(50, 25_557_032), (18, 11_689_512)])
def test_the_number_of_parameters_is_the_published_one(depth, published):
    with torch.device("meta"):
        assert count(ResNet(1000, depth)) == published == by_arithmetic(depth, 1000)
        assert count(ResNet(10, depth)) == by_arithmetic(depth, 10)


@pytest.mark.parametrize("depth", [18, 50])
def test_it_takes_small_images_and_every_parameter_learns(depth):
    torch.manual_seed(0)
    model = ResNet(5, depth)
    logits = model(torch.rand(4, 3, 64, 48))
    assert logits.shape == (4, 5)
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_the_stride_is_in_the_3x3_convolution():
    with torch.device("meta"):
        first = ResNet(5, 50).layer2[0]
    assert [conv.stride for conv in (first.conv1, first.conv2, first.conv3)] == [(1, 1), (2, 2), (1, 1)]


def test_the_resolution_is_halved_five_times():
    model = ResNet(5, 18).eval()
    shapes = []
    for layer in (model.maxpool, model.layer1, model.layer2, model.layer3, model.layer4):
        layer.register_forward_hook(lambda module, inputs, output: shapes.append(tuple(output.shape[1:])))
    model(torch.rand(1, 3, 64, 64))
    assert shapes == [(64, 16, 16), (64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]


def test_the_shortcut_carries_what_a_silent_branch_does_not():
    model = ResNet(5, 50).eval()
    block = model.layer1[1]
    block.conv3.weight.data.zero_()  # batch norm of nothing is nothing, before training
    x = torch.rand(1, 256, 8, 8)
    torch.testing.assert_close(block(x), x)


def test_names_are_torchvisions_in_its_order():
    with torch.device("meta"):
        names = [name for name, _ in ResNet(10, 50).named_parameters()]
    assert names[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"]
    assert names[3:15] == [
        f"layer1.0.{part}"
        for part in (
            *("conv1.weight", "bn1.weight", "bn1.bias"),
            *("conv2.weight", "bn2.weight", "bn2.bias"),
            *("conv3.weight", "bn3.weight", "bn3.bias"),
            *("downsample.0.weight", "downsample.1.weight", "downsample.1.bias"),
        )
    ]
    assert names[-2:] == ["fc.weight", "fc.bias"]


def test_weights_without_normalisation_load_and_ours_stays():
    torch.manual_seed(0)
    source = ResNet(5, 18)
    weights = {name: part for name, part in source.state_dict().items() if "normalize" not in name}
    model = ResNet(5, 18, mean=(0.1, 0.2, 0.3), std=(1, 1, 1))
    wrapped = nn.ModuleDict({"inner": model})
    wrapped.load_state_dict({f"inner.{name}": part for name, part in weights.items()})
    assert torch.equal(model.layer4[1].conv2.weight, source.layer4[1].conv2.weight)
    torch.testing.assert_close(model.normalize.mean.flatten(), torch.tensor([0.1, 0.2, 0.3]))
    assert "normalize.mean" not in weights
    model.load_state_dict(source.state_dict())
    torch.testing.assert_close(model.normalize.mean.flatten(), torch.tensor([0.485, 0.456, 0.406]))
    del weights["fc.bias"]
    with pytest.raises(RuntimeError, match=r"fc\.bias"):
        model.load_state_dict(weights)


def test_weights_start_he_normal_over_the_outputs_and_no_norm_at_zero():
    torch.manual_seed(0)
    model = ResNet(100, 18)
    convolution = model.layer4[0].conv1  # 3x3, 512 outputs
    assert convolution.weight.std().item() == pytest.approx((2 / (9 * 512)) ** 0.5, rel=0.02)
    assert model.fc.weight.std().item() == pytest.approx(0.01, rel=0.05)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert all((module.weight == 1).all() for module in norms)


def test_bytes_are_255ths_and_one_channel_is_enough():
    model = ResNet(5, 18, mean=(0.5,), std=(0.2,)).eval()
    images = torch.randint(256, (2, 1, 32, 32), dtype=torch.uint8)
    torch.testing.assert_close(model(images), model(images / 255))


def test_another_depth_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^depth must be 18 or 50, got 34\.$"):
        ResNet(10, depth=34)


@pytest.mark.parametrize("depth", [18, 50])
def test_torchvisions_weights_give_torchvisions_outputs(depth):
    models = pytest.importorskip("torchvision.models", exc_type=Exception)
    torch.manual_seed(0)
    theirs = getattr(models, f"resnet{depth}")(num_classes=10).eval()
    ours = ResNet(10, depth, mean=(0, 0, 0), std=(1, 1, 1)).eval()
    ours.load_state_dict(theirs.state_dict())
    images = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(ours(images), theirs(images))
