"""Our numbers beside those of other libraries, which tests/peer_metrics.py asked."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from peer_metrics import BINS, SETS, predictions, softmax

from auglabel import metrics
from auglabel.scaling import IsotonicScaling, TemperatureScaling

PEERS = json.loads(Path(__file__).with_name("peer_metrics.json").read_text())

# Most peers compute in float32, and relplot finds the width of its kernel to 1/1024 alone.
TOLERANCE = {"relplot smECE": 2e-4, "netcal temperature": 1e-6}


def ours(name):
    logits, labels = predictions(name)
    probs, labels = softmax(logits), labels.astype(np.int32)
    half, ece = len(labels) // 2, metrics.ece(probs, labels, BINS)
    temperature = TemperatureScaling().fit(logits[:half], labels[:half]).temperature.item()
    found = isotonic(logits, labels, half)
    return {
        "relplot smECE": metrics.smooth_ece(probs, labels),
        "netcal ECE": ece,
        "netcal maximum": metrics.max_ce(probs, labels, BINS),
        "torchmetrics accuracy": metrics.accuracy(probs, labels),
        "torchmetrics top-2": metrics.top_k_accuracy(probs, labels, k=2),
        "torchmetrics ECE": ece,
        "torchmetrics maximum": metrics.max_ce(probs, labels, BINS),
        "torchmetrics AUROC": metrics.auroc(probs, labels),
        "torch-uncertainty ECE": ece,
        "torch-uncertainty equal-mass ECE": metrics.equal_mass_ece(probs, labels, BINS),
        "torch-uncertainty class-wise ECE": metrics.classwise_ece(probs, labels, BINS),
        "torch-uncertainty Brier": metrics.brier(probs, labels),
        "torch-uncertainty AURC": aurc_by_trapezoids(probs, labels),
        "scikit-learn NLL": metrics.nll(probs, labels),
        "scikit-learn Brier": metrics.brier(probs, labels),
        "scikit-learn AUROC": metrics.auroc(probs, labels),
        "scikit-learn top-2": metrics.top_k_accuracy(probs, labels, k=2),
        "scikit-learn isotonic: mean probability of the true class": found[0],
        "scikit-learn isotonic: mean square": found[1],
        "netcal temperature": temperature,
    }


def aurc_by_trapezoids(probs, labels):
    """The same curve as ours, from coverage 1/N on; ours is the mean of its N points."""
    coverage, risk = metrics.risk_coverage(probs, labels)
    return float(torch.trapezoid(risk, coverage)) / (1 - 1 / len(labels))


def isotonic(logits, labels, half):
    scaling = IsotonicScaling(logits.shape[1]).fit(logits[:half], labels[:half])
    probs = scaling(torch.tensor(logits[half:])).exp().numpy()
    own = probs[np.arange(len(probs)), labels[half:]]
    return own.mean(), np.square(probs).sum(axis=1).mean()


@pytest.mark.parametrize("name", SETS)
def test_every_number_is_that_of_the_other_library(name):
    found = ours(name)
    assert found.keys() == PEERS[name].keys()
    for metric, value in PEERS[name].items():
        assert found[metric] == pytest.approx(value, abs=TOLERANCE.get(metric, 2e-7)), metric
