"""Destroyed buckets: judged by intervals against clean images, skipped or labelled 1/K, never for good."""

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st

from auglabel import AugmentAndLabel, AutoLabel, Calibration, DestroyedAutoLabel, Pool, RandAug
from auglabel.distance import DistanceGrid


def seen_right(*right, images=100, sure=0.5):
    """So many of `images` right in each bucket."""
    seen = Calibration(groups=len(right), bins=1)
    for bucket, count in enumerate(right):
        seen.sums[:3, bucket, 0] = torch.tensor([images, sure * images, count])
    return seen


CLEAN = seen_right(70, images=100)  # 0.7 of ten classes: destroyed is below 0.1 + 0.1 x 0.6 = 0.16


def judged(*right, clean=CLEAN, images=100, classes=10, **options):
    policy = DestroyedAutoLabel(classes, len(right), **options)
    policy.update(seen_right(*right, images=images), clean)
    return policy


def test_a_bucket_is_destroyed_where_its_interval_lies_below_a_tenth_of_what_is_known():
    # 8 of 100: 0.041 to 0.150; 9 of 100: 0.048 to 0.162
    assert judged(8, 9, 16, 70).destroyed.tolist() == [True, False, False, False]
    assert judged(2, 50, images=25).destroyed.tolist() == [False, False]  # 0.08, but 25 images cannot tell


@given(
    st.integers(1, 300),
    st.floats(0, 1),
    st.integers(1, 300),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(2, 50),
    st.booleans(),
)
def test_the_judgement_equals_the_reference(images, part, clean_images, clean_part, share, classes, before):
    right, clean_right = int(part * images), int(clean_part * clean_images)
    policy = DestroyedAutoLabel(classes, 1, share=share)
    policy.destroyed.fill_(before)
    policy.update(seen_right(right, images=images), seen_right(clean_right, images=clean_images))
    chance = 1 / classes
    low, high = reference.interval(right, images)
    lowest = chance + share * (clean_right / clean_images - chance)
    known = reference.interval(clean_right, clean_images)[0]
    edges = (high - lowest, low - lowest, known - chance - 0.2 * (1 - chance))
    if min(map(abs, edges)) > 1e-9:
        expected = before if edges[2] <= 0 else edges[0] < 0 or (before and edges[1] <= 0)
        assert policy.destroyed.item() == expected


def test_nothing_is_judged_while_clean_images_are_hardly_known():
    """Early in training all is at chance, and dropping it would leave nothing to learn from."""
    early = judged(0, 0, 3, clean=seen_right(33, images=100))  # 0.25 to 0.43, and 0.28 is asked for
    assert not early.destroyed.any()
    assert early.drawn is None
    assert judged(0, 0, 3, clean=seen_right(45, images=100)).destroyed.all()


def test_a_bucket_comes_back_when_it_is_seen_again_and_not_by_noise():
    policy = judged(5, 60)
    policy.update(seen_right(16, 60), CLEAN)  # 0.10 to 0.24 lies on both sides of 0.16
    assert policy.destroyed.tolist() == [True, False]
    policy.update(seen_right(30, 60), CLEAN)  # 0.22 to 0.40
    assert policy.destroyed.tolist() == [False, False]
    assert policy.drawn is None


def test_skipped_buckets_are_not_drawn_and_batches_stay_whole(grey_images):
    augment = RandAug()
    policy = DestroyedAutoLabel(10, 82)
    policy.destroyed[5:82] = True  # five levels of the first kind are left
    together, labels = AugmentAndLabel(augment, policy=policy), torch.arange(500) % 10
    view = together.view(grey_images, labels, generator=torch.Generator().manual_seed(1))
    assert len(view) == 500
    assert view.bucket.unique().tolist() == [0, 1, 2, 3, 4]
    torch.testing.assert_close(policy(view), torch.eye(10)[labels])
    _, targets = together(grey_images, labels, generator=torch.Generator().manual_seed(1))
    assert torch.equal(targets, policy(view))


def test_skipped_buckets_go_on_being_measured(linear_model, grey_images):
    policy = DestroyedAutoLabel(10, 82)
    policy.destroyed[:40] = True
    together = AugmentAndLabel(RandAug(), policy=policy)
    seen = together.update(linear_model, [(grey_images, torch.arange(500) % 10)])
    assert seen.count.min() >= 2 * 500 // 82


def test_uniform_labels_are_one_over_the_classes_and_learned_ones_wait_below():
    plain = AutoLabel(10, 2, alpha=0.5)
    policy = judged(5, 60, treat="uniform", alpha=0.5)
    plain.update(seen_right(5, 60))
    torch.testing.assert_close(policy.table, torch.stack([torch.tensor(0.1), plain.table[1]]))
    assert policy.drawn is None
    for right in (5, 30):  # at first still destroyed, then not
        policy.update(seen_right(right, 60), CLEAN)
        plain.update(seen_right(right, 60))
    assert torch.equal(policy.table, plain.table)


def test_uniform_labels_do_not_make_a_bucket_lend_its_gap(linear_model, grey_images):
    """A pool lets buckets lend theirs whose label can still move; 1/K says nothing of that."""
    policy = DestroyedAutoLabel(10, 82, treat="uniform")
    policy.destroyed[7] = True
    policy.table[7] = 0.1
    together, told = AugmentAndLabel(RandAug(), policy=policy), []
    together.pool.register_forward_pre_hook(lambda pool, given: told.append(given[1].clone()))
    together.update(linear_model, [(grey_images, torch.arange(500) % 10)])
    assert torch.equal(told[0], torch.ones(82))


def test_skipped_buckets_keep_the_label_of_autolabel():
    plain, policy = AutoLabel(10, 2, alpha=0.5), judged(5, 60, alpha=0.5)
    plain.update(seen_right(5, 60))
    assert torch.equal(policy.table, plain.table)
    assert policy.drawn.tolist() == [False, True]


def test_where_nothing_is_left_all_is_drawn():
    assert judged(1, 2).drawn is None


def test_a_saved_policy_goes_on_to_the_bit():
    policy, again = judged(5, 60, 12, treat="uniform"), DestroyedAutoLabel(10, 3, treat="uniform")
    again.load_state_dict(policy.state_dict())
    for each in (policy, again):
        each.update(seen_right(30, 60, 5), CLEAN)
    assert torch.equal(policy.table, again.table)
    assert policy.destroyed.tolist() == again.destroyed.tolist() == [False, False, True]


def test_made_up_examples_of_a_pool_destroy_nothing():
    """A pool adds 20 examples that are never right; one image seen must not look like 21."""
    pool, policy = Pool(DistanceGrid((3,))), DestroyedAutoLabel(10, 3)
    policy.update(pool(seen_right(0, 0, 0, images=1)), seen_right(99, images=100))
    assert not policy.destroyed.any()
    for _ in range(6):
        policy.update(pool(seen_right(5, 5, 5, images=100)), seen_right(99, images=100))
    assert policy.destroyed.all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"treat": "drop"}, 'treat must be "skip" or "uniform", got \'drop\''),
        ({"share": 1.5}, "share must be in .0, 1., got 1.5|share must be a finite number"),
    ],
)
def test_options_it_does_not_have_are_named(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        DestroyedAutoLabel(10, 2, **options)


def test_the_images_as_they_are_must_come_along():
    with pytest.raises(TypeError, match=r"DestroyedAutoLabel\.update also takes a Calibration of the images"):
        DestroyedAutoLabel(10, 1).update(seen_right(5))
