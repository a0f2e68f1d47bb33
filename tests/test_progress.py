"""What a run says at its end about how sure the network is."""

import pytest

from auglabel import cli
from auglabel.lab.train.progress import gap_sentence
from auglabel.lab.train.trainer import Trainer

TINY = ["--split.train=60", "--split.validation=60", "--split.test=40", "--epochs=1", "--tracker=none"]
UNDER = (
    "On the 400 validation images: under-confident: says 80.0 %, right 93.0 %; ECE 13.0 %, and auglabel eval "
    "fits a temperature. These predictions show no over-confidence for softer labels to lower."
)
OVER = (
    "On the 400 validation images: over-confident: says 93.0 %, right 80.0 %; ECE 13.0 %, and auglabel eval "
    "fits a temperature. Softer labels can lower its confidence."
)


def seen(confidence, accuracy, count, ece=0.13, debiased=0.13):
    values = {"confidence": confidence, "accuracy": accuracy, "count": count}
    return values | {"ece": ece, "debiased_ece": debiased}


def test_a_gap_beyond_noise_is_named_by_its_direction():
    """Two standard errors are 2 sqrt(0.8 * 0.2 / 400) = 4 points, and the gap is 13."""
    assert gap_sentence(seen(0.80, 0.93, 400)) == UNDER
    assert gap_sentence(seen(0.93, 0.80, 400)) == OVER


def test_a_calibrated_network_and_one_that_is_wrong_both_ways_are_told_apart():
    assert gap_sentence(seen(0.80, 0.81, 400, 0.04, 0.009)) == (
        "On the 400 validation images: calibrated, as far as 400 predictions show: says 80.0 %, right 81.0 "
        "%; ECE 4.0 %. These predictions show no over-confidence for softer labels to lower."
    )
    both = gap_sentence(seen(0.80, 0.81, 400, 0.04, 0.02))
    assert "neither over- nor under-confident on the whole, yet miscalibrated" in both


def test_a_gap_that_few_images_do_not_settle_is_not_called_absent():
    """At 0.625 of 32 images two standard errors are 2 sqrt(0.625 * 0.375 / 32) = 17.1 points."""
    said = gap_sentence(seen(0.784, 0.625, 32, 0.2, 0.15))
    assert "perhaps over-confident, which 32 predictions do not settle" in said
    assert said.endswith("If it is, softer labels can lower its confidence.")
    said = gap_sentence(seen(0.625, 0.784, 32, 0.2, 0.15))
    assert "perhaps under-confident, which 32 predictions" in said
    assert said.endswith("no over-confidence for softer labels to lower.")


@pytest.mark.parametrize(
    ("confidence", "accuracy", "count", "told"),
    [
        (0.83, 0.90, 100, "perhaps"),  # 2 sqrt(0.83 * 0.17 / 100) = 7.5 points
        (0.83, 0.90, 1000, "certain"),  # 2.4 points
        (0.90, 1.00, 30, "perhaps"),  # none of 30 is wrong; at a confidence of 0.9 two errors are 11 points
        (1.00, 0.98, 50, "perhaps"),  # one of 50 is wrong: two errors are 4 points
        (0.891, 0.900, 10**6, "calibrated"),  # less than a point matters to nobody
        (0.90, 0.90, 10**6, "calibrated"),
    ],
)
def test_noise_is_not_settled_and_gaps_of_less_than_a_point_are_none(confidence, accuracy, count, told):
    for one, other in ((confidence, accuracy), (accuracy, confidence)):
        sentence = gap_sentence(seen(one, other, count, debiased=0.0))
        assert (": calibrated" in sentence) is (told == "calibrated")
        assert (": perhaps " in sentence) is (told == "perhaps")


@pytest.mark.parametrize("found", [{}, seen(None, 0.9, 400), seen(float("nan"), 0.9, 400), seen(0.8, 0.9, 0)])
def test_what_was_not_measured_is_not_judged(found):
    assert gap_sentence(found) == ""


def test_a_run_says_so_at_its_end_and_when_it_is_asked_again(tmp_path, monkeypatch, capsys):
    figures = seen(0.80, 0.93, 400) | {"nll": 0.5, "brier": 0.2}
    monkeypatch.setattr(Trainer, "measure_validation", lambda trainer: figures)
    assert cli.main(["train", "embedded", *TINY, f"--out={tmp_path / 'run'}"]) == 0
    assert UNDER in capsys.readouterr().out.splitlines()
    assert cli.main(["train", "--resume", f"--out={tmp_path / 'run'}", "--tracker=none"]) == 0
    assert UNDER in capsys.readouterr().out.splitlines()
    words = ["--split.validation=0", "--regime=randaug", f"--out={tmp_path / 'none'}"]
    monkeypatch.setattr(Trainer, "measure_validation", lambda trainer: {})
    assert cli.main(["train", "embedded", *TINY, *words]) == 0
    assert "confident" not in capsys.readouterr().out
