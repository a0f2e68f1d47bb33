"""Numbers under stress: half precision, enormous logits, ties, lone images, many classes and pairs, ranks."""

import itertools
import math
import os
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import reference
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.multiprocessing import start_processes

from auglabel import (
    CCAT,
    Augmentation,
    AugMix,
    AutoLabel,
    Calibration,
    DistanceGrid,
    LabelSmoothing,
    OneHot,
    Pool,
    RandAug,
    TemperatureScaling,
    View,
    calibrate,
    metrics,
)
from auglabel.attack.pgd import pgd
from auglabel.data.embedded import load_embedded
from auglabel.losses import jensen_shannon, trades

HALVES = [torch.float16, torch.bfloat16]
READINGS = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "nll", "brier")


def classifier(scale=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))
    model[1].weight.data *= scale
    return model


def some_images(count, dtype=torch.float32):
    images, labels = load_embedded().validation
    return (images[:count].float() / 255).to(dtype), labels[:count]


def table_of(seen, alpha=0.7):
    policy = AutoLabel(10, len(seen.accuracy), alpha=alpha)
    policy.update(seen)
    return policy.table


def referee(logits, labels, alpha=0.7, bins=15):
    """The new confidence of one bucket, slowly."""
    probs = logits.double().softmax(dim=1)
    sure, chosen = probs.max(dim=1)
    return reference.autolabel_update(1.0, alpha, sure.tolist(), (chosen == labels).tolist(), bins)


# Half precision


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("augment", [RandAug(m_max=2), AugMix(levels=2)], ids=["randaug", "augmix"])
def test_half_precision_views_and_logits_give_the_labels_of_their_own_numbers(dtype, augment):
    images, labels = some_images(24, dtype)
    model = classifier(scale=8).to(dtype)
    seen = calibrate(model, augment, [(images, labels)], generator=torch.Generator().manual_seed(0))
    assert seen.sums.isfinite().all()
    table, generator = table_of(seen), torch.Generator().manual_seed(0)
    for bucket in range(len(augment.grid)):
        view = augment(images, labels, bucket=torch.full((24,), bucket), generator=generator)
        assert view.images.dtype == dtype
        expected = referee(model(view.images).detach().float(), labels)
        assert float(table[bucket]) == pytest.approx(expected, abs=1e-6)
    assert (table < 1).any()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "policy", [OneHot(10), LabelSmoothing(10, 0.1), CCAT(10)], ids=["hot", "smooth", "ccat"]
)
def test_targets_of_half_precision_strengths_sum_to_one_within_its_error(dtype, policy):
    strength = torch.linspace(0, 1, 50).to(dtype)
    labels = torch.arange(50) % 10
    targets = policy(View(torch.zeros(50, 1, 1, 1, dtype=dtype), labels, torch.zeros(50).long(), strength))
    assert targets.isfinite().all()
    assert ((targets.double().sum(dim=1) - 1).abs() <= 4 * torch.finfo(dtype).eps).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_probabilities_are_measured_as_they_are(dtype):
    logits = 3 * torch.randn(200, 10, generator=torch.Generator().manual_seed(1))
    probs, labels = logits.softmax(dim=1).to(dtype), torch.arange(200) % 10
    sure, chosen = probs.double().max(dim=1)
    slow = reference.ece(sure.tolist(), (chosen == labels).tolist(), 15)
    assert metrics.ece(probs, labels) == pytest.approx(slow, abs=1e-6)


# Logits of 1e4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
def test_logits_of_ten_thousand_have_finite_readings(dtype):
    logits = torch.full((4, 10), -1e4, dtype=dtype)
    logits[:, 3] = 1e4
    labels = torch.tensor([3, 3, 3, 0])  # sure of all, right in three of four
    seen = Calibration()
    seen.update_logits(logits, labels)
    apart = 2 * float(logits[0, 3])
    assert float(seen.confidence) == 1
    assert float(seen.accuracy) == 0.75
    assert float(seen.ece) == 0.25
    assert float(seen.brier) == 0.5  # a squared distance of 2, once in four
    assert float(seen.nll) == pytest.approx(apart / 4, rel=1e-6)
    assert all(getattr(seen, name).isfinite().all() for name in READINGS)
    assert float(table_of(seen, alpha=0.1)) == pytest.approx(1 - 0.1 * 0.25)
    policy = AutoLabel(10, 1, alpha=1.0)
    for _ in range(3):
        policy.update(seen)
    assert float(policy.table) == 0.75  # never below the accuracy


