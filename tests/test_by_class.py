import pytest
import torch
from torch import nn

from auglabel import AugmentAndLabel, AutoLabel, AutoLabelByClass, Calibration, Clean, View


def view(labels, bucket=None, **more):
    n = len(labels)
    bucket = torch.zeros(n, dtype=torch.int64) if bucket is None else torch.tensor(bucket)
    return View(torch.zeros(n, 1, 4, 4), torch.tensor(labels), bucket, torch.full((n,), 0.5), **more)


def no_gap(buckets=1):
    """A calibration without a gap, so that confidences stay."""
    seen = Calibration(buckets)
    seen.update(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([0]), torch.tensor([0]))
    return seen


def slow_shares(batches, classes):
    """Class-wise mean of right predictions, without the class itself, as parts of 1; None where none is."""
    rows = []
    for y in range(classes):
        right = [p for probs, labels in batches for p, label in zip(probs, labels, strict=True) if label == y]
        right = [p for p in right if p.index(max(p)) == y]
        mean = [sum(p[k] for p in right) / len(right) * (k != y) for k in range(classes)] if right else []
        rows.append([value / sum(mean) for value in mean] or None)
    return rows


def test_the_remainder_by_hand():
    """Class 0 was right twice, 0.6 0.3 0.1 0 and 0.5 0.1 0.3 0.1: the others have 0.4, 0.4 and 0.1 of 0.9."""
    policy = AutoLabelByClass(4, 1, alpha=0.1)
    policy.table.fill_(0.82)
    probs = torch.tensor([[0.6, 0.3, 0.1, 1e-9], [0.5, 0.1, 0.3, 0.1], [0.1, 0.7, 0.1, 0.1]])
    policy.see(probs.log(), torch.tensor([0, 0, 0]))
    torch.testing.assert_close(
        policy(view([0])), torch.tensor([[0.82, 0.06, 0.06, 0.06]])
    )  # not before the end
    policy.update(no_gap())
    expected = torch.tensor([[0.82, 0.08, 0.08, 0.02], [0.06, 0.82, 0.06, 0.06]])  # nothing known of class 1
    policy.table.fill_(0.82)
    torch.testing.assert_close(policy(view([0, 1])), expected, rtol=0, atol=1e-6)


def test_the_table_of_shares_is_the_slow_one_and_is_of_the_last_epoch():
    torch.manual_seed(0)
    policy, known = AutoLabelByClass(5, 3, alpha=0.1), [[1 / 4] * 5 for _ in range(5)]
    for y in range(5):
        known[y][y] = 0.0
    for _ in range(3):
        batches = [(torch.randn(6, 5).mul(2).softmax(dim=1), torch.randint(4, (6,))) for _ in range(3)]
        for probs, labels in batches:
            policy.see(probs.log(), labels)
        slow = slow_shares([(probs.tolist(), labels.tolist()) for probs, labels in batches], 5)
        known = [new or old for new, old in zip(slow, known, strict=True)]
        policy.update(Calibration(3))
        torch.testing.assert_close(policy.shares, torch.tensor(known))
    assert known[4] == [0.25, 0.25, 0.25, 0.25, 0.0]  # never a label


def test_confidences_are_autolabels():
    plain, by_class = AutoLabel(4, 1, alpha=0.5), AutoLabelByClass(4, 1, alpha=0.5)
    seen = Calibration(1)
    seen.update(torch.tensor([[0.9, 0.1, 0.0, 0.0]]), torch.tensor([1]), torch.tensor([0]))
    by_class.see(torch.randn(3, 4), torch.tensor([0, 1, 2]))
    plain.update(seen), by_class.update(seen)
    assert torch.equal(plain.table, by_class.table)
    assert plain.table.item() == pytest.approx(0.55)
    torch.testing.assert_close(by_class(view([0, 1, 2]))[range(3), range(3)], torch.full((3,), 0.55))


def test_in_a_mixed_image_both_classes_keep_theirs():
    policy = AutoLabelByClass(4, 1, alpha=0.5)
    policy.table.fill_(0.6)
    policy.shares[0] = torch.tensor([0.0, 0.5, 0.4, 0.1])
    mixed = view([0, 0], partner=torch.tensor([1, 0]), share=torch.tensor([0.25, 0.25]))
    even = AutoLabel.forward(policy, mixed)
    torch.testing.assert_close(even[0], torch.tensor([0.6, 0.2, 0.1, 0.1]))
    targets = policy(mixed)
    torch.testing.assert_close(targets[0], torch.tensor([0.6, 0.2, 0.16, 0.04]))
    rest = 1 - even[1, 0].item()  # the partner is of the same class
    torch.testing.assert_close(targets[1, 1:], rest * torch.tensor([0.5, 0.4, 0.1]))
    policy.shares[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])  # all to the partner: what is left goes evenly
    torch.testing.assert_close(policy(mixed)[0], torch.tensor([0.6, 0.2, 0.1, 0.1]))


def test_two_classes_leave_no_choice():
    policy = AutoLabelByClass(2, 1, alpha=0.5)
    policy.table.fill_(0.7)
    policy.see(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    torch.testing.assert_close(policy(view([0])), torch.tensor([[0.7, 0.3]]))
    mixed = view([0], partner=torch.tensor([1]), share=torch.tensor([0.25]))
    torch.testing.assert_close(policy(mixed), torch.tensor([[0.7, 0.3]]))


def test_an_epoch_without_predictions_is_a_mistake_of_the_loop():
    with pytest.raises(ValueError, match=r"has seen no prediction this epoch: call see\(logits, labels\)"):
        AutoLabelByClass(4, 1, alpha=0.1).update(no_gap())


def test_such_an_epoch_leaves_the_pool_as_it_was():
    learned = AugmentAndLabel(Clean(), policy=AutoLabelByClass(4, 1, alpha=0.1))
    before = {name: value.clone() for name, value in learned.state_dict().items()}
    net, batch = (
        nn.Sequential(nn.Flatten(), nn.Linear(64, 4)),
        (torch.rand(20, 1, 8, 8), torch.arange(20) % 4),
    )
    with pytest.raises(ValueError, match="has seen no prediction this epoch"):
        learned.update(net, [batch])
    assert all(torch.equal(value, before[name]) for name, value in learned.state_dict().items())
