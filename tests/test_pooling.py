import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from auglabel import AutoLabel, Calibration, DistanceGrid, Pool, RandAug
from auglabel.pooling import DOUBT


def seen_in(buckets, bins=15):
    """A Calibration with (count, summed confidence, correct) per bucket, spread unevenly over bins."""
    seen = Calibration(len(buckets), bins)
    for bucket, figures in enumerate(buckets):
        seen.sums[:3, bucket, 0] = 0.75 * torch.tensor(figures, dtype=torch.float64)
        seen.sums[:3, bucket, -1] += 0.25 * torch.tensor(figures, dtype=torch.float64)
    return seen


def test_a_hand_worked_step():
    # 40 images of a bucket and 20 of its neighbour, at half weight; the third bucket is of another kind.
    grid = DistanceGrid((2, 1))
    policy, pool = AutoLabel(10, 3, alpha=0.5), Pool(grid)
    policy.update(pool(seen_in([(40, 36.0, 24), (20, 12.0, 16), (30, 27.0, 24)])))
    # (36 - 24 + (12 - 16)/2) / (40 + 10 + 20) = 10/70, (12 - 16 + (36 - 24)/2) / (20 + 20 + 20) = 2/60, 3/50
    expected = torch.tensor([1 - 0.5 * 10 / 70, 1 - 0.5 * 2 / 60, 1 - 0.5 * 3 / 50])
    torch.testing.assert_close(policy.table, expected)


def test_the_accuracy_below_which_no_label_falls_is_that_of_the_pool():
    policy, pool = AutoLabel(10, 2, alpha=1.0), Pool(DistanceGrid((2,)))
    pooled = pool(seen_in([(40, 36.0, 24), (20, 18.0, 16)]))
    for _ in range(10):
        policy.update(pooled)
    torch.testing.assert_close(policy.table, torch.tensor([(24 + 8) / (50 + 20), (16 + 12) / (40 + 20)]))


def test_one_lucky_image_does_not_raise_a_label():
    policy, pool = AutoLabel(10, 1, alpha=0.02), Pool(DistanceGrid((1,)))
    policy.table.fill_(0.6)
    policy.update(pool(seen_in([(1, 0.9, 1)])))
    assert policy.table.item() == pytest.approx(0.6 + 0.02 * 0.1 / 21)


def slow(grid, memory, epochs):
    """The gap and accuracy of every bucket, example by example in words: sums over epochs and neighbours."""
    told = []
    kinds = [(kind, level) for kind, levels in enumerate(grid.levels) for level in range(levels)]
    for kind, level in kinds:
        count = confidence = correct = 0.0
        for age, buckets in enumerate(reversed(epochs)):
            for (other, where), figures in zip(kinds, buckets, strict=True):
                if other == kind and abs(where - level) <= 1:
                    weight = memory**age * (1 if where == level else 0.5)
                    count += weight * figures[0]
                    confidence += weight * figures[1]
                    correct += weight * figures[2]
        told.append((count, (confidence - correct) / (count + 20), correct / (count + 20)))
    return told


figures = st.tuples(st.integers(0, 50), st.floats(0, 1), st.floats(0, 1)).map(
    lambda drawn: (drawn[0], drawn[0] * drawn[1], float(round(drawn[0] * drawn[2])))
)


@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.floats(0, 0.95), st.integers(1, 4))
def test_pooling_is_what_the_words_say(data, levels, memory, count):
    grid = DistanceGrid(tuple(levels))
    epochs = [data.draw(st.lists(figures, min_size=len(grid), max_size=len(grid))) for _ in range(count)]
    pool = Pool(grid, memory)
    for buckets in epochs:
        known = pool(seen_in(buckets))
    for bucket, (weight, gap, accuracy) in enumerate(slow(grid, memory, epochs)):
        if weight == 0:
            assert known.count[bucket] == 0
            continue
        assert known.count[bucket].item() == pytest.approx(weight + DOUBT)
        assert (known.confidence - known.accuracy)[bucket].item() == pytest.approx(gap, abs=1e-9)
        assert known.accuracy[bucket].item() == pytest.approx(accuracy, abs=1e-9)
        assert known.ece[bucket].item() == pytest.approx(abs(gap), abs=1e-9)


