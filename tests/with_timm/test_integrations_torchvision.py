"""torchvision's transforms keep the contract of every augmentation: that file's tests run here, too."""

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

from auglabel import AugmentAndLabel
from auglabel.integrations.transforms import TorchvisionTransforms


@pytest.fixture
def augment():
    from torchvision.transforms import v2

    return TorchvisionTransforms(
        {
            "blur": lambda s: v2.GaussianBlur(5, sigma=0.1 + 2 * s),
            "rotate": lambda s: v2.RandomRotation(45 * s),
            "jitter": lambda s: v2.ColorJitter(brightness=s, contrast=s),
            "equalize": lambda s: v2.RandomEqualize(p=1),
        },
        levels={"blur": 4, "rotate": 4, "jitter": 4, "equalize": 1},
    )


def test_labels_are_learned_for_them(augment, model):  # noqa: F811
    images, labels = batch(100)
    learned = AugmentAndLabel(augment, num_classes=4, alpha=0.5)
    learned.update(model, [(images, labels)])
    moved, targets = learned(images, labels)
    assert moved.shape == images.shape
    assert learned.table.min() < 1
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(100))


def test_a_transform_that_is_not_always_applied_is_refused():
    from torchvision.transforms import v2

    sometimes = TorchvisionTransforms({"solarize": lambda s: v2.RandomSolarize(1 - s)})
    with pytest.raises(ValueError, match=r"probability 0\.5"):
        sometimes(*batch(2))
