"""What a magnitude is worth, in each named set and in ranges of one's own, against Pillow."""

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from test_ops import mapped, pictures, with_pillow

from auglabel import AugMix, RandAug
from auglabel.augment import ops
from auglabel.augment.magnitudes import SETS, magnitudes_for
from auglabel.lab.parts.catalogue import AUGMENTATIONS
from auglabel.lab.recipe.read import read_recipe

NEAREST = Image.Resampling.NEAREST


def ours(images, name, magnitude, sign=1, magnitudes="mild"):
    """`images` by RandAug's own path, at one operation and magnitude."""
    chosen, n = RandAug(magnitudes=magnitudes), len(images)
    return ops.distort(
        images,
        torch.full((n,), ops.OPERATIONS.index(name)),
        torch.full((n,), magnitude),
        torch.full((n,), sign),
        magnitudes=chosen.magnitudes,
        interpolation=chosen.interpolation,
    )


@pytest.mark.parametrize("size", [(32, 32), (64, 48)])
@pytest.mark.parametrize(("name", "axis"), [("translate_x", 0), ("translate_y", 1)])
@pytest.mark.parametrize("chosen", ["codebase", "wide"])
def test_far_translations_equal_pillow(colour_images, chosen, name, axis, size):
    """10 pixels a magnitude: by the code base at any size; by `wide` at 32, and in proportion elsewhere."""
    batch = pictures(colour_images, size, 10)
    for magnitude, sign in ((1, 1), (2, -1), (4, 1), (10, -1)):
        pixels = 10 * magnitude * sign * (1 if chosen == "codebase" else size[1 - axis] / 32)
        matrix = (1, 0, pixels, 0, 1, 0) if axis == 0 else (1, 0, 0, 0, 1, pixels)
        expected = with_pillow(batch, mapped(matrix, NEAREST))
        assert torch.equal(ours(batch, name, magnitude, sign, chosen), expected)


def test_nothing_is_left_of_an_image_moved_by_more_than_its_side(colour_images):
    batch = pictures(colour_images, (32, 32), 5)
    assert (ours(batch, "translate_x", 4, 1, "wide") == 128).all()
    assert not (ours(batch, "translate_x", 3, 1, "wide") == 128).all()


BITS = {1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 3, 9: 3, 10: 4}  # floor(0.4 L)
THRESHOLD = {1: 25, 2: 51, 3: 76, 4: 102, 5: 128, 6: 153, 7: 179, 8: 204, 9: 230, 10: 256}  # floor(25.6 L)


@pytest.mark.parametrize("magnitude", range(1, 11))
def test_the_code_bases_level_operations_equal_pillow(colour_images, magnitude):
    batch = colour_images[:20]
    bits = BITS[magnitude]
    expected = with_pillow(batch, lambda picture: ImageOps.posterize(picture, bits)) if bits else batch * 0
    assert torch.equal(ours(batch, "posterize", magnitude, 1, "codebase"), expected)
    expected = with_pillow(batch, lambda picture: ImageOps.solarize(picture, THRESHOLD[magnitude]))
    assert torch.equal(ours(batch, "solarize", magnitude, 1, "codebase"), expected)
    floats = ours(batch.float() / 255, "solarize", magnitude, 1, "codebase")
    torch.testing.assert_close(floats, expected.float() / 255)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_code_bases_color_has_no_sign(colour_images, sign):
    batch = colour_images[:20]
    for magnitude in (1, 5, 10):
        factor = 0.18 * magnitude + 0.1
        expected = with_pillow(batch, lambda picture, by=factor: ImageEnhance.Color(picture).enhance(by))
        difference = ours(batch, "color", magnitude, sign, "codebase").int() - expected.int()
        assert difference.abs().max() <= 1


@pytest.mark.parametrize("chosen", ["codebase", "wide"])
@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y"])
def test_the_other_moves_are_the_same_in_every_set_but_nearest(colour_images, chosen, name):
    batch, amount = colour_images[:20], 7
    expected = with_pillow(
        batch,
        {
            "rotate": lambda picture: picture.rotate(21, NEAREST, fillcolor=(128,) * 3),
            "shear_x": mapped((1, 0.03 * amount, 0, 0, 1, 0), NEAREST),
            "shear_y": mapped((1, 0, 0, 0.03 * amount, 1, 0), NEAREST),
        }[name],
    )
    far = (ours(batch, name, amount, 1, chosen) != expected).float().mean()
    assert far <= 1 / 100  # sources half-way between two pixels fall to either side


