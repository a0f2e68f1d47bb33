import math
import os

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from auglabel import (
    AugmentAndLabel,
    Augmentation,
    AutoLabel,
    Calibration,
    DistanceGrid,
    Pool,
    RandAug,
    View,
    calibrate,
    every_bucket,
    measure,
)
from auglabel.data.embedded import load_embedded
from auglabel.measure import turns_to_see_all


@pytest.fixture(scope="module")
def batches():
    images, labels = load_embedded().validation
    images = images.float() / 255
    return [(images[start : start + 16], labels[start : start + 16]) for start in (0, 16, 32)]


def test_calibrate_measures_every_image_in_every_bucket(linear_model, batches):
    augment = RandAug()
    seen = calibrate(linear_model, augment, batches, generator=torch.Generator().manual_seed(0))
    assert seen.count.tolist() == [48] * 82

    generator = torch.Generator().manual_seed(0)
    slow = Calibration(groups=82)
    for images, labels in batches:
        for n in range(82):
            view = augment(images, labels, bucket=torch.full((16,), n), generator=generator)
            slow.update(linear_model(view.images).softmax(dim=1).detach(), labels, torch.full((16,), n))
    torch.testing.assert_close(seen.sums, slow.sums, rtol=1e-5, atol=1e-4)


def test_visits_share_the_images_out_evenly_and_reach_every_pair(linear_model, batches):
    augment = RandAug(m_max=3)  # 26 buckets
    reached = torch.zeros(48, 26)
    for turn in range(11):  # 6 would be the fewest
        views = list(every_bucket(linear_model, augment, batches, visits=5, turn=turn))
        each = torch.cat([view.bucket for view in views]).bincount(minlength=26)
        assert each.max() - each.min() <= 1
        for place, view in enumerate(views):
            reached[place // 5 * 16 + torch.arange(16), view.bucket] += 1
    assert (reached > 0).all()


class Nothing(Augmentation):
    """As many buckets as one likes; none does anything."""

    def __init__(self, levels):
        self.grid = DistanceGrid((levels,))

    def apply(self, images, labels, distance, model, generator):
        return View(images, labels, distance.bucket, distance.strength)


@pytest.mark.parametrize("buckets", [5, 10, 15, 82, 1000])
def test_neighbouring_levels_get_other_images(linear_model, buckets):
    loader = [(torch.zeros(200, 1, 28, 28), torch.zeros(200).long())]
    first, second = (
        view.bucket for view in every_bucket(linear_model, Nothing(buckets), loader, visits=2, turn=3)
    )
    apart = (first - second).abs()
    assert (apart > 1).all()


@pytest.mark.parametrize(
    ("buckets", "images", "visits"),
    [(5, 1, 2), (82, 10, 1), (82, 41, 2), (1000, 48, 2), (1, 3, 1), (90, 1, 1)],
)
def test_how_many_turns_it_takes_to_see_every_bucket(linear_model, buckets, images, visits):
    turns, loader = (
        turns_to_see_all(buckets, images, visits),
        [(torch.zeros(images, 1, 28, 28), torch.zeros(images).long())],
    )
    met = [
        {
            bucket
            for view in every_bucket(linear_model, Nothing(buckets), loader, visits=visits, turn=turn)
            for bucket in view.bucket.tolist()
        }
        for turn in range(turns)
    ]
    assert all(len(some) == min(images * visits, buckets) for some in met)  # none twice while others wait
    assert len(set().union(*met)) == buckets
    assert len(set().union(*met[:-1])) < buckets
    assert turns <= 2 * math.ceil(buckets / (images * visits))


def test_measuring_leaves_the_model_as_it_was(batches):
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Dropout(0.9), nn.Linear(784, 10))
    model.train()
    model[2].eval()
    before = [parameter.clone() for parameter in model.state_dict().values()]
    calibrate(model, RandAug(m_max=1), batches)
    assert [module.training for module in model.modules()] == [True, True, True, False, True]
    assert all(torch.equal(a, b) for a, b in zip(before, model.state_dict().values(), strict=True))


def test_modes_come_back_after_an_error(linear_model):
    linear_model.train()
    with pytest.raises(RuntimeError):
        measure(linear_model, [View(torch.zeros(1, 1, 3, 3), *([torch.zeros(1).long()] * 2), torch.ones(1))])
    assert linear_model.training


def test_an_empty_validation_set_is_refused(linear_model):
    with pytest.raises(ValueError, match="calibrate needs validation images, but the loader gave none"):
        calibrate(linear_model, RandAug(), [])


def test_a_model_that_returns_nan_is_refused_and_the_table_stays(linear_model, batches):
    policy = AutoLabel(10, 82, alpha=1.0)
    linear_model[1].weight.data[0] = torch.nan
    with pytest.raises(ValueError, match=r"logits must be numbers, but 16 of 16 rows hold nan"):
        policy.update(calibrate(linear_model, RandAug(), batches))
    assert (policy.table == 1).all()


def test_a_turn_must_be_a_whole_number(linear_model, batches):
    with pytest.raises(TypeError, match=r"turn must be a whole number, got float 1.5"):
        calibrate(linear_model, RandAug(), batches, turn=1.5)


