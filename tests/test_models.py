import pytest
import torch

from auglabel.models.normalize import Normalize
from auglabel.models.small import SmallNet


def test_normalize_by_hand_and_bytes_are_255ths():
    layer = Normalize(mean=[0.5, 0.2], std=[0.25, 0.1])
    pixels = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)
    torch.testing.assert_close(layer(pixels).flatten(), torch.tensor([-2.0, 8.0]))
    as_bytes = torch.tensor([0, 255], dtype=torch.uint8).view(1, 2, 1, 1)
    torch.testing.assert_close(layer(as_bytes), layer(pixels))


def test_the_small_network_has_the_published_size():
    assert sum(parameter.numel() for parameter in SmallNet(10).parameters()) == 137_434


@pytest.mark.parametrize("size", [8, 28, 32, 50])
def test_the_small_network_takes_any_size_and_learns(size):
    torch.manual_seed(0)
    model = SmallNet(5)
    images = torch.rand(6, 3, size, size)
    logits = model(images)
    assert logits.shape == (6, 5)
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    model.eval()
    assert torch.equal(model(images), model(images))


def test_the_last_block_is_residual():
    model = SmallNet(5).eval()
    images = torch.rand(2, 3, 32, 32)
    model.residual[0].weight.data.zero_()  # the branch gives nothing: the rest must go through
    assert not torch.equal(model(images[:1]), model(images[1:]))
