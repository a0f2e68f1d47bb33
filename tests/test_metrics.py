import math

import numpy as np
import pytest
import reference
import torch
from conftest import random_probs
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from test_calibration import real_predictions, two_class

from auglabel import metrics

METRICS = [
    metrics.ece,
    metrics.debiased_ece,
    metrics.max_ce,
    metrics.nll,
    metrics.brier,
    metrics.accuracy,
    metrics.top_k_accuracy,
    metrics.equal_mass_ece,
    metrics.smooth_ece,
    metrics.classwise_ece,
    metrics.aurc,
    metrics.auroc,
]


def test_equal_mass_bins_of_four():
    probs = two_class([0.6, 0.7, 0.8, 0.9])
    assert metrics.equal_mass_ece(probs, torch.tensor([0, 0, 1, 1]), bins=2) == pytest.approx(0.4)
    assert metrics.ece(probs, torch.tensor([0, 0, 1, 1]), bins=2) == pytest.approx(0.25)


def test_equal_mass_bins_of_five_give_the_first_bin_one_more():
    probs = two_class([0.3, 0.24, 0.25, 0.2, 0.8])
    assert metrics.equal_mass_ece(probs, torch.tensor([0, 0, 0, 1, 1]), bins=2) == pytest.approx(0.278)


def test_classwise_ece_of_two_classes_is_the_binary_one():
    probs, labels = two_class([0.25, 0.25, 0.55, 0.75, 0.75]), torch.tensor([0, 0, 1, 1, 1])
    assert metrics.classwise_ece(probs, labels, bins=2) == pytest.approx(0.2900)


@pytest.mark.parametrize(
    ("name", "equal_mass", "classwise"),
    [("lenet-5-cifar-100", 0.016196, 0.003570), ("wideresnet-16-4-cifar-10", 0.053716, 0.012427)],
)
def test_real_predictions_to_the_digits_printed(name, equal_mass, classwise):
    probs, labels = real_predictions(name)
    assert metrics.equal_mass_ece(probs, labels) == pytest.approx(equal_mass, abs=5e-7)
    assert metrics.classwise_ece(probs, labels) == pytest.approx(classwise, abs=5e-7)


@given(st.integers(1, 60), st.integers(2, 6), st.integers(1, 12), st.integers(0, 10**6))
def test_metrics_equal_the_reference(n, classes, bins, seed):
    probs, labels = random_probs(n, classes, seed)
    probs = probs.double()
    rows, truth = probs.tolist(), labels.tolist()
    confidence = [max(row) for row in rows]
    correct = [row.index(max(row)) == label for row, label in zip(rows, truth, strict=True)]
    assert metrics.nll(probs, labels) == pytest.approx(reference.nll(rows, truth))
    assert metrics.brier(probs, labels) == pytest.approx(reference.brier(rows, truth))
    assert metrics.accuracy(probs, labels) == pytest.approx(sum(correct) / n)
    assert metrics.aurc(probs, labels) == pytest.approx(reference.aurc(confidence, correct))
    if all(abs(p * bins - round(p * bins)) > 1e-5 for row in rows for p in row):
        assert metrics.classwise_ece(probs, labels, bins) == pytest.approx(
            reference.classwise_ece(rows, truth, bins)
        )
        assert metrics.ece(probs, labels, bins) == pytest.approx(reference.ece(confidence, correct, bins))


def test_nll_agrees_with_scikit_learn():
    from sklearn.metrics import log_loss

    probs, labels = random_probs(500, 6)
    probs = probs.double() / probs.double().sum(dim=1, keepdim=True)
    assert metrics.nll(probs, labels) == pytest.approx(log_loss(labels, probs, labels=range(6)))


def test_metrics_do_not_depend_on_the_order_of_rows_even_with_ties():
    probs = two_class([0.9] * 6 + [0.6] * 6)
    labels = torch.tensor([1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0])
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    for metric in (metrics.equal_mass_ece, metrics.aurc, metrics.classwise_ece, metrics.ece):
        assert metric(probs, labels) == pytest.approx(metric(probs[order], labels[order]))


def test_risk_coverage_by_hand():
    curve = metrics.risk_coverage(two_class([0.9, 0.8, 0.7, 0.6]), torch.tensor([1, 0, 1, 1]))
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    torch.testing.assert_close(curve.risk, torch.tensor([0, 1 / 2, 1 / 3, 1 / 4], dtype=torch.float64))


