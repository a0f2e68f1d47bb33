import math

import pytest
import torch

from auglabel import AutoLabel, Erasing, SoftAugmentation, View, WideCrop, calibrate
from auglabel.losses import weighted_cross_entropy

SIZES = [(12, 12), (9, 20), (1, 7), (32, 32)]


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


def batch(n, size, dtype=torch.uint8, channels=3):
    images = torch.randint(1, 256, (n, channels, *size), generator=seeded(0), dtype=torch.uint8)
    images = images if dtype == torch.uint8 else images.to(dtype) / 255
    return images, torch.zeros(n, dtype=torch.int64)


def sides(share, height, width, ratio, u):
    """Of a rectangle that covers `share` of the image: aspect log-uniform, whole pixels, at least one."""
    share = max(share, 1 / (height * width))
    longest = min(ratio, 1 / share)
    aspect = math.exp((2 * u - 1) * math.log(longest))  # height over width, as parts of the image's
    pixels = share * height * width
    least, most = math.ceil(pixels / width), min(height, round(pixels))  # so that the width is 1 .. width
    tall = min(max(round(height * math.sqrt(share * aspect)), least), most)
    wide = min(max(round(pixels / tall), 1), width)
    return tall, wide


def fill_of(image, fill):
    """The colour of each channel."""
    if fill == "zero":
        return [0.0] * len(image)
    means = [math.fsum(channel.flatten().tolist()) / channel.numel() for channel in image]
    return [round(mean) for mean in means] if image.dtype == torch.uint8 else means


def slow_crop(image, strength, u, signs, fill):
    """The window of the image's size that is moved by what it hides, pixel by pixel."""
    _, height, width = image.shape
    tall, wide = sides(1 - strength, height, width, math.inf, u)
    down, right = signs[0] * (height - tall), signs[1] * (width - wide)
    out = torch.zeros_like(image)
    for channel, colour in enumerate(fill_of(image, fill)):
        for y in range(height):
            for x in range(width):
                inside = 0 <= y + down < height and 0 <= x + right < width
                out[channel, y, x] = image[channel, y + down, x + right] if inside else colour
    return out, tall * wide / (height * width)


def slow_erasing(image, share, ratio, u, place, fill):
    _, height, width = image.shape
    tall, wide = sides(share, height, width, ratio, u)
    top, left = math.floor(place[0] * (height - tall + 1)), math.floor(place[1] * (width - wide + 1))
    out = image.clone()
    for channel, colour in enumerate(fill_of(image, fill)):
        for y in range(top, top + tall):
            for x in range(left, left + wide):
                out[channel, y, x] = colour
    return out, 1 - tall * wide / (height * width)


@pytest.mark.parametrize("fill", ["zero", "mean"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64])
def test_a_wide_crop_is_the_slow_one(size, fill, dtype):
    images, labels = batch(25, size, dtype)
    view = WideCrop(fill=fill)(images, labels, generator=seeded())
    source = seeded()
    offset = (0.3 * torch.randn(2, 25, generator=source)).tolist()
    u = torch.rand(25, generator=source, dtype=torch.float64).tolist()
    signs = (2 * torch.randint(2, (2, 25), generator=source) - 1).tolist()
    for i, image in enumerate(images):
        x, y = (min(abs(offset[side][i]), 1.0) for side in (0, 1))
        strength = 1 - (1 - x) * (1 - y)
        assert view.strength[i].item() == pytest.approx(strength, abs=1e-6)
        moved, visible = slow_crop(image, view.strength[i].item(), u[i], (signs[0][i], signs[1][i]), fill)
        torch.testing.assert_close(
            view.images[i], moved, rtol=0, atol=1e-12 if dtype.is_floating_point else 0
        )
        assert view.visible[i].item() == pytest.approx(visible, abs=1e-6)


@pytest.mark.parametrize("fill", ["zero", "mean"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("most", [1 / 3, 1.0])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float64])
def test_erasing_is_the_slow_one(size, fill, most, dtype):
    images, labels = batch(25, size, dtype)
    view = Erasing(most, fill=fill)(images, labels, generator=seeded())
    source = seeded()
    torch.randint(1, (25,), generator=source)  # kinds
    torch.rand(25, generator=source)  # strengths
    u = torch.rand(25, generator=source, dtype=torch.float64).tolist()
    place = torch.rand(2, 25, generator=source, dtype=torch.float64).tolist()
    share = (most * view.strength).tolist()
    for i, image in enumerate(images):
        moved, visible = slow_erasing(image, share[i], 3.3, u[i], (place[0][i], place[1][i]), fill)
        torch.testing.assert_close(
            view.images[i], moved, rtol=0, atol=1e-12 if dtype.is_floating_point else 0
        )
        assert view.visible[i].item() == pytest.approx(visible, abs=1e-6)


