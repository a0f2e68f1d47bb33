"""The scale `fast`: its rows, how rho and alpha are chosen, fitted temperatures, options of all runs."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from made_results import make_result
from rich.console import Console

from auglabel.cli import main
from auglabel.lab.paper import overview
from auglabel.lab.paper.assemble import assemble
from auglabel.lab.paper.choices import choices
from auglabel.lab.paper.comparison import comparison
from auglabel.lab.paper.figures import figure
from auglabel.lab.paper.overview import points_of
from auglabel.lab.paper.tables import table
from auglabel.lab.paper.verdict_page import write_verdicts
from auglabel.lab.study import rows
from auglabel.lab.study.claims import claims
from auglabel.lab.study.gpu_cost import run_flops, training_flops
from auglabel.lab.study.row import NAMES, StudyRow
from auglabel.lab.study.rows_fast import FAST
from auglabel.lab.study.run_options import keep_options
from auglabel.lab.study.study import Study, in_order
from auglabel.lab.sweep.job import Results

ROOT = Path(__file__).parents[1]


@pytest.fixture
def study(tmp_path):
    return Study("fast", Results(tmp_path / "results", tmp_path / "runs"), {"cifar10": ".", "cifar100": "."})


def named(name):
    return rows.rows_by_name("fast")[name]


def recipe_of(study, name):
    return study.planned(named(name))[0].recipe


def test_every_row_has_a_recipe_that_reads_and_no_two_are_the_same_run(study):
    every = study.rows(NAMES)
    stems = [job.digest for row in every for job in study.planned(row)[:1]]
    assert len(set(stems)) == len(stems) > 30


def test_table_2_has_all_images_with_randaug_and_a_quarter_with_augmix_at_ten(study):
    for name in ("cifar100-randaug", "cifar100-randaug_ls", "cifar100-randaug_autolabel"):
        recipe = recipe_of(study, name)
        assert (recipe.split["train"], recipe.split["validation"]) == (45000, 5000)
        assert recipe.augment.options["magnitudes"] == "wide"
    for name in ("augmix", "augmix_ls", "augmix_autolabel"):
        recipe = recipe_of(study, f"cifar100-{name}-train11250")
        assert (recipe.split["train"], recipe.split["validation"]) == (11250, 5000)
        options = recipe.augment.options
        assert (options["magnitude"], options["magnitudes"]) == (10, "wide")


@pytest.mark.parametrize("base", ["randaug", "randaug-train11250", "augmix-train11250"])
def test_labels_are_all_that_methods_of_an_augmentation_differ_in(study, base):
    plain = recipe_of(study, f"cifar100-{base}")
    name, dash, images = base.partition("-")
    for regime in (f"{name}_ls", f"{name}_autolabel"):
        differ = plain.differences(recipe_of(study, f"cifar100-{regime}{dash}{images}"))
        assert differ
        assert all(line.startswith("labels.") for line in differ), regime


def test_ablations_differ_from_autolabel_in_where_labels_come_from(study):
    learned = recipe_of(study, "cifar100-randaug_autolabel-train11250")
    for end, which in (("single", "all"), ("shuffled", "shuffled")):
        other = recipe_of(study, f"cifar100-randaug_autolabel-train11250-{end}")
        assert other.labels.options["from_buckets"] == which
        assert all(line.startswith("labels.") for line in learned.differences(other))


def test_rows_with_few_held_out_use_as_many_labelled_images_and_soft_labels_give_them_back(study):
    quarter = recipe_of(study, "cifar100-randaug-train11250")
    for name, share in (("randaug", None), ("randaug_ls", 0.7), ("randaug_autolabel", 0.7)):
        recipe = recipe_of(study, f"cifar100-{name}-train16000")
        assert (recipe.split["validation"], recipe.training.give_back) == (250, share)
        assert sum(recipe.split[part] for part in ("train", "validation")) == sum(
            quarter.split[part] for part in ("train", "validation")
        )
    assert recipe_of(study, "cifar100-randaug_ls-train16000").labels.options["rho"] == 0.05


def test_mild_rows_differ_in_magnitudes_alone(study):
    for name in ("randaug", "randaug_autolabel", "randaug_autolabel-single"):
        method, dash, end = name.partition("-")
        wide = recipe_of(study, f"cifar100-{method}-train11250{dash}{end}")
        (line,) = wide.differences(recipe_of(study, f"cifar100-{method}-train11250{dash}{end}-mild"))
        assert line.startswith("augment.magnitudes")


def test_alpha_is_auto_and_rho_the_papers_with_all_images_and_in_table_3(study):
    every = study.rows(NAMES)
    assert not [row.name for row in every if row.tuned == "alpha"]
    alphas = {recipe_of(study, row.name).labels.options.get("alpha", "auto") for row in every}
    assert alphas == {"auto"}
    for name in ("cifar100-randaug_ls", "cifar10-at_ls-0.01"):
        assert (recipe_of(study, name).labels.options["rho"], named(name).values) == (0.02, ())
    assert named("cifar10-at_ls-0.03").values == (0.1, 0.2, 0.3)


def test_rho_with_a_quarter_of_the_images_is_what_the_contest_chose(study):
    def mean_nll(rho):
        found = sorted((ROOT / "results/contest/results").glob(f"label_smoothing-{rho}-seed10?-*.json"))
        assert len(found) == 2  # seeds 100 and 101, which nothing reports
        return sum(json.loads(path.read_text())["validation_augmented"]["nll"] for path in found)

    chosen = recipe_of(study, "cifar100-randaug_ls-train11250").labels.options["rho"]
    assert chosen == min((0.05, 0.1, 0.2), key=mean_nll)


def test_at_least_four_seeds_wherever_a_claim_looks():
    asked = {
        cell.split(" ")[0]
        for family in claims("fast").values()
        for claim in family
        for part in claim.get("parts", [])
        for cell in (*part.get("plus", []), *part.get("minus", []))
    }
    assert {name: named(name).seeds for name in asked if named(name).seeds < 4} == {}


def test_the_value_of_lowest_mean_nll_on_augmented_validation_images_is_chosen(study):
    """Over two seeds: 1.0 and 1.6, 1.2 and 1.2, then 1.1 and 1.6: the second has the mean 1.2."""
    row = named("cifar10-at_ls-0.03")
    told = dict(zip(row.values, [(1.0, 1.6), (1.2, 1.2), (1.1, 1.6)], strict=True))
    for value, jobs in study.tuning(row).items():
        assert [job.recipe.training.seed for job in jobs] == [100, 101]
        for job, nll in zip(jobs, told[value], strict=True):
            make_result(study, job, augmented_nll=nll, nll=1 / nll)
    assert study.chosen(row) == row.values[1]
    assert study.tried(row)[row.values[0]] == pytest.approx(1.3)
    title = "AT + label smoothing, epsilon_max 0.03"
    (line,) = (line for line in choices(study).blocks[0].body if title in line)
    assert line[3].startswith("0.1: 1.300, 0.2: 1.200, 0.3: 1.350")


def test_nothing_is_chosen_before_both_seeds_are_there(study):
    row = named("cifar10-at_ls-0.03")
    for jobs in study.tuning(row).values():
        make_result(study, jobs[0])
    assert study.chosen(row) is None
    assert study.jobs(row) == []


def test_choices_say_where_an_end_of_the_range_was_taken(study):
    row = named("cifar10-at_ls-0.03")
    for value, jobs in study.tuning(row).items():
        for job in jobs:
            make_result(study, job, augmented_nll=1 + value)
    title = "AT + label smoothing, epsilon_max 0.03"
    (line,) = (line for line in choices(study).blocks[0].body if title in line)
    assert line[4] == "0.1 (end of the list)"


def test_a_seed_of_all_methods_is_run_before_the_next_and_attacks_come_last(study):
    stages = study.stages(NAMES)
    assert not any(study.tuning(row) for row in (*stages[0], *stages[2]))  # CIFAR-100 waits for no choice
    assert {row.name for row in stages[1]} == {
        f"cifar100-randaug_autolabel-train11250-{end}" for end in ("single", "shuffled")
    }
    assert {row.images for stage in stages[:3] for row in stage} == {11250}
    assert [row.method for row in stages[2]] == [
        f"{name}-train11250" for name in ("augmix", "augmix_ls", "augmix_autolabel")
    ]
    ordered = in_order([(row, job) for row in stages[2] for job in study.jobs(row)])
    seeds = [job.recipe.training.seed for job in ordered]
    assert seeds == sorted(seeds)
    assert len(seeds) == 12
    assert {row.data for row in stages[-1]} == {"cifar10"}
    every = [row.name for stage in stages for row in stage]
    assert sorted(every) == sorted({row.name for row in study.rows(NAMES)})


def some_seeds(study, name, value, count=2):
    row = named(name)
    for jobs in study.tuning(row).values():
        for job in jobs:
            make_result(study, job)
    for job in study.jobs(row)[:count]:
        make_result(study, job, value)


def test_one_hot_at_a_temperature_is_a_line_of_the_same_runs(study):
    def value(job, metric, on, severity):
        return {"ece": 0.25, "ece T": 0.125, "ece TA": 0.0625}.get(metric, 0.5)

    some_seeds(study, "cifar100-randaug", value)
    page = table("table2", study)
    found = {(r.method, r.metric): r for r in page.records if r.data == "cifar100"}
    assert found["RandAug", "cece"].values == [0.25, 0.25]
    assert found["RandAug + T", "cece"].values == [0.125, 0.125]
    assert found["RandAug + TA", "cece"].values == [0.0625, 0.0625]
    assert found["RandAug + TA", "accuracy"].values == [0.5, 0.5]  # which no temperature changes
    assert found["RandAug + label smoothing + T", "cece"].values == []
    lines = [line for line in page.blocks[0].body if line[1] == "RandAug + T"]
    assert lines[0][:4] == ["CIFAR-100", "RandAug + T", "2", "45,000 + 5,000"]


def test_every_table_has_aurc_and_the_mean_label_stands_beside_attacked_rows(study):
    some_seeds(study, "cifar100-randaug", lambda *asked: 0.5)
    some_seeds(study, "cifar10-at_autolabel-0.03", lambda *asked: 0.5)
    beside = next(block for block in table("table2", study).blocks if block.title == "Beside them")
    assert {"AURC", "cAURC", "debiased cECE", "NLL"} <= set(beside.head)
    (mine,) = (
        r
        for r in table("table4", study).records
        if (r.data, r.method, r.metric) == ("cifar10", "AT + AutoLabel, epsilon_max 0.03", "label_mean")
    )
    assert mine.values == pytest.approx([0.955, 0.955])  # 1, 0.99, ..., 0.91


def test_the_comparison_subtracts_one_hot_labels_at_the_temperature_of_augmented_images(study):
    """By hand: ECE 2, 4 and 6 points against 1, 2 and 3: differences of 1, 2, 3, t(2) = 4.303, se 0.577."""
    plain, learned, smoothed = (
        f"cifar100-randaug{end}" for end in ("-train11250", "_autolabel-train11250", "_ls-train11250")
    )

    def of(values, other):
        return lambda job, metric, on, severity: {
            "ece": values[job.recipe.training.seed - 20],
            "ece TA": values[job.recipe.training.seed - 20] / 2,
            "confidence": 0.75,
            "confidence TA": 0.5,
        }.get(metric, other)

    some_seeds(study, plain, of((0.02, 0.04, 0.06), 0.5), count=3)
    some_seeds(study, learned, of((0.02, 0.04, 0.06), 0.25), count=3)
    some_seeds(study, smoothed, of((0.02, 0.04), 0.5), count=2)
    shown, less, labels = comparison(study).blocks
    assert shown.title.startswith(
        "RandAug, a quarter of the images: 11,250 images trained on, 5,000 held out"
    )
    cells = {line[0]: dict(zip(shown.head, line, strict=True)) for line in shown.body}
    hot, smooth = "one-hot", "label smoothing"
    assert list(cells) == [hot, f"{hot}, T", f"{hot}, TA", smooth, f"{smooth}, T", "AutoLabel"]
    assert cells["one-hot"]["gap"] == "25.0 ± 0.0"
    assert cells["one-hot, TA"]["gap"] == "0.0 ± 0.0"
    cells = {line[0]: dict(zip(less.head, line, strict=True)) for line in less.body}
    assert cells["AutoLabel"]["ECE"] == "+2.0 [-0.5, +4.5]"
    assert cells["one-hot"]["accuracy"] == "same"
    assert cells["label smoothing"]["ECE"] == "-"  # of two seeds
    assert labels.body[0][:3] == ["rotate", "100", "99"]


def test_the_comparison_subtracts_mixup_at_the_temperature_of_clean_images(study):
    """ECE 2, 3, 4 points against mixup's 1 at its temperature: 2 [-0.5, 4.5] less 1."""
    for row, ece in (("mixup-1", 0.05), ("mixup_autolabel-1", None)):
        values = (0.02, 0.03, 0.04) if ece is None else (ece,) * 3
        some_seeds(
            study,
            f"cifar100-{row}-train11250",
            lambda job, metric, on, severity, values=values: {
                "ece": values[job.recipe.training.seed - 20],
                "ece T": 0.01,
            }.get(metric, 0.5),
            count=3,
        )
    shown, less = comparison(study).blocks
    assert [line[0] for line in shown.body] == ["mixup, beta 1", "mixup, beta 1, T", "AutoLabel, beta 1"]
    assert less.title == "Difference from mixup, beta 1, T: mean [interval]"
    cells = {line[0]: line[less.head.index("ECE")] for line in less.body}
    assert cells == {"mixup, beta 1": "+4.0 [+4.0, +4.0]", "AutoLabel, beta 1": "+2.0 [-0.5, +4.5]"}


