"""alpha "auto": exact by a slow reference, and on a learner whose response and delay are known."""

import math

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import Learner, seen_exactly, seen_on

from auglabel import AugmentAndLabel, AugMix, AutoLabel, Calibration, OneHot, Pool
from auglabel.distance import DistanceGrid
from auglabel.lab.parts.variants import AutoLabelVariant


def one(gap, accuracy=0.8):
    return seen_exactly(accuracy, torch.tensor([gap]))


def test_hand_worked_updates():
    policy = AutoLabel(10, 1, epochs=4)
    policy.update(one(0.1))  # k = 10 / 16 / 4 = 0.15625
    torch.testing.assert_close(policy.table, torch.tensor([0.984375]))
    policy.update(one(0.1))  # k = 0.6; L = 1.2: followed to 1 - 0.015625 / 1.2
    torch.testing.assert_close(
        policy.table, torch.tensor([0.984375 - 0.6 * (0.1 - 0.015625 + 0.015625 / 1.2)])
    )


def test_few_images_move_a_label_less():
    moved = []
    for images in (1e9, 100, 10):
        policy = AutoLabel(10, 1, epochs=4)
        policy.update(seen_exactly(0.5, torch.tensor([0.2]), images))
        moved.append(1 - policy.table.item())
    # p = 1/2, so the noise is 1/400 and 1/40 beside 1/100: 4/5 and 2/7 of the gap count
    assert moved == pytest.approx([0.03125, 0.03125 * 4 / 5, 0.03125 * 2 / 7], abs=1e-6)


def test_without_a_horizon_every_step_has_the_same_gain():
    policy = AutoLabel(10, 1)
    policy.update(one(0.1))  # k = 10 / 4 / 21
    torch.testing.assert_close(policy.table, torch.tensor([1 - 0.1 * 10 / 84]))
    again = AutoLabel(10, 1)
    for _ in range(50):
        again.update(one(0.0))
    again.update(one(0.1))
    assert torch.equal(again.table, policy.table)


readings = st.tuples(st.integers(1, 400), st.floats(0, 1), st.floats(0, 1))


@given(
    st.lists(st.lists(readings, min_size=3, max_size=3), min_size=1, max_size=6),
    st.none() | st.integers(1, 8),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
)
def test_updates_equal_the_reference(epochs_seen, epochs, start):
    policy = AutoLabel(10, 3, epochs=epochs)
    policy.table.copy_(torch.tensor(start))
    table = followed = policy.table.tolist()
    for done, buckets in enumerate(epochs_seen, start=1):
        seen = Calibration(groups=3, bins=1)
        for n, (images, accuracy, confidence) in enumerate(buckets):
            seen.sums[:3, n, 0] = images * torch.tensor([1, confidence, accuracy], dtype=torch.float64)
        policy.update(seen)
        moved = [
            reference.auto_step(table[n], followed[n], confidence - accuracy, accuracy, images, done, epochs)
            for n, (images, accuracy, confidence) in enumerate(buckets)
        ]
        followed = [f for _, f in moved]
        expected = [min(max(c, buckets[n][1]), 1) for n, (c, _) in enumerate(moved)]
        assert policy.table.tolist() == pytest.approx(expected, abs=1e-5)
        table = policy.table.tolist()


def test_buckets_that_saw_nothing_keep_their_label():
    policy, seen = AutoLabel(10, 2, epochs=3), Calibration(groups=2, bins=1)
    policy.table.fill_(0.9)
    seen.sums[:3, 0, 0] = torch.tensor([50.0, 40.0, 30.0])
    for _ in range(3):
        policy.update(seen)
    assert policy.table[0] < 0.9
    assert policy.table[1] == torch.tensor(0.9)


@st.composite
def learners(draw, late):
    """Any that can be put right by labels between accuracy and 1, and answers within a fifth of the time."""
    epochs = draw(st.integers(5, 200))
    response = draw(st.floats(0.3, 1.5))
    lag = draw(st.floats(1, max(1, min(10, epochs / 5))))
    return Learner(epochs, response, lag, sure=min(0.12, 0.2 * response), late=late)


def trained(learner, policy, seen=seen_exactly):
    """The gap of every bucket after each epoch."""
    gaps = []
    for number in range(1, learner.epochs + 1):
        accuracy, gap = learner.epoch(number, policy.table)
        gaps.append(gap)
        policy.update(seen(accuracy, gap))
        assert (policy.table >= 0).all()
        assert (policy.table <= 1).all()
    return torch.stack(gaps)


@given(learners(late=False))
@settings(max_examples=60)
def test_labels_never_oscillate(learner):
    """The gap falls to zero, and is at no time below it by more than a tenth of what it was."""
    gaps = trained(learner, AutoLabel(10, learner.buckets, epochs=learner.epochs)).mean(dim=1)
    assert gaps.min() > -0.1 * learner.sure
    under = (gaps < -0.005 * learner.sure).int()
    assert (under.diff() > 0).sum() <= 1  # it does not come back from below to go there again
    assert abs(gaps[-1]) < 0.7 * learner.sure


@given(learners(late=True), st.integers(0, 9))
@settings(max_examples=40)
def test_the_gap_ends_below_its_own_noise(learner, seed):
    """Root mean square over buckets, where accuracy and over-confidence rise to the end of the schedule."""
    images = 16 if learner.epochs < 10 else 25 if learner.epochs < 20 else 100
    generator = torch.Generator().manual_seed(seed)
    policy = AutoLabel(10, learner.buckets, epochs=learner.epochs)
    gaps = trained(learner, policy, lambda accuracy, gap: seen_on(images, accuracy, gap, generator))
    noise = math.sqrt(learner.accuracy * (1 - learner.accuracy) / images)
    assert gaps[-1].square().mean().sqrt() < noise


