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
from collections.abc import Mapping, Sequence

from auglabel.corrupt import SUITES
from auglabel.errors import UserError
from auglabel.lab.runs.evaluations import MeasuredRow
from auglabel.lab.sweep.result import KEPT, Result, mean_of

CLASSES = {"cifar10": 10, "cifar100": 100}
PATTERN = re.compile(rf"(c?)({'|'.join((*KEPT, 'gap'))})(?:@(\d))?( TA?)?")


def reading(result: Result, metric: str) -> float | None:
    """The metric of a result, as a fraction; None where it was not measured."""
    if metric == "adversarial_accuracy":
        return mean_of(_rows(result, ("pgd",)), "accuracy")
    if metric == "both_accuracies":
        clean, attacked = (reading(result, name) for name in ("accuracy", "adversarial_accuracy"))
        return None if clean is None or attacked is None else clean + attacked
    if metric == "label_fall":
        return _label_fall(result.labels)
    if metric == "label_mean":
        return _label_mean(result)
    if metric.startswith("view_fall:"):
        seen = (result.views or {}).get(metric.partition(":")[2])
        return seen.accuracy[0] - seen.accuracy[-1] if seen and seen.accuracy else None
    found = PATTERN.fullmatch(metric)
    if found is None:
        raise UserError(f'there is no metric "{metric}".')
    corrupted, name, severity, temperature = found.groups(default="")
    rows = _rows(result, SUITES["all"] if corrupted or severity not in ("", "0") else ("clean",))
    rows = rows if severity in ("", "0") else [row for row in rows if row.severity == int(severity)]
    if name == "gap":
        sure, right = (mean_of(rows, f"{each}{temperature}") for each in ("confidence", "accuracy"))
        return None if sure is None or right is None else sure - right
    return mean_of(rows, f"{name}{temperature}")


def _rows(result: Result, on: Sequence[str]) -> list[MeasuredRow]:
    return [row for evaluation in result.evaluations for row in evaluation.rows if row.on in on]


def _label_fall(labels: Mapping[str, Sequence[float]] | None) -> float | None:
    """How much lower labels are in the upper half of the levels, mean over kinds with several levels.

    The middle one of an odd number of levels belongs to neither half.
    """
    kinds = [values for values in (labels or {}).values() if len(values) > 1]
    falls = [
        statistics.fmean(values[: len(values) // 2]) - statistics.fmean(values[-(len(values) // 2) :])
        for values in kinds
    ]
    return statistics.fmean(falls) if falls else None


def _label_mean(result: Result) -> float | None:
    """Each kind of distortion counts the same, as training meets them; None for labels of another sort."""
    if result.labels:
        return statistics.fmean(statistics.fmean(values) for values in result.labels.values())
    labels, data = result.recipe["labels"], result.recipe["data"]["name"]
    if labels["name"] == "label_smoothing" and data in CLASSES:
        return float(1 - labels["rho"] * (1 - 1 / CLASSES[data]))
    return 1.0 if labels["name"] == "one_hot" else None