def test_losses_attacks_and_scaling_stay_finite_at_logits_of_ten_thousand():
    images, labels = some_images(32)
    model = classifier(scale=1e5)
    assert model(images).abs().max() > 1e4
    view = RandAug()(images, labels, generator=torch.Generator().manual_seed(0))
    images.requires_grad_(False)
    for loss in (
        F.cross_entropy(model(view.images), LabelSmoothing(10, 0.1)(view)),
        trades(model, images, view),
        jensen_shannon(model(images), model(view.images)),
    ):
        model.zero_grad()
        loss.backward()
        assert loss.isfinite()
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    moved = pgd(model, images, labels, torch.full((32,), 0.03), generator=torch.Generator().manual_seed(0))
    assert moved.isfinite().all()
    assert (moved - images).abs().max() <= 0.03 + 1e-6
    logits = model(images).detach()
    scaling = TemperatureScaling()
    scaling.fit(logits, labels)
    assert scaling(logits.double()).isfinite().all()


# Identical confidences


def test_identical_confidences_give_the_same_metrics_in_any_order():
    probs = torch.tensor([[0.5, 0.3, 0.2]]).repeat(60, 1)
    labels = torch.arange(60) % 3  # right in a third: a gap of 1/6 everywhere
    for order in (torch.arange(60), torch.arange(60).flip(0), torch.randperm(60)):
        found = {
            name: getattr(metrics, name)(probs[order], labels[order]) for name in ("ece", "equal_mass_ece")
        }
        assert found == pytest.approx({"ece": 1 / 6, "equal_mass_ece": 1 / 6}, abs=1e-7)
        assert metrics.aurc(probs[order], labels[order]) == pytest.approx(2 / 3)


def test_confidence_equal_to_accuracy_moves_no_label():
    probs, labels = torch.tensor([[0.5, 0.25, 0.25]]).repeat(8, 1), torch.tensor([0, 1] * 4)
    seen = Calibration(groups=2)
    seen.update(probs, labels, torch.zeros(8).long())
    table = table_of(seen, alpha=1.0)
    assert table.tolist() == [1, 1]  # the second bucket was not seen at all


# One image per bucket


def test_buckets_of_one_image_move_as_the_paper_says():
    logits = 4 * torch.randn(500, 10, generator=torch.Generator().manual_seed(2))
    labels = torch.arange(500) % 10
    seen = Calibration(groups=501)  # and one that nothing falls into
    seen.update_logits(logits, labels, torch.arange(500))
    table = table_of(seen)
    slow = [referee(logits[n : n + 1], labels[n : n + 1]) for n in range(500)]
    torch.testing.assert_close(table, torch.tensor([*slow, 1.0]), rtol=0, atol=1e-6)
    for name in READINGS:
        assert getattr(seen, name)[:500].isfinite().all()
        assert math.isnan(getattr(seen, name)[500])


def test_a_pool_of_buckets_of_one_image_knows_numbers_only():
    grid, policy = RandAug().grid, AutoLabel(10, 82, alpha=1.0)
    pool = Pool(grid)
    for epoch in range(5):
        seen = Calibration(groups=82)
        logits = 50 * torch.randn(82, 10, generator=torch.Generator().manual_seed(epoch))
        seen.update_logits(logits, torch.zeros(82).long(), torch.arange(82))
        policy.update(pool(seen, policy.table))
        assert policy.table.isfinite().all()
        assert ((policy.table >= 0) & (policy.table <= 1)).all()
    assert (policy.table < 1).all()


# Ten thousand classes

MANY = 10_000


def test_ten_thousand_classes_have_targets_that_sum_to_one():
    labels = torch.tensor([0, 1, 5000, MANY - 1] * 16)
    view = View(torch.zeros(64, 1, 1, 1), labels, torch.arange(64), torch.linspace(0, 1, 64))
    policy = AutoLabel(MANY, 64, alpha=1.0)
    policy.table.copy_(torch.linspace(0, 1, 64))
    targets = policy(view)
    assert ((targets.double().sum(dim=1) - 1).abs() < 1e-6).all()
    row = torch.tensor(reference.targets(float(policy.table[20]), int(labels[20]), MANY))
    torch.testing.assert_close(targets[20], row, rtol=1e-6, atol=0)
    mixed = View(
        view.images,
        labels,
        view.bucket,
        view.strength,
        partner=labels.flip(0),
        share=torch.linspace(0, 0.5, 64),
    )
    targets = policy(mixed)
    assert (targets >= 0).all()
    assert ((targets.double().sum(dim=1) - 1).abs() < 1e-6).all()


def test_ten_thousand_classes_are_measured_by_the_closed_form():
    seen, labels = Calibration(), torch.arange(64) * 150
    seen.update_logits(torch.zeros(64, MANY), labels)  # sure of nothing: 1 in 10,000
    assert float(seen.nll) == pytest.approx(math.log(MANY), rel=1e-6)
    assert float(seen.confidence) == pytest.approx(1e-4, rel=1e-5)
    assert float(seen.brier) == pytest.approx(1 - 1e-4, rel=1e-5)
    assert metrics.classwise_ece(torch.full((64, MANY), 1e-4), labels) < 2e-4


# A million pairs of bucket and example


class Marked(Augmentation):
    """Writes the bucket into the image."""

    def __init__(self, levels):
        self.grid = DistanceGrid((levels,))

    def apply(self, images, labels, distance, model, generator):
        marked = (distance.bucket / len(self.grid)).view(-1, 1, 1, 1).expand_as(images)
        return View(marked, labels, distance.bucket, distance.strength)


