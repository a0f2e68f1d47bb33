import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from auglabel import (
    Adversarial,
    AugmentAndLabel,
    AugMix,
    AutoLabelByClass,
    Clean,
    Mixup,
    RandAug,
    SelfDistilled,
)
from auglabel.augment.normalized import OnNormalized
from auglabel.integrations.common import learned_for, own_share
from auglabel.integrations.timm import TimmMixup
from auglabel.models.by_name import Normalized

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)


def normalized(pixels):
    return (pixels - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


@pytest.fixture
def batch(colour_images):
    return colour_images[:60].float() / 255, torch.arange(60) % 4


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("augment", [AugMix(), RandAug(), Mixup()])
def test_normalised_images_are_moved_as_pixels_are(augment, batch):
    pixels, labels = batch
    expected = augment(pixels, labels, generator=seeded())
    view = OnNormalized(augment, MEAN, STD)(normalized(pixels), labels, generator=seeded())
    torch.testing.assert_close(view.images, normalized(expected.images), atol=2e-2, rtol=0)
    # bytes are cut off or rounded inside some operations, so that single pixels may move by one level
    assert (view.images - normalized(expected.images)).abs().mean() < 1e-4
    assert torch.equal(view.bucket, expected.bucket)


@pytest.mark.parametrize(("augment", "on_host"), [(AugMix(), True), (RandAug(), True), (Mixup(), False)])
def test_distances_stay_where_the_inner_augmentation_takes_them(augment, on_host):
    assert OnNormalized(augment, MEAN, STD).distance_on_host is on_host


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_normalised_images_keep_their_dtype(dtype, batch):
    pixels, labels = batch
    view = OnNormalized(AugMix(), MEAN, STD)(normalized(pixels).to(dtype), labels, generator=seeded())
    assert view.images.dtype == dtype


def test_attacks_on_normalised_images_are_those_on_pixels(batch):
    pixels, labels = batch
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 4))
    augment = Adversarial(epsilon_max=0.1, steps=2)
    expected = augment(pixels, labels, Normalized(MEAN, STD, net), generator=seeded())
    view = OnNormalized(augment, MEAN, STD)(normalized(pixels), labels, net, generator=seeded())
    torch.testing.assert_close(view.images, normalized(expected.images), atol=1e-4, rtol=1e-4)


def test_images_normalised_otherwise_are_refused(batch):
    pixels, labels = batch
    with pytest.raises(ValueError, match=r"must be in \[0, 1\] once mean .* are undone, got values from"):
        OnNormalized(AugMix(), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))(normalized(pixels), labels)
    with pytest.raises(TypeError, match=r"shape \(B, 1, H, W\), got a float32 tensor of shape"):
        OnNormalized(AugMix(), (0.5,), (0.5,))(normalized(pixels), labels)
    with pytest.raises(ValueError, match="std above 0"):
        OnNormalized(AugMix(), (0.5,), (0.0,))
    with pytest.raises(ValueError, match=r"a number per channel, std above 0, got 0\.5, 0\.5"):
        OnNormalized(AugMix(), 0.5, 0.5)
    likely = r"got values from -0.15 to .* Pass those the loader normalises with, or, if they are, clamp"
    with pytest.raises(ValueError, match=likely):
        OnNormalized(AugMix(), MEAN, STD)(normalized(pixels * 1.2 - 0.15), labels)
    with pytest.raises(ValueError, match=r"Pass those the loader normalises with; what draws noise"):
        OnNormalized(AugMix(), MEAN, STD)(normalized(pixels) * 9, labels)


def test_every_normalised_batch_to_measure_is_looked_at_and_the_first_to_train_on(batch):
    pixels, labels = batch
    elsewhere = normalized(pixels).to("meta"), labels.to("meta")  # where a look at values is an error
    augment, bucket = OnNormalized(Clean(), MEAN, STD), torch.zeros_like(labels)
    augment(normalized(pixels), labels, bucket=bucket)  # measured, which is not the first to train on
    with pytest.raises(RuntimeError, match="meta"):
        augment(*elsewhere)
    augment(normalized(pixels), labels)
    assert augment(*elsewhere).images.shape == pixels.shape
    with pytest.raises(RuntimeError, match="meta"):
        augment(*elsewhere, bucket=bucket.to("meta"))


def test_an_auglabel_comes_with_its_options():
    learned = AugmentAndLabel(AugMix(), num_classes=10, alpha=0.1)
    assert learned_for(learned, None, "auto", None, None, {}) is learned
    with pytest.raises(TypeError, match="comes with its options"):
        learned_for(learned, 10, None, None, None, {})
    with pytest.raises(ValueError, match="mean and std come together"):
        learned_for(AugMix(), 10, 0.1, MEAN, None, {})


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("count", [2, 7, 12])
def test_ranks_share_a_loader_without_repeats(monkeypatch, world, count):
    rows = TensorDataset(torch.arange(count), torch.arange(count))
    for distributed in (False, True):
        shares = []
        for rank in range(world):
            monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
            monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
            monkeypatch.setattr(torch.distributed, "get_world_size", lambda: world)
            sampler = DistributedSampler(rows, world, rank, shuffle=False) if distributed else None
            loader = DataLoader(rows, batch_size=3, sampler=sampler)
            batches = list(own_share(loader, loader))
            assert all(len(images) for images, _ in batches)
            shares.append([int(row) for images, _ in batches for row in images])
        assert shares == [list(range(rank, count, world)) for rank in range(world)]


