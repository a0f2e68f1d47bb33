import math

import pytest
import reference
import torch
from conftest import random_probs
from hypothesis import given
from hypothesis import strategies as st

from auglabel import AugmentAndLabel, AugMix, AutoLabel, Calibration


def measured(confidence, correct, groups=1, group=0, bins=15):
    """A Calibration of two-class predictions with these top-class confidences (above one half)."""
    seen = Calibration(groups, bins)
    probs = torch.tensor([[c, 1 - c] for c in confidence], dtype=torch.float64)
    labels = torch.tensor([0 if right else 1 for right in correct])
    seen.update(probs, labels, torch.full((len(labels),), group))
    return seen


def test_overconfident_bucket_loses_confidence_and_others_stay():
    seen = Calibration(groups=2, bins=10)
    seen.update(torch.tensor([[0.9, 0.1]]), labels=torch.tensor([1]), group=torch.tensor([0]))
    policy = AutoLabel(num_classes=2, num_buckets=2, alpha=0.5)

    policy.update(seen)  # sure (0.9) and wrong: ECE 0.9, so 1 - 0.5 * 0.9

    torch.testing.assert_close(policy.table, torch.tensor([0.55, 1.0]))


def sums(count, confidence, correct, apart):
    """A Calibration with given totals whose ECE is `apart`: what is beyond the gap cancels out."""
    seen = Calibration(groups=1, bins=3)
    seen.sums[0] = count / 3
    gap = correct - confidence
    extra = (apart * count - abs(gap)) / 2
    seen.sums[2] = torch.tensor([[correct, extra, 0.0]])
    seen.sums[1] = torch.tensor([[confidence, 0.0, extra]])
    return seen


@pytest.mark.parametrize(
    ("start", "alpha", "ece", "confidence", "accuracy", "expected"),
    [
        (1.0, 0.5, 0.12, 0.92, 0.80, 0.94),
        (0.70, 1.0, 0.25, 0.90, 0.65, 0.65),  # 0.45, clipped to the accuracy; ECE is at least the gap
        (0.95, 0.5, 0.20, 0.50, 0.70, 1.0),  # 1.05, clipped to 1
    ],
)
def test_hand_worked_updates(start, alpha, ece, confidence, accuracy, expected):
    seen = sums(100.0, 100 * confidence, 100 * accuracy, ece)
    torch.testing.assert_close(seen.ece, torch.tensor([ece], dtype=torch.float64))
    policy = AutoLabel(10, 1, alpha)
    policy.table.fill_(start)

    policy.update(seen)

    torch.testing.assert_close(policy.table, torch.tensor([expected]))


buckets = st.lists(st.tuples(st.floats(0.5001, 1), st.booleans()), max_size=12)


@given(
    st.lists(st.tuples(st.floats(0, 1), buckets), min_size=1, max_size=5), st.floats(0, 1), st.integers(1, 20)
)
def test_update_equals_the_paper_line_by_line(cases, alpha, bins):
    seen = Calibration(len(cases), bins)
    for group, (_, examples) in enumerate(cases):
        if examples:
            confidence, correct = zip(*examples, strict=True)
            seen = seen + measured(confidence, correct, len(cases), group, bins)
    policy = AutoLabel(2, len(cases), alpha)
    policy.table.copy_(torch.tensor([start for start, _ in cases]))
    before = policy.table.clone()

    policy.update(seen)

    for group, (_, examples) in enumerate(cases):
        now = policy.table[group].item()
        if not examples:
            assert now == before[group].item()
            continue
        confidence, correct = (list(part) for part in zip(*examples, strict=True))
        # Binning differs from plain arithmetic only within float error of an edge.
        near_edge = any(abs(c * bins - round(c * bins)) < 1e-5 for c in confidence)
        # and the sign only where confidence and accuracy agree within float error.
        near_tie = abs(sum(confidence) - sum(correct)) < 1e-9 * len(correct)
        accuracy = sum(correct) / len(correct)
        assert accuracy - 1e-6 <= now <= 1
        if not near_edge and not near_tie:
            expected = reference.autolabel_update(before[group].item(), alpha, confidence, correct, bins)
            assert now == pytest.approx(expected, abs=1e-6)


def test_a_calibrated_bucket_keeps_its_confidence():
    policy = AutoLabel(2, 1, alpha=1.0)
    policy.table.fill_(0.8)
    policy.update(measured([0.75] * 4, [True, True, True, False]))
    torch.testing.assert_close(policy.table, torch.tensor([0.8]))


@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf])
def test_an_alpha_that_is_no_step_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be a finite number of at least 0"):
        AutoLabel(2, 1, alpha)


@pytest.mark.parametrize("alpha", [1.01, 20])
def test_an_alpha_above_one_is_refused(alpha):
    told = rf"alpha must be in \[0, 1\], got {alpha}: above 1, .* from 0.005 to 1"
    with pytest.raises(ValueError, match=told):
        AutoLabel(2, 1, alpha)
    with pytest.raises(ValueError, match=told):
        AugmentAndLabel(AugMix(), num_classes=2, alpha=alpha)
    assert AutoLabel(2, 1, 1).alpha == 1


def test_another_number_of_groups_is_refused_and_changes_nothing():
    policy = AutoLabel(5, 3, alpha=0.5)
    policy.table.fill_(0.9)
    seen = Calibration(groups=2)
    seen.update(*random_probs(10, 5), torch.zeros(10, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"there are 3 buckets, but the Calibration has 2 groups"):
        policy.update(seen)
    assert torch.equal(policy.table, torch.full((3,), 0.9))


def test_sums_that_are_not_finite_are_refused_and_change_nothing():
    policy, seen = AutoLabel(5, 1, alpha=0.5), Calibration()
    seen.update(*random_probs(10, 5))
    seen.sums[1, 0, 3] = math.nan
    with pytest.raises(ValueError, match="holds nan or infinity"):
        policy.update(seen)
    assert torch.equal(policy.table, torch.ones(1))
    with pytest.raises(TypeError, match=r"AutoLabel.update takes a Calibration, got NoneType None"):
        policy.update(None)


def test_no_buckets_are_refused():
    with pytest.raises(ValueError, match="num_buckets must be at least 1, got 0"):
        AutoLabel(2, 0, 0.1)