class Surer(nn.Module):
    """Sure of class 0 by two to the tenth part of the mark: the later the bucket, the surer."""

    def forward(self, images):
        margin = 5 * images[:, 0, 0, 0]
        return torch.stack([margin, torch.zeros_like(margin)], dim=1)


def most_memory():
    """MB that this process held at most since it was asked to forget."""
    told = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", told)[1]) / 1024


def memory_of(work):
    """What `work` gives, and the MB that it took at most."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets
    before = most_memory()
    return work(), most_memory() - before


def alone(work):
    """In a process of its own: others' memory, free but not given back, would hide what it takes."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux forgets its most memory")
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        return pool.submit(work).result()


def images_of_a_class(batches):
    for _ in range(batches):
        yield torch.zeros(500, 1, 4, 4), torch.tensor([0, 0, 0, 0, 1] * 100)  # class 0 in four of five


def a_million_pairs():
    """Each of 1,000 images in each of 1,000 buckets."""
    torch.set_num_threads(1)
    calibrate(Surer(), Marked(1000), images_of_a_class(1), visits=100)
    seen, taken = memory_of(lambda: calibrate(Surer(), Marked(1000), images_of_a_class(2)))
    return [seen.count, seen.confidence, seen.accuracy, table_of(seen)], taken


def sixty_four_megabytes():
    return memory_of(lambda: torch.ones(2**24).sum())


def test_memory_that_is_taken_is_seen():
    _, taken = alone(sixty_four_megabytes)
    assert 60 < taken < 80


def test_a_million_pairs_of_bucket_and_example_stream_in_flat_memory():
    (count, confidence, accuracy, table), taken = alone(a_million_pairs)
    assert taken < 32
    assert float(count.sum()) == 1_000_000
    sure = (5 * torch.arange(1000, dtype=torch.float64) / 1000).sigmoid()
    torch.testing.assert_close(confidence, sure, rtol=1e-6, atol=0)
    right = torch.full((1000,), 0.8, dtype=torch.float64)
    torch.testing.assert_close(accuracy, right, rtol=0, atol=0)
    expected = torch.maximum(1 - 0.7 * (sure - 0.8).abs() * (sure - 0.8).sign(), right).clamp(max=1)
    torch.testing.assert_close(table, expected.float(), rtol=0, atol=1e-6)


# Ranks


SCALES = {"usual": 2.0**-12, "logits of 1e4": 1.0}


class Exact(nn.Module):
    """Logits that do not depend on how images are batched: whole numbers add up exactly in any order.

    784 terms of at most 255 * 3 stay below 2^24; up to there float32, which halves are summed in, is exact.
    """

    def __init__(self, scale):
        super().__init__()
        weight = torch.randint(-3, 4, (10, 28 * 28), generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(weight * scale)  # a power of two: it moves the point alone

    def forward(self, images):
        return F.linear((255 * images).round().flatten(1), self.weight)


def a_rank(rank, path, batches):
    """The same on four ranks, then on two, then on one."""
    torch.set_num_threads(1)
    augment = RandAug(m_max=2, operations=["posterize", "solarize", "autocontrast", "equalize"])
    for world in (4, 2, 1):
        if rank < world:
            meet = f"file://{path}/meet-{world}"
            dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)
            kept = {}
            for name, dtype in itertools.product(SCALES, (torch.float32, *HALVES)):
                own = [(images[rank::world].to(dtype), labels[rank::world]) for images, labels in batches]
                model = Exact(SCALES[name]).to(dtype)
                kept[f"{name}, {dtype}, exact"] = table_of(calibrate(model, augment, own))
                few = calibrate(model, augment, own, visits=1, turn=3)  # about one image per bucket
                kept[f"{name}, {dtype}, pooled"] = table_of(Pool(augment.grid)(few))
            torch.save(kept, os.path.join(path, f"{rank}-of-{world}.pt"))
            dist.barrier()
            dist.destroy_process_group()
    os._exit(0)  # gloo's threads may abort a process that takes itself apart


def test_one_two_and_four_ranks_learn_the_same_table(tmp_path):
    batches = [some_images(11)]  # unequal shares
    start_processes(a_rank, (str(tmp_path), batches), nprocs=4, start_method="forkserver")
    one = torch.load(tmp_path / "0-of-1.pt", weights_only=True)
    for world in (2, 4):
        first = torch.load(tmp_path / f"0-of-{world}.pt", weights_only=True)
        for rank in range(world):
            other = torch.load(tmp_path / f"{rank}-of-{world}.pt", weights_only=True)
            for name, table in one.items():
                assert table.isfinite().all()
                assert torch.equal(other[name], first[name]), f"{name}: rank {rank} of {world}"
                torch.testing.assert_close(other[name], table, rtol=0, atol=2e-6)
    assert all((table < 1).any() for table in one.values())
