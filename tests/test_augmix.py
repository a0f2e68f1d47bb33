import pytest
import torch

from auglabel import AugMix, Clean, CutMix, Erasing, Mixup, RandAug, WideCrop
from auglabel.augment import ops


def labels(n):
    return torch.zeros(n, dtype=torch.int64)


def test_the_default_grid_has_15_buckets_by_depth_and_strength():
    assert AugMix().grid.levels == (5, 5, 5)
    assert AugMix(max_depth=2, levels=7).grid.levels == (7, 7)


def test_one_step_is_one_operation_mixed_by_lambda(colour_images):
    images = colour_images.float() / 255
    augment = AugMix(max_depth=1, operations=["solarize"], magnitude=4)
    view = augment(images, labels(500), generator=torch.Generator().manual_seed(0))
    inverted = torch.where(colour_images >= 154, 255 - colour_images, colour_images).float() / 255
    lam = (1 - view.strength)[:, None, None, None]
    torch.testing.assert_close(view.images, lam * images + (1 - lam) * inverted, atol=1e-6, rtol=0)


def test_a_chain_applies_as_many_operations_as_its_depth(grey_images):
    # Inverting every level is its own inverse, so odd depths invert and even ones do nothing.
    augment = AugMix(operations=["solarize"], magnitude=10, levels=1)
    full = torch.ones(500)
    for depth, expected in ((1, 255 - grey_images), (2, grey_images), (3, 255 - grey_images)):
        distance = augment.grid.locate(torch.full((500,), depth - 1), full)
        view = augment.apply(grey_images, labels(500), distance, None, None)
        assert torch.equal(view.images, expected)


def test_every_image_draws_its_own_operations(grey_images):
    same = grey_images[:1].expand(300, -1, -1, -1)
    augment = AugMix(levels=1)
    view = augment(
        same, labels(300), bucket=torch.full((300,), 2), generator=torch.Generator().manual_seed(0)
    )
    assert len(view.images.flatten(1).unique(dim=0)) > 150


def test_distortion_grows_with_strength_and_depth(colour_images):
    images = colour_images.float() / 255
    augment = AugMix()
    moved = torch.zeros(15)
    for bucket in range(15):
        view = augment(
            images, labels(500), bucket=torch.full((500,), bucket), generator=torch.Generator().manual_seed(1)
        )
        moved[bucket] = (view.images - images).abs().mean()
    by_depth = moved.view(3, 5)
    assert (by_depth.diff(dim=1) > 0).all()
    assert (by_depth.diff(dim=0) > 0).all()


def test_several_chains_stay_between_their_images(grey_images):
    augment = AugMix(chains=3, operations=["solarize", "posterize"], magnitude=10)
    images = grey_images.float() / 255
    view = augment(
        images, labels(500), bucket=torch.full((500,), 4), generator=torch.Generator().manual_seed(0)
    )
    each = [
        ops.distort(
            images, torch.full((500,), ops.OPERATIONS.index(name)), torch.full((500,), 10), labels(500) + 1
        )
        for name in augment.operations
    ]
    low, high = torch.stack([images, *each]).aminmax(dim=0)
    assert (view.images >= low - 1e-6).all()
    assert (view.images <= high + 1e-6).all()
    one_chain = AugMix(chains=1, operations=["solarize", "posterize"], magnitude=10)
    other = one_chain(
        images, labels(500), bucket=torch.full((500,), 4), generator=torch.Generator().manual_seed(0)
    )
    assert not torch.equal(view.images, other.images)


def test_bytes_and_floats_agree(colour_images):
    seeds = [torch.Generator().manual_seed(5) for _ in range(2)]
    as_bytes = AugMix(max_depth=1)(colour_images, labels(500), generator=seeds[0])
    as_floats = AugMix(max_depth=1)(colour_images.float() / 255, labels(500), generator=seeds[1])
    assert as_bytes.images.dtype == torch.uint8
    # Half a level each: rounding the grey of color, the operation and the mixture.
    torch.testing.assert_close(as_bytes.images.float(), 255 * as_floats.images, atol=1.5, rtol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 0}, r"max_depth must be in 1..1000, got 0"),
        ({"levels": 0}, "levels must be at least 1, got 0"),
        ({"chains": 0}, "chains must be at least 1"),
        ({"magnitude": 11}, r"magnitude must be in 1..10"),
        ({"operations": ["spin"]}, "operations must be different names"),
        ({"fill": -1}, r"fill must be in 0..255"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        AugMix(**options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize(
    "augment",
    [
        AugMix(operations=["translate_x"]),
        AugMix(chains=2),
        Mixup(),
        CutMix(),
        RandAug(),
        WideCrop(),
        Erasing(fill="mean"),
        Clean(),
    ],
    ids=["augmix", "augmix of chains", "mixup", "cutmix", "randaug", "wide crop", "erasing", "clean"],
)
def test_images_that_require_gradients_are_moved_as_others_and_get_theirs(augment, dtype):
    images, labels = torch.rand(8, 3, 12, 12).to(dtype), torch.arange(8)
    expected = augment(images, labels, generator=torch.Generator().manual_seed(0)).images
    graded = images.clone().requires_grad_()
    moved = augment(graded, labels, generator=torch.Generator().manual_seed(0)).images
    assert torch.equal(moved, expected)
    moved.float().sum().backward()
    assert graded.grad.isfinite().all()
    assert graded.grad.abs().sum() > 0


def test_the_gradient_of_a_mixture_is_each_ones_part():
    images = torch.rand(2, 1, 2, 2, requires_grad=True)
    view = Mixup()(images, torch.arange(2), generator=torch.Generator().manual_seed(3))
    assert view.partner.tolist() == [1, 0]
    view.images[0].sum().backward()
    expected = torch.stack([1 - view.share[0], view.share[0]])[:, None, None, None].expand(2, 1, 2, 2)
    torch.testing.assert_close(images.grad, expected)
