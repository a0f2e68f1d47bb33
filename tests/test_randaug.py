import math
import subprocess
import sys

import pytest
import torch

from auglabel import AugMix, Mixup, RandAug
from auglabel.augment import ops


def test_the_default_grid_has_82_buckets():
    augment = RandAug()
    assert augment.grid.levels == (10,) * 8 + (1, 1)
    assert len(augment.grid) == 82
    assert len(RandAug(m_max=3, operations=["rotate", "equalize"]).grid) == 4


def test_a_bucket_is_one_operation_at_one_magnitude(colour_images):
    augment, n = RandAug(), len(colour_images)
    labels = torch.zeros(n, dtype=torch.int64)
    for bucket, name, magnitude in [
        (0, "rotate", 1),
        (57, "posterize", 8),
        (69, "solarize", 10),
        (81, "equalize", 1),
    ]:
        view = augment(colour_images, labels, bucket=torch.full((n,), bucket))
        assert (view.bucket == bucket).all()
        operation = torch.full((n,), ops.OPERATIONS.index(name))
        either = [
            ops.distort(colour_images, operation, torch.full((n,), magnitude), torch.full((n,), sign))
            for sign in (-1, 1)
        ]
        assert all(any(torch.equal(view.images[i], moved[i]) for moved in either) for i in range(n))
    assert (view.strength == 1).all()


def test_the_limit_on_magnitudes_rescales_nothing(grey_images):
    labels = torch.zeros(500, dtype=torch.int64)
    three = torch.full((500,), 2)  # rotate at magnitude 3
    views = [
        RandAug(m_max=m_max)(grey_images, labels, bucket=three, generator=torch.Generator().manual_seed(1))
        for m_max in (3, 10)
    ]
    assert torch.equal(views[0].images, views[1].images)
    assert views[0].strength[0] == 1
    assert views[1].strength[0].item() == pytest.approx(0.3)


def test_training_draws_operations_and_magnitudes_uniformly(grey_images):
    images = grey_images[:1].expand(8200, 1, 28, 28)
    view = RandAug(m_max=10)(images, torch.zeros(8200).long(), generator=torch.Generator().manual_seed(0))
    count = view.bucket.bincount(minlength=82)
    torch.testing.assert_close(count[:80].float().mean().item(), 82.0, atol=3, rtol=0)
    assert count[:80].min() > 45
    assert count[:80].max() < 125
    assert (count[80:] > 700).all()