def test_a_range_of_ones_own_goes_evenly_from_magnitude_0_to_10(colour_images):
    own = {"rotate": (0, 60), "posterize": (8, 2), "color": (0.5, 0.5)}
    batch = pictures(colour_images, (32, 32), 10)
    turned = with_pillow(
        batch, lambda picture: picture.rotate(30, Image.Resampling.BILINEAR, fillcolor=(128,) * 3)
    )
    difference = (ours(batch, "rotate", 5, 1, own).int() - turned.int()).abs()
    assert (difference > 1).float().mean() <= 1 / 500
    kept = with_pillow(batch, lambda picture: ImageOps.posterize(picture, 7))  # 8 - 0.6 * 2 = 6.8
    assert torch.equal(ours(batch, "posterize", 2, 1, own), kept)
    for magnitude in (1, 10):
        grey = with_pillow(batch, lambda picture: ImageEnhance.Color(picture).enhance(0.5))
        assert (ours(batch, "color", magnitude, -1, own).int() - grey.int()).abs().max() <= 1
    assert torch.equal(ours(batch, "solarize", 3, 1, own), ours(batch, "solarize", 3, 1))  # as in mild


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            "wild",
            'there is no set of magnitudes "wild". There are: mild, codebase, wide. Did you mean "wide"?',
        ),
        ({"rotat": (0, 1)}, 'there is no operation with a magnitude "rotat". There are: rotate,'),
        ({"equalize": (0, 1)}, 'there is no operation with a magnitude "equalize"'),
        ({"rotate": (0, 1, 2)}, r"magnitudes.rotate must be two numbers, at 0 and at 10, got \(0, 1, 2\)."),
        ({"rotate": 60}, "magnitudes.rotate must be two numbers, at 0 and at 10, got 60."),
        ({"rotate": (0, 181)}, r"magnitudes.rotate must be in \[0, 180\], got 181."),
    ],
)
def test_what_is_no_set_and_no_range_is_refused(asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        magnitudes_for(asked)


@pytest.mark.parametrize(("chosen", "resampling"), [("mild", "bilinear"), ("wide", "nearest")])
@pytest.mark.parametrize("augmentation", [RandAug, AugMix])
def test_a_set_brings_its_interpolation_unless_one_is_given(augmentation, chosen, resampling):
    assert augmentation(magnitudes=chosen).interpolation == resampling
    assert augmentation(magnitudes=chosen, interpolation="bilinear").interpolation == "bilinear"


def test_augmix_moves_by_its_set(colour_images):
    """At magnitude 10 of `wide`, translation leaves only grey, so that lambda alone keeps the image."""
    batch = pictures(colour_images, (32, 32), 50)
    labels = torch.zeros(50, dtype=torch.int64)
    mix = AugMix(max_depth=1, magnitude=10, operations=["translate_x"], magnitudes="wide")
    view = mix(batch, labels, generator=torch.Generator().manual_seed(0))
    share = view.strength[:, None, None, None]
    expected = torch.lerp(batch.float(), torch.full_like(batch, 128).float(), share)
    torch.testing.assert_close(view.images.float(), expected, atol=0.51, rtol=0)


@pytest.mark.parametrize("name", ["randaug", "augmix"])
def test_recipes_take_a_set_or_ranges(name):
    words = [f"--augment={name}", "--augment.magnitudes=wide"]
    assert read_recipe("embedded", words).augment.options["magnitudes"] == "wide"
    words[1] = "--augment.magnitudes={rotate: [0, 60]}"
    options = read_recipe("embedded", words).augment.options
    assert AUGMENTATIONS[name](**options).magnitudes.rotate[10] == 60


def test_mild_distorts_more_with_every_magnitude_and_the_code_base_does_not():
    mild, codebase = SETS["mild"], SETS["codebase"]
    assert list(mild.posterize[1:]) == sorted(mild.posterize[1:], reverse=True)
    assert list(codebase.posterize) == sorted(codebase.posterize)
