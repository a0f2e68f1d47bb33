import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from auglabel import (
    CCAT,
    AutoLabel,
    Calibration,
    FixedTable,
    LabelPolicy,
    LabelSmoothing,
    MixupLabels,
    OneHot,
    View,
)
from auglabel.labels import TablePolicy


def view(labels, bucket=None, **mixed):
    labels = torch.tensor(labels)
    n = len(labels)
    bucket = torch.zeros(n, dtype=torch.int64) if bucket is None else torch.tensor(bucket)
    return View(torch.zeros(n, 1, 4, 4), labels, bucket, torch.full((n,), 0.5), **mixed)


def test_one_hot_is_one_hot():
    assert torch.equal(OneHot(3)(view([2, 0])), F.one_hot(torch.tensor([2, 0]), 3).float())


@pytest.mark.parametrize(
    ("rho", "classes", "sure"), [(0.02, 10, 0.982), (0.02, 100, 0.9802), (0.01, 1000, 0.99001)]
)
def test_label_smoothing_has_the_published_confidence(rho, classes, sure):
    targets = LabelSmoothing(classes, rho)(view([1]))
    torch.testing.assert_close(targets[0, 1].item(), sure, atol=1e-7, rtol=0)


def test_label_smoothing_gives_torchs_own_smoothed_loss():
    torch.manual_seed(0)
    logits, labels = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    ours = F.cross_entropy(logits, LabelSmoothing(5, 0.1)(view(labels.tolist())))
    torch.testing.assert_close(ours, F.cross_entropy(logits, labels, label_smoothing=0.1))


def test_a_fixed_table_is_looked_up_by_bucket():
    targets = FixedTable(2, [1.0, 0.75])(view([0, 1], bucket=[1, 0]))
    torch.testing.assert_close(targets, torch.tensor([[0.75, 0.25], [0.0, 1.0]]))


@pytest.mark.parametrize("classes", [10, 100])
def test_ccat_has_the_published_confidence(classes):
    strength = torch.tensor([0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0])
    n = len(strength)
    attacked = View(torch.zeros(n, 1, 2, 2), torch.arange(n), torch.zeros(n).long(), strength)
    targets = CCAT(classes)(attacked)
    sure = {
        10: [0.638863, 0.413811, 0.196637, 0.150682, 0.125423, 0.100879, 0.1],
        100: [0.602750, 0.355192, 0.116300, 0.065750, 0.037965, 0.010967, 0.01],
    }[classes]
    torch.testing.assert_close(targets[range(n), range(n)], torch.tensor(sure), atol=1e-6, rtol=0)
    g = torch.tensor([0.598737, 0.348678, 0.107374, 0.056314, 0.028248, 0.000977, 0.0])
    others = (1 - g) / classes
    torch.testing.assert_close(targets[range(n), range(1, n + 1)], others, atol=1e-6, rtol=0)


def attacked_view(reach, strength):
    n = len(reach)
    parts = torch.zeros(n, 1, 2, 2), torch.arange(n), torch.zeros(n).long(), torch.tensor(strength)
    return View(*parts, reach=torch.tensor(reach))


def test_ccat_goes_by_the_radius_that_was_drawn_or_by_the_largest():
    """Moved by all of a small radius, by half of it, by none: g = 0, 0.5^10 = 1/1024, 1."""
    seen = attacked_view(reach=[1.0, 0.5, 0.0], strength=[0.1, 0.1, 0.1])
    sure = CCAT(4).confidence(seen)
    torch.testing.assert_close(sure, torch.tensor([0.25, 1 / 1024 + 1023 / 4096, 1.0]))
    largest = CCAT(4, radius="largest").confidence(seen)
    g = 0.9**10  # for all three
    torch.testing.assert_close(largest, torch.full((3,), g + (1 - g) / 4))


def test_ccat_takes_one_of_two_radii():
    with pytest.raises(ValueError, match='radius must be "drawn" or "largest", got \'smallest\''):
        CCAT(4, radius="smallest")


def test_ccat_leaves_an_unattacked_image_one_hot():
    clean = View(torch.zeros(1, 1, 2, 2), torch.tensor([1]), torch.tensor([0]), torch.zeros(1))
    assert torch.equal(CCAT(3)(clean), torch.tensor([[0.0, 1.0, 0.0]]))