def test_same_seed_same_view_and_signs_both_ways(grey_images):
    labels = torch.zeros(500, dtype=torch.int64)
    first, again, other = (
        RandAug()(grey_images, labels, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.bucket, again.bucket)
    assert not torch.equal(first.images, other.images)
    far_left = RandAug(operations=["translate_x"])(grey_images, labels, bucket=torch.full((500,), 9))
    empty_left = (far_left.images[:, :, :, 0] == 128).all(dim=(1, 2)).float().mean()
    assert 0.4 < empty_left < 0.6


def test_images_given_are_left_alone(colour_images):
    floats = colour_images.float() / 255
    before = floats.clone()
    RandAug()(floats, torch.zeros(500, dtype=torch.int64))
    assert torch.equal(floats, before)


@pytest.mark.parametrize(("channels", "size"), [(1, (28, 28)), (3, (1, 7)), (3, (64, 48))])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_any_size_comes_back_in_shape_dtype_and_range(channels, size, dtype):
    images = torch.rand(60, channels, *size)
    images = (images * 255).to(torch.uint8) if dtype == torch.uint8 else images
    view = RandAug()(images, torch.zeros(60).long())
    assert view.images.shape == images.shape
    assert view.images.dtype == dtype
    assert dtype == torch.uint8 or (view.images.min() >= 0 and view.images.max() <= 1)


def test_the_fill_and_the_interpolation_asked_for_are_used(grey_images):
    labels, far = torch.zeros(500, dtype=torch.int64), torch.full((500,), 9)
    black = RandAug(operations=["translate_x"], fill=0)(grey_images, labels, bucket=far)
    edges = black.images[:, 0, :, [0, -1]].amax(dim=1)  # (500, 2): one side is filled
    assert (edges.amin(dim=1) == 0).all()
    turned = RandAug(operations=["rotate"], interpolation="nearest")(grey_images, labels, bucket=far)
    levels = [set(image.unique().tolist()) for image in grey_images]
    assert all(
        set(image.unique().tolist()) <= kept | {128}
        for image, kept in zip(turned.images, levels, strict=True)
    )


@pytest.mark.parametrize("name", ops.OPERATIONS)
def test_memory_layout_and_autocast_change_nothing(colour_images, name):
    floats, labels = colour_images.float() / 255, torch.zeros(500, dtype=torch.int64)
    augment = RandAug(operations=[name])
    plain = augment(floats, labels, generator=torch.Generator().manual_seed(2)).images
    last = floats.to(memory_format=torch.channels_last)
    assert torch.equal(augment(last, labels, generator=torch.Generator().manual_seed(2)).images, plain)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = augment(floats, labels, generator=torch.Generator().manual_seed(2)).images
    assert torch.equal(cast, plain)


def test_small_pieces_give_the_same_pictures(colour_images, monkeypatch):
    labels = torch.zeros(500, dtype=torch.int64)
    for augment in (RandAug(), AugMix(), Mixup()):
        whole = augment(colour_images, labels, generator=torch.Generator().manual_seed(3)).images
        with monkeypatch.context() as patched:
            patched.setattr(ops, "CHUNK", 7 * 3 * 28 * 28)
            pieces = augment(colour_images, labels, generator=torch.Generator().manual_seed(3)).images
        assert torch.equal(pieces, whole)


def test_tables_do_not_depend_on_torchs_defaults(colour_images):
    script = """
import torch
from auglabel import AugMix, Mixup, RandAug
with torch.device("meta"):
    augment = RandAug()
torch.set_default_dtype(torch.bfloat16)
images = torch.arange(60 * 3 * 40 * 40, dtype=torch.float32).remainder(251).view(60, 3, 40, 40) / 255
view = augment(images, torch.zeros(60).long(), generator=torch.Generator().manual_seed(0))
print(float(view.images.double().sum()))
"""
    plain = script.replace("torch.set_default_dtype(torch.bfloat16)", "").replace(
        "with torch.device", "if torch.device"
    )
    first, second = (
        float(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout)
        for text in (script, plain)
    )
    assert first == pytest.approx(second, rel=1e-6)


def test_several_operations_share_one_magnitude(colour_images):
    augment = RandAug(num_ops=2, operations=["solarize"])
    assert augment.grid.levels == (10,)
    labels = torch.zeros(500, dtype=torch.int64)
    twice = augment(colour_images, labels, bucket=torch.full((500,), 9))  # inverted, and inverted again
    assert torch.equal(twice.images, colour_images)
    mixed = RandAug(num_ops=3)(colour_images[:1].expand(200, -1, -1, -1), labels[:200])
    assert len(mixed.images.flatten(1).unique(dim=0)) > 150


def test_color_needs_one_or_three_channels():
    with pytest.raises(ValueError, match="color takes images of 1 or 3 channels, got 2"):
        RandAug(operations=["color"])(torch.rand(2, 2, 4, 4), torch.zeros(2).long())
    assert "color" not in ops.WITHOUT_COLOR
    assert len(RandAug(operations=ops.WITHOUT_COLOR).grid) == 72


def test_an_empty_batch_is_an_empty_view():
    view = RandAug()(torch.empty(0, 3, 8, 8), torch.empty(0, dtype=torch.int64))
    assert len(view) == 0


LABELS = torch.zeros(2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.full((2, 3, 4, 4), math.nan), "some values are nan"),
        (torch.full((2, 3, 4, 4), 1.5), r"in \[0, 1\], got values from 1.5 to 1.5"),
        (torch.zeros(2, 3, 4, 4) - 0.5, "in the model's first layer"),
        (torch.zeros(3, 4, 4), r"shape \(B, C, H, W\)"),
        (torch.zeros(3, 3, 4, 4), "equal length.*images 3, labels 2"),
    ],
)
def test_images_that_do_not_fit_are_refused(images, message):
    with pytest.raises(ValueError, match=message):
        RandAug()(images, LABELS)


def test_wrong_dtypes_and_buckets_are_refused():
    images = torch.zeros(2, 3, 4, 4)
    with pytest.raises(TypeError, match="uint8 or floating point, got a int64"):
        RandAug()(images.long(), LABELS)
    with pytest.raises(TypeError, match="images must be a tensor"):
        RandAug()([1], LABELS)
    with pytest.raises(ValueError, match=r"bucket must be in 0..81 for 82 buckets, got 82"):
        RandAug()(images, LABELS, bucket=torch.tensor([0, 82]))
    with pytest.raises(ValueError, match=r"equal length.*images 2, bucket 1"):
        RandAug()(images, LABELS, bucket=torch.tensor([0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m_max": 0}, r"m_max must be in 1..10, got 0"),
        ({"m_max": 11}, r"m_max must be in 1..10"),
        ({"operations": ["spin"]}, r"operations must be different names out of rotate"),
        ({"operations": []}, "operations must be"),
        ({"operations": ["rotate", "rotate"]}, "operations must be different"),
        ({"fill": 300}, r"fill must be in 0..255"),
        ({"interpolation": "cubic"}, 'interpolation must be "bilinear" or "nearest"'),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RandAug(**options)
