"""What eval says of clean images in words: the sentences of train and metrics are tested with these."""

from auglabel.lab.evaluate.evaluate import Evaluation, Row
from auglabel.lab.evaluate.results import as_json, diagnosis_of
from auglabel.lab.predictions.bootstrap import Figure


def figures(**values):
    return {name: Figure(value, value - 0.01, value + 0.01) for name, value in values.items()}


def row(on="clean", **scaled):
    seen = figures(confidence=0.80, accuracy=0.93, ece=0.13, debiased_ece=0.12)
    return Row(on, None, 1000, seen, scaled)


UNDER = "under-confident: says 80.0 %, right 93.0 %; "
CANNOT = "Softer labels cannot help here: they lower confidence, which is too low already."


def test_eval_says_what_the_fitted_temperature_does_and_why_softer_labels_do_not_help():
    found = Evaluation([row("pgd"), row(T=figures(ece=0.031), TA=figures(ece=0.02))], {"T": 0.51, "TA": 0.4})
    told = "a temperature of 0.51, fitted on clean validation images, would bring ECE from 13.0 to 3.1 %. "
    assert diagnosis_of(found) == UNDER + told + CANNOT
    assert as_json(found, {})["diagnosis"] == diagnosis_of(found)


def test_a_temperature_that_does_not_lower_ece_is_said_to_be_so():
    found = Evaluation([row(T=figures(ece=0.14))], {"T": 0.9})
    told = (
        "ECE 13.0 %, and a temperature of 0.9, fitted on clean validation images, would not lower it (14.0 %)"
    )
    assert diagnosis_of(found) == f"{UNDER}{told}. {CANNOT}"


def test_without_a_temperature_or_without_clean_images_eval_says_less():
    assert diagnosis_of(Evaluation([row()])) == f"{UNDER}ECE 13.0 %, and no temperature was fitted. {CANNOT}"
    assert diagnosis_of(Evaluation([row("pgd")])) == ""
