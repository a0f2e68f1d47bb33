import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auglabel import View
from auglabel.losses import jensen_shannon, trades


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
