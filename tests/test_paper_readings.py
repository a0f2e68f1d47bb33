from types import SimpleNamespace

import pytest

from auglabel.lab.runs.evaluations import MeasuredRow
from auglabel.lab.study.readings import reading
from auglabel.lab.sweep.result import KindReadings, ResultEvaluation


def line(on, severity, accuracy, confidence, ece, at_t=0.0, at_ta=None, aurc=0.0):
    """A row of an evaluation; at T and TA the ECE, and an AURC of twice and three times as much."""
    values = {"accuracy": accuracy, "confidence": confidence, "ece": ece, "aurc": aurc}
    scaled = {"T": {"ece": at_t, "aurc": 2 * aurc}, "TA": {"ece": at_ta, "aurc": 3 * aurc}}
    return MeasuredRow(on, severity, 100, values, scaled)


def evaluation(*rows):
    return ResultEvaluation([], rows)


RESULT = SimpleNamespace(
    evaluations=[
        evaluation(line("clean", None, 0.75, 0.875, 0.125, 0.0625, 0.03125, aurc=0.0625)),
        evaluation(
            line("fog", 1, 0.5, 0.75, 0.25, 0.125, aurc=0.25),
            line("fog", 2, 0.25, 0.75, 0.5, 0.25, aurc=0.5),
            line("frost", 1, 0.5, 0.5, 0.0, 0.5, aurc=0.25),
            line("frost", 2, 0.75, 0.5, 0.25, 0.125, aurc=0.0),
        ),
        evaluation(line("pgd", None, 0.375, 0.5, 0.0)),
    ],
    labels={"depth 1": [1.0, 0.9, 0.5, 0.8, 0.7], "depth 2": [0.9, 0.8], "depth 3": [0.3]},
    views={"rotate": KindReadings([9, 9, 9], [0.9, 0.8, 0.4], [0.0, 0.0, 0.0])},
)


def result(**changed):
    return SimpleNamespace(**{**vars(RESULT), **changed})


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("accuracy", 0.75),
        ("gap", 0.125),
        ("ece", 0.125),
        ("ece T", 0.0625),
        ("ece TA", 0.03125),
        ("cece", 0.25),  # (1/4 + 1/2 + 0 + 1/4) / 4
        ("cece T", 0.25),
        ("caccuracy", 0.5),
        ("cgap", 0.125),  # 5/8 - 1/2
        ("ece@0", 0.125),
        ("ece@1", 0.125),  # (1/4 + 0) / 2
        ("ece@2", 0.375),
        ("ece@2 T", 0.1875),
        ("aurc", 0.0625),
        ("aurc TA", 0.1875),
        ("caurc", 0.25),  # (1/4 + 1/2 + 1/4 + 0) / 4
        ("caurc T", 0.5),
        ("adversarial_accuracy", 0.375),
        ("view_fall:rotate", 0.5),
    ],
)
def test_a_metric_by_its_name(metric, value):
    assert reading(RESULT, metric) == pytest.approx(value)


def test_the_fall_of_labels_is_the_mean_over_kinds_of_weaker_less_stronger_half():
    """(1 + 0.9)/2 - (0.8 + 0.7)/2 = 0.2, the middle left out; 0.9 - 0.8 = 0.1; one level falls nowhere."""
    assert reading(RESULT, "label_fall") == pytest.approx(0.15)


def test_both_accuracies_are_clean_and_attacked():
    assert reading(RESULT, "both_accuracies") == pytest.approx(0.75 + 0.375)
    assert reading(result(evaluations=RESULT.evaluations[:2]), "both_accuracies") is None


def test_the_mean_label_counts_every_kind_of_distortion_the_same():
    """(1 + 0.9 + 0.5 + 0.8 + 0.7)/5 = 0.78, 0.85 and 0.3: 1.93 / 3."""
    assert reading(RESULT, "label_mean") == pytest.approx(1.93 / 3)


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        ({"name": "one_hot"}, 1.0),
        ({"name": "label_smoothing", "rho": 0.2}, 0.802),  # 0.8 + 0.2 / 100
        ({"name": "ccat"}, None),
    ],
)
def test_the_mean_label_of_labels_that_do_not_learn(labels, value):
    plain = result(labels=None, recipe={"labels": labels, "data": {"name": "cifar100"}})
    assert reading(plain, "label_mean") == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize("metric", ["cece TA", "ece@5", "view_fall:solarize"])
def test_what_was_not_measured_is_none(metric):
    assert reading(RESULT, metric) is None


def test_what_was_not_scaled_is_none():
    plain = evaluation(line("clean", None, 0.5, 0.5, 0.1, None))
    assert reading(result(evaluations=[plain]), "ece T") is None


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match="there is no metric"):
        reading(RESULT, "recall")
