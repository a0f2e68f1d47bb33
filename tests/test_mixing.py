import math

import pytest
import torch
import torch.nn.functional as F

from auglabel import CCAT, AutoLabel, CutMix, Mixup, MixupLabels, OneHot


def batch(n=64, classes=10):
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n, 3, 8, 8, generator=generator), torch.randint(classes, (n,), generator=generator)


def test_mixup_with_its_own_labels_is_the_standard_one():
    images, labels = batch()
    view = Mixup()(images, labels, generator=torch.Generator().manual_seed(1))
    targets = MixupLabels(10)(view)
    share = view.share[:, None]
    partner_images = (view.images - (1 - share[..., None, None]) * images) / share[..., None, None]
    order = [(partner_images[i] - images).abs().flatten(1).amax(dim=1).argmin().item() for i in range(64)]
    kept = view.share > 0.05  # below that the partner cannot be told from the mixture
    for i in range(64):
        if kept[i]:
            expected = (1 - view.share[i]) * F.one_hot(labels[i], 10) + view.share[i] * F.one_hot(
                labels[order[i]], 10
            )
            torch.testing.assert_close(targets[i], expected)


@pytest.mark.parametrize("beta", [0.2, 1.0, 4.0])
def test_shares_follow_the_folded_beta_distribution(beta):
    images = torch.zeros(40000, 1, 1, 1)
    view = Mixup(beta)(images, torch.zeros(40000).long(), generator=torch.Generator().manual_seed(0))
    gamma = torch.distributions.Beta(beta, beta).sample((40000,))
    expected = torch.minimum(gamma, 1 - gamma).quantile(torch.tensor([0.1, 0.5, 0.9]))
    torch.testing.assert_close(
        view.share.quantile(torch.tensor([0.1, 0.5, 0.9])), expected, atol=0.01, rtol=0.05
    )
    assert torch.equal(view.strength, 2 * view.share)
    assert view.bucket.unique().tolist() == list(range(5))


def test_a_share_per_batch_is_one_share():
    images, labels = batch()
    assert len(Mixup(per_batch=True)(images, labels).share.unique()) == 1
    assert len(Mixup()(images, labels).share.unique()) > 30


def test_cutmix_pastes_what_it_says():
    images, labels = batch(200)
    images = images + torch.arange(200)[:, None, None, None]  # every image in its own range
    view = CutMix().apply(
        images / 201, labels, CutMix().draw(200, images.device, torch.Generator().manual_seed(0)), None, None
    )
    owner = (view.images * 201).floor().long()
    foreign = owner != torch.arange(200)[:, None, None, None]
    pasted = foreign.float().mean(dim=(1, 2, 3))
    partner = torch.where(foreign, owner, -1).flatten(1).amax(dim=1)
    mixed = partner >= 0
    torch.testing.assert_close(pasted[mixed], view.share[mixed])
    assert torch.equal(labels[partner[mixed]], view.partner[mixed])
    assert (view.share <= 0.5).all()
    assert (view.share - view.strength / 2).abs().max() < 0.07  # a row of 8 pixels, at the most


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (7, 3), (32, 32)])
def test_cutmix_never_pastes_more_than_half(size):
    images = torch.rand(500, 1, *size)
    view = CutMix()(images, torch.zeros(500).long())
    assert (view.share >= 0).all()
    assert (view.share <= 0.5).all()


@pytest.mark.parametrize("augment", [Mixup(), CutMix()], ids=["mixup", "cutmix"])
@pytest.mark.parametrize("bucket", [None, torch.tensor([4])], ids=["drawn", "asked for"])
def test_a_lone_image_stays_as_it_is_at_strength_0(augment, bucket):
    images, labels = batch(1)
    view = augment(images, labels, bucket=bucket)
    assert torch.equal(view.images, images)
    assert (view.strength.item(), view.bucket.item(), view.share.item()) == (0, 0, 0)
    for policy in (OneHot(10), MixupLabels(10), CCAT(10)):
        assert torch.equal(policy(view), F.one_hot(labels, 10).float())
    learned = AutoLabel(10, 5, alpha=0.1)
    learned.table[:] = torch.tensor([0.91, 0.5, 0.5, 0.5, 0.5])
    expected = torch.full((1, 10), 0.01).scatter(1, labels[:, None], 0.91)
    torch.testing.assert_close(learned(view), expected)


@pytest.mark.parametrize("augment", [Mixup(), CutMix()], ids=["mixup", "cutmix"])
def test_an_empty_batch_is_an_empty_view(augment):
    assert len(augment(*batch(0))) == 0


@pytest.mark.parametrize("beta", [0, 0.001, -1.0, math.nan])
def test_beta_must_be_large_enough_to_mean_something(beta):
    with pytest.raises(ValueError, match="beta must be"):
        Mixup(beta)


def test_bytes_are_mixed_to_the_nearest_level():
    images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1).expand(2, 3, 4, 4)
    view = Mixup()(images, torch.tensor([0, 1]), generator=torch.Generator().manual_seed(3))
    assert view.images.dtype == torch.uint8
    assert view.partner.tolist() == [1, 0]
    expected = torch.stack([255 * view.share[0], 255 * (1 - view.share[1])]).round()
    assert torch.equal(view.images[:, 0, 0, 0].float(), expected)
