"""What eval and the page say of clean images in words; the sentences of train and metrics: other tests."""

import io

from made_runs import evaluation, make_run
from rich.console import Console

from auglabel.lab.evaluate.evaluate import Evaluation, Row
from auglabel.lab.evaluate.request import _kept
from auglabel.lab.evaluate.results import as_json, diagnosis_of
from auglabel.lab.methods.methods import read_run
from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.report.page import parts_of, render


def figures(**values):
    return {name: Figure(value, value - 0.01, value + 0.01) for name, value in values.items()}


def row(on="clean", **scaled):
    seen = figures(confidence=0.80, accuracy=0.93, ece=0.13, debiased_ece=0.12)
    return Row(on, None, 1000, seen, scaled)


UNDER = "under-confident: says 80.0 %, right 93.0 %; "
CANNOT = "These predictions show no over-confidence for softer labels to lower."


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


def test_a_temperature_of_another_run_is_said_to_be_fitted_for_that_run():
    found = Evaluation([row(T=figures(ece=0.031))], {"T": 0.51})
    told = as_json(found, {"temperature_from": "runs/first"})["diagnosis"]
    assert "a temperature of 0.51, fitted on clean validation images for runs/first, would bring" in told


def test_eval_prints_the_diagnosis_as_one_of_clean_test_images(tmp_path):
    names = ("accuracy", "ece", "debiased_ece", "nll", "brier", "aurc", "confidence")
    seen = dict.fromkeys(names, 0.5) | {
        "confidence": 0.8,
        "accuracy": 0.93,
        "ece": 0.13,
        "debiased_ece": 0.12,
    }
    console = Console(record=True, file=io.StringIO())
    _kept(
        Evaluation([Row("clean", None, 1000, figures(**seen), {})]), {}, "a run", tmp_path / "eval", console
    )
    line = f"On clean test images: {UNDER}ECE 13.0 %, and no temperature was fitted. {CANNOT}"
    assert line in console.export_text().splitlines()


def test_the_page_lists_each_methods_diagnosis_and_says_of_which_images(tmp_path):
    told = {"diagnosis": f"{UNDER}ECE 13.0 %. {CANNOT}"}
    runs = [
        read_run(make_run(tmp_path / regime, regime, 4, evaluation=evaluation(0.9, 0.1) | told))[0]
        for regime in ("randaug", "randaug_autolabel")
    ]
    page = render("title", parts_of(runs, []), [])
    assert "<h3>Over- or under-confident on clean test images</h3>" in page
    for labels in ("one-hot", "AutoLabel"):
        assert f"<li>RandAug + {labels}, seed 4: {told['diagnosis']}</li>" in page
