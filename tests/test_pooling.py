import math

import pytest
import torch
from hypothesis import given, settings
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
    policy.table.fill_(0.9)
    policy.update(pool(seen_in([(40, 36.0, 24), (20, 12.0, 16), (30, 27.0, 24)])))
    # Own gaps 12/40, -4/20, 3/30; with neighbours 10/50, 2/40, 3/30. Standard errors, of the accuracies
    # 25/42 and 17/22, are 0.07761 and 0.09371, and 0.7 of them are how far a gap may go to meet the latter.
    gaps = [0.3 - 0.7 * 0.07761, -0.2 + 0.7 * 0.09371, 0.1]
    steps = [gap * count / (count + 20) for gap, count in zip(gaps, [50, 40, 30], strict=True)]
    expected = 0.9 - 0.5 * torch.tensor(steps)
    torch.testing.assert_close(policy.table, expected, atol=1e-5, rtol=0)


def test_labels_do_not_fall_below_the_accuracy_of_their_own_images_give_or_take_their_noise():
    policy, pool = AutoLabel(10, 2, alpha=1.0), Pool(DistanceGrid((2,)))
    known = pool(seen_in([(40, 36.0, 24), (20, 18.0, 16)]))
    for _ in range(10):
        policy.update(known)
    # With neighbours 32/50 and 28/40; the second is further from its own 16/20 than 0.7 * 0.09371.
    floors = [0.64 * 50 / 70, (0.8 - 0.7 * 0.09371) * 40 / 60]
    torch.testing.assert_close(policy.table, torch.tensor(floors), atol=1e-5, rtol=0)


def test_weight_halves_with_every_level():
    known = Pool(DistanceGrid((4, 2)))(seen_in([(8, 0.0, 0), *[(0, 0.0, 0)] * 3, (0, 0.0, 0), (6, 0.0, 0)]))
    assert known.weight.tolist() == [28, 24, 22, 21, 23, 26]


def test_one_lucky_image_does_not_raise_a_label():
    policy, pool = AutoLabel(10, 1, alpha=0.02), Pool(DistanceGrid((1,)))
    policy.table.fill_(0.6)
    policy.update(pool(seen_in([(1, 0.9, 1)])))
    assert policy.table.item() == pytest.approx(0.6 + 0.02 * 0.1 / 21)


def limited(own, pooled, most):
    return min(max(pooled, own - most), own + most)


def mean(kinds, sums, bucket, lends, figure):
    """Over the levels of the kind that lend, halving with each, but no further than own images allow."""
    count = total = 0.0
    for (kind, level), other, lent in zip(kinds, sums, lends, strict=True):
        if kind == kinds[bucket][0] and (lent or level == kinds[bucket][1]):
            weight = 0.5 ** abs(level - kinds[bucket][1])
            count, total = count + weight * other[0], total + weight * figure(other)
    own = sums[bucket]
    if own[0]:
        share = (own[2] + 1) / (own[0] + 2)
        most = 0.7 * math.sqrt(share * (1 - share) / own[0])
        return count, limited(figure(own) / own[0], total / count, most)
    return count, total / count if count else 0.0


def slow(grid, memory, epochs, table):
    """The count, gap and accuracy of every bucket, in words: sums over epochs and over levels."""
    kinds = [(kind, level) for kind, levels in enumerate(grid.levels) for level in range(levels)]
    aged = [
        [memory**age * torch.tensor(f, dtype=torch.float64) for f in b]
        for age, b in enumerate(reversed(epochs))
    ]
    sums = [sum(ages).tolist() for ages in zip(*aged, strict=True)]
    told, everyone = [], [True] * len(kinds)
    floors = []
    for bucket in range(len(kinds)):
        count, accuracy = mean(kinds, sums, bucket, everyone, lambda sums: sums[2])
        floors.append((count, accuracy * count / (count + 20)))
    lends = [floor + 1e-6 < label < 1 for (_, floor), label in zip(floors, table, strict=True)]
    for bucket, (count, floor) in enumerate(floors):
        _, gap = mean(kinds, sums, bucket, lends, lambda sums: sums[1] - sums[2])
        told.append((count, gap * count / (count + 20), floor))
    return told


figures = st.tuples(st.integers(0, 50), st.floats(0, 1), st.floats(0, 1)).map(
    lambda drawn: (drawn[0], drawn[0] * drawn[1], float(round(drawn[0] * drawn[2])))
)


@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.floats(0, 0.95), st.integers(1, 4))
def test_pooling_is_what_the_words_say(data, levels, memory, count):
    grid = DistanceGrid(tuple(levels))
    epochs = [data.draw(st.lists(figures, min_size=len(grid), max_size=len(grid))) for _ in range(count)]
    table = data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.6, 1.0]), min_size=len(grid), max_size=len(grid)))
    pool = Pool(grid, memory)
    for buckets in epochs:
        known = pool(seen_in(buckets), torch.tensor(table))
    for bucket, (weight, gap, accuracy) in enumerate(slow(grid, memory, epochs, table)):
        if weight == 0:
            assert known.weight[bucket] == 0
            continue
        assert known.weight[bucket].item() == pytest.approx(weight + DOUBT)
        assert (known.confidence - known.accuracy)[bucket].item() == pytest.approx(gap, abs=1e-9)
        assert known.accuracy[bucket].item() == pytest.approx(accuracy, abs=1e-9)
        assert known.ece[bucket].item() == pytest.approx(abs(gap), abs=1e-9)