@pytest.mark.parametrize("distributed", [False, True])
def test_ranks_refuse_batches_of_other_than_images_and_labels(monkeypatch, distributed):
    rows = TensorDataset(torch.arange(6), torch.arange(6), torch.arange(6))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    sampler = DistributedSampler(rows, 2, 0, shuffle=False) if distributed else None
    loader = DataLoader(rows, batch_size=3, sampler=sampler)
    with pytest.raises(TypeError, match=r"must yield two tensors, .* got a list of Tensor, Tensor, Tensor"):
        list(own_share(loader, loader))


# TimmMixup needs nothing of timm; tests/with_timm has it in timm's own loop.


def test_it_is_called_as_timms_mixup_is(batch):
    pixels, labels = batch
    mixup_fn = TimmMixup(AugMix(), num_classes=4, alpha=0.1, mean=MEAN, std=STD)
    images, targets = mixup_fn(normalized(pixels), labels)
    assert images.shape == pixels.shape
    assert targets.shape == (60, 4)
    mixup_fn.mixup_enabled = False
    images, targets = mixup_fn(normalized(pixels), labels)
    assert torch.equal(images, normalized(pixels))
    assert torch.equal(targets.argmax(dim=1), labels)


def test_images_without_a_label_get_no_target_also_where_mixup_is_off(batch):
    pixels, labels = batch
    mixup_fn = TimmMixup(AugMix(), num_classes=4, alpha=0.1, mean=MEAN, std=STD, ignore_index=-1)
    some = labels.where(torch.arange(60) % 3 > 0, -1).int()
    for mixup_fn.mixup_enabled in (True, False):
        _, targets = mixup_fn(normalized(pixels), some)
        assert torch.equal(targets.sum(dim=1) > 0, some >= 0)


def test_its_model_is_not_a_part_of_its_state(batch):
    pixels, labels = batch
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 4))
    mixup_fn = TimmMixup(Adversarial(), num_classes=4, alpha=0.1, mean=MEAN, std=STD, model=net)
    mixup_fn(normalized(pixels), labels)
    assert not any("weight" in name for name in mixup_fn.state_dict())


def test_it_learns_from_the_loader_of_normalised_images(batch):
    pixels, labels = batch
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 4))
    mixup_fn = TimmMixup(AugMix(), num_classes=4, alpha=0.5, mean=MEAN, std=STD)
    mixup_fn.update(net, [(normalized(pixels), labels)])
    assert mixup_fn.learned.updates == 1
    assert mixup_fn.learned.table.min() < 1


def test_normalised_images_without_mean_and_std_get_a_sentence_that_names_them(batch):
    pixels, labels = batch
    told = r"^images must be in \[0, 1\], got values from -.*: pass the mean= and std= that they were"
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 4))
    mixup_fn = TimmMixup(AugMix(), num_classes=4, alpha=0.1)
    with pytest.raises(ValueError, match=told):
        mixup_fn(normalized(pixels), labels)
    with pytest.raises(ValueError, match=told):
        mixup_fn.update(net, [(normalized(pixels), labels)])
    # other mistakes keep their sentence
    with pytest.raises(ValueError, match=r"must have shape \(B, C, H, W\)"):
        mixup_fn(pixels[0], labels)
    with pytest.raises(ValueError, match=r"to 255"):
        mixup_fn(255 * pixels, labels)
    with pytest.raises(ValueError, match=r"values from -0\.05"):
        mixup_fn(1.1 * pixels - 0.05, labels)


@pytest.mark.parametrize("augment", [AugMix(), Mixup(), Adversarial(levels=2, steps=1)])
def test_pixels_are_moved_as_they_are_without_an_integration(augment, batch):
    pixels, labels = batch
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 4))
    mixup_fn = TimmMixup(augment, num_classes=4, alpha=0.1, model=net)
    view = augment(pixels, labels, net, generator=seeded())
    moved, _ = mixup_fn.learned(pixels, labels, net, generator=seeded())
    assert torch.equal(moved, view.images)


class Series(AugMix):
    """Of anything."""

    def require(self, images):
        raise ValueError("a series of its own")


def test_an_augmentation_of_other_things_than_images_says_itself_what_it_takes(batch):
    mixup_fn = TimmMixup(Series(), num_classes=4, alpha=0.1)
    with pytest.raises(ValueError, match="a series of its own"):
        mixup_fn(-batch[0], batch[1])


@pytest.mark.parametrize("kind", [AutoLabelByClass, SelfDistilled])
def test_labels_that_need_predictions_are_refused_where_there_are_none(kind):
    with pytest.raises(ValueError, match=rf"{kind.__name__} needs predictions on .*does not have: take"):
        TimmMixup(AugMix(), policy=kind(4, 15))
    with pytest.raises(ValueError, match=rf"{kind.__name__} needs predictions on"):
        learned_for(AugmentAndLabel(AugMix(), policy=kind(4, 15)), None, "auto", None, None, {})
