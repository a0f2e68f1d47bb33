"""Every operation against Pillow, pixel by pixel, on real images."""

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from auglabel.augment import ops

SIZES = [(28, 28), (32, 32), (224, 224), (17, 40)]


def pictures(images, size, n):
    """n of `images` at `size` (height, width), resized by Pillow."""
    if tuple(images.shape[2:]) == size:
        return images[:n]
    return torch.stack(
        [to_tensor(to_pillow(image).resize(size[::-1], Image.Resampling.BICUBIC)) for image in images[:n]]
    )


def to_pillow(image):
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def to_tensor(picture):
    import numpy as np

    array = np.array(picture)
    return torch.from_numpy(array[:, :, None] if array.ndim == 2 else array).permute(2, 0, 1)


def with_pillow(images, function):
    return torch.stack([to_tensor(function(to_pillow(image))) for image in images])


def ours(images, name, magnitude, sign=1, **options):
    n = len(images)
    return ops.distort(
        images,
        torch.full((n,), ops.OPERATIONS.index(name)),
        torch.full((n,), magnitude),
        torch.full((n,), sign),
        **options,
    )


@pytest.fixture(params=["colour", "grey"])
def images(request, colour_images, grey_images):
    return colour_images if request.param == "colour" else grey_images


BITS = {1: 4, 2: 4, 3: 3, 4: 3, 5: 2, 6: 2, 7: 2, 8: 1, 9: 1, 10: 1}
THRESHOLD = {1: 231, 2: 205, 3: 180, 4: 154, 5: 128, 6: 103, 7: 77, 8: 52, 9: 26, 10: 0}
EXACT = {
    "posterize": lambda magnitude: lambda picture: ImageOps.posterize(picture, BITS[magnitude]),
    "solarize": lambda magnitude: lambda picture: ImageOps.solarize(picture, THRESHOLD[magnitude]),
    "autocontrast": lambda _: ImageOps.autocontrast,
    "equalize": lambda _: ImageOps.equalize,
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EXACT)
def test_level_operations_equal_pillow_exactly(images, name, size):
    batch = pictures(images, size, 40 if size[0] < 100 else 6)
    batch = torch.cat([batch, batch[:1] * 0 + 77, batch[:1] // 9 + 100])  # a flat and a dull one
    for magnitude in range(1, 11) if name in BITS or name in ("posterize", "solarize") else [1]:
        expected = with_pillow(batch, EXACT[name](magnitude))
        assert torch.equal(ours(batch, name, magnitude), expected)


@pytest.mark.parametrize("name", EXACT)
def test_float_images_give_the_same_levels(images, name):
    floats = images[:50].float() / 255
    assert torch.equal(ours(floats, name, 4), ours(images[:50], name, 4).float() / 255)


def mapped(matrix, resample=Image.Resampling.BILINEAR):
    def move(picture):
        fill = 128 if picture.mode == "L" else (128,) * 3
        return picture.transform(
            picture.size, Image.Transform.AFFINE, matrix, resample=resample, fillcolor=fill
        )

    return move


def turned(degrees):
    def move(picture):
        fill = 128 if picture.mode == "L" else (128,) * 3
        return picture.rotate(degrees, resample=Image.Resampling.BILINEAR, fillcolor=fill)

    return move


def geometric(name, magnitude, sign, size):
    height, width = size
    amount = magnitude * sign
    return {
        "rotate": lambda: turned(3 * amount),
        "shear_x": lambda: mapped((1, 0.03 * amount, 0, 0, 1, 0)),
        "shear_y": lambda: mapped((1, 0, 0, 0.03 * amount, 1, 0)),
        "translate_x": lambda: mapped((1, 0, amount / 10 * width / 3, 0, 1, 0)),
        "translate_y": lambda: mapped((1, 0, 0, 0, 1, amount / 10 * height / 3)),
    }[name]()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ops.GEOMETRIC)
def test_geometric_operations_equal_pillow_to_one_level(images, name, size, sign):
    """One level, because Pillow rounds interpolated values down and we round to the nearest.

    At most one pixel in 500 may differ by more: those whose source lies within float error of the
    border, which one side fills and the other does not.
    """
    batch = pictures(images, size, 20 if size[0] < 100 else 4)
    for magnitude in (1, 2, 3, 5, 7, 10):
        difference = (
            ours(batch, name, magnitude, sign).int()
            - with_pillow(batch, geometric(name, magnitude, sign, size)).int()
        )
        far = (difference.abs() > 1).float().mean()
        assert far <= 1 / 500
        assert -0.1 < difference.float().mean() < 0.6  # rounding to the nearest lies half a level above


@pytest.mark.parametrize("name", ["translate_x", "translate_y"])
def test_integer_translation_is_exact(images, name):
    batch = pictures(images, (30, 30), 40)  # 30 pixels: magnitude m moves by m
    for magnitude, sign in ((1, 1), (4, -1), (10, 1)):
        expected = with_pillow(batch, geometric(name, magnitude, sign, (30, 30)))
        assert torch.equal(ours(batch, name, magnitude, sign), expected)
        moved = ours(batch.float() / 255, name, magnitude, sign)
        torch.testing.assert_close(moved, expected.float() / 255, atol=2e-5, rtol=0)


def test_nearest_takes_pillows_pixels(images):
    batch = pictures(images, (32, 32), 20)
    matrix = (1, 0.15, 0, 0, 1, 0)
    expected = with_pillow(batch, mapped(matrix, Image.Resampling.NEAREST))
    far = (ours(batch, "shear_x", 5, interpolation="nearest") != expected).float().mean()
    assert far <= 1 / 100  # sources half-way between two pixels fall to either side


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", [-1, 1])
def test_color_equals_pillow_to_one_level(colour_images, size, sign):
    """One level, because Pillow rounds the blend down and we round to the nearest."""
    batch = pictures(colour_images, size, 20 if size[0] < 100 else 4)
    for magnitude in range(1, 11):
        factor = 1 + 0.09 * magnitude * sign
        expected = with_pillow(batch, lambda picture, by=factor: ImageEnhance.Color(picture).enhance(by))
        difference = ours(batch, "color", magnitude, sign).int() - expected.int()
        assert difference.abs().max() <= 1


def test_color_leaves_one_channel_alone(grey_images):
    assert torch.equal(ours(grey_images, "color", 9), grey_images)


@pytest.mark.parametrize("name", [*ops.GEOMETRIC, "color"])
def test_float_images_move_as_bytes_do(images, name):
    floats = images[:50].float() / 255
    moved = ours(floats, name, 6, -1)
    torch.testing.assert_close(moved * 255, ours(images[:50], name, 6, -1).float(), atol=0.51 + 1, rtol=0)
    assert (moved * 255 - ours(images[:50], name, 6, -1)).abs().mean() < 0.3
    assert moved.min() >= 0
    assert moved.max() <= 1


@pytest.mark.parametrize("name", [name for name in ops.OPERATIONS if name not in ops.WITHOUT_MAGNITUDE])
def test_mean_distortion_never_falls_as_the_magnitude_grows(colour_images, name):
    sign = 2 * (torch.arange(500) % 2) - 1
    before, distortion = colour_images.float(), []
    for magnitude in range(1, 11):
        operation = torch.full((500,), ops.OPERATIONS.index(name))
        moved = ops.distort(colour_images, operation, torch.full((500,), magnitude), sign)
        distortion.append((moved.float() - before).abs().mean().item())
    assert distortion[0] > 0
    assert distortion == sorted(distortion)
    assert distortion[-1] > 1.5 * distortion[0]


def test_a_mixed_batch_equals_each_image_alone(images):
    generator = torch.Generator().manual_seed(0)
    batch = images[:200]
    operation = torch.randint(10, (200,), generator=generator)
    magnitude = torch.randint(1, 11, (200,), generator=generator)
    sign = 2 * torch.randint(2, (200,), generator=generator) - 1
    together = ops.distort(batch, operation, magnitude, sign)
    for i in range(200):
        alone = ours(batch[i : i + 1], ops.OPERATIONS[operation[i]], int(magnitude[i]), int(sign[i]))
        assert (together[i].int() - alone[0].int()).abs().max() <= 1
    assert set(operation.tolist()) == set(range(10))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ops.OPERATIONS)
def test_every_dtype_comes_back_as_it_came(colour_images, name, dtype):
    floats = (colour_images[:8].float() / 255).to(dtype)
    moved = ours(floats, name, 3)
    assert moved.dtype == dtype
    expected = ours(colour_images[:8].float() / 255, name, 3)
    # bfloat16 holds the upper levels only to the nearest two, and equalize spreads those apart.
    assert (moved.float() - expected).abs().mean() < (0.05 if dtype == torch.bfloat16 else 0.002)