def test_the_comparison_subtracts_nothing_of_two_seeds(study):
    for row in ("randaug", "randaug_autolabel"):
        some_seeds(study, f"cifar100-{row}-train11250-mild", lambda *asked: 0.5, count=2)
    shown, *labels = comparison(study).blocks
    assert [line[0] for line in shown.body] == [
        *("one-hot, mild", "one-hot, mild, T", "one-hot, mild, TA"),
        "AutoLabel, mild",
    ]
    assert labels == []


def test_a_claim_is_judged_when_all_seeds_of_its_rows_are_there(study, tmp_path):
    row, claim = (
        "cifar100-randaug-train11250",
        "With RandAug and a quarter of the images, one-hot labels leave",
    )

    def verdict():
        with (tmp_path / "said").open("w") as file:
            write_verdicts(study, tmp_path, Console(file=file))
        found = json.loads((tmp_path / "verdicts.json").read_text())["ours"]
        return next(each["verdict"] for each in found if each["claim"].startswith(claim))

    def value(job, metric, on, severity):
        return 0.5 + job.recipe.training.seed / 1000 if metric == "confidence" else 0.25

    some_seeds(study, row, value, count=3)
    assert verdict() == "not run"
    some_seeds(study, row, value, count=4)
    assert verdict() == "held"