def test_classwise_ece_in_chunks_equals_one_pass():
    probs, labels = random_probs(9000, 1000, sharpness=6)  # 9 million numbers: three chunks
    whole = sum((probs[:, k].double().sum() - (labels == k).sum()).abs().item() for k in range(1000))
    assert metrics.classwise_ece(probs, labels, bins=1) == pytest.approx(whole / (9000 * 1000))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_every_metric_refuses_logits_nan_and_nothing(metric):
    with pytest.raises(ValueError, match="probs must be probabilities"):
        metric(torch.tensor([[3.0, -1.0]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="hold nan"):
        metric(torch.tensor([[math.nan, 1.0]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="at least one prediction"):
        metric(torch.empty(0, 2), torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rows_may_be_off_by_its_error(dtype):
    probs = torch.full((3, 7), 1 / 7).to(dtype)
    assert metrics.ece(probs, torch.tensor([0, 1, 2])) == pytest.approx(
        abs(1 / 3 - float(probs[0, 0])), abs=1e-6
    )


def test_top_k_by_hand_and_of_equal_classes_the_first_count():
    probs = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.2, 0.4, 0.4]])
    labels = torch.tensor([1, 0, 2])  # second, third, and of two equal ones the second
    assert [metrics.top_k_accuracy(probs, labels, k) for k in (1, 2, 3)] == pytest.approx([0, 2 / 3, 1])
    same = torch.full((4, 4), 0.25)
    assert metrics.top_k_accuracy(same, torch.arange(4), k=1) == metrics.accuracy(same, torch.arange(4))


def test_auroc_by_hand_with_a_tie():
    probs = two_class([0.9, 0.8, 0.8, 0.7])
    right = torch.tensor([1, 1, 0, 0])  # right 0.9, 0.8; wrong 0.8, 0.7: three pairs won, one tied
    assert metrics.auroc(probs, right) == pytest.approx(3.5 / 4)
    assert metrics.auroc(probs, 1 - right) == pytest.approx(0.5 / 4)
    assert math.isnan(metrics.auroc(probs, torch.ones(4, dtype=torch.int64)))


def slow_smooth_ece(confidence, gap):
    """As the paper writes it: the kernel's reflections one by one, its width by plain search."""

    def at(width):
        t = np.linspace(0, 1, 20001)
        curve = np.zeros_like(t)
        for place, value in zip(confidence, gap, strict=True):
            for k in range(-6, 7):
                for image in (2 * k + place, 2 * k - place):
                    curve += value * np.exp(-(((t - image) / width) ** 2) / 2)
        curve /= width * math.sqrt(2 * math.pi) * len(gap)
        return trapezoid(np.abs(curve), t)

    width = 0.2  # which is too wide
    while at(width) <= width:
        width -= 2e-3
    return at(width), at(width + 2e-3)


def test_smooth_ece_equals_the_integral_of_the_reflected_kernel_at_its_own_width():
    confidence, labels = [1.0, 0.95, 0.9, 0.8, 0.62, 0.55], torch.tensor([1, 0, 1, 1, 0, 1])
    gap = [c - label for c, label in zip(confidence, labels.tolist(), strict=True)]
    most, least = slow_smooth_ece(confidence, gap)
    found = metrics.smooth_ece(two_class(confidence), labels)
    assert least - 1e-6 <= found <= most + 1e-6
    assert most - least < 1e-3
    at = metrics._smoothed(torch.tensor(confidence).double(), torch.tensor(gap).double())
    assert at(found) == pytest.approx(found, abs=2e-6)  # as wide as it is large


@pytest.mark.parametrize("confidence", [0.6, 0.9, 1.0])
def test_smooth_ece_of_equal_confidences_is_their_gap_even_at_the_edge(confidence):
    """A kernel spreads the gap, and its integral is 1: half of four are right."""
    found = metrics.smooth_ece(two_class([confidence] * 4), torch.tensor([1, 1, 0, 0]))
    assert found == pytest.approx(confidence - 0.5, abs=1e-6)


def test_smooth_ece_does_not_jump_where_ece_does():
    """Two predictions on either side of a bin's edge, whose gaps cancel if they share a bin."""
    labels = torch.tensor([1, 0])
    apart, together = (two_class([0.75 + move, 0.75 - move]) for move in (0.001, 0.0))
    assert abs(metrics.ece(apart, labels, 4) - metrics.ece(together, labels, 4)) > 0.2
    assert metrics.smooth_ece(apart, labels) == pytest.approx(metrics.smooth_ece(together, labels), abs=1e-2)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int16, np.uint64, ">i4"])
def test_numpy_arrays_and_every_integer_type_of_labels_are_taken(kind):
    probs, labels = random_probs(50, 4)
    for metric in METRICS:
        plain = metric(probs, labels)
        assert metric(probs.numpy(), labels.numpy().astype(kind)) == plain
        assert metric(probs, labels.to(torch.int32)) == plain


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.array([0.0, 1.0]), r"got a float64 tensor of shape \(2,\)"),
        (torch.tensor([0.0, 1.0]), r"got a float32 tensor of shape \(2,\)"),
        (np.array([[0], [1]]), r"got a int64 tensor of shape \(2, 1\)"),
        (np.array(["0", "1"]), r"got a numpy array of <U1 and shape \(2,\)"),
        (np.array([True, False]), r"got a bool tensor of shape \(2,\)"),
        ([0, 1], r"got list \[0, 1\]"),
    ],
)
def test_labels_that_are_no_whole_numbers_are_refused(labels, told):
    with pytest.raises(TypeError, match=f"labels must be whole numbers of shape .N,., {told}"):
        metrics.ece(np.full((2, 2), 0.5), labels)


def test_numpy_probabilities_are_checked_as_tensors_are():
    labels = np.array([0, 1])
    with pytest.raises(ValueError, match=r"a row that sums to 1\.2"):
        metrics.ece(np.array([[0.6, 0.6], [0.5, 0.5]]), labels)
    with pytest.raises(ValueError, match=r"labels must be in 0\.\.1 for 2 classes, got 2"):
        metrics.ece(np.full((2, 2), 0.5), np.array([0, 2]))
    with pytest.raises(ValueError, match="parts of equal length"):
        metrics.ece(np.full((3, 2), 0.5), labels)


@pytest.mark.parametrize(
    ("confidence", "accuracy", "count", "found"),
    [
        (0.80, 0.70, 1000, "over"),
        (0.70, 0.80, 1000, "under"),
        (0.709, 0.70, 10**6, ""),  # less than a point
        (0.80, 0.70, 50, ""),  # two standard errors of 0.065
        (1.0, 1.0, 10, ""),
    ],
)
def test_a_gap_has_a_direction_if_it_is_more_than_a_point_and_more_than_noise(
    confidence, accuracy, count, found
):
    assert metrics.leaning(confidence, accuracy, count) == found
