"""The arithmetic of benchmarks that claims rest on."""

import importlib
import json
import subprocess
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from auglabel import RandAug
from auglabel.lab.recipe.read import read_recipe


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    return importlib.import_module


def test_a_loss_is_judged_by_its_paired_upper_bound(benchmark):
    overhead = benchmark("overhead")
    # pooled - exact: 0.1, 0.1, -0.1, so mean 1/30 and sd 0.11547; t(0.95; 2) = 2.91999
    told = overhead.lost([1.0, 2.0, 3.0], [0.5, 0.7, 0.6], [0.4, 0.6, 0.7])
    assert told["pooled - exact"] == pytest.approx(1 / 30, abs=1e-5)
    assert told["upper bound"] == pytest.approx(1 / 30 + 2.91999 * 0.11547 / 3**0.5, abs=1e-5)
    assert told["quarter of one-hot - exact"] == pytest.approx(4.3 / 3 / 4, abs=1e-5)
    assert told["nothing lost"]
    assert not overhead.lost([0.5] * 3, [0.5, 0.7, 0.6], [0.4, 0.6, 0.7])["nothing lost"]


def test_epochs_are_timed_with_as_many_images_held_out_as_asked_for(benchmark, monkeypatch):
    overhead = benchmark("overhead")

    def small(name, words):
        assert name == "mine"
        words = [word for word in words if not word.startswith("--data")]
        return read_recipe("embedded", [*words, "--model.widths=[4,4,4]", "--batch_size=20"])

    monkeypatch.setattr(overhead, "read_recipe", small)
    options = {"train": 45, "validation": 10, "rules": ["pooled"], "augmentations": ["mixup"], "rounds": 2}
    asked = Namespace(root="here", recipe="mine", **options)
    (line,) = overhead.seconds_of_epochs(asked)
    assert (line["images"], line["validation"], line["buckets"]) == (45, 10, 5)
    assert {labels: len(rounds) for labels, rounds in line["seconds"].items()} == {"one-hot": 2, "pooled": 2}
    assert line["calibrating"]["one-hot"] == [0, 0]
    assert line["ratio"]["pooled"] == pytest.approx(sum(line["ratios"]["pooled"]) / 2, abs=1e-3)
    asked.validation = None
    assert next(overhead.seconds_of_epochs(asked))["validation"] == 5  # a ninth


def test_a_monotone_fit_pools_what_rises(benchmark):
    rules = benchmark("label_rules")
    figure, count = torch.tensor([0.5, 0.9, 0.3, 0.6]), torch.tensor([1.0, 3.0, 1.0, 2.0])
    fitted = rules.falling(figure, count, RandAug(m_max=4, operations=["rotate"]).grid)
    torch.testing.assert_close(fitted, torch.tensor([0.8, 0.8, 0.5, 0.5], dtype=torch.float64))


def test_every_instruction_set_gets_all_tests_and_one_that_fails_is_named(benchmark, monkeypatch, capsys):
    sets = benchmark("instruction_sets")
    ran = []

    def run(command, env, check):
        ran.append((command[1:], env.get("ATEN_CPU_CAPABILITY"), env.get("ONEDNN_MAX_CPU_ISA")))
        return subprocess.CompletedProcess(command, 1 if ran[-1][1] == "avx2" else 0)

    for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sets.subprocess, "run", run)
    assert sets.main(["tests"]) == 1
    assert all(words == ["-m", "pytest", "tests"] for words, _, _ in ran)
    assert [which for _, *which in ran] == [
        ["default", None],
        ["avx2", None],
        [None, "AVX2"],
        [None, "AVX512_CORE"],
    ]
    summary = capsys.readouterr().out.splitlines()[-4:]
    assert [line.split()[1] for line in summary] == ["passed", "failed,", "passed", "passed"]


def test_hold_outs_are_compared_at_equal_labelled_images_and_a_second_call_only_reads(
    benchmark, tmp_path, capsys, monkeypatch
):
    holdout = benchmark("holdout")
    words = [str(tmp_path), "--recipe=embedded", "--train=100", "--epochs=2", "--hold_outs", "20", "50"]
    words += ["--give_back=0.5", "--images=20", "--suite=fog", "--split.test=40", "--batch_size=10"]
    holdout.main(words)
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in printed.splitlines()]
    runs, means = lines[:6], lines[6:]
    assert [(line["hold_out"], line["labels"]) for line in runs] == [
        (count, labels) for count in (20, 50) for labels in ("one-hot", "AutoLabel", "AutoLabel, given back")
    ]
    assert {line["labelled_images"] for line in runs} == {100}
    assert ["aurc T" in line["corrupted"] for line in runs] == [True, True, False] * 2
    assert all(line["clean"].keys() >= {"accuracy", "ece", "nll", "aurc"} for line in runs)
    # 2 epochs of 80, or one of 80 and one of 100; of 50, or one of 50 and one of 100
    assert [line["training images over one-hot"] for line in runs] == [1, 1, 180 / 160, 1, 1, 150 / 100]
    assert [line["seconds over one-hot"] for line in runs][::3] == [1, 1]
    assert [line["clean"] for line in means] == [line["clean"] for line in runs]
    assert {line["seeds"] for line in means} == {1}
    monkeypatch.setattr("auglabel.lab.sweep.job.train", None)
    holdout.main(words)
    assert capsys.readouterr().out == printed


def test_means_are_taken_entry_by_entry(benchmark):
    holdout = benchmark("holdout")
    some = [{"a": {"b": 1.0}, "c": None, "d": 2}, {"a": {"b": 2.0}, "c": 1.0, "d": 4}]
    assert holdout.mean_of(some) == {"a": {"b": 1.5}, "c": None, "d": 3}
