import pytest

from auglabel.lab.paper.readings import reading

COLUMNS = ["on", "severity", "count", "accuracy", "confidence", "ece", "debiased_ece", "nll", "brier"]
COLUMNS += [f"scaled_{name}" for name in COLUMNS[3:]]


def line(on, severity, accuracy, confidence, ece, scaled_ece=0.0):
    return [on, severity, 100, accuracy, confidence, ece, 0, 0, 0, 0, 0, scaled_ece, 0, 0, 0]


RESULT = {
    "evaluations": [
        {
            "words": "--on=clean",
            "columns": COLUMNS,
            "rows": [line("clean", None, 0.75, 0.875, 0.125, 0.0625)],
        },
        {
            "words": "--on=corrupted",
            "columns": COLUMNS,
            "rows": [
                line("fog", 1, 0.5, 0.75, 0.25, 0.125),
                line("fog", 2, 0.25, 0.75, 0.5, 0.25),
                line("frost", 1, 0.5, 0.5, 0.0, 0.5),
                line("frost", 2, 0.75, 0.5, 0.25, 0.125),
            ],
        },
        {"words": "--on=pgd --epsilon=0.1", "columns": COLUMNS, "rows": [line("pgd", None, 0.375, 0.5, 0.0)]},
        {
            "words": "--on=clean --temperature=augmented",
            "columns": COLUMNS,
            "rows": [line("clean", None, 0.75, 0.875, 0.125, 0.03125)],
        },
    ],
    "labels": {"depth 1": [1.0, 0.9, 0.5, 0.8, 0.7], "depth 2": [0.9, 0.8], "depth 3": [0.3]},
    "views": {"rotate": {"accuracy": [0.9, 0.8, 0.4]}},
}


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
        ("adversarial_accuracy", 0.375),
        ("view_fall:rotate", 0.5),
    ],
)
def test_a_metric_by_its_name(metric, value):
    assert reading(RESULT, metric) == pytest.approx(value)


def test_the_fall_of_labels_is_the_mean_over_kinds_of_weaker_less_stronger_half():
    """(1 + 0.9)/2 - (0.8 + 0.7)/2 = 0.2, the middle left out; 0.9 - 0.8 = 0.1; one level falls nowhere."""
    assert reading(RESULT, "label_fall") == pytest.approx(0.15)


@pytest.mark.parametrize("metric", ["cece TA", "ece@5", "view_fall:solarize"])
def test_what_was_not_measured_is_none(metric):
    assert reading(RESULT, metric) is None


def test_what_was_not_scaled_is_none():
    plain = {"words": "--on=clean", "columns": COLUMNS, "rows": [line("clean", None, 0.5, 0.5, 0.1, None)]}
    assert reading({**RESULT, "evaluations": [plain]}, "ece T") is None


def test_an_unknown_metric_is_named():
    with pytest.raises(ValueError, match="there is no metric"):
        reading(RESULT, "recall")
