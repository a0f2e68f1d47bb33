import pytest
import torch
import torch.nn.functional as F

from auglabel import (
    Augmentation,
    AugMix,
    Clean,
    CutMix,
    DistanceGrid,
    Erasing,
    Mixup,
    RandAug,
    View,
    WideCrop,
    pgd,
)
from auglabel.corrupt import corrupt
from auglabel.util.checks import require_images

LABELS = torch.tensor([0, 1])


@pytest.mark.parametrize(
    "augment",
    [AugMix(), RandAug(), Mixup(), CutMix(), WideCrop(), Erasing(fill="mean"), Clean()],
    ids=lambda a: type(a).__name__,
)
def test_pixels_one_rounding_step_above_1_are_cut_to_1(augment):
    white = F.interpolate(torch.ones(2, 3, 256, 256), size=(224, 224), mode="bilinear", antialias=True)
    assert white.max() > 1  # as torch's resizing leaves them
    moved = augment(white, LABELS).images
    assert moved.aminmax().min >= 0
    assert moved.aminmax().max <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_float_error_is_cut_off_and_the_rest_stays(dtype):
    error = 2 * torch.finfo(dtype).eps
    images = torch.tensor([-error, 0.25, 1 + error, 1], dtype=dtype).view(1, 1, 2, 2)
    assert require_images("images", images).flatten().tolist() == [0, 0.25, 1, 1]


def test_images_in_range_are_handed_on_untouched():
    images = torch.rand(2, 3, 4, 4)
    assert require_images("images", images) is images


def test_attacks_and_corruptions_cut_float_error_too():
    images = torch.full((2, 3, 32, 32), 1 + 1e-6)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2))
    assert pgd(model, images, LABELS, torch.tensor([0.0, 0.01])).max() <= 1
    noisy = images.to(torch.bfloat16) + 0.0078125  # 257 of 255, which is 1 as a byte
    assert corrupt(noisy, "brightness", 1).min() == 1


@pytest.mark.parametrize(
    ("low", "high", "hint"),
    [
        (
            -2.1,
            2.6,
            "They look normalised: pass the mean= and std= that they were normalised with to AugmentAndLabel",
        ),
        (
            0.3,
            2.6,
            "They look normalised: pass the mean= and std= that they were normalised with to AugmentAndLabel",
        ),
        (0.0, 255.0, "They look like 0..255: divide by 255, or pass uint8"),
        (0.0, 65535.0, "They look like 0..65535: divide by 65535"),
        (-0.05, 1.0, r"pass images.clamp\(0, 1\)"),
        (0.0, 1.07, r"pass images.clamp\(0, 1\)"),
        (0.0, torch.inf, "Some pixels are infinite"),
        (-255.0, 255.0, "They look normalised"),
    ],
)
def test_the_hint_is_for_what_was_found(low, high, hint):
    images = torch.tensor([low, high]).view(2, 1, 1, 1)
    with pytest.raises(ValueError, match=rf"must be in \[0, 1\], got values from .*\. .*{hint}"):
        require_images("images", images)


class Same(Augmentation):
    """Images as they are; on the device "meta" a look at their values is an error."""

    def __init__(self):
        self.grid = DistanceGrid((1,))

    def apply(self, images, labels, distance, model, generator):
        return View(images, labels, distance.bucket, distance.strength)


def on_meta(shape=(2, 3, 4, 4)):
    """As on an accelerator: values that cannot be looked at without more ado."""
    return torch.empty(shape, device="meta"), LABELS.to("meta")


def test_an_accelerator_waits_for_the_first_training_batch_alone():
    augment = Same()
    with pytest.raises(RuntimeError, match="meta"):
        augment(*on_meta())  # looked at
    augment(torch.rand(2, 3, 4, 4), LABELS)
    assert augment(*on_meta()).images.shape == (2, 3, 4, 4)
    with pytest.raises(ValueError, match=r"must have shape \(B, C, H, W\)"):
        augment(*on_meta((2, 4, 4)))


def test_a_batch_that_cannot_tell_does_not_count_as_the_first():
    augment = Same()
    augment(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), LABELS)
    augment(torch.zeros(0, 3, 4, 4), LABELS[:0])
    augment(torch.rand(2, 3, 4, 4), LABELS, bucket=torch.zeros_like(LABELS))  # of the validation images
    with pytest.raises(ValueError, match="normalised"):
        augment(torch.full((2, 3, 4, 4), -2.0), LABELS)
    with pytest.raises(RuntimeError, match="meta"):
        augment(*on_meta())


def test_every_batch_is_looked_at_on_the_cpu_and_where_it_is_measured():
    augment = Same()
    augment(torch.rand(2, 3, 4, 4), LABELS)
    with pytest.raises(ValueError, match="normalised"):
        augment(torch.full((2, 3, 4, 4), -2.0), LABELS)
    images, labels = on_meta()
    with pytest.raises(RuntimeError, match="meta"):
        augment(images, labels, bucket=torch.zeros_like(labels))


def test_values_that_are_not_looked_at_are_cut_to_the_range():
    images = torch.tensor([-0.5, 0.25, 1.5]).view(3, 1, 1, 1)
    assert require_images("images", images, look=False).flatten().tolist() == [0, 0.25, 1]


def test_an_attack_looks_at_the_range_unless_told_not_to():
    images = torch.full((2, 3, 2, 2), 1.5)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        pgd(model, images, LABELS, 0.01)
    assert pgd(model, images, LABELS, 0.01, check_range=False).max() <= 1
