"""The page of the contest is made of its results, and decides by the rule that its plan wrote down."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest
from made_results import make_result

from auglabel.lab.methods.comparisons import OVERALL, Comparison
from auglabel.lab.methods.verdict import CLEAN, Line, Verdict
from auglabel.lab.runs.evaluations import MeasuredRow

ROOT = Path(__file__).parents[1]

CONTEST = ROOT / "results" / "contest"

pytestmark = pytest.mark.skipif(not CONTEST.exists(), reason="there are no results here")


def script():
    spec = importlib.util.spec_from_file_location("contest_page", ROOT / "scripts" / "contest_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_results(folder, methods):
    """The script in a folder that has the plan and a file of methods."""
    found = script()
    for name in ("plan.yaml", methods):
        shutil.copy(CONTEST / name, folder)
    found.FOLDER = folder
    return found


def row(place, values, at_t):
    names = ("accuracy", "ece", "nll", "aurc")
    scaled = {"T": dict(zip(names, at_t, strict=True))} if at_t else {}
    return MeasuredRow(place[0], None, 100, dict(zip(names, values, strict=True)), scaled)


def verdict(other, other_at_t=None, other_corrupted=None):
    """One-hot with accuracy 0.5, ECE 0.1, NLL 2 (1.9 at T), AURC 0.3, and another; two equal seeds each."""
    clean, corrupted = Comparison("", ""), Comparison("", "")
    plain = ((0.5, 0.1, 2.0, 0.3), (0.5, 0.02, 1.9, 0.3))
    for comparison, place, values in (
        (clean, CLEAN, (other, other_at_t)),
        (corrupted, OVERALL, (other_corrupted or (0.5, 0.02, 1.9, 0.3), other_at_t and plain[1])),
    ):
        methods = {"one-hot": plain, "other": values}
        comparison.rows[place] = {
            name: {seed: row(place, *both) for seed in (0, 1)} for name, both in methods.items()
        }
    return Verdict(["one-hot", "other"], "one-hot", [clean, corrupted])


def test_the_page_is_made_of_the_results():
    found = script()
    assert found.text(found.contest()) == (ROOT / "docs" / "contest.md").read_text()


def stems_of(contest):
    stems = {job.stem for job in contest.planned}
    for candidate in contest.candidates:
        stems |= {job.stem for value in candidate.values for job in contest._trials(candidate, value)}
    return stems


def test_every_result_belongs_to_a_planned_run_or_a_dropped_method():
    found = script()
    left = {f"{name.replace(' ', '_')}-seed{seed}" for name in found.dropped() for seed in found.SEEDS}
    rounds = {"results": found.contest(), **{name: found.second_round(n) for n, name in found.ROUNDS.items()}}
    rounds |= {"third": found.third_round(), "holdouts": found.holdouts_round()}
    rounds |= {f"alpha-{recipe}": found.alpha_round(recipe) for recipe in found.plan_of()["alpha_options"]}
    for folder, contest in rounds.items():
        there = {path.stem for path in (CONTEST / folder).glob("*.json")}
        unplanned = {stem.rpartition("-")[0] for stem in there - stems_of(contest)}
        assert unplanned == (left if folder == "results" else set()), folder


def test_dropped_methods_are_shown_in_their_places_with_the_options_that_they_had():
    found = script()
    contest = found.contest()
    names = list(contest.reported)
    for name, was in found.dropped().items():
        before, results = names[names.index(f"{name} (dropped)") - 1], contest.reported[f"{name} (dropped)"]
        assert before.removesuffix(" (dropped)") == was["after"]
        assert [result.seed for result in results] == list(found.SEEDS)
        for labels in (result.recipe["labels"] for result in results):
            assert (labels["name"], labels.get("treat")) == (was["labels"], was.get("labels.treat"))


def test_what_was_dropped_is_not_told_apart_from_autolabel_and_what_stays_is():
    found = script()
    told = found.complete(found.contest())

    def differs(name):
        return any(c.better(Line(name, "T"), Line("AutoLabel", "T")) for c in told.columns)

    assert not any(differs(f"{name} (dropped)") for name in found.dropped())
    assert differs("AutoLabel by class")
    assert differs("self-distilled")


def nll_by_method(job, metric, on, severity):
    """Baselines have an NLL of 3, 2 and 1.5, which are those of no other; all else has 1."""
    baselines = {"wide_crop_one-hot": 3.0, "erasing_one-hot": 2.0, "mixup_its_own_labels": 1.5}
    return baselines.get(job.name.rpartition("-")[0], 1.0) if metric.startswith("nll") else 0.5


def test_each_augmentation_of_the_third_round_has_a_baseline_of_its_own(tmp_path):
    found = without_results(tmp_path, "third.yaml")
    assert not list(found._third())  # nothing is said before its runs
    everything = found.third_round()
    for job in everything.planned:
        make_result(everything, job, nll_by_method)
    intro, *parts = found._third()
    assert "250 of the\n6,000 images held out" in intro
    differences = {parts[n].strip("# \n"): parts[n + 2].splitlines()[3:] for n in range(0, len(parts), 3)}
    starts = {name: [line.partition(" [")[0] for line in lines] for name, lines in differences.items()}
    assert starts == {
        "Wide crop": [
            "| wide crop, Soft Augmentation, T | **-2.000",
            "| wide crop, AutoLabel given back, T | **-2.000",
        ],
        "Erasing": ["| erasing, AutoLabel given back, T | **-1.000"],
        "Mixup": ["| mixup, AutoLabel given back, T | **-0.500"],
    }


def test_every_method_of_the_third_round_belongs_to_an_augmentation_that_is_shown():
    found = script()
    names = [each.name for name in found.FAMILIES for each in found.third_round(name).candidates]
    assert names == [each.name for each in found.third_round().candidates]


def test_a_hold_out_stands_beside_every_larger_one(tmp_path):
    found = without_results(tmp_path, "holdouts.yaml")
    contest = found.holdouts_round()

    def value(job, metric, on, severity):
        return job.recipe.split["validation"] / 1000 if metric.startswith("nll") else 0.5

    assert not list(found._holdouts())
    for job in contest.planned:
        make_result(contest, job, value)
    _, table, less = found._holdouts()
    assert table.count("12,500") == 9  # of the first, three lines, of the others two
    cells = [[cell.strip(" *") for cell in line.split("|")] for line in less.splitlines()]
    assert cells[0][3:5] == ["ECE, %", "NLL"]
    assert {row[1]: row[4].partition(" ")[0] for row in cells[2:]} == {
        "AutoLabel, 1,000 held out less 5,000 held out": "-4.000",
        "AutoLabel, 500 held out less 5,000 held out": "-4.500",
        "AutoLabel, 250 held out less 5,000 held out": "-4.750",
        "AutoLabel, 500 held out less 1,000 held out": "-0.500",
        "AutoLabel, 250 held out less 1,000 held out": "-0.750",
        "AutoLabel, 250 held out less 500 held out": "-0.250",
    }


def test_auto_is_told_from_the_alpha_that_two_other_seeds_chose(tmp_path):
    found = without_results(tmp_path, "alpha.yaml")
    alone = found.alpha_round("cpu-cifar10")
    for job in alone.choosing:
        alpha = job.recipe.labels.options["alpha"]
        make_result(alone, job, augmented_nll=abs(alpha - 0.1))
    auto, paper = alone.candidates
    for number, job in enumerate([*alone.jobs(auto), *alone.jobs(paper)]):
        make_result(alone, job, augmented_nll=1.0 if number < 4 else (1.1, 1.3, 1.1, 1.3)[number - 4])
    # differences -0.1, -0.3, -0.1, -0.3: mean -0.2, sd 0.11547, t(0.975; 3) = 3.18245
    heading, chosen, told = found._alpha_rounds()
    assert heading == "### `cpu-cifar10`\n"
    assert "of labels.alpha 0.005, 0.02, 0.1, 0.5, 0.1 has the lowest NLL" in chosen
    assert "difference -0.200 [-0.384, -0.016], certainly lower" in told


def test_a_lower_nll_than_one_hot_at_its_temperature_and_nothing_worse_may_be_the_default():
    found = verdict((0.5, 0.02, 1.8, 0.3))
    assert script().may_be_default(found, Line("other"))


@pytest.mark.parametrize(
    "values",
    [
        (0.5, 0.02, 1.95, 0.3),  # below one-hot as trained, above it at its temperature
        (0.5, 0.0, 1.9, 0.2),  # no lower NLL, whatever else is better
        (0.4, 0.02, 1.8, 0.3),  # less accurate
        (0.5, 0.02, 1.8, 0.4),  # ranks its errors worse
    ],
)
def test_what_gains_nothing_in_nll_or_loses_elsewhere_may_not(values):
    assert not script().may_be_default(verdict(values), Line("other"))


def test_a_loss_on_corrupted_images_counts_too():
    found = verdict((0.5, 0.02, 1.8, 0.3), other_corrupted=(0.5, 0.02, 2.0, 0.3))
    assert not script().may_be_default(found, Line("other"))


def test_a_method_with_a_temperature_is_judged_at_it():
    found = verdict((0.5, 0.1, 2.2, 0.3), other_at_t=(0.5, 0.02, 1.8, 0.3))
    assert script().judged_lines(found) == [Line("other", "T")]
    assert script().judged_lines(verdict((0.5, 0.1, 2.2, 0.3))) == [Line("other")]


def test_a_difference_is_the_methods_value_less_the_others_in_the_metrics_unit():
    found = verdict((0.6, 0.02, 1.8, 0.3))
    by_name = {(column.metric, column.place): column for column in found.columns}
    base = Line("one-hot", "T")
    accuracy = script().difference(by_name["accuracy", CLEAN], Line("other"), base)
    assert accuracy == pytest.approx((10, 10, 10))
    assert script().difference(by_name["nll", CLEAN], Line("other"), base) == pytest.approx(
        (-0.1, -0.1, -0.1)
    )


def test_a_baseline_is_what_learns_no_labels():
    found = script()
    assert found.is_baseline(Line("one-hot, 250 held out", "T"))
    assert found.is_baseline(Line("focal loss"))
    assert not found.is_baseline(Line("AutoLabel, 250 given back"))


def test_the_readmes_differences_are_those_of_the_contest():
    text = (ROOT / "README.md").read_text()
    found = script()
    told = found.complete(found.contest())
    line = Line("AutoLabel, 250 given back")
    for column in (column for column in told.columns if column.metric == "nll"):
        mean, low, high = found.difference(column, line, found.baseline(told))
        assert f"{-mean:.3f} [{-high:.3f}, {-low:.3f}]" in text


def test_what_the_readme_tells_of_crops_stands_on_the_contests_page():
    text = " ".join((ROOT / "README.md").read_text().split())
    lines = (ROOT / "docs" / "contest.md").read_text().splitlines()

    def cells(name):
        line = next(line for line in lines if line.startswith(f"| wide crop, {name} |"))
        shown = [cell.strip(" *").partition(" ±")[0] for cell in line.strip("|").split("|")]
        return shown[3], shown[5]

    (accuracy, nll), (soft_accuracy, soft_nll) = cells("one-hot, T"), cells("Soft Augmentation, T")
    assert f"accuracy from {accuracy} to {soft_accuracy} and lowers NLL from {nll} to {soft_nll}" in text


def test_what_the_readme_tells_of_the_contest_stands_on_its_page():
    told = " ".join((ROOT / "README.md").read_text().split())
    page = (ROOT / "docs" / "contest.md").read_text()
    for start in ("**Hold out few.**", "**With strong random crops"):
        numbers = re.findall(r"\d+\.\d+", told.partition(start)[2].partition(" - **")[0].partition("## ")[0])
        assert len(numbers) > 3
        assert [number for number in numbers if number not in page] == []
