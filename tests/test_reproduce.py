import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from made_results import make_result
from rich.console import Console

from auglabel.cli import main
from auglabel.corrupt import SUITES
from auglabel.errors import UserError
from auglabel.lab.paper.assemble import assemble
from auglabel.lab.paper.page import Record
from auglabel.lab.paper.tables import table
from auglabel.lab.recipe.row_recipes import row_recipes
from auglabel.lab.study import rows
from auglabel.lab.study.gpu_cost import wall_clock
from auglabel.lab.study.plan import costs_of
from auglabel.lab.study.published import published
from auglabel.lab.study.row import FIRST_SEED, NAMES, StudyRow
from auglabel.lab.study.study import COPIES, Study, in_order
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.measurement import Measurement

SMALL = ("--split.train=40", "--split.validation=20", "--epochs=1", "--model.widths=[4,4,4]")
CIFARS = ("cifar10", "cifar100")
ON = (Measurement("clean", images=30), Measurement("corrupted", suite="fog", images=10))


def small(regime: str, title: str, **more) -> StudyRow:
    words = (f"--regime={regime}", *SMALL)
    row = StudyRow("cpu/fashion-vanilla_at", title, 2, words, f"-{regime}", measured=ON)
    return replace(row, **more)


@pytest.fixture
def two_rows(monkeypatch):
    """Table 2 as two rows that take seconds, one of them with a choice to make."""
    chosen = small("randaug_ls", "RandAug + label smoothing", tuned="rho", values=(0.05, 0.2))
    monkeypatch.setitem(rows.CPU, "table2", [small("randaug", "RandAug"), chosen])


@pytest.fixture
def study(tmp_path):
    return Study("cpu", Results(tmp_path / "results", tmp_path / "runs"))


