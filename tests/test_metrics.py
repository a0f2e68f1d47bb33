import math

import pytest
import reference
import torch
from conftest import random_probs
from hypothesis import given
from hypothesis import strategies as st
from test_calibration import real_predictions, two_class

from auglabel import metrics


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


@pytest.mark.parametrize(
    "metric",
    [
        metrics.ece,
        metrics.debiased_ece,
        metrics.max_ce,
        metrics.nll,
        metrics.brier,
        metrics.accuracy,
        metrics.equal_mass_ece,
        metrics.classwise_ece,
        metrics.aurc,
    ],
    ids=lambda metric: metric.__name__,
)
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
