"""AutoLabel read otherwise: the same as AutoLabel where nothing is changed, by hand where something is."""

import math

import pytest
import torch
from conftest import random_probs

from auglabel import AutoLabel, Calibration, Pool
from auglabel.distance import DistanceGrid
from auglabel.lab.parts.variants import AutoLabelVariant

GRID = DistanceGrid((2, 3))  # buckets 0, 1 of one kind; 2, 3, 4 of another


def seen_with(*buckets):
    """Two-class predictions, one list of (confidence, right) per bucket."""
    seen = Calibration(groups=len(buckets), bins=10)
    for number, examples in enumerate(buckets):
        for confidence, right in examples:
            probs = torch.tensor([[confidence, 1 - confidence]], dtype=torch.float64)
            seen.update(probs, torch.tensor([0 if right else 1]), torch.tensor([number]))
    return seen


# One example per bucket, wrong at these confidences: its ECE is the confidence, its accuracy 0.
WRONG = seen_with([(0.9, False)], [(0.8, False)], [(0.7, False)], [(0.6, False)], [(0.55, False)])


def updated(seen=WRONG, times=1, **options):
    policy = AutoLabelVariant(2, GRID, alpha=0.5, **options)
    for _ in range(times):
        policy.update(seen)
    return policy.table


def close(table, *expected):
    torch.testing.assert_close(table, torch.tensor(expected), atol=1e-6, rtol=0)


def test_a_bucket_that_learns_from_its_own_is_autolabel_to_the_bit():
    policy, variant = AutoLabel(10, len(GRID), alpha=0.3), AutoLabelVariant(10, GRID, alpha=0.3)
    for epoch in range(5):
        probs, labels = random_probs(300, 10, seed=epoch)
        seen = Calibration(groups=len(GRID))
        seen.update(probs, labels, torch.arange(300) % (len(GRID) - 1))  # the last bucket sees nothing
        policy.update(seen)
        variant.update(seen)
        assert torch.equal(variant.table, policy.table)
    assert variant.table[-1] == 1
    assert (variant.table[:-1] < 1).all()


def test_all_buckets_together_share_one_label():
    # all wrong: accuracy 0; the kinds, met equally often, have mean confidences 0.85 and 1.85 / 3
    close(updated(from_buckets="all"), *[1 - 0.5 * (0.85 + 1.85 / 3) / 2] * 5)


def test_all_buckets_together_reach_one_that_saw_nothing():
    seen = seen_with([(0.9, False)], [], [(0.7, False)], [], [])
    close(updated(seen, from_buckets="all"), *[1 - 0.5 * (0.9 / 2 + 0.7 / 3) / (1 / 2 + 1 / 3)] * 5)


def test_shuffled_buckets_learn_from_one_another_always_in_the_same_order():
    policy = AutoLabelVariant(2, GRID, alpha=0.5, from_buckets="shuffled")
    policy.update(WRONG)
    torch.manual_seed(3)
    order = policy.order().tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert all(other != own for own, other in enumerate(order))
    assert order == AutoLabelVariant(9, GRID, 0.1, "shuffled").order().tolist()
    own = [1 - 0.5 * confidence for confidence in (0.9, 0.8, 0.7, 0.6, 0.55)]
    close(policy.table, *(own[number] for number in order))


def test_next_takes_the_stronger_bucket_of_its_kind_and_the_last_its_own():
    # kinds are not mixed: bucket 1 is the strongest of the first
    close(updated(from_buckets="next"), 0.6, 0.6, 0.7, 0.725, 0.725)


def test_labels_stay_one_hot_until_start_epochs_have_passed():
    close(updated(times=2, start=2), 1.0, 1.0, 1.0, 1.0, 1.0)
    close(updated(times=3, start=2), 0.55, 0.6, 0.65, 0.7, 0.725)


def test_previous_takes_the_weaker_bucket_of_its_kind_and_the_first_its_own():
    close(updated(from_buckets="previous"), *(1 - 0.5 * sure for sure in (0.9, 0.9, 0.7, 0.7, 0.6)))


def test_previous_is_what_the_paper_prints_for_augmix():
    """It validates lambda in (n/N, (n + 1)/N] for what it trains in ((n - 1)/N, n/N]; ours is 1 - lambda."""
    levels = 5
    for n in range(1, levels):  # as printed; the last draws past the end
        trained, drawn = (n - 0.5) / levels, (n + 0.5) / levels  # lambda, mid-interval
        ours = math.ceil((1 - trained) * levels), math.ceil((1 - drawn) * levels)
        assert ours[1] == ours[0] - 1


def test_variants_take_what_a_pool_hands_over():
    """No bins, and made-up examples in the weight: neither must do harm."""
    pool, own = Pool(GRID), AutoLabel(2, len(GRID), alpha=0.5)
    pooled = pool(WRONG)
    own.update(pooled)
    assert torch.equal(updated(pooled), own.table)
    first, *_ = updated(pooled, from_buckets="previous")
    assert first == own.table[0]
    together = updated(pooled, from_buckets="all")
    assert together.isfinite().all()
    assert (together == together[0]).all()


def test_a_saved_policy_goes_on_counting_epochs():
    policy = AutoLabelVariant(2, GRID, alpha=0.5, start=2)
    policy.update(WRONG)
    again = AutoLabelVariant(2, GRID, alpha=0.5, start=2)
    again.load_state_dict(policy.state_dict())
    assert again.epochs == 1
    again.update(WRONG)
    close(again.table, 1.0, 1.0, 1.0, 1.0, 1.0)
    again.update(WRONG)
    close(again.table, 0.55, 0.6, 0.65, 0.7, 0.725)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"from_buckets": "some"},
            "from_buckets must be one of own, all, shuffled, next, previous, got 'some'",
        ),
        ({"start": -1}, "start must be at least 0"),
    ],
)
def test_options_it_does_not_have_are_named(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        AutoLabelVariant(2, GRID, alpha=0.5, **options)


def test_a_calibration_of_another_grid_is_refused():
    with pytest.raises(ValueError, match=r"AutoLabelVariant\.update takes one group per bucket"):
        AutoLabelVariant(2, GRID, alpha=0.5).update(Calibration(groups=4))