@pytest.mark.parametrize("augment", [WideCrop(), Erasing(most=1.0)], ids=lambda a: type(a).__name__)
def test_what_is_visible_is_what_the_bucket_says(augment):
    """No pixel of these images is black, so what is hidden can be counted."""
    images, labels = batch(400, (32, 32), channels=1)
    for bucket in range(10):
        view = augment(images, labels, bucket=torch.full((400,), bucket), generator=seeded())
        hidden = (view.images == 0).float().mean(dim=(1, 2, 3))
        torch.testing.assert_close(1 - hidden, view.visible)
        assert ((hidden > bucket / 10 - 0.02) & (hidden < (bucket + 1) / 10 + 0.02)).all()
        assert (hidden - view.strength).abs().max() <= 0.5 / 32 + 1e-6  # half a row of pixels


def test_wide_crops_hide_as_much_as_published_offsets():
    """Mean of (1 - |x|)(1 - |y|) with x, y ~ N(0, 0.3) is (1 - 0.3 sqrt(2 / pi))^2 = 0.5786."""
    images, labels = batch(40000, (1, 1), channels=1)
    view = WideCrop()(images, labels, generator=seeded())
    assert (1 - view.strength).mean().item() == pytest.approx(0.5786, abs=0.005)


def test_every_corner_and_every_place_is_used():
    images, labels = batch(400, (8, 8), channels=1)
    strong = torch.full((400,), 7)
    crop = WideCrop()(images, labels, bucket=strong, generator=seeded()).images
    corners = crop[:, 0, [0, 0, 7, 7], [0, 7, 0, 7]] > 0
    assert (corners.float().mean(dim=0) - 0.25).abs().max() < 0.15
    erased = Erasing()(images, labels, generator=seeded()).images == 0
    assert erased.float().mean(dim=(0, 1)).min() > 0.03


def test_erasing_with_a_ratio_of_1_keeps_the_proportions_of_the_image():
    images, labels = batch(50, (20, 40), channels=1)
    view = Erasing(most=0.25, ratio=1.0)(images, labels, generator=seeded())
    erased = view.images[:, 0] == 0
    tall, wide = erased.any(dim=2).sum(dim=1), erased.any(dim=1).sum(dim=1)
    assert (2 * tall - wide).abs().max() <= 2  # rounding


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WideCrop(sigma=-1.0), "sigma must be a finite number of at least 0"),
        (lambda: WideCrop(fill="grey"), 'fill must be "zero" or "mean", got \'grey\''),
        (lambda: WideCrop(levels=0), "levels must be at least 1"),
        (lambda: Erasing(most=1.5), r"most must be in \[0, 1\]"),
        (lambda: Erasing(ratio=0.5), "ratio must be a finite number of at least 1"),
        (lambda: Erasing(fill="noise"), "fill must be"),
        (lambda: SoftAugmentation(10, k=-1.0), "k must be a finite number of at least 0"),
        (lambda: SoftAugmentation(10, k=0), "k must be above 0, got 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def hiding(visible, strength=0.5, labels=None):
    n = len(visible)
    labels = torch.zeros(n, dtype=torch.int64) if labels is None else labels
    parts = torch.zeros(n, 1, 2, 2), labels, torch.zeros(n).long(), torch.full((n,), strength)
    return View(*parts, visible=torch.tensor(visible))


def test_the_published_curve():
    """K = 4, k = 2: v = 1, 0.5, 0.2, 0 give 1 - 0.75 (1 - v)^2 = 1, 0.8125, 0.52, 0.25."""
    expected = torch.tensor([1.0, 0.8125, 0.52, 0.25])
    torch.testing.assert_close(SoftAugmentation(4).confidence(hiding([1.0, 0.5, 0.2, 0.0])), expected)
    cubed = SoftAugmentation(4, k=3).confidence(hiding([0.5]))
    torch.testing.assert_close(cubed, torch.tensor([1 - 0.75 / 8]))
    plain = View(torch.zeros(1, 1, 2, 2), torch.tensor([0]), torch.tensor([0]), torch.tensor([0.4]))
    torch.testing.assert_close(
        SoftAugmentation(4).confidence(plain), torch.tensor([0.88])
    )  # v = 1 - strength


def test_the_weighted_loss_by_hand():
    """Two classes, logits 0: each cross-entropy is log 2, whatever the target; weights 1 and 0.5."""
    logits, targets = torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    loss = weighted_cross_entropy(logits, targets, torch.tensor([1.0, 0.5]))
    assert loss.item() == pytest.approx(0.75 * math.log(2))
    with pytest.raises(ValueError, match=r"equal length.*logits 2, targets 2, confidence 1"):
        weighted_cross_entropy(logits, targets, torch.ones(1))


def test_autolabel_learns_the_labels_of_hidden_images():
    """A network that is sure of class 1 where most of the white image is left, and of class 0 where not."""
    images, labels = torch.ones(60, 1, 16, 16), torch.ones(60, dtype=torch.int64)

    class Bright(torch.nn.Module):
        def forward(self, images):
            seen = images.mean(dim=(1, 2, 3)) > 0.5
            return torch.stack([~seen, seen], dim=1) * 20.0

    augment = WideCrop()
    policy = AutoLabel(2, len(augment.grid), alpha=1.0)
    policy.update(calibrate(Bright(), augment, [(images, labels)], generator=seeded()))
    assert policy.table[:4].tolist() == pytest.approx([1.0] * 4, abs=1e-6)
    assert policy.table[6:].tolist() == pytest.approx([0.0] * 4, abs=1e-6)
