import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auglabel import View
from auglabel.losses import focal_loss, jensen_shannon, soft_cross_entropy, trades


def divergence(p, q):
    return (p * (p / q).log()).sum(dim=1).mean()


def test_trades_by_hand():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    images, moved, labels = torch.rand(5, 1, 2, 2), torch.rand(5, 1, 2, 2), torch.tensor([0, 1, 2, 0, 1])
    view = View(moved, labels, torch.zeros(5).long(), torch.ones(5))
    p, q = model(images).softmax(dim=1), model(moved).softmax(dim=1)
    expected = F.cross_entropy(model(images), labels) + 6 * divergence(p, q)
    torch.testing.assert_close(trades(model, images, view), expected)
    torch.testing.assert_close(trades(model, images, view, beta=0.0), F.cross_entropy(model(images), labels))


def test_jensen_shannon_by_hand():
    torch.manual_seed(1)
    logits = [torch.randn(6, 4) for _ in range(3)]
    probs = [part.softmax(dim=1) for part in logits]
    middle = sum(probs) / 3
    expected = sum(divergence(p, middle) for p in probs) / 3
    torch.testing.assert_close(jensen_shannon(*logits), expected)


def test_jensen_shannon_is_zero_for_equal_views_and_at_most_log_two_for_two():
    same = torch.randn(3, 5)
    torch.testing.assert_close(jensen_shannon(same, same).item(), 0.0, atol=1e-6, rtol=0)
    far = torch.tensor([[1e4, 0.0]])
    torch.testing.assert_close(jensen_shannon(far, far.flip(1)).item(), math.log(2))


def test_one_view_has_nothing_to_be_compared_with():
    with pytest.raises(ValueError, match="at least 2 views, got 1"):
        jensen_shannon(torch.zeros(2, 2))


def test_a_negative_beta_is_refused():
    view = View(torch.rand(1, 1, 2, 2), torch.tensor([0]), torch.tensor([0]), torch.ones(1))
    with pytest.raises(ValueError, match="beta must be a finite number of at least 0"):
        trades(nn.Flatten(), torch.rand(1, 1, 2, 2), view, beta=-1.0)


def test_focal_loss_by_hand():
    """p = 1/4, 3/4 and t = 0.2, 0.8 with gamma 2: 0.2 (3/4)^2 log 4 + 0.8 (1/4)^2 log(4/3)."""
    logits = torch.tensor([[0.0, math.log(3)]])
    expected = 0.2 * 0.5625 * math.log(4) + 0.8 * 0.0625 * math.log(4 / 3)
    assert focal_loss(logits, torch.tensor([[0.2, 0.8]]), gamma=2).item() == pytest.approx(expected)


def test_focal_loss_with_one_hot_labels_is_the_published_one():
    torch.manual_seed(2)
    logits, labels = torch.randn(7, 5), torch.randint(5, (7,))
    p = logits.softmax(dim=1)[range(7), labels]
    for gamma in (0.5, 2.0, 3.0):
        expected = (-((1 - p) ** gamma) * p.log()).mean()
        torch.testing.assert_close(focal_loss(logits, F.one_hot(labels, 5), gamma), expected)


def test_focal_loss_with_gamma_0_is_cross_entropy():
    torch.manual_seed(3)
    logits, targets = torch.randn(6, 4), torch.randn(6, 4).softmax(dim=1)
    torch.testing.assert_close(focal_loss(logits, targets, 0), F.cross_entropy(logits, targets))


def test_the_best_prediction_under_focal_loss_is_less_sure_than_the_target():
    sure = torch.linspace(0.01, 0.99, 981, dtype=torch.float64)
    logits = torch.stack([sure.log(), (1 - sure).log()], dim=1)
    target = torch.tensor([[0.9, 0.1]], dtype=torch.float64)
    best = {
        gamma: sure[min(range(981), key=lambda i: focal_loss(logits[i : i + 1], target, gamma))].item()
        for gamma in (0, 3)
    }
    assert best[0] == pytest.approx(0.9, abs=1e-3)
    assert 0.5 < best[3] < 0.8


def test_focal_loss_has_finite_gradients_where_the_network_is_certain():
    logits = torch.tensor([[200.0, 0.0], [0.0, 200.0]], requires_grad=True)
    focal_loss(logits, torch.tensor([[1.0, 0.0], [1.0, 0.0]]), gamma=0.5).backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[1, 0] < -0.4  # wrong: half of the cross-entropy's -1, over two examples


def test_a_negative_gamma_is_refused():
    with pytest.raises(ValueError, match="gamma must be a finite number of at least 0"):
        focal_loss(torch.zeros(1, 2), torch.ones(1, 2), gamma=-1.0)


@pytest.fixture
def predicted():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 4, dtype=torch.float64, generator=generator)
    targets = torch.rand(6, 4, dtype=torch.float64, generator=generator)
    return logits, targets / targets.sum(dim=1, keepdim=True), torch.tensor([0, 3, 1, 1, 2, 0])


WEIGHT = torch.tensor([1.0, 2.0, 0.5, 4.0], dtype=torch.float64)


def test_weighted_soft_targets_are_torchs_sum_over_the_weight_that_they_carry(predicted):
    logits, targets, _ = predicted
    total = sum(float(WEIGHT[k] * targets[n, k]) for n in range(6) for k in range(4))
    ours = soft_cross_entropy(logits, targets, WEIGHT)
    torch.testing.assert_close(ours * total, F.cross_entropy(logits, targets, WEIGHT, reduction="sum"))
    torch.testing.assert_close(ours, F.cross_entropy(logits, targets, WEIGHT) * 6 / total)
    torch.testing.assert_close(soft_cross_entropy(logits, targets), F.cross_entropy(logits, targets))


def test_one_hot_targets_are_torchs_weighted_mean_of_labels(predicted):
    logits, _, labels = predicted
    one_hot = F.one_hot(labels, 4).double()
    expected = F.cross_entropy(logits, labels, WEIGHT)
    torch.testing.assert_close(soft_cross_entropy(logits, one_hot, WEIGHT), expected)
    torch.testing.assert_close(soft_cross_entropy(logits, labels, WEIGHT), expected)
    assert not torch.isclose(F.cross_entropy(logits, one_hot, WEIGHT), expected)  # torch's own divides by 6


def test_a_weighted_mean_stays_between_the_losses_it_is_a_mean_of_whatever_the_scale(predicted):
    logits, targets, _ = predicted
    ours = soft_cross_entropy(logits, targets, WEIGHT)
    torch.testing.assert_close(soft_cross_entropy(logits, targets, 100 * WEIGHT), ours)
    each = -logits.log_softmax(dim=1)
    assert each.min() < ours < each.max()


def test_rows_of_zeros_and_ignored_labels_do_not_count(predicted):
    logits, targets, labels = predicted
    known = torch.tensor([True, False, True, True, False, True])
    expected = soft_cross_entropy(logits[known], targets[known], WEIGHT)
    torch.testing.assert_close(soft_cross_entropy(logits, targets * known[:, None], WEIGHT), expected)
    ignored = labels.where(known, -1)
    expected = F.cross_entropy(logits, ignored, WEIGHT, ignore_index=-1)
    torch.testing.assert_close(soft_cross_entropy(logits, ignored, WEIGHT, ignore_index=-1), expected)
    one_hot = F.one_hot(labels, 4) * known[:, None]
    torch.testing.assert_close(soft_cross_entropy(logits, one_hot.double(), WEIGHT), expected)
