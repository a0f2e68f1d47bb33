"""Read a metric off a result by its name.

    accuracy, confidence, ece, debiased_ece, nll, brier, aurc    on clean test images
    gap                           confidence - accuracy: above 0, over-confident
    caccuracy, cece, cgap, ...    mean over all (corruption, severity) pairs
    ece@3                         mean over the corruptions at severity 3; @0 is clean
    adversarial_accuracy          under the evaluation attack
    both_accuracies               clean + adversarial accuracy: Delta but for vanilla's
    label_fall                    label confidence, weaker less stronger half of a kind's buckets
    label_mean                    label confidence over all kinds of distortion
    view_fall:rotate              accuracy at the lowest less that at the highest magnitude

`ece T` is the same at the temperature of lowest NLL on clean validation images, `ece TA` on augmented ones.
"""

from __future__ import annotations

import re
import statistics
from typing import Any

from auglabel.corrupt import SUITES
from auglabel.errors import UserError
from auglabel.lab.sweep.result import KEPT

CLASSES = {"cifar10": 10, "cifar100": 100}
PATTERN = re.compile(rf"(c?)({'|'.join((*KEPT, 'gap'))})(?:@(\d))?( TA?)?")


def reading(result: dict[str, Any], metric: str) -> float | None:
    """The metric of a result, as a fraction; None where it was not measured."""
    if metric == "adversarial_accuracy":
        return _mean(result, "accuracy", ("pgd",), None, "")
    if metric == "both_accuracies":
        both = [reading(result, name) for name in ("accuracy", "adversarial_accuracy")]
        return None if None in both else sum(value for value in both if value is not None)
    if metric == "label_fall":
        return _label_fall(result["labels"])
    if metric == "label_mean":
        return _label_mean(result)
    if metric.startswith("view_fall:"):
        return _view_fall(result["views"], metric.partition(":")[2])
    found = PATTERN.fullmatch(metric)
    if found is None:
        raise UserError(f'there is no metric "{metric}".')
    corrupted, name, severity, temperature = found.groups()
    on = SUITES["all"] if corrupted or severity not in (None, "0") else ("clean",)
    at = None if severity in (None, "0") else int(severity)
    if name == "gap":
        sure, right = (_mean(result, each, on, at, temperature or "") for each in ("confidence", "accuracy"))
        return None if sure is None or right is None else sure - right
    return _mean(result, name, on, at, temperature or "")


def _mean(
    result: dict[str, Any], name: str, on: tuple[str, ...], severity: int | None, temperature: str
) -> float | None:
    values = []
    for evaluation in result["evaluations"]:
        if f"{name}{temperature}" not in evaluation["columns"]:  # results of before
            continue
        column = evaluation["columns"].index(f"{name}{temperature}")
        rows = [row for row in evaluation["rows"] if row[0] in on and severity in (None, row[1])]
        values += [row[column] for row in rows]
    return None if not values or None in values else statistics.fmean(values)


def _label_fall(labels: dict[str, list[float]] | None) -> float | None:
    """How much lower labels are in the upper half of the levels, mean over kinds with several levels.

    The middle one of an odd number of levels belongs to neither half.
    """
    kinds = [values for values in (labels or {}).values() if len(values) > 1]
    falls = [
        statistics.fmean(values[: len(values) // 2]) - statistics.fmean(values[-(len(values) // 2) :])
        for values in kinds
    ]
    return statistics.fmean(falls) if falls else None


def _label_mean(result: dict[str, Any]) -> float | None:
    """Each kind of distortion counts the same, as training meets them; None for labels of another sort."""
    if result["labels"]:
        return statistics.fmean(statistics.fmean(values) for values in result["labels"].values())
    labels = result["recipe"]["labels"]
    if labels["name"] == "label_smoothing" and result["recipe"]["data"]["name"] in CLASSES:
        classes = CLASSES[result["recipe"]["data"]["name"]]
        return float(1 - labels["rho"] * (1 - 1 / classes))
    return 1.0 if labels["name"] == "one_hot" else None


def _view_fall(views: dict[str, Any] | None, operation: str) -> float | None:
    accuracy = (views or {}).get(operation, {}).get("accuracy")
    if not accuracy:
        return None
    return float(accuracy[0] - accuracy[-1])
