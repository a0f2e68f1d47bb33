"""`auglabel sweep` as a user has it: a grid, killed and gone on with, failing in part, by many processes."""

import csv
import json
import re
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from sweeps import SLOW, TINY, killed_in_the_middle, results_in, sweep, times, trainings

from auglabel import cli
from auglabel.lab.commands.sweep import doubt_of, wall_hours
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.files import locked
from auglabel.lab.sweep import executor as sweeping
from auglabel.lab.sweep.executor import Executor, run_all
from auglabel.lab.sweep.grid import Shared, grid
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import KEPT
from auglabel.lab.sweep.summary import PointSummary, Summary, summary_of

OVER = ["--over", "labels.alpha=0.02,1", "--seeds", "2"]
NAMES = [f"alpha{alpha}-seed{seed}" for alpha in ("0.02", "1") for seed in (0, 1)]


def without_times(results):
    return {
        name: {key: value for key, value in result.items() if key not in ("seconds", "checksum")}
        for name, result in results.items()
    }


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep that was never stopped, in this process."""
    out = tmp_path_factory.mktemp("sweeps") / "whole"
    assert sweep(out, *OVER, "--measure", "clean,fog", "--images", "10") == 0
    return out


def test_a_grid_is_every_value_with_every_seed(swept):
    found = results_in(swept)
    assert sorted(found) == NAMES
    for name, result in found.items():
        alpha, seed = re.fullmatch(r"alpha(.*)-seed(\d)", name).groups()
        assert result["recipe"]["labels"]["alpha"] == float(alpha)
        assert (result["seed"], result["recipe"]["epochs"]) == (int(seed), 2)
        assert result["measured"] == [{"on": on, "images": 10} for on in ("clean", "fog")]


def test_the_summary_has_mean_and_spread_over_seeds_and_the_lowest_validation_nll_is_the_choice(swept):
    found, summary = results_in(swept), json.loads((swept / "summary.json").read_text())
    nll = {}
    for point in summary["points"]:
        runs = [found[f"{point['name']}-seed{seed}"] for seed in point["seeds"]]
        assert (len(runs), point["missing"]) == (2, 0)
        for metric in ("accuracy", "ece", "nll"):
            values = [run["validation"][metric] for run in runs]
            mean, spread = sum(values) / 2, abs(values[0] - values[1]) / 2**0.5
            assert point["figures"][f"validation_{metric}"] == pytest.approx({"mean": mean, "spread": spread})
        nll[point["name"]] = point["figures"]["validation_nll"]["mean"]
        fog = [statistics.fmean(row[3] for row in run["evaluations"][1]["rows"]) for run in runs]
        assert point["figures"]["fog_accuracy"]["mean"] == pytest.approx(statistics.fmean(fog))
        assert point["figures"]["accuracy"]["mean"] == pytest.approx(
            statistics.fmean(run["evaluations"][0]["rows"][0][3] for run in runs)
        )
        assert [(swept / file).exists() for file in point["results"]] == [True, True]
    assert summary["choice"] == min(nll, key=nll.get)
    assert [point["values"] for point in summary["points"]] == [{"labels.alpha": 0.02}, {"labels.alpha": 1}]
    with (swept / "summary.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["labels.alpha"] for line in lines] == ["0.02", "1"]
    assert [float(line["validation_nll_mean"]) for line in lines] == list(nll.values())
    assert [line["name"] for line in lines if line["choice"] == "1"] == [summary["choice"]]


def test_a_sweep_that_is_there_is_only_summed_up_again(swept, monkeypatch, capsys):
    def refuse(*arguments):
        raise AssertionError("this was done before")

    monkeypatch.setattr(sweeping, "attempt", refuse)
    before, choice = times(swept), json.loads((swept / "summary.json").read_text())["choice"]
    capsys.readouterr()
    assert sweep(swept, *OVER, "--measure", "clean,fog", "--images", "10") == 0
    printed = capsys.readouterr().out
    assert "4 runs, 2 points x 2 seeds: 4 are there, 0 to do." in printed
    assert "core-hours" not in printed
    assert re.search(rf"\* +{choice} ", printed)
    assert times(swept) == before


def test_a_plan_says_what_is_to_do_and_what_is_kept_apart_and_does_nothing(swept, tmp_path, capsys):
    before = times(swept)
    capsys.readouterr()
    words = ["--over", "labels.alpha=0.02,1,0.5", "--seeds", "3", "--plan"]
    assert sweep(swept, *words, "--measure", "clean,fog", "--images", "10", workers=2) == 0
    printed = capsys.readouterr().out
    assert "9 runs, 3 points x 3 seeds: 4 are there, 5 to do." in printed
    assert re.search(r"About \d+\.\d\d core-hours: \d+ min with 2 workers\.", printed)
    assert "Kept apart" not in printed
    assert sweep(swept, *OVER, "--plan") == 0  # measures nothing: other results
    printed = capsys.readouterr().out
    assert "0 are there, 4 to do" in printed
    assert re.search(r"Kept apart.*: alpha0.02-seed0-[0-9a-f]{8}, alpha0.02-seed1-.*, alpha1-", printed)
    assert times(swept) == before
    assert sweep(tmp_path / "none", *OVER, "--plan") == 0
    assert not (tmp_path / "none").exists()


def test_two_processes_give_the_bits_of_one(swept, tmp_path):
    assert sweep(tmp_path, *OVER, "--measure", "clean,fog", "--images", "10", workers=2) == 0
    assert without_times(results_in(tmp_path)) == without_times(results_in(swept))


def test_another_version_of_the_recipe_is_kept_beside_the_first(tmp_path, capsys):
    words = ["--over", "labels.alpha=0.02", "--seeds", "1"]
    assert sweep(tmp_path, *words) == 0
    before = times(tmp_path)
    capsys.readouterr()
    assert sweep(tmp_path, *words, "--momentum=0.8") == 0
    assert f"other measurements: {next(iter(before)).removesuffix('.json')}." in capsys.readouterr().out
    assert before.items() < times(tmp_path).items()
    assert len(times(tmp_path)) == 2


def test_a_run_that_fails_does_not_stop_the_others_and_is_not_chosen(tmp_path, capsys):
    words = ["--over", "learning_rate=1e9,0.01", "--seeds", "2"]
    assert sweep(tmp_path, *words) == 1
    printed, complaint = capsys.readouterr()
    assert re.search(r"learning_rate1e9-seed0-\w{8}: (the loss|a weight|logits) ", printed)
    assert "no forecast" not in printed
    assert complaint.startswith("auglabel: 2 of 4 runs failed: learning_rate1e9-seed0-")
    assert "The others are there, why is said above, and the same command tries again." in complaint
    assert complaint.count("\n") == 1
    assert sorted(results_in(tmp_path)) == ["learning_rate0.01-seed0", "learning_rate0.01-seed1"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["choice"] == "learning_rate0.01"
    assert [point["missing"] for point in summary["points"]] == [2, 0]
    assert "learning_rate1e9 (0/2)" in printed


def test_an_error_nobody_foresaw_is_a_sentence_with_its_traceback_in_the_log(tmp_path, monkeypatch, capsys):
    def fail(*arguments):
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr("auglabel.lab.sweep.job.train", fail)
    assert sweep(tmp_path, "--seeds", "1") == 1
    printed = capsys.readouterr().out
    (log,) = (tmp_path / "runs").glob("*.log")
    assert f"ZeroDivisionError: by nought (more in {log})" in printed
    assert "Traceback" in log.read_text()
    assert "Traceback" not in printed


def test_a_killed_sweep_goes_on_with_what_is_left(tmp_path):
    """SIGKILL for all its processes in the middle; what was done is not done again."""
    words = ["--over", "labels.alpha=0.02,0.1,0.5", "--seeds", "2", f"--out={tmp_path}", "--workers", "2"]
    words = ["sweep", "embedded", *SLOW, *words]
    killed_in_the_middle(tmp_path, words)
    before = times(tmp_path)
    assert 2 <= len(before) < 6
    assert cli.main(words) == 0
    assert len(results_in(tmp_path)) == 6
    assert before.items() < times(tmp_path).items()
    assert list(trainings(tmp_path).values()) == [1] * 6


def test_a_second_sweep_in_the_same_folder_is_refused(tmp_path, capsys):
    with locked(tmp_path, "not free"):
        assert sweep(tmp_path, "--seeds", "1") == 1
    assert "another sweep is under way" in capsys.readouterr().err


def test_the_bar_stays_out_of_the_log_of_a_job_in_this_process(tmp_path, capsys):
    results = Results(tmp_path / "results", tmp_path / "runs")
    job = Job("tiny", read_recipe("embedded", [*TINY, "--epochs=30"]))
    assert run_all([job], results, Executor(workers=1), Console(force_terminal=True)) == []
    assert "\x1b" not in results.log(job).read_text()
    assert "\x1b" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("over", "names"),
    [
        ("", ["embedded"]),
        ("labels.alpha=0.02, 0.05", ["alpha0.02", "alpha0.05"]),
        ("alpha=1;regime=randaug,at", ["alpha1-regime_randaug", "alpha1-regime_at"]),
        ("model.widths=[4,8],[8,8]", ["widths_4_8_", "widths_8_8_"]),
        ("data.name=a;labels.name=b", ["data.name_a-labels.name_b"]),
        ("--batch-size=20", ["batch_size20"]),
    ],
)
def test_points_have_readable_names(over, names):
    assert [point.name.replace("__", "_") for point in grid(Shared("embedded"), over)] == names


@pytest.mark.parametrize(
    ("recipe", "name"), [("embedded", "embedded"), ("a/b-0.1.yaml", "b-0.1"), ("cpu/x-at-0.01", "x-at-0.01")]
)
def test_a_sweep_is_called_after_its_recipe(recipe, name):
    assert Shared(recipe).name == name


def test_words_beyond_the_grid_are_shared_and_a_regime_in_the_grid_comes_before_them(tmp_path):
    words = ["--over", "regime=randaug_ls,augmix_ls", "--labels.rho=0.3", "--seeds", "1", "--first_seed", "7"]
    assert sweep(tmp_path, *words) == 0
    found = results_in(tmp_path)
    assert sorted(found) == ["regime_augmix_ls-seed7", "regime_randaug_ls-seed7"]
    assert {result["recipe"]["labels"]["rho"] for result in found.values()} == {0.3}


def made_up(folder, *runs):
    """A result for each (point, validation NLL, rows of accuracy and ECE), without a run."""
    shared = Shared("embedded", tuple(TINY), (Measurement("corrupted"),))
    results, jobs = Results(folder), {}
    for seed, (value, nll, rows) in enumerate(runs):
        point = shared.point({"labels.alpha": value})
        job = shared.job(point, shared.recipe_at(point), seed)
        jobs.setdefault(value, (point, []))[1].append(job)
        if nll is not None:
            names = [*KEPT, *(f"scaled_{name}" for name in KEPT)]
            filled = [dict.fromkeys(names, 0.5) | {"accuracy": right, "ece": ece} for right, ece in rows]
            columns = {
                **{"words": "--on=corrupted", "columns": ["on", "severity", "count", *names]},
                "rows": [["fog", 1, 10, *row.values()] for row in filled],
            }
            seen = {"accuracy": 0.5, "ece": 0.1, "nll": nll}
            about = {"format": "auglabel result, version 1", "recipe": job.plain, "validation": seen}
            about |= {"labels": None, "views": None, "evaluations": [columns], "measured": [], "seed": seed}
            about |= {"name": job.name, "digest": job.digest, "versions": {}, "seconds": {}, "parameters": 1}
            about |= {"data": {"name": "", "checksum": "", "images": {"train": 60, "validation": 40}}}
            results.file(job).write_text(json.dumps(about))
    return summary_of(list(jobs.values()), results, ["corrupted"])


def test_corrupted_figures_are_means_over_all_rows_then_over_seeds(tmp_path):
    summary = made_up(tmp_path, ("1", 2.0, [(0.2, 0.3), (0.4, 0.5)]), ("1", 3.0, [(0.6, 0.1), (0.8, 0.1)]))
    (line,) = summary.lines
    assert line.figures["caccuracy"] == pytest.approx((0.5, 0.4 / 2**0.5))  # of 0.3 and 0.7
    assert line.figures["cece"] == pytest.approx((0.25, 0.3 / 2**0.5))  # of 0.4 and 0.1
    assert line.figures["validation_nll"] == pytest.approx((2.5, 1 / 2**0.5))


def test_a_point_that_lacks_a_run_is_not_the_choice(tmp_path):
    rows = [(0.5, 0.5)]
    summary = made_up(tmp_path, ("1", 9.0, rows), ("1", 9.2, rows), ("0.5", 0.1, rows), ("0.5", None, rows))
    assert summary.choice.point.name == "alpha1"
    assert made_up(tmp_path, ("0.3", None, rows)).choice is None


def test_workers_take_the_next_run_that_waits():
    assert wall_hours([3, 1, 1, 1], workers=2) == 3
    assert wall_hours([1, 1, 1, 3], workers=2) == 4
    assert wall_hours([1, 2], workers=5) == 2


def test_help_shows_the_options_of_the_recipe_too(capsys):
    assert cli.main(["sweep", "embedded", "--help"]) == 0
    printed = capsys.readouterr().out
    for word in ("--over", "--search", "--engine", "--labels.alpha", "passes over the training images"):
        assert word in printed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--over", "labels.alhpa=1,2"], r'labels has no option "alhpa" for autolabel.*"alpha"'),
        (
            ["--over", "labels.alpha="],
            r'--over takes options with their values, such as .* got "labels.alpha=',
        ),
        (["--over", "labels.alpha"], r'got "labels.alpha"'),
        (["--over", "alpha=1,,2"], r"--over: one of the values of alpha is empty"),
        (["--over", "alpha=1;alpha=2"], r"--over has alpha twice"),
        (["--over", "alpha=0.1,0.10"], r"alpha0.1-seed0 and alpha0.10-seed0 are the same recipe"),
        (["--over", "epoch=1"], r'no option "epoch".*"epochs"'),
        (["--over", "alpha=x"], r"--alpha: labels.alpha must be a number or one of 'auto', got x"),
        (["--over", "seed=1,2"], r"--seed: a sweep has several"),
        (["--seed", "3"], r"--seed: a sweep has several"),
        (["--alpha", "3", "--over", "labels.alpha=1"], r"labels.alpha is set in --over and by --alpha"),
        (["--seeds", "0"], r"--seeds must be at least 1, got 0"),
        (["--first_seed=-1"], r"--first_seed must be at least 0"),
        (["--workers", "0"], r"--workers must be at least 1"),
        (["--images", "5"], r"--images goes with --measure"),
        (["--measure", "clen"], r'--measure: there is no condition "clen".*"clean"'),
        (["--address", "127.0.0.1:6379"], r"--address goes with --engine ray"),
        (["--engine", "slurm"], r"--engine: engine must be one of 'local', 'ray', got slurm"),
        (["--widths", "[4]"], r"widths"),
        (["--split.validation=9999999"], r"validation"),
    ],
)
def test_words_it_cannot_use_end_with_one_sentence(words, complaint, tmp_path, capsys):
    assert cli.main(["sweep", "embedded", f"--out={tmp_path / 'out'}", *words]) == 1
    error = capsys.readouterr().err
    assert re.search(complaint, error)
    assert error.startswith("auglabel: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], r"which recipe\? It comes first"),
        (["--seeds", "2"], r"which recipe"),
        (["embeded"], r'no recipe "embeded".*Did you mean "embedded"'),
        (["none.yaml"], r"there is no file none.yaml"),
    ],
)
def test_a_missing_recipe_is_one_sentence(words, complaint, capsys):
    assert cli.main(["sweep", *words]) == 1
    error = capsys.readouterr().err
    assert re.search(complaint, error)
    assert error.count("\n") == 1


def test_results_go_into_sweeps_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", "embedded", *TINY, "--seeds", "1", "--workers", "1"]) == 0
    assert Path("sweeps/embedded/summary.json").exists()


def summary_with(*values):
    """A point p0, p1, ... for each list of validation NLLs, one for each seed."""
    lines = []
    for number, each in enumerate(values):
        point = SimpleNamespace(name=f"p{number}")
        lines.append(PointSummary(point, [None] * len(each), [None] * len(each), {"validation_nll": each}))
    return Summary(lines, [])


def test_a_choice_that_seeds_do_not_tell_from_the_next_is_said_to_be_so():
    # differences 0.1, -0.1 and 0.3: mean 0.1, standard error 0.2 / sqrt(3), times 4.303
    told = doubt_of(summary_with([1.0, 1.0, 1.0], [3.0, 3.0, 3.0], [1.1, 0.9, 1.3]))
    spread = "0.100 more validation NLL, 95 % interval [-0.397, 0.597]"
    assert told == f"These 3 seeds do not tell p0 from p2, the next: {spread}."


def test_a_choice_that_every_seed_prefers_as_much_needs_no_doubt():
    assert doubt_of(summary_with([1.0, 1.1, 1.2], [1.5, 1.6, 1.71])) is None


def test_one_run_each_tells_no_points_apart_and_one_point_needs_no_telling():
    assert doubt_of(summary_with([1.0], [2.0])) == "One run each does not tell p0 from p1, the next."
    assert doubt_of(summary_with([1.0, 1.1])) is None
