"""What other libraries say of two sets of predictions; its output is tests/peer_metrics.json.

Needs relplot 1.0.3, netcal 1.4.0, torch-uncertainty 0.13.0, torchmetrics 1.9 and scikit-learn 1.9, of which
not all are installed for the tests; tests/test_peer_metrics.py holds our numbers against what was printed.
"""

import json

import numpy as np

BINS = 15
SETS = {
    "over-confident": (0, 3000, 10, 2.0),
    "under-confident": (1, 2000, 5, 0.6),
}  # seed, rows, classes, scale


def predictions(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Logits (N, K), and labels drawn from what their softmax was before it was scaled."""
    seed, rows, classes, scale = SETS[name]
    random = np.random.default_rng(seed)
    logits = 1.2 * random.standard_normal((rows, classes))
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (chance.cumsum(axis=1) < random.random((rows, 1))).sum(axis=1)
    return scale * logits, labels


def softmax(logits: np.ndarray) -> np.ndarray:
    high = np.exp(logits - logits.max(axis=1, keepdims=True))
    return high / high.sum(axis=1, keepdims=True)


def numbers(name: str) -> dict[str, float]:
    import relplot
    import torch
    import torchmetrics.classification as tm
    from netcal.metrics import ECE as NetcalECE
    from netcal.metrics import MCE as NetcalMCE
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, top_k_accuracy_score
    from torch_uncertainty.metrics.classification import (
        AURC,
        AdaptiveCalibrationError,
        BrierScore,
        CalibrationError,
        ClasswiseCalibrationError,
    )

    logits, labels = predictions(name)
    probs, classes = softmax(logits), logits.shape[1]
    confidence, correct = probs.max(axis=1), (probs.argmax(axis=1) == labels) * 1.0
    tensors = torch.tensor(probs), torch.tensor(labels)

    def torch_metric(metric, *inputs):
        metric.update(*inputs)
        return float(metric.compute())

    return {
        "relplot smECE": float(relplot.smECE(confidence, correct)),
        "netcal ECE": float(NetcalECE(bins=BINS).measure(probs, labels)),
        "netcal maximum": float(NetcalMCE(bins=BINS).measure(probs, labels)),
        "torchmetrics accuracy": torch_metric(tm.MulticlassAccuracy(classes, average="micro"), *tensors),
        "torchmetrics top-2": torch_metric(
            tm.MulticlassAccuracy(classes, top_k=2, average="micro"), *tensors
        ),
        "torchmetrics ECE": torch_metric(tm.MulticlassCalibrationError(classes, n_bins=BINS), *tensors),
        "torchmetrics maximum": torch_metric(
            tm.MulticlassCalibrationError(classes, n_bins=BINS, norm="max"), *tensors
        ),
        "torchmetrics AUROC": torch_metric(
            tm.BinaryAUROC(), torch.tensor(confidence), torch.tensor(correct).long()
        ),
        "torch-uncertainty ECE": torch_metric(
            CalibrationError("multiclass", num_classes=classes, num_bins=BINS), *tensors
        ),
        "torch-uncertainty equal-mass ECE": torch_metric(
            AdaptiveCalibrationError("multiclass", num_classes=classes, num_bins=BINS), *tensors
        ),
        "torch-uncertainty class-wise ECE": torch_metric(
            ClasswiseCalibrationError(num_classes=classes, num_bins=BINS), *tensors
        ),
        "torch-uncertainty Brier": torch_metric(BrierScore(num_classes=classes), *tensors),
        "torch-uncertainty AURC": torch_metric(AURC(), *tensors),
        "scikit-learn NLL": float(log_loss(labels, probs, labels=range(classes))),
        "scikit-learn Brier": float(
            brier_score_loss(labels, probs, labels=range(classes), scale_by_half=False)
        ),
        "scikit-learn AUROC": float(roc_auc_score(correct, confidence)),
        "scikit-learn top-2": float(top_k_accuracy_score(labels, probs, k=2, labels=range(classes))),
        **after_scaling(logits, labels),
    }


def after_scaling(logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Fitted on the first half of the rows and read on the second: temperature and mean probabilities."""
    from netcal.scaling import TemperatureScaling
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    half = len(labels) // 2
    isotonic = CalibratedClassifierCV(FrozenEstimator(softmax_classifier(logits.shape[1])), method="isotonic")
    isotonic.fit(logits[:half], labels[:half])
    found = isotonic.predict_proba(logits[half:])
    own = found[np.arange(len(found)), labels[half:]]
    scaling = TemperatureScaling()
    scaling.fit(softmax(logits[:half]), labels[:half])
    return {
        "scikit-learn isotonic: mean probability of the true class": float(own.mean()),
        "scikit-learn isotonic: mean square": float(np.square(found).sum(axis=1).mean()),
        "netcal temperature": float(1 / scaling.temperature[0]),
    }


def softmax_classifier(classes: int):
    """A classifier of scikit-learn's whose probabilities are the softmax of its input."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Softmax(ClassifierMixin, BaseEstimator):
        def fit(self, logits, labels):
            self.classes_, self.n_features_in_ = np.arange(classes), classes
            return self

        def predict_proba(self, logits):
            return softmax(logits)

        def predict(self, logits):
            return logits.argmax(axis=1)

    return Softmax().fit(None, None)


if __name__ == "__main__":
    print(json.dumps({name: numbers(name) for name in SETS}, indent=1))