def test_the_overview_has_a_point_per_method_and_seed(study):
    def value(job, metric, on, severity):
        later = 0.125 if job.recipe.training.seed == 21 else 0.0
        return {"accuracy": 0.5 + later, "ece": 0.25, "ece TA": 0.0625}.get(metric, 0.125)

    some_seeds(study, "cifar100-randaug", value)
    some_seeds(study, "cifar100-randaug-train11250", lambda *asked: 0.25)
    records = table("table2", study).records
    quarter = points_of(records, "RandAug", ", 11,250 training images")
    assert {(point.method, point.x, point.y) for point in quarter} == {
        ("one-hot labels", 25.0, 25.0),
        ("one-hot + temperature (clean)", 25.0, 25.0),
        ("one-hot + temperature (augmented)", 25.0, 25.0),
    }
    found = points_of(records, "RandAug")
    assert ("one-hot labels", 21, 25.0, 62.5) in found
    scaled = [point for point in found if point.method == "one-hot + temperature (augmented)"]
    assert [(point.x, point.y) for point in scaled] == [(6.25, 50.0), (6.25, 62.5)]
    assert len(found) == 3 * 2  # as trained, T and TA


def test_the_overview_draws_every_seed_and_the_mean_of_each_method(study, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save_chart", lambda chart, path: drawn.append(chart.to_dict()))
    some_seeds(study, "cifar100-augmix-train11250", lambda *asked: 0.5, count=1)
    assert not overview.write_overview(table("table2", study), tmp_path)
    some_seeds(study, "cifar100-randaug", lambda *asked: 0.5)
    assert overview.write_overview(table("table2", study), tmp_path)
    (panel,) = drawn[0]["concat"]  # AugMix has one seed
    seeds, means = (layer["encoding"] for layer in panel["layer"])
    assert [seeds[axis].get("aggregate") for axis in "xy"] == [None, None]
    assert [means[axis]["aggregate"] for axis in "xy"] == ["mean", "mean"]
    assert {layer["color"]["field"] for layer in (seeds, means)} == {"method"}  # a mean for each
    assert "seed" not in json.dumps(means)


def test_a_table_says_which_rho_label_smoothing_has_where_none_is_chosen(study):
    (note,) = (note for note in table("table2", study).notes if note.startswith("Label smoothing's rho"))
    assert "RandAug + label smoothing 0.02" in note
    assert "RandAug + label smoothing, 11,250 training images 0.05" in note
    assert not [note for note in table("table4", study).notes if note.startswith("Label smoothing's rho")]


def test_all_of_it_is_assembled_from_part_of_the_runs(study, tmp_path):
    """Two seeds of one row: the others say that they are not run, and no claim is judged that needs them."""
    some_seeds(study, "cifar100-randaug_ls", lambda *asked: 0.5)
    with (tmp_path / "said").open("w") as file:
        assemble(study.names(), study, tmp_path / "out", Console(file=file))
    assert "not run" in (tmp_path / "out" / "table2.md").read_text()
    assert (tmp_path / "out" / "overview.svg").read_text().startswith("<svg")
    verdicts = json.loads((tmp_path / "out" / "verdicts.json").read_text())["paper"]
    assert {verdict["verdict"] for verdict in verdicts} <= {"not run", "not testable"}
    assert any(verdict["short"].startswith("Not run yet: ") for verdict in verdicts)


@pytest.fixture
def one_row(monkeypatch):
    """Table 2 as a row that takes a second."""
    words = ("--regime=randaug", "--split.train=40", "--split.validation=20", "--epochs=1")
    row = StudyRow(
        "cpu/fashion-vanilla_at", "RandAug", 1, (*words, "--model.widths=[4,4,4]"), "-x", measured=()
    )
    for name in NAMES:
        monkeypatch.setitem(FAST, name, [row] if name == "table2" else [])


def test_options_reach_every_run_are_kept_and_stand_in_the_note(one_row, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["reproduce", "table2", "--scale=fast", "--workers=1"]
    assert main([*words, "--set", "optimizer.momentum=0.5", "--batch-size", "8"]) == 0
    (path,) = (tmp_path / "results" / "fast" / "runs").glob("*.json")
    recipe = json.loads(path.read_text())["recipe"]
    assert (recipe["optimizer"]["momentum"], recipe["batch_size"]) == (0.5, 8)
    note = "All runs with --optimizer.momentum=0.5 --batch_size=8."
    assert note in (tmp_path / "results" / "fast" / "table2.md").read_text()
    assert main([*words, "--assemble"]) == 0  # knows them
    assert note in (tmp_path / "results" / "fast" / "table2.md").read_text()
    assert main([*words, "--batch-size=16"]) == 1
    said = capsys.readouterr().err
    assert "were made with --optimizer.momentum=0.5 --batch_size=8, got --batch_size=16" in said
    assert len(list((tmp_path / "results" / "fast" / "runs").glob("*.json"))) == 1


@pytest.mark.parametrize(
    "option", ["loss", "data", "data.name", "model", "model.name", "augment", "labels", "labels.name"]
)
@pytest.mark.parametrize("way", ["--assemble", "--plan", "--workers=1"])
def test_kept_options_import_nothing_that_was_not_typed(one_row, tmp_path, monkeypatch, capsys, option, way):
    monkeypatch.chdir(tmp_path)
    imported, really = [], importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: imported.append(name) or really(name))
    keep_options(tmp_path / "downloaded" / "fast", ["--batch_size=8", f"--{option}=evil:part"])
    assert main(["reproduce", "table2", "--scale=fast", "--out=downloaded", way]) == 1
    assert "evil" not in imported
    said = capsys.readouterr().err
    assert '"evil:part", which would be imported and run, and no file may ask for that' in said
    assert f"say so: --batch_size=8 --{option}=evil:part" in said


def test_kept_options_that_are_typed_again_may_name_an_own_part(one_row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    body = "open('imported', 'w').close()\ndef loss(model, images, view, policy, again): pass\n"
    (tmp_path / "trusted_loss.py").write_text(body)
    typed = ["--loss=trusted_loss:loss", "--batch_size=8"]
    keep_options(tmp_path / "results" / "fast", typed)
    assert main(["reproduce", "table2", "--scale=fast", "--assemble", *reversed(typed)]) == 0
    assert (tmp_path / "imported").exists()
    sys.modules.pop("trusted_loss")


def test_results_without_options_get_none_beside_them(one_row, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--scale=fast", "--workers=1"]) == 0
    assert main(["reproduce", "table2", "--scale=fast", "--workers=1", "--epochs=2"]) == 1
    assert "were made with no options, got --epochs=2" in capsys.readouterr().err


def test_the_plan_of_all_is_written_with_its_rules_options_and_claims(one_row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "all", "--scale=fast", "--plan", "--engine.precision=bf16"]) == 0
    plan = yaml.safe_load((tmp_path / "results" / "plan-fast.yaml").read_text())
    assert plan["options"] == "--engine.precision=bf16"
    assert "augmented validation images" in plan["rules"]["hyper-parameters"]
    assert "seed 100 and 101" in plan["rules"]["hyper-parameters"]
    assert any(claim.get("hardly") for claim in plan["claims"]["paper"])
    assert not (tmp_path / "results" / "fast").exists()  # nothing was run


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--seed=5", "--seed is decided by the rows"),
        ("--set=regime=vanilla", "--regime is decided by the rows"),
        ("--momentun=1", 'there is no option "momentun"'),
    ],
)
def test_an_option_that_cannot_pass_is_named(word, told, one_row, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--scale=fast", word]) == 1
    assert told in capsys.readouterr().err


def test_a_row_of_an_older_form_of_the_rule_gets_no_new_runs(tmp_path, monkeypatch, capsys):
    """One seed made by the first form is there, and the row wants two."""
    monkeypatch.chdir(tmp_path)
    words = ("--regime=randaug_autolabel", "--split.train=40", "--split.validation=20", "--epochs=1")
    row = StudyRow("cpu/fashion-vanilla_at", "x", 2, (*words, "--model.widths=[4,4,4]"), "-x", measured=())
    monkeypatch.setitem(FAST, "table2", [row])
    assert main(["reproduce", "table2", "--scale=fast", "--workers=1", "--seeds=1"]) == 0
    (path,) = (tmp_path / "results" / "fast" / "runs").glob("*.json")
    result = json.loads(path.read_text())
    assert result["versions"].pop("pooled_rule") == "2"
    del result["checksum"]
    path.write_text(json.dumps(result))
    assert main(["reproduce", "table2", "--scale=fast", "--workers=1"]) == 0
    assert re.search(r"-x has results by an older form of the pooled rule", capsys.readouterr().out)
    assert list((tmp_path / "results" / "fast" / "runs").glob("*.json")) == [path]


def test_figure_3_says_that_it_is_of_a_quarter_of_the_images(study):
    some_seeds(study, "cifar100-randaug-train11250", lambda *asked: 0.5)
    assert "All of it with 11,250 training images." in figure("figure3", study).notes
    assert not [note for note in figure("figure6", study).notes if note.startswith("All of it")]


def test_the_operations_of_a_training_image_are_those_of_its_layers(study):
    """By hand: pixels x inputs x outputs x kernel of each convolution, then the head."""
    stages = [(961, 16, 32), (225, 32, 32), (225, 32, 96), (49, 96, 96), (49, 96, 192), (9, 192, 192)]
    products = 961 * 3 * 16 * 4 + sum(pixels * a * b * 9 for pixels, a, b in stages) + 192 * 100
    assert training_flops(recipe_of(study, "cifar100-randaug")) == 3 * 2 * products


def test_the_operations_of_a_run_are_those_of_every_image_that_passes(study):
    """9,000 images trained on, 1,000 held out, 16 epochs; 10,000 clean, 85,000 corrupted, 1,000 attacked."""
    (job, *_) = study.planned(named("cifar10-vanilla"))
    forward = training_flops(job.recipe) / 3
    passes = 16 * (3 * 9000 + 1000) + 10000 + 17 * 5 * 1000 + 1000 * 2 * 50 * 3
    assert run_flops(job) == pytest.approx(passes * forward, rel=1e-12)
    # and 10,000 test images in 50 buckets of Figure 2
    (job, *_) = study.planned(named("cifar100-vanilla-train11250"))
    forward = training_flops(job.recipe) / 3
    passes = 48 * (3 * 11250 + 5000) + 10000 + 17 * 5 * 1000 + 50 * 10000
    assert run_flops(job) == pytest.approx(passes * forward, rel=1e-12)


def test_points_of_figure_6_take_as_many_steps_as_table_2(study):
    for row in FAST["figure6"]:
        recipe = study.planned(row)[0].recipe
        assert recipe.split["train"] * recipe.training.epochs == 45000 * 12


def test_figure_6_says_that_epochs_change_with_the_images(study):
    said = "Epochs: 11,250 images 48, 45,000 images 12."
    assert [note for note in figure("figure6", study).notes if note.startswith(said)]
    cpu = Study("cpu", study.results, words=study.words)
    assert not [note for note in figure("figure6", cpu).notes if note.startswith("Epochs")]
