from dataclasses import replace

import pytest
import torch
from torch import nn

from auglabel import SelfDistilled, View, with_prediction


def view(labels, bucket=None, **more):
    n = len(labels)
    bucket = torch.zeros(n, dtype=torch.int64) if bucket is None else torch.tensor(bucket)
    return View(torch.zeros(n, 1, 4, 4), torch.tensor(labels), bucket, torch.full((n,), 0.5), **more)


def slow_self_distilled(c, label, q, mean, classes):
    """Between one-hot and the prediction, or between the prediction and uniform."""
    one_hot = [float(k == label) for k in range(classes)]
    if c >= mean:
        a = (1 - c) / (1 - mean)
        return [(1 - a) * h + a * p for h, p in zip(one_hot, q, strict=True)]
    b = (mean - c) / (mean - 1 / classes)
    return [(1 - b) * p + b / classes for p in q]


def test_self_distilled_targets_are_the_slow_ones_and_have_the_buckets_confidence():
    torch.manual_seed(1)
    labels = torch.randint(5, (60,))
    q = (2 * torch.randn(60, 5)).scatter_add(1, labels[:, None], torch.full((60, 1), 3.0)).softmax(dim=1)
    mean = q[range(60), labels].mean().item()
    assert 0.5 < mean < 0.9
    policy = SelfDistilled(5, 4, alpha=0.1)
    policy.table.copy_(torch.tensor([1.0, 0.95, 0.4, 0.2]))
    for bucket, c in enumerate([1.0, 0.95, 0.4, 0.2]):
        targets = policy(view(labels.tolist(), [bucket] * 60, prediction=q))
        rows = zip(labels.tolist(), q.tolist(), strict=True)
        expected = [slow_self_distilled(c, label, row, mean, 5) for label, row in rows]
        torch.testing.assert_close(targets, torch.tensor(expected))
        assert targets[range(60), labels].mean().item() == pytest.approx(c, abs=1e-6)


def test_self_distilled_by_hand():
    """q_y is 0.9 and 0.7, m = 0.8. c = 0.9 mixes in half of q; c = 0.65 softens q by 0.15 / 0.3."""
    q = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    policy = SelfDistilled(2, 2, alpha=0.1)
    policy.table.copy_(torch.tensor([0.9, 0.65]))
    doubted = policy(view([0, 1], [0, 0], prediction=q))
    torch.testing.assert_close(doubted, torch.tensor([[0.95, 0.05], [0.15, 0.85]]))
    softened = policy(view([0, 1], [1, 1], prediction=q))
    torch.testing.assert_close(softened, torch.tensor([[0.7, 0.3], [0.4, 0.6]]))


@pytest.mark.parametrize("sure", [0.0, 0.1, 0.25, 0.9, 1.0])
@pytest.mark.parametrize("q", [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
def test_targets_are_distributions_whatever_the_prediction(sure, q):
    policy = SelfDistilled(4, 1, alpha=0.1)
    policy.table.fill_(sure)
    targets = policy(view([0, 0], prediction=torch.tensor([q, q])))
    assert (targets >= 0).all()
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(2))


def test_predictions_are_those_of_the_network_in_evaluation_mode_and_leave_it_alone():
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3))
    images, before = torch.rand(6, 1, 4, 4), teacher[1].running_mean.clone()
    predicted = with_prediction(view([0] * 6), images, teacher)
    assert teacher.training
    assert torch.equal(teacher[1].running_mean, before)
    teacher.eval()
    torch.testing.assert_close(predicted.prediction, teacher(images).softmax(dim=1).detach())
    assert not predicted.prediction.requires_grad


def test_predictions_that_are_missing_or_of_other_classes_get_a_sentence():
    policy = SelfDistilled(4, 1, alpha=0.1)
    with pytest.raises(ValueError, match=r"needs predictions on the clean images: with_prediction\("):
        policy(view([0]))
    with pytest.raises(ValueError, match=r"view.prediction must have shape \(B, 4\), got a float32 tensor"):
        policy(replace(view([0]), prediction=torch.ones(1, 3)))