def test_mixup_labels_are_each_images_share():
    mixed = view([0, 2, 1], partner=torch.tensor([1, 2, 0]), share=torch.tensor([0.3, 0.4, 0.0]))
    expected = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    torch.testing.assert_close(MixupLabels(3)(mixed), expected)
    assert torch.equal(MixupLabels(3)(view([2])), torch.tensor([[0.0, 0.0, 1.0]]))


POLICIES = [
    OneHot(4),
    LabelSmoothing(4, 0.2),
    CCAT(4),
    MixupLabels(4),
    FixedTable(4, [0.4, 1.0]),
    AutoLabel(4, 2, 0.5),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_rows_are_distributions_for_plain_and_mixed_views(policy):
    plain = view([0, 1, 2], bucket=[0, 1, 1])
    mixed = view(
        [0, 1, 2], bucket=[0, 1, 1], partner=torch.tensor([1, 1, 3]), share=torch.tensor([0.5, 0.2, 0.0])
    )
    for targets in (policy(plain), policy(mixed)):
        assert targets.shape == (3, 4)
        assert (targets >= 0).all()
        torch.testing.assert_close(targets.sum(dim=1), torch.ones(3))


def test_a_table_travels_in_the_state_dict_and_resumes():
    learned, fresh = AutoLabel(3, 4, 0.1), AutoLabel(3, 4, 0.1)
    learned.table.copy_(torch.tensor([1.0, 0.9, 0.8, 0.7]))
    fresh.load_state_dict(learned.state_dict())
    assert torch.equal(fresh.table, learned.table)
    assert fresh.to("meta").table.device.type == "meta"


def test_a_users_policy_needs_confidence_alone():
    class Halving(LabelPolicy):
        def confidence(self, view):
            return 1 - view.strength / 2

    torch.testing.assert_close(Halving(2)(view([0])), torch.tensor([[0.75, 0.25]]))
    with pytest.raises(NotImplementedError, match="LabelPolicy must define confidence"):
        LabelPolicy(2)(view([0]))


@pytest.mark.parametrize("classes", [1, 0, -3])
def test_fewer_than_two_classes_are_refused(classes):
    with pytest.raises(ValueError, match=rf"num_classes must be at least 2, got {classes}"):
        OneHot(classes)


@pytest.mark.parametrize("rho", [-0.1, 1.1, math.nan])
def test_rho_outside_the_unit_interval_is_refused(rho):
    with pytest.raises(ValueError, match=r"rho must be in \[0, 1\]"):
        LabelSmoothing(3, rho)


@pytest.mark.parametrize("table", [[], [[0.5]], [1.2], [-0.1], [math.nan]])
def test_tables_that_hold_no_confidences_are_refused(table):
    with pytest.raises((ValueError, TypeError), match="table must"):
        TablePolicy(3, table)
    with pytest.raises(TypeError, match="table must hold one number per bucket, got str 'abc'"):
        TablePolicy(3, "abc")


def test_only_adaptive_policies_learn():
    assert AutoLabel(4, 2, 0.5).adaptive
    assert not OneHot(4).adaptive
    with pytest.raises(TypeError, match="OneHot does not learn"):
        OneHot(4).update(Calibration())


def test_numbers_of_numpy_are_numbers():
    policy = AutoLabel(np.int64(3), np.int32(2), alpha=np.float32(0.5))
    assert policy.table.shape == (2,)


def test_labels_partners_and_buckets_out_of_range_are_refused():
    with pytest.raises(ValueError, match=r"view.labels must be in 0..2 for 3 classes, got 3"):
        OneHot(3)(view([3]))
    with pytest.raises(ValueError, match=r"view.labels must be in 0..2 for 3 classes, got -1"):
        OneHot(3)(view([-1]))
    with pytest.raises(ValueError, match=r"view.bucket must be in 0..1 for 2 buckets, got 2"):
        FixedTable(3, [1, 1])(view([0], bucket=[2]))
    mixed = view([0], partner=torch.tensor([5]), share=torch.tensor([0.1]))
    with pytest.raises(ValueError, match=r"view.partner must be in 0..2"):
        OneHot(3)(mixed)