@pytest.mark.parametrize("alpha", [0.02, 0.5])
def test_no_number_does_the_same_for_all_schedules(alpha):
    """What the test above asks for is too much for an alpha: it is too slow or it oscillates."""
    short, slow = Learner(10, 0.6, 1, late=True), Learner(200, 1.5, 10)
    left = trained(short, AutoLabel(10, short.buckets, alpha))[-1].mean()
    below = trained(slow, AutoLabel(10, slow.buckets, alpha)).mean(dim=1).min()
    assert left > 0.09 or below < -0.5 * slow.sure


@given(learners(late=True), st.integers(0, 9))
@settings(max_examples=20)
def test_labels_never_fall_below_the_accuracy_that_was_seen(learner, seed):
    generator, policy = torch.Generator().manual_seed(seed), AutoLabel(10, learner.buckets)
    for number in range(1, learner.epochs + 1):
        seen = seen_on(24, *learner.epoch(number, policy.table), generator)
        policy.update(seen)
        assert (policy.table >= seen.accuracy - 1e-6).all()
        assert (policy.table <= 1).all()


def test_without_a_horizon_the_gap_goes_too_if_training_is_long_enough():
    learner = Learner(60, 0.7, 2, late=True)
    gaps = trained(learner, AutoLabel(10, learner.buckets)).mean(dim=1)
    assert gaps.min() > -0.1 * learner.sure
    assert abs(gaps[-1]) < 0.25 * learner.sure


def test_a_schedule_that_ends_early_is_told_as_the_number_of_updates():
    """As for labels that are frozen after 28 of 40 epochs."""
    learner = Learner(40, 0.7, 2)
    frozen, whole = AutoLabel(10, learner.buckets, epochs=28), AutoLabel(10, learner.buckets, epochs=40)
    gaps = [trained(Learner(28, 0.7, 2), policy)[-1].mean() for policy in (frozen, whole)]
    assert abs(gaps[0]) < 0.1 * learner.sure < gaps[1]


def test_a_saved_policy_goes_on_to_the_bit():
    seen = [seen_on(30, 0.7, torch.full((5,), 0.1), torch.Generator().manual_seed(n)) for n in range(8)]
    whole, first = AutoLabel(10, 5, epochs=8), AutoLabel(10, 5, epochs=8)
    for each in seen:
        whole.update(each)
    for each in seen[:3]:
        first.update(each)
    second = AutoLabel(10, 5, epochs=8)
    second.load_state_dict(first.state_dict())
    for each in seen[3:]:
        second.update(each)
    assert torch.equal(second.table, whole.table)
    assert whole.table.max() < 1


def test_a_number_leaves_no_more_in_a_checkpoint_than_before():
    assert set(AutoLabel(10, 5, alpha=0.1).state_dict()) == {"table"}
    assert set(AutoLabel(10, 5).state_dict()) == {"table", "auto.followed", "auto.updates"}


def test_labels_that_begin_elsewhere_are_followed_from_there():
    policy = AutoLabel(10, 1, epochs=4)
    policy.table.fill_(0.9)
    policy.update(one(0.0))
    torch.testing.assert_close(policy.table, torch.tensor([0.9]))


def test_variants_need_no_alpha():
    grid, gap = DistanceGrid((2, 1)), torch.tensor([0.0, 0.1, 0.2])
    own, every = (AutoLabelVariant(10, grid, from_buckets=which, epochs=4) for which in ("own", "all"))
    late = AutoLabelVariant(10, grid, start=2, epochs=6)  # of which 4 move labels
    for policy in (own, every, late, late, late):
        policy.update(seen_exactly(0.5, gap))
    torch.testing.assert_close(own.table, torch.tensor([1, 0.984375, 0.96875]))
    torch.testing.assert_close(every.table, torch.full((3,), 1 - 0.15625 * 0.125))  # kinds count alike
    assert torch.equal(late.table, own.table)


def test_a_pool_and_auto_work_together():
    learner = Learner(40, 0.8, 2, late=True, buckets=10)
    pool, generator = Pool(DistanceGrid((10,))), torch.Generator().manual_seed(0)
    policy = AutoLabel(10, 10, epochs=40)
    gaps = trained(
        learner, policy, lambda accuracy, gap: pool(seen_on(24, accuracy, gap, generator), policy.table)
    )
    assert abs(gaps[-1].mean()) < 0.02
    assert gaps[-1].square().mean().sqrt() < 0.04


@pytest.mark.parametrize("alpha", ["fast", "0.1"])
def test_another_word_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha must be \"auto\" or a number, got '{alpha}'"):
        AutoLabel(10, 1, alpha)


def test_no_epochs_are_refused():
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        AutoLabel(10, 1, epochs=0)
    with pytest.raises(ValueError, match="epochs must be at least 1, got 0"):
        AugmentAndLabel(AugMix(), 10).expect(0)


def test_a_loop_tells_the_epochs_once():
    assert AugmentAndLabel(AugMix(), 10, epochs=40).policy.auto.epochs == 40
    together = AugmentAndLabel(AugMix(), 10)
    together.expect(30)
    together.expect(50)  # a later guess does not change what is under way
    assert together.policy.auto.epochs == 30
    AugmentAndLabel(AugMix(), 10, 0.1).expect(5)  # nothing to tell
    AugmentAndLabel(AugMix(), policy=OneHot(10)).expect(5)
