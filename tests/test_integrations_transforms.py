"""Transforms of other libraries keep the contract of every augmentation: that file's tests run here, too."""

import os
import random
import sys

import numpy as np
import pytest
import torch
from test_catalogue import (  # noqa: F401
    batch,
    model,
    seeded,
    test_a_bucket_that_is_not_there_is_refused,
    test_a_strength_lies_in_its_bucket,
    test_bytes_may_come_out_as_floats,
    test_every_bucket_can_be_revisited_for_every_example,
    test_same_seed_same_view_and_no_other_randomness,
    test_shape_dtype_and_range,
    test_training_views_know_their_bucket,
    test_what_comes_out_may_go_in_again,
)

from auglabel.integrations.transforms import AlbumentationsTransforms, TorchvisionTransforms, Transforms


def noisy(image, strength):
    """Draws from all three streams; floats may leave [0, 1]."""
    if image.dtype == torch.uint8:
        return noisy(image.float() / 255, strength).clamp(0, 1).mul(255).to(torch.uint8)
    return image + strength * (torch.randn(image.shape) + np.random.rand() + random.random())  # noqa: NPY002


def mirrored(image, strength):
    return image.flip(2)


def functions():
    return Transforms({"noise": noisy, "mirror": mirrored}, levels={"noise": 5, "mirror": 1})


def albumentations():
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for a newer version
    A = pytest.importorskip("albumentations", reason="albumentations is not installed")
    return AlbumentationsTransforms(
        {
            "noise": lambda s: A.GaussNoise(std_range=(s / 4, s / 4), p=1),
            "rotate": lambda s: A.Rotate(limit=(-45 * s, 45 * s), p=1),
            "posterize": lambda s: A.Posterize(num_bits=8 - int(6 * s), p=1),
        },
        levels=4,
    )


@pytest.fixture(params=[functions, albumentations])
def augment(request):
    return request.param()


def test_functions_get_the_strength_of_their_level():
    seen = []

    def record(image, strength):
        seen.append(strength)
        return image

    images, labels = batch(4)
    moved = Transforms({"record": record}, levels=4)
    view = moved(images, labels, bucket=torch.tensor([0, 1, 2, 3]))
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert view.strength.tolist() == seen


def test_numpys_and_pythons_streams_are_left_as_they_were(augment):
    images, labels = batch(4)
    random.seed(1), np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    augment(images, labels, generator=seeded())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


def test_an_image_moves_the_same_whatever_the_batch_around_it(augment):
    images, labels = batch(6)
    together = augment(images, labels, bucket=torch.zeros(6, dtype=torch.int64), generator=seeded())
    generator = seeded()
    augment.grid.draw_in(torch.zeros(6, dtype=torch.int64), generator)
    seeds = torch.randint(2**31, (6,), generator=generator).tolist()
    alone = augment._move(images[3], augment.grid.kinds[0], float(together.strength[3]), seeds[3])
    assert torch.equal(alone.clamp(0, 1), together.images[3])


def test_a_transform_is_built_once_per_level():
    built = []

    def factory(strength):
        built.append(strength)
        return lambda image: image

    augment = TorchvisionTransforms({"none": factory}, levels=3)
    images, labels = batch(30)
    for _ in range(3):
        augment(images, labels, generator=seeded())
    assert sorted(built) == pytest.approx([1 / 3, 2 / 3, 1])


def test_albumentations_get_bytes_height_by_width_by_channels():
    shapes = []

    class Transform:
        def set_random_seed(self, seed):
            pass

        def __call__(self, image):
            shapes.append((image.shape, str(image.dtype)))
            return {"image": image[:, :, 0]}  # some drop a channel of one

    augment = AlbumentationsTransforms({"none": lambda strength: Transform()})
    images, labels = torch.rand(2, 1, 5, 7), torch.tensor([0, 1])
    view = augment(images, labels)
    assert shapes == [((5, 7, 1), "uint8")] * 2
    torch.testing.assert_close(view.images, (255 * images).round() / 255)


def test_mistakes_get_a_sentence():
    class Sometimes:
        p = 0.5

        def __call__(self, image):
            return image

    images, labels = batch(2)
    with pytest.raises(TypeError, match=r"Transforms takes names with functions, got list \[\]"):
        Transforms([])
    with pytest.raises(TypeError, match='"blur" must be a function, got int 3'):
        Transforms({"blur": 3})
    with pytest.raises(ValueError, match="levels must be for blur, but are for blurr"):
        Transforms({"blur": noisy}, levels={"blurr": 3})
    with pytest.raises(ValueError, match=r'"crop" must keep the image\'s shape \(3, 12, 12\)'):
        Transforms({"crop": lambda image, strength: image[:, 1:]})(images, labels)
    with pytest.raises(ValueError, match=r"applied with probability 0.5.*pass p=1"):
        TorchvisionTransforms({"some": lambda strength: Sometimes()})(images, labels)
    with pytest.raises(TypeError, match='"none" must build a transform, got NoneType None'):
        TorchvisionTransforms({"none": lambda strength: None})(images, labels)


def test_nothing_of_other_libraries_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "auglabel.integrations.transforms")
    for package in ("torchvision", "albumentations", "timm"):
        monkeypatch.setitem(sys.modules, package, None)
    __import__("auglabel.integrations.transforms")
