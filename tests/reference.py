"""The method, slowly: plain Python, one example at a time, line by line as the paper states it.

Nothing here imports auglabel. Tests compare the library with these functions.
"""

import math
from fractions import Fraction


def bucket_of(strength: Fraction, levels: int) -> int:
    """Bucket n of N (numbered from 1) covers ((n - 1)/N, n/N]; zero joins the first."""
    for n in range(1, levels + 1):
        if strength <= Fraction(n, levels):
            return n
    raise ValueError(strength)


def ece(confidences: list[float], correct: list[bool], bins: int) -> float:
    """sum over bins (lo, hi] of |B|/m |acc(B) - conf(B)|."""
    total = 0.0
    for r in range(bins):
        lo, hi = r / bins, (r + 1) / bins
        inside = [i for i, c in enumerate(confidences) if lo < c <= hi or (r == 0 and c == 0)]
        if inside:
            acc = sum(correct[i] for i in inside) / len(inside)
            conf = sum(confidences[i] for i in inside) / len(inside)
            total += len(inside) / len(confidences) * abs(acc - conf)
    return total


def autolabel_update(
    c: float, alpha: float, confidences: list[float], correct: list[bool], bins: int
) -> float:
    """Eqn (1) for one bucket, then the clip to [accuracy, 1]."""
    if not confidences:
        return c
    acc = sum(correct) / len(correct)
    conf = sum(confidences) / len(confidences)
    sign = (conf > acc) - (conf < acc)
    c = c - alpha * ece(confidences, correct, bins) * sign
    return min(max(c, acc), 1.0)


def targets(c: float, label: int, classes: int) -> list[float]:
    """Eqn (2): c on the true class, (1 - c)/(K - 1) on every other."""
    return [c if k == label else (1 - c) / (classes - 1) for k in range(classes)]


def mixed_targets(c: float, label: int, partner: int, share: float, classes: int) -> list[float]:
    """c on the main class, min(1 - c, share/(1 - share) c) on the partner, the rest on the others."""
    row = [0.0] * classes
    second = min(1 - c, share / (1 - share) * c)
    if classes == 2 and partner != label:
        second = 1 - c
    others = [k for k in range(classes) if k not in (label, partner)]
    row[label] += c
    row[partner] += second
    for k in others:
        row[k] += (1 - c - second) / len(others)
    return row


def nll(probabilities: list[list[float]], labels: list[int]) -> float:
    return sum(-math.log(row[y]) for row, y in zip(probabilities, labels, strict=True)) / len(labels)


def brier(probabilities: list[list[float]], labels: list[int]) -> float:
    return sum(
        sum((p - (k == y)) ** 2 for k, p in enumerate(row))
        for row, y in zip(probabilities, labels, strict=True)
    ) / len(labels)


def classwise_ece(probabilities: list[list[float]], labels: list[int], bins: int) -> float:
    classes = len(probabilities[0])
    return (
        sum(ece([row[k] for row in probabilities], [y == k for y in labels], bins) for k in range(classes))
        / classes
    )


def aurc(confidences: list[float], correct: list[bool]) -> float:
    """Mean over k of the error rate among the k most confident; confidences must differ."""
    order = sorted(range(len(correct)), key=lambda i: -confidences[i])
    risks = [sum(not correct[i] for i in order[:k]) / k for k in range(1, len(order) + 1)]
    return sum(risks) / len(risks)


def auto_step(
    c: float, followed: float, gap: float, accuracy: float, images: float, done: int, epochs: int | None
) -> tuple[float, float]:
    """alpha "auto" for one bucket: its label, not yet clipped, and the label the network has followed."""
    t, e = (20, 40) if epochs is None else (min(done, epochs), epochs)
    followed = followed + (c - followed) / (1 + e / 20)
    k = min(0.6, 10 * (t / e) ** 2 / (e - t + 1))
    p = (images * accuracy + 1) / (images + 2)
    w = 0.1**2 / (0.1**2 + p * (1 - p) / images)
    return c - k * (w * gap + c - followed), followed