@pytest.mark.parametrize("visits", [0, 83])
def test_visits_beyond_the_buckets_are_refused(linear_model, batches, visits):
    with pytest.raises(ValueError, match=rf"visits must be in 1..82, got {visits}"):
        calibrate(linear_model, RandAug(), batches, visits=visits)


class Doubled(nn.Module):
    """Computes in float64: how images are batched then changes a logit by 1e-15, and no image's bin."""

    def __init__(self, inside):
        super().__init__()
        self.inside = inside.double()

    def forward(self, images):
        return self.inside(images.double())


# Operations without a sign: the bucket alone says what each image becomes, on any rank.
UNSIGNED = RandAug(m_max=2, operations=["posterize", "solarize", "autocontrast", "equalize"])


def learned(model, batches):
    """Sums and tables, of all visits and of a few."""
    policy, pooled = (AutoLabel(10, len(UNSIGNED.grid), alpha=0.7) for _ in range(2))
    seen = calibrate(model, UNSIGNED, batches)
    policy.update(seen)
    few = calibrate(model, UNSIGNED, batches, visits=2, turn=5)
    pooled.update(Pool(UNSIGNED.grid)(few))
    return {"sums": seen.sums, "table": policy.table, "few": few.sums, "pooled": pooled.table}


def a_rank(rank, path, model, batches):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}/meet", rank=rank, world_size=2)
    own = [(images[rank::2], labels[rank::2]) for images, labels in batches]
    if rank == 1:  # shares need not be equal
        own = [part for images, labels in own for part in zip(images.split(3), labels.split(3), strict=True)]
    torch.save(learned(DistributedDataParallel(model), own), os.path.join(path, f"{rank}.pt"))
    dist.barrier()
    os._exit(0)  # gloo's threads may abort a process that takes itself apart


def test_two_ranks_measure_what_one_process_does(linear_model, batches, tmp_path):
    linear_model[1].weight.data *= 30  # sure of itself, so that labels must fall
    uneven = [*batches, (batches[0][0][:5], batches[0][1][:5])]
    model = Doubled(nn.Sequential(linear_model, nn.BatchNorm1d(10, affine=False)))
    one = learned(model, uneven)
    start_processes(a_rank, (str(tmp_path), model, uneven), nprocs=2, start_method="forkserver")
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert one["sums"][0].sum() == 53 * 6
    assert torch.equal(first["table"], second["table"])
    torch.testing.assert_close(first["sums"], one["sums"], rtol=1e-12, atol=1e-9)
    torch.testing.assert_close(first["table"], one["table"])
    # In rotation too: each image visits the buckets that it would visit alone.
    assert one["few"][0].sum() == 53 * 2
    torch.testing.assert_close(first["few"], one["few"], rtol=1e-12, atol=1e-9)
    assert torch.equal(first["pooled"], second["pooled"])
    torch.testing.assert_close(first["pooled"], one["pooled"])
    assert (one["table"] < 1).any()


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        (
            {"image": torch.rand(4, 1, 28, 28), "label": torch.zeros(4).long()},
            r'got a dictionary of image, label\. Pick .*\(\(batch\["image"\], batch\["label"\]\) for batch',
        ),
        (
            (torch.rand(4, 1, 28, 28), torch.zeros(4).long(), torch.arange(4)),
            r"got a tuple of Tensor, Tensor, Tensor\. Pick .*\(\(batch\[0\], batch\[1\]\) for batch in",
        ),
        ([torch.rand(4, 1, 28, 28), [0, 1, 2, 3]], r"got a list of Tensor, list\."),
        ([torch.rand(4, 1, 28, 28)], r"got a list of Tensor\."),
        (torch.rand(2, 1, 28, 28), r"got a float32 tensor of shape \(2, 1, 28, 28\)\."),
    ],
)
def test_batches_of_other_than_images_and_labels_get_a_sentence(linear_model, batch, told):
    for learn in (
        lambda loader: AugmentAndLabel(RandAug(), 10, 0.1).update(linear_model, loader),
        lambda loader: calibrate(linear_model, RandAug(), loader),
    ):
        with pytest.raises(TypeError, match=rf"^the loader must yield two tensors, .*{told}"):
            learn([batch])


def test_the_two_may_be_picked_out_of_larger_batches(linear_model, batches):
    larger = [{"image": images, "label": labels, "row": 0} for images, labels in batches]
    seeds = [torch.Generator().manual_seed(0) for _ in range(2)]
    picked = ((batch["image"], batch["label"]) for batch in larger)
    seen = calibrate(linear_model, RandAug(), picked, visits=2, generator=seeds[0])
    expected = calibrate(linear_model, RandAug(), batches, visits=2, generator=seeds[1])
    assert torch.equal(seen.sums, expected.sums)


def test_images_as_they_are_come_after_the_last_bucket(linear_model, batches):
    augment, seeds = RandAug(), [torch.Generator().manual_seed(0) for _ in range(2)]
    views = every_bucket(linear_model, augment, iter(batches), visits=2, clean=True, generator=seeds[0])
    moved, clean = measure(linear_model, views, groups=83).parted(82)
    without = calibrate(linear_model, augment, batches, visits=2, generator=seeds[1])
    assert torch.equal(moved.sums, without.sums)
    by_hand = Calibration()
    for images, labels in batches:
        by_hand.update_logits(linear_model(images), labels)
    torch.testing.assert_close(clean.sums, by_hand.sums)