def course(right, accuracy, images, epochs, alpha, gain):
    """Tables after each epoch of a network whose confidence follows its labels, measured without noise.

    On bucket n it is as sure as it is right once its label is right[n].
    """
    right, accuracy = (torch.tensor(figure, dtype=torch.float64) for figure in (right, accuracy))
    policy, pool = AutoLabel(10, len(right), alpha), Pool(DistanceGrid((len(right),)))
    for _ in range(epochs):
        sure = accuracy + gain * (policy.table.double() - right)
        seen = Calibration(len(right), bins=1)
        seen.sums[:3, :, 0] = images * torch.stack([torch.ones_like(sure), sure, accuracy])
        policy.update(pool(seen, policy.table))
        yield policy.table.clone()


CASES = {  # the right labels, and the accuracies
    "last level destroyed": ([0.97] * 9 + [0.40], [0.9] * 9 + [0.3]),
    "some want more than 1": ([1.5] * 3 + [1.1] * 2 + [0.93] * 5, [0.9] * 5 + [0.85] * 5),
    "one wants less than its accuracy": ([0.97] * 9 + [0.1], [0.9] * 9 + [0.6]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("images", [24, 1000, 10**6])
def test_labels_do_not_ring_through_the_levels_and_none_is_off_for_its_neighbours_sake(case, images):
    right, accuracy = CASES[case]
    for table in course(right, accuracy, images, epochs=400, alpha=0.1, gain=0.6):
        assert table.diff().max() < 0.005  # none above the one before: right labels fall with the level
    expected = torch.tensor(right).clamp(max=1)
    held = expected < torch.tensor(accuracy)  # where the accuracy decides, which made-up examples lower
    torch.testing.assert_close(table[~held], expected[~held], atol=0.003, rtol=0)


@pytest.mark.parametrize("rule", ["pooled", "exact"])
def test_wrong_validation_labels_lower_the_learned_ones(rule):
    """As docs/choosing.md says: 10 % of ten classes' labels wrong, at an accuracy of 0.75."""
    right, accuracy, gain = 0.91, 0.75, 0.6
    seems = 0.9 * accuracy + 0.1 * (1 - accuracy) / 9
    policy, pool = AutoLabel(10, 1, alpha=0.1), Pool(DistanceGrid((1,)))
    for _ in range(300):
        seen = seen_in(
            [(1000, 1000 * (accuracy + gain * (policy.table.item() - right)), 1000 * seems)], bins=1
        )
        policy.update(pool(seen, policy.table) if rule == "pooled" else seen)
    assert policy.table.item() == pytest.approx(0.79, abs=0.005)


unit = st.floats(0, 1)


@given(st.lists(st.tuples(st.floats(0.2, 1.2), unit), min_size=1, max_size=10), st.floats(0.4, 1))
@settings(max_examples=15)
def test_with_many_images_labels_end_where_the_exact_rule_ends_and_stay_in_order(drawn, gain):
    """The right label, unless that is below the accuracy, which no label falls below, or above 1."""
    right, accuracy = zip(*sorted(drawn, reverse=True), strict=True)
    accuracy = sorted(accuracy, reverse=True)
    for table in course(right, accuracy, 10**8, epochs=150, alpha=0.15, gain=gain):
        assert (table.diff() < 0.001).all()
    expected = [min(max(r, a), 1.0) for r, a in zip(right, accuracy, strict=True)]
    torch.testing.assert_close(table, torch.tensor(expected), atol=0.002, rtol=0)


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


def test_readings_of_an_unknown_bucket_are_nan():
    known = Pool(DistanceGrid((1, 1)))(seen_in([(5, 4.0, 3), (0, 0.0, 0)]))
    for name in ("accuracy", "confidence", "ece"):
        assert getattr(known, name).isnan().tolist() == [False, True]


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
    with pytest.raises(TypeError, match="Pool takes a Calibration, got PooledCalibration"):
        Pool(DistanceGrid((1,)))(Pool(DistanceGrid((1,)))(seen_in([(4, 4.0, 0)])))
    with pytest.raises(TypeError, match="Pool takes a Calibration, got NoneType None"):
        pool(None)
    with pytest.raises(ValueError, match="there are 2 buckets, but the Calibration has 3 groups"):
        pool(Calibration(3))
    wrong = seen_in([(5, math.nan, 3), (5, 4.0, 3)])
    with pytest.raises(ValueError, match="holds nan or infinity"):
        pool(wrong)
    right = seen_in([(5, 4.0, 3), (5, 4.0, 3)])
    with pytest.raises(ValueError, match="the grid has 2 buckets, but the table has 3"):
        pool(right, torch.ones(3))
    with pytest.raises(ValueError, match=r"table must be in \[0, 1\], got 2"):
        pool(right, torch.tensor([1.0, 2.0]))
    assert not pool.sums.any()
