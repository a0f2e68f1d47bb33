"""Relative AutoLabel: exact by a slow reference, and what it leaves to a temperature."""

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from learners import seen_exactly
from torch import nn

from auglabel import AugmentAndLabel, AutoLabel, Calibration, RandAug, RelativeAutoLabel
from auglabel.pooling import DOUBT, Pool


def seen_with(buckets):
    """Two-class predictions: a list of (confidence, right) per bucket."""
    seen = Calibration(groups=len(buckets))
    for number, examples in enumerate(buckets):
        for sure, right in examples:
            probs = torch.tensor([[sure, 1 - sure]], dtype=torch.float64)
            seen.update(probs, torch.tensor([0 if right else 1]), torch.tensor([number]))
    return seen


def clean_with(gap, accuracy=0.8):
    return seen_exactly(accuracy, torch.tensor([gap]))


examples = st.lists(st.tuples(st.floats(0.5001, 1), st.booleans()), min_size=1, max_size=8)


@given(st.lists(st.tuples(st.floats(0, 1), examples), min_size=1, max_size=4), examples, st.floats(0, 1))
def test_update_equals_the_reference(cases, clean, alpha):
    policy = RelativeAutoLabel(2, len(cases), alpha)
    policy.table.copy_(torch.tensor([start for start, _ in cases]))
    before = policy.table.tolist()

    policy.update(seen_with([some for _, some in cases]), seen_with([clean]))

    for now, start, (_, bucket) in zip(policy.table.tolist(), before, cases, strict=True):
        assert now == pytest.approx(reference.relative_update(start, alpha, bucket, clean), abs=1e-6)


def test_a_gap_that_all_images_have_is_left_to_a_temperature():
    policy = RelativeAutoLabel(10, 2, alpha=0.5)
    policy.update(seen_exactly(0.6, torch.tensor([0.1, 0.3])), clean_with(0.1))
    torch.testing.assert_close(policy.table, torch.tensor([1.0, 0.9]))  # 1 - 0.5 (0.3 - 0.1)


def test_auto_steps_by_what_distortion_adds():
    relative, plain = RelativeAutoLabel(10, 2, epochs=4), AutoLabel(10, 2, epochs=4)
    for _ in range(3):
        relative.update(seen_exactly(0.5, torch.tensor([0.15, 0.3])), clean_with(0.1))
        plain.update(seen_exactly(0.5, torch.tensor([0.05, 0.2])))
    torch.testing.assert_close(relative.table, plain.table)
    assert relative.table.max() < 1


def test_a_pool_that_has_seen_little_leaves_labels_alone():
    """Its made-up examples have no gap, and none that is less than the clean one."""
    pool, policy = Pool(RandAug().grid), RelativeAutoLabel(10, 82, alpha=1)
    policy.table.fill_(0.9)
    seen = seen_exactly(0.5, torch.full((82,), 0.2), images=1)
    policy.update(pool(seen), clean_with(0.1))
    images = pool(Calibration(groups=82)).weight - DOUBT  # after a turn without any: half of each
    assert (policy.table < 0.9).all()
    assert torch.allclose(policy.table, (0.9 - 0.1 * 2 * images / (2 * images + DOUBT)).float(), atol=1e-6)


def test_the_images_as_they_are_must_come_along():
    policy, seen = RelativeAutoLabel(10, 2), seen_exactly(0.5, torch.tensor([0.1, 0.1]))
    sentence = "RelativeAutoLabel.update also takes a Calibration of the images as they are, got "
    for clean, got in ((None, "NoneType None"), (seen, "2 groups")):
        with pytest.raises(TypeError, match=sentence + got):
            policy.update(seen, clean)
    assert torch.equal(policy.table, torch.ones(2))


@pytest.mark.parametrize("rule", ["pooled", "exact"])
def test_a_loop_measures_the_images_as_they_are_in_the_same_pass(rule, linear_model: nn.Module, grey_images):
    images, labels = grey_images[:164], torch.arange(164) % 10
    policy = RelativeAutoLabel(10, 82, alpha=1.0)
    together = AugmentAndLabel(RandAug(), policy=policy, rule=rule)
    seen = together.update(linear_model, iter([(images[:100], labels[:100]), (images[100:], labels[100:])]))
    assert seen.count.tolist() == [2 * 164 / 82 if rule == "pooled" else 164] * 82
    clean = Calibration()
    clean.update_logits(linear_model(images / 255), labels)
    by_hand = RelativeAutoLabel(10, 82, alpha=1.0)
    by_hand.update(Pool(RandAug().grid)(seen, torch.ones(82)) if rule == "pooled" else seen, clean)
    assert torch.allclose(policy.table, by_hand.table, atol=1e-6)
    assert (policy.table < 1).any()
