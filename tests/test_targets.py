import reference
import torch
from hypothesis import given
from hypothesis import strategies as st

from auglabel.targets import one_class_targets, two_class_targets

confidences = st.floats(0, 1)


@st.composite
def mixed_pairs(draw):
    classes = draw(st.integers(2, 12))
    label, partner = draw(st.integers(0, classes - 1)), draw(st.integers(0, classes - 1))
    return draw(confidences), label, partner, draw(st.floats(0, 0.5)), classes


def double(value):
    return torch.tensor([value], dtype=torch.float64)


@given(confidences, st.integers(2, 1000), st.data())
def test_one_class_targets_equal_the_paper(confidence, classes, data):
    label = data.draw(st.integers(0, classes - 1))
    row = one_class_targets(double(confidence), torch.tensor([label]), classes)[0]
    expected = torch.tensor(reference.targets(confidence, label, classes), dtype=torch.float64)
    torch.testing.assert_close(row, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(row.sum().item(), 1.0, atol=1e-9, rtol=0)
    assert (row >= 0).all()


@given(mixed_pairs())
def test_two_class_targets_equal_the_paper(case):
    confidence, label, partner, share, classes = case
    row = two_class_targets(
        double(confidence), torch.tensor([label]), torch.tensor([partner]), double(share), classes
    )[0]
    expected = torch.tensor(reference.mixed_targets(*case), dtype=torch.float64)
    torch.testing.assert_close(row, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(row.sum().item(), 1.0, atol=1e-9, rtol=0)
    assert (row >= 0).all()


def test_hand_worked_rows():
    row = one_class_targets(torch.tensor([0.9]), torch.tensor([3]), 10)[0]
    torch.testing.assert_close(row[0], torch.tensor(0.0111111), atol=1e-7, rtol=0)
    mixed = two_class_targets(
        torch.tensor([0.6, 0.6]), torch.tensor([0, 0]), torch.tensor([1, 1]), torch.tensor([0.3, 0.5]), 10
    )
    torch.testing.assert_close(mixed[:, 1], torch.tensor([0.257143, 0.4]), atol=1e-6, rtol=0)
    torch.testing.assert_close(mixed[:, 2], torch.tensor([0.0178571, 0.0]), atol=1e-6, rtol=0)


def test_a_pair_of_one_class_adds_up_and_two_classes_take_the_remainder():
    same = two_class_targets(
        torch.tensor([0.6]), torch.tensor([1]), torch.tensor([1]), torch.tensor([0.25]), 3
    )
    torch.testing.assert_close(same, torch.tensor([[0.1, 0.8, 0.1]]))
    two = two_class_targets(
        torch.tensor([0.6]), torch.tensor([1]), torch.tensor([0]), torch.tensor([0.25]), 2
    )
    torch.testing.assert_close(two, torch.tensor([[0.4, 0.6]]))