def test_a_table_is_run_from_nothing_then_not_again(two_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--workers=1"]) == 0
    there = sorted((tmp_path / "results" / "cpu" / "runs").glob("*.json"))
    assert len(there) == 2 + 2 * 2  # two values tried, two rows with two seeds each
    for end in ("md", "tex", "csv", "json", "svg", "png"):
        assert (tmp_path / "results" / "cpu" / f"table2.{end}").stat().st_size > 0
    told = json.loads((tmp_path / "results" / "cpu" / "table2.json").read_text())["records"]
    (mine,) = (r for r in told if (r["data"], r["method"], r["metric"]) == ("fashion", "RandAug", "ece"))
    expected = [_clean_ece(path) for path in there if "randaug-2" in path.name]
    assert mine["values"] == pytest.approx(expected)
    assert mine["seeds"] == [FIRST_SEED, FIRST_SEED + 1]
    before = {path: path.stat().st_mtime_ns for path in there}
    assert main(["reproduce", "table2", "--workers=1"]) == 0
    assert {path: path.stat().st_mtime_ns for path in there} == before


def test_rows_are_measured_on_copies_which_are_part_of_their_identity_wherever_they_lie(
    two_rows, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(COPIES, "fashion", "Fashion-C")
    assert main(["corrupt", "embedded", "copies/Fashion-C", "--suite=fog"]) == 0
    words = ["reproduce", "table2", "--workers=1", "--seeds=1"]
    assert main([*words, "--copies=elsewhere"]) == 1
    assert "--copies: there is no elsewhere/Fashion-C. It takes the folder that" in capsys.readouterr().err
    assert main([*words, "--copies=copies"]) == 0
    there = sorted((tmp_path / "results" / "cpu" / "runs").glob("*.json"))
    note = "Fashion-MNIST on copies. Corrupted images: made by auglabel"
    assert note in (tmp_path / "results" / "cpu" / "table2.md").read_text()
    Path("copies").rename("moved")
    assert main([*words, "--assemble"]) == 0  # knows that there were some
    assert note in (tmp_path / "results" / "cpu" / "table2.md").read_text()
    assert main([*words, "--copies=moved"]) == 0
    assert sorted((tmp_path / "results" / "cpu" / "runs").glob("*.json")) == there
    assert main([*words, "--out=made"]) == 0
    made = sorted((tmp_path / "made" / "cpu" / "runs").glob("*.json"))
    assert len(made) == len(there)
    tried = {path.name for path in there if "-rho" in path.name}  # these look at no test image
    assert {path.name for path in made} & {path.name for path in there} == tried
    assert "on copies" not in (tmp_path / "made" / "cpu" / "table2.md").read_text()


def test_copies_of_rows_without_data_are_not_asked_for_and_a_plan_needs_none(tmp_path, monkeypatch, capsys):
    (tmp_path / "CIFAR-100-C").mkdir()
    roots = {"cifar100": str(tmp_path)}
    study = Study("paper", Results(tmp_path), roots, words=(f"--copies={tmp_path}",))
    with pytest.raises((UserError, FileNotFoundError), match=r"CIFAR-100-C"):  # empty, and seen at once
        study.require_copies(study.rows(["table2"]))
    replace(study, roots={}).require_copies(study.rows(["table2"]))  # without data nothing is asked for
    with pytest.raises(FileNotFoundError, match=r"there is no .*ImageNet-C"):
        replace(study, roots={**roots, "imagenet": str(tmp_path)}).require_copies(study.rows(["table2"]))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--scale=paper", "--plan", "--copies=nowhere"]) == 0
    assert "36 runs" in capsys.readouterr().out


def _clean_ece(path: Path) -> float:
    found = json.loads(path.read_text())["evaluations"][0]
    return found["rows"][0][found["columns"].index("ece")]


def test_a_plan_says_what_it_would_cost_and_runs_nothing(two_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--plan"]) == 0
    said = capsys.readouterr().out
    assert "6 runs, 0 of them there" in said
    assert "core-hours" in said
    assert not (tmp_path / "results").exists()


def test_rows_that_have_data_are_run_and_the_others_named_with_their_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lacking = [replace(small("randaug", "RandAug"), recipe=f"cpu/{data}-randaug") for data in CIFARS]
    monkeypatch.setitem(rows.CPU, "table2", [small("randaug", "RandAug"), *lacking])
    assert main(["reproduce", "table2", "--workers=1", "--seeds=1", "--plan"]) == 0
    assert "1 runs, 0 of them there" in capsys.readouterr().out
    assert main(["reproduce", "table2", "--workers=1", "--seeds=1"]) == 0
    told = (
        "Left out, without images: cifar10-randaug-randaug (--cifar10 DIR brings it); "
        "cifar100-randaug-randaug (--cifar100 DIR brings it).\n"
    )
    assert told in capsys.readouterr().out
    (there,) = (tmp_path / "results" / "cpu" / "runs").glob("*.json")
    assert there.name.startswith("fashion-")
    lines = (tmp_path / "results" / "cpu" / "table2.md").read_text().splitlines()
    assert all("not run" not in line for line in lines if line.startswith("| Fashion-MNIST"))
    assert all("not run" in line for line in lines if line.startswith("| CIFAR-10"))


def test_a_plan_that_leaves_rows_out_is_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.setitem(rows.CPU, name, [])
    cifar = replace(small("randaug", "RandAug"), recipe="cpu/cifar10-randaug")
    monkeypatch.setitem(rows.CPU, "table2", [small("randaug", "RandAug"), cifar])
    assert main(["reproduce", "all", "--plan"]) == 0
    assert "Left out, without images: cifar10-randaug-randaug" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("name", "scale", "given", "run", "left_out"),
    [
        ("table2", "paper", {"cifar100"}, 6, {"imagenet": 6}),
        ("table2", "paper", {"imagenet"}, 6, {"cifar100": 6}),
        ("table3", "paper", {"cifar10"}, 6, {"cifar100": 6}),
        ("table2", "paper", {"cifar100", "imagenet"}, 12, {}),
        ("table4", "cpu", set(), 11, {"cifar10": 16}),  # Fashion-MNIST is inside the package
        ("table2", "fast", {"cifar100"}, 18, {}),
    ],
)
def test_any_subset_of_the_data_runs_its_rows(name, scale, given, run, left_out, tmp_path):
    study = Study(scale, Results(tmp_path), dict.fromkeys(given, str(tmp_path)))
    told = study.require_data(study.rows([name]))
    assert sum(map(len, study.stages([name]))) == run
    assert [part.partition(" DIR")[0] for part in told.split("(--")[1:]] == list(left_out)
    for part, (data, count) in zip(told.split("; ") if told else [], left_out.items(), strict=True):
        assert part.count(f"{data}-") == count


@pytest.mark.parametrize("scale", ["cpu", "fast", "paper"])
@pytest.mark.parametrize("data", ["cifar10", "cifar100"])
def test_all_runs_with_one_data_set_and_no_row_of_another(scale, data, tmp_path):
    study = Study(scale, Results(tmp_path), {data: str(tmp_path)})
    study.require_data(study.rows(study.names()))
    assert {row.data for stage in study.stages(study.names()) for row in stage} - {"fashion"} == {data}


def test_the_value_of_lowest_validation_nll_is_chosen_and_its_seed_never_reported(two_rows, study):
    _, tuned = study.rows(["table2"])
    assert study.jobs(tuned) == []  # nothing is chosen yet
    for (value, (job,)), nll in zip(study.tuning(tuned).items(), (1.5, 1.25), strict=True):
        assert (job.recipe.training.seed, job.measured) == (100, ())
        assert job.recipe.labels.options["rho"] == value
        make_result(study, job, nll=nll)
    assert study.chosen(tuned) == 0.2
    seeds = [job.recipe.training.seed for job in study.jobs(tuned)]
    assert seeds == [FIRST_SEED, FIRST_SEED + 1]
    assert not {100, 101} & set(seeds)
    assert {job.recipe.labels.options["rho"] for job in study.jobs(tuned)} == {0.2}


def test_methods_share_split_weights_and_order_by_seed(two_rows, study):
    plain, tuned = study.rows(["table2"])
    for (job,) in study.tuning(tuned).values():
        make_result(study, job)
    for one, other in zip(study.jobs(plain), study.jobs(tuned), strict=True):
        differ = one.recipe.differences(other.recipe)
        assert {line.partition(":")[0] for line in differ} <= {"labels.name", "labels.rho"}


def test_results_of_another_version_are_kept_apart_and_named(two_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "cpu" / "runs"
    folder.mkdir(parents=True)
    older = folder / f"fashion-vanilla_at-randaug-{FIRST_SEED}-0123abcd.json"
    older.write_text("{}")
    assert main(["reproduce", "table2", "--workers=1"]) == 0
    assert "another version of this recipe" in capsys.readouterr().out
    assert older.read_text() == "{}"
    assert len(list(folder.glob(f"fashion-vanilla_at-randaug-{FIRST_SEED}-*.json"))) == 2


def test_rows_of_the_paper_come_first_and_whole_seeds_at_a_time(study):
    both = study.rows(["table5", "ablations"])
    for row in both:
        for (job,) in study.tuning(row).values():
            make_result(study, job)
    ordered = in_order([(row, job) for row in both for job in study.jobs(row)])
    extra = {row.name for row in both if row.extra}
    kinds = [(job.name.rpartition("-")[0] in extra, job.recipe.training.seed) for job in ordered]
    assert kinds == sorted(kinds)


def test_every_name_is_assembled_from_what_is_there_and_says_what_is_not(study, tmp_path):
    """One seed of everything but the adversarial rows."""
    every = [row for row in study.rows(NAMES) if not row.method.startswith(("at", "ccat", "vanilla_at"))]
    for row in every:
        for (job,) in study.tuning(row).values():
            make_result(study, job)
    for row in every:
        make_result(study, study.jobs(row)[0])
    out = tmp_path / "tables"
    with (tmp_path / "said").open("w") as file:
        assemble(NAMES, study, out, Console(file=file, width=200))
    for name in NAMES:
        for end in ("md", "tex", "csv", "json"):
            assert (out / f"{name}.{end}").exists(), name
    assert "not run" in (out / "table3.md").read_text()
    assert not (out / "table3.svg").exists()  # nothing to draw
    for name in ("table2", "table5", "figure1", "figure2", "figure3", "figure4", "figure5", "figure6"):
        assert (out / f"{name}.svg").read_text().startswith("<svg")
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figure1_images.png").exists()
    assert {verdict["verdict"] for verdict in json.loads((out / "verdicts.json").read_text())["ours"]} == {
        "not run"
    }


def test_published_numbers_stand_beside_ours_and_imagenet_is_not_run(study, tmp_path):
    with (tmp_path / "said").open("w") as file:
        assemble(["table2"], study, tmp_path, Console(file=file))
    text = (tmp_path / "table2.md").read_text()
    cells = " | ".join(f"not run ({value})" for value in (82.7, 64.8, 1.9, 5.6))
    assert f"| CIFAR-100 | RandAug + AutoLabel | 0 | {cells} |" in text
    assert (
        "| ImageNet | AugMix | 0 | not run (75.9) | not run (46.1) | not run (1.5) | not run (4.9) |" in text
    )
    for row in published()["table2"]["rows"]:
        assert f"({row['accuracy']:.1f})" in text


def test_the_paper_scale_has_a_recipe_for_every_published_row(study):
    there = {row.recipe for name in NAMES for row in rows.rows_of(name, "paper")}
    assert {name for name in row_recipes() if name.startswith("paper/")} == there


def test_table_4_at_the_paper_scale_chooses_rho_and_alpha_at_each_radius_and_no_other_row_does(tmp_path):
    study = Study("paper", Results(tmp_path))
    tried = {row.name: list(study.tuning(row)) for row in study.rows(NAMES) if row.values}
    assert set(tried) == {
        f"{data}-{regime}-{radius}"
        for data in ("cifar10", "cifar100")
        for regime in ("at_ls", "at_autolabel")
        for radius in (0.03, 0.05, 0.1)
    }
    assert tried["cifar10-at_ls-0.05"] == [0.1, 0.2, 0.3]
    alphas = tried["cifar100-at_autolabel-0.1"]
    assert (alphas[0], alphas[-1]) == (0.005, 1)
    assert all(2 <= after / before <= 3.4 for before, after in pairwise(alphas))


def test_table_4_at_the_paper_scale_reports_the_value_of_lowest_validation_nll(tmp_path):
    study = Study("paper", Results(tmp_path))
    (row,) = (row for row in study.rows(["table4"]) if row.name == "cifar10-at_ls-0.03")
    assert study.jobs(row) == []
    for (job,), nll in zip(study.tuning(row).values(), (2.0, 1.0, 1.5), strict=True):
        assert (job.recipe.training.seed, job.measured) == (100, ())
        make_result(study, job, nll=nll)
    assert {job.recipe.labels.options["rho"] for job in study.jobs(row)} == {0.2}


def test_corruptions_at_the_paper_scale_are_as_many_as_the_paper_says():
    types = published()["table2"]["corruption_types"]
    for row in rows.rows_of("table2", "paper"):
        (measured,) = (each for each in row.measured if each.on == "corrupted")
        assert len(SUITES[measured.suite]) == types[row.data]


@pytest.mark.parametrize("scale", ["cpu", "fast", "paper"])
def test_a_row_is_the_same_wherever_it_stands(scale):
    """Tables and figures that share a row share its runs."""
    met: dict[str, StudyRow] = {}
    for name in NAMES:
        for row in rows.rows_of(name, scale):
            assert met.setdefault(row.name, row) == row, (name, row.name)


@pytest.mark.parametrize("scale", ["cpu", "fast", "paper"])
def test_a_row_says_what_its_recipe_trains_with(scale, tmp_path):
    """Its radius, beta, largest magnitude and number of images, which figures are drawn over."""
    roots = dict.fromkeys(("cifar10", "cifar100", "imagenet"), ".")
    study = Study(scale, Results(tmp_path), roots)
    met = set()
    for row in study.rows(NAMES):
        recipe = study.planned(row)[0].recipe
        options = recipe.augment.options
        assert (row.radius, row.beta) == (options.get("epsilon_max"), options.get("beta")), row.name
        assert row.magnitude == options.get("m_max", 10), row.name
        assert row.images in (None, recipe.split["train"]), row.name
        met |= {name for name in ("radius", "beta", "images") if getattr(row, name) is not None}
        met |= {"magnitude"} if row.magnitude != 10 else set()
    assert met == {"radius", "beta", "images", "magnitude"}


def test_the_cost_of_a_share_of_the_images_is_that_share(tmp_path):
    study = Study("paper", Results(tmp_path), {"imagenet": "."})
    costs = costs_of(study, study.rows(["figure6"]), {})
    runs, _, hours = costs["imagenet-randaug"]
    fewer, _, less = costs["imagenet-randaug-train0.25"]
    assert less / fewer == pytest.approx(
        0.25 * hours / runs, rel=0.05
    )  # evaluation costs what it does of all


def test_the_plan_of_the_paper_scale_needs_no_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--scale=paper", "--plan"]) == 0
    said = capsys.readouterr().out
    assert "36 runs, 0 of them there" in said  # 6 rows x 4 seeds, 6 x 2
    assert "give --cifar100 DIR and --imagenet DIR." in said


def test_the_plan_of_the_paper_scale_is_of_the_fraction_and_precision_asked_for(
    tmp_path, monkeypatch, capsys
):
    """Twice the fraction, and twice the peak in bf16, are a quarter of the hours; V100s have no bf16."""
    monkeypatch.chdir(tmp_path)
    hours = []
    for words in (["--fraction=0.2"], ["--fraction=0.4", "--engine.precision=bf16"]):
        assert main(["reproduce", "table5", "--scale=paper", "--plan", *words]) == 0
        said = capsys.readouterr().out
        (line,) = (line for line in said.splitlines() if "A100" in line)
        hours.append(float(line.split()[-3]))
    assert hours[0] == pytest.approx(4 * hours[1], abs=3)
    assert "V100 SXM2: has not this precision" in said


def test_eight_gpus_are_busy_until_the_longest_run_is_all_that_is_left():
    assert wall_clock([1.0] * 16, 8) == 2
    assert wall_clock([1.0, 5.0], 8) == 5


def test_delta_is_clean_and_attacked_accuracy_less_vanillas_of_the_same_seed(study, tmp_path):
    """Vanilla 0.75 and 0.125, AT 0.5 and 0.5 + 0.25 by seed: Delta 0.125, then 0.375."""
    vanilla, at = (
        row for row in study.rows(["table4"]) if row.name in ("fashion-vanilla_at", "fashion-at-0.1")
    )

    def value(job, metric, on, severity):
        later = 0.25 if job.recipe.training.seed > FIRST_SEED else 0.0
        if job.name.startswith("fashion-vanilla"):
            return 0.125 if on == "pgd" else 0.75
        return 0.5 + later if on == "pgd" else 0.5

    for row in (vanilla, at):
        for job in study.jobs(row)[:2]:
            make_result(study, job, value)
    page = table("table4", study)
    deltas = [r for r in page.records if r.metric == "delta"]
    (delta,) = (r for r in deltas if (r.data, r.method) == ("fashion", "AT, epsilon_max 0.1"))
    assert (delta.values, delta.paper) == ([0.125, 0.375], None)
    theirs = {(r.method, r.paper) for r in deltas if r.data == "cifar10"}
    assert theirs >= {
        ("AT, epsilon_max 0.03", 38.9),
        ("AT + AutoLabel, epsilon_max 0.1", 38.1),
        ("CCAT, epsilon_max 0.05", -1.3),
    }


def test_table_3_stands_beside_the_rows_at_its_one_radius(study):
    records = [r for r in table("table3", study).records if (r.data, r.metric) == ("cifar10", "cece")]
    (mine,) = (r for r in records if r.method == "AT + AutoLabel")
    assert mine.paper == 6.5


@pytest.mark.parametrize("name", ["table1", "figure4"])
def test_a_plan_of_what_needs_no_run_says_so(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", name, "--plan"]) == 0
    assert "No run is needed." in capsys.readouterr().out


def test_a_plan_once_written_stays(two_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        if name != "table2":
            monkeypatch.setitem(rows.CPU, name, [])
    assert main(["reproduce", "all", "--plan"]) == 0
    before = (tmp_path / "results" / "plan.yaml").read_text()
    plan = yaml.safe_load(before)
    assert [row["row"].rpartition("-")[2] for row in plan["rows"]] == ["randaug", "randaug_ls"]
    assert plan["rows"][1]["from"] == [0.05, 0.2]
    assert len(plan["claims"]["paper"]) > 20
    assert main(["reproduce", "all", "--plan", "--seeds=1"]) == 0
    assert "stays" in capsys.readouterr().out
    assert (tmp_path / "results" / "plan.yaml").read_text() == before


def test_a_value_whose_run_failed_is_not_chosen_and_does_not_block(two_rows, study):
    _, tuned = study.rows(["table2"])
    (first,), (second,) = study.tuning(tuned).values()
    make_result(study, second, nll=2.0)
    assert study.chosen(tuned) is None
    assert replace(study, failed=frozenset({first.stem})).chosen(tuned) == 0.2
    make_result(study, first)
    result = json.loads(study.results.file(first).read_text())
    result["validation"]["nll"] = math.nan
    del result["checksum"]
    study.results.file(first).write_text(json.dumps(result))
    assert study.chosen(tuned) == 0.2


def test_results_of_other_images_are_refused(two_rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "table2", "--workers=1", "--seeds=1"]) == 0
    for path in (tmp_path / "results" / "cpu" / "runs").glob("*.json"):
        result = json.loads(path.read_text())
        result["data"]["checksum"] = "0" * 64
        del result["checksum"]
        path.write_text(json.dumps(result))
    assert main(["reproduce", "table2", "--workers=1", "--seeds=1"]) == 1
    assert "was made with other images" in capsys.readouterr().err


def test_a_record_shows_mean_and_spread_and_the_paper():
    record = Record("cifar10", "RandAug", "ece", [20, 21], [0.06, 0.08], paper=4.1)
    assert record.shown() == "7.0 ± 1.4 (4.1)"
    assert Record("cifar10", "RandAug", "nll", [20], [1.2345]).shown() == "1.234"
    assert Record("cifar10", "RandAug", "ece", [], [], ran=True).shown() == "-"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "which table or figure?"),
        (["tabel2"], 'Did you mean "table2"?'),
        (["table2"], "no row has its images. Give --cifar10 DIR, the official files"),
        (["table2", "--scale=paper"], "; or --imagenet DIR, the folder that holds train/ and val/"),
        (["table2", "--scale=paper", "--cifar10=."], "no row has its images. Give --cifar100 DIR"),
        (["table5", "--cifar10=/nowhere"], "there is no /nowhere"),
        (["table5", "--scale=huge"], "scale must be one of"),
        (["table5", "--seeds=0"], "seeds"),
        (["table5", "--fraction=2"], "fraction must be in"),
        (["table5", "--seeds=21"], "seeds"),
        (["table5", "--address=localhost:1"], "address goes with --engine ray"),
    ],
)
def test_bad_input_gets_one_sentence(words, told, capsys):
    assert main(["reproduce", *words]) != 0
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_choices_are_made_on_held_out_images_also_where_runs_give_them_back(two_rows, tmp_path):
    results = Results(tmp_path / "results", tmp_path / "runs")
    back = Study("cpu", results, words=("--epochs=2", "--give_back=0.5"))
    _, chosen = rows.CPU["table2"]
    tried = [job for jobs in back.tuning(chosen).values() for job in jobs]
    assert {job.recipe.training.give_back for job in tried} == {None}
    assert {job.recipe.training.give_back for job in back.planned(chosen)} == {0.5}
