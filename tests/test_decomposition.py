import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.isotonic import IsotonicRegression
from test_calibration import real_predictions
from test_scaling import numpy_nll, simulated

from auglabel.decomposition import decompose


def test_two_classes_by_hand():
    """Always 88 % sure (logit 2) and right three times in four: a temperature of 2 / log 3 mends it all."""
    logits, labels = torch.tensor([[2.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])
    found = decompose(logits, labels)
    best = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    given_ = math.log(1 + math.exp(-2)) + 2 / 4
    assert found.temperature == pytest.approx(2 / math.log(3))
    assert found.nll == pytest.approx((given_, given_ - best, 0, best))
    wrong = 1 / (1 + math.exp(2))
    brier = 2 * (0.75 * wrong**2 + 0.25 * (1 - wrong) ** 2)
    assert found.brier == pytest.approx((brier, brier - 2 * 3 / 16, 0, 2 * 3 / 16))


def test_what_no_temperature_mends_is_left_to_the_isotonic_step():
    """Right half of the time at logit 1 and always at logits 2 and 3: the pools are 1/2 and 1."""
    logits = torch.tensor([[1.0, 0], [1.0, 0], [2.0, 0], [3.0, 0]])
    found = decompose(logits, torch.tensor([0, 1, 0, 0]))
    assert found.nll.refinement == pytest.approx(math.log(2) / 2)
    assert found.nll.by_isotonic > 0.01
    assert found.brier.refinement == pytest.approx(2 * 0.25 / 2)


def slow(logits, labels, temperature):
    """Refinement by scikit-learn's isotonic regression, row by row."""
    log_probs = log_softmax(logits / temperature, axis=1)
    probs, top = np.exp(log_probs), log_probs.argmax(axis=1)
    confidence, right = probs.max(axis=1), (top == labels) * 1.0
    risen = IsotonicRegression().fit(confidence, right).predict(confidence)
    total = 0.0
    for row, label in enumerate(labels):
        if label == top[row]:
            total -= math.log(risen[row])
        else:
            total -= math.log((1 - risen[row]) * probs[row, label] / (1 - confidence[row]))
    return total / len(labels)


@settings(max_examples=50)
@given(st.integers(30, 300), st.integers(2, 6), st.floats(0.3, 3), st.integers(0, 10**6))
def test_the_parts_add_up_and_are_those_of_a_slow_reference(count, classes, scale, seed):
    logits, labels = simulated(count, classes, scale, seed)
    found = decompose(logits.numpy(), labels.numpy().astype(np.int32))
    assert found.temperature is not None
    assert found.nll.total == pytest.approx(numpy_nll(logits.numpy(), labels.numpy()))
    assert min(found.nll.by_temperature, found.nll.by_isotonic) > -1e-9
    for parts in (found.nll, found.brier):
        assert sum(parts[1:]) == pytest.approx(parts.total)
    assert found.nll.refinement == pytest.approx(slow(logits.numpy(), labels.numpy(), found.temperature))


def test_rescaled_logits_differ_in_the_part_of_the_temperature_alone():
    logits, labels = simulated(2000, 5)
    as_they_are, sharper = decompose(logits, labels), decompose(3 * logits, labels)
    assert sharper.temperature == pytest.approx(3 * as_they_are.temperature)
    assert sharper.nll[2:] == pytest.approx(as_they_are.nll[2:])
    assert sharper.nll.by_temperature > 0.5 > as_they_are.nll.by_temperature


def test_real_predictions_lose_a_quarter_of_their_nll_by_the_temperature_of_the_reference():
    probs, labels = real_predictions("wideresnet-16-4-cifar-10")
    found = decompose(probs.clamp(min=torch.finfo(torch.float32).tiny).log(), labels)
    assert found.temperature == pytest.approx(2.05255, abs=5e-6)
    assert found.nll.total == pytest.approx(0.378170, abs=5e-7)
    assert 0 < found.nll.by_isotonic < 0.01 < found.nll.by_temperature


def test_predictions_without_a_mistake_have_no_temperature_and_nothing_to_refine():
    found = decompose(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    assert found.temperature is None
    assert "found no lowest NLL" in found.note
    assert found.nll.by_temperature == 0
    assert found.nll.refinement == 0