def test_a_bucket_nobody_has_seen_keeps_its_label_and_one_long_unseen_stops_moving():
    grid = DistanceGrid((1, 1))
    policy, pool = AutoLabel(10, 2, alpha=0.1), Pool(grid, memory=0.5)
    policy.update(pool(seen_in([(4, 4.0, 0), (0, 0.0, 0)])))
    steps = [1 - policy.table[0].item()]
    for _ in range(6):
        before = policy.table[0].item()
        policy.update(pool(seen_in([(0, 0.0, 0), (0, 0.0, 0)])))
        steps.append(before - policy.table[0].item())
    assert steps == pytest.approx([0.1 * 4 * 0.5**age / (4 * 0.5**age + 20) for age in range(7)], rel=1e-4)
    assert policy.table[1] == 1


@pytest.mark.parametrize("start", [0.8, 0.66])  # the second, next to the accuracy that no label falls below
def test_noise_does_not_shake_labels_that_are_right(start):
    """A model as sure as it is right, at 0.65, measured on 24 images a bucket: 15 bins see much error."""
    generator = torch.Generator().manual_seed(0)
    grid = DistanceGrid((10,) * 8)
    pooled, plain = (AutoLabel(10, 80, alpha=0.1) for _ in range(2))
    pooled.table.fill_(start), plain.table.fill_(start)
    pool = Pool(grid)
    for _ in range(40):
        sure = 0.4 + 0.5 * torch.rand(24 * 80, generator=generator)
        right = torch.rand(len(sure), generator=generator) < sure
        probs = torch.stack([sure, *[(1 - sure) / 9] * 9], dim=1)
        seen = Calibration(80)
        seen.update(probs, torch.where(right, 0, 1), torch.arange(80).repeat(24))
        pooled.update(pool(seen))
        plain.update(seen)

    def shaken(policy):
        return (policy.table - start).square().mean().sqrt().item()

    assert shaken(pooled) < 0.04  # sqrt(40) * 0.1 * 0.45 / sqrt(64) = 0.036
    assert shaken(plain) > 2 * shaken(pooled)


def test_state_goes_with_a_checkpoint():
    one, other = Pool(DistanceGrid((3,))), Pool(DistanceGrid((3,)))
    one(seen_in([(5, 4.0, 3), (6, 5.0, 4), (0, 0.0, 0)]))
    other.load_state_dict(one.state_dict())
    more = seen_in([(1, 0.5, 1), (1, 0.5, 0), (1, 0.5, 0)])
    assert torch.equal(one(more).sums.nan_to_num(), other(more).sums.nan_to_num())


def test_what_a_pool_does_not_know_is_nan():
    known = Pool(DistanceGrid((2,)))(seen_in([(5, 4.0, 3), (5, 4.0, 3)]))
    assert known.nll.isnan().all()
    assert known.brier.isnan().all()


def test_sums_keep_their_place_and_their_digits():
    pool = Pool(DistanceGrid((2,)))
    for moved in (pool.half(), pool.to("meta"), nn.ModuleList([pool]).to(torch.bfloat16)[0]):
        assert (moved.sums.dtype, moved.sums.device.type) == (torch.float64, "cpu")


@pytest.mark.parametrize("grid", [82, [10, 10], RandAug()])
def test_what_is_no_grid_is_refused(grid):
    with pytest.raises(TypeError, match="Pool takes a DistanceGrid, such as RandAug"):
        Pool(grid)


@pytest.mark.parametrize("memory", [1, -0.1, 1.5, math.nan])
def test_a_memory_that_never_forgets_is_refused(memory):
    with pytest.raises(ValueError, match="memory must be"):
        Pool(DistanceGrid((2,)), memory)


def test_what_is_no_calibration_of_the_grid_is_refused_and_changes_nothing():
    pool = Pool(DistanceGrid((2,)))
    with pytest.raises(TypeError, match="Pool takes a Calibration, but NoneType None came"):
        pool(None)
    with pytest.raises(ValueError, match="there are 2 buckets, but the Calibration has 3 groups"):
        pool(Calibration(3))
    wrong = seen_in([(5, math.nan, 3), (5, 4.0, 3)])
    with pytest.raises(ValueError, match="holds nan or infinity"):
        pool(wrong)
    assert not pool.sums.any()
