"""What results/ and docs/results.md say is what the runs in results/ say."""

import functools
import importlib.util
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from made_results import make_result
from rich.console import Console

from auglabel.lab.paper.assemble import page_of
from auglabel.lab.paper.choices import choices
from auglabel.lab.paper.claim_verdicts import Part
from auglabel.lab.paper.comparison import comparison
from auglabel.lab.paper.tables import LABELLED
from auglabel.lab.paper.verdict_page import write_verdicts
from auglabel.lab.study.claims import claims
from auglabel.lab.study.gpu_cost import run_flops
from auglabel.lab.study.readings import reading
from auglabel.lab.study.rows import MADE, rows_by_name
from auglabel.lab.study.rows_cpu import CPU
from auglabel.lab.study.run_options import options_of
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.result import read_result

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
SCALES = [scale for scale in MADE if (RESULTS / scale / "runs").exists()]

pytestmark = pytest.mark.skipif(not SCALES, reason="there are no results here")


@functools.cache
def study_of(scale):
    folder = RESULTS / scale
    return Study(scale, Results(folder / "runs"), words=options_of(folder, ()))


@functools.cache
def page(name, scale):
    """A table or figure by its name, made once."""
    return page_of(name, study_of(scale))


def script():
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "scripts" / "results_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("scale", "name"), [(s, name) for s in SCALES for name in study_of(s).names()])
def test_a_table_is_made_of_the_runs_that_are_there(scale, name, tmp_path):
    kept = RESULTS / scale
    page(name, scale).write(tmp_path, chart=(kept / f"{name}.svg").exists())
    for end in ("md", "csv", "json", "tex"):
        assert (tmp_path / f"{name}.{end}").read_text() == (kept / f"{name}.{end}").read_text()


@pytest.mark.parametrize("scale", SCALES)
def test_the_choices_are_those_of_the_tuning_runs(scale):
    assert (RESULTS / scale / "choices.md").read_text() == choices(study_of(scale)).markdown(chart=False)


def test_the_recipes_of_the_cpu_size_have_what_was_chosen():
    study = study_of("cpu")
    for row in study.rows(CPU):
        chosen = study.chosen(row)
        if row.values and chosen is not None:
            recipe = study.planned(row)[0].recipe
            plain = Study("cpu", study.results)._recipe(row, [], 0)
            assert plain.labels == recipe.labels, row.recipe


@pytest.mark.parametrize("scale", SCALES)
def test_the_verdicts_are_those_of_the_runs(scale, tmp_path):
    with (tmp_path / "said").open("w") as file:
        write_verdicts(study_of(scale), tmp_path, Console(file=file))
    for end in ("md", "csv", "json", "tex"):
        kept = (RESULTS / scale / f"verdicts.{end}").read_text()
        assert (tmp_path / f"verdicts.{end}").read_text() == kept


def test_the_readmes_table_is_of_the_fast_study():
    """A quarter of CIFAR-100: labels, then the temperature, if any."""
    records = {(r.method, r.metric): r for r in page("table2", "fast").records}
    ends = {"one-hot": "", "label smoothing": " + label smoothing", "AutoLabel": " + AutoLabel"}
    ends["AutoLabel, one label for all distances"] = " + AutoLabel, one label for all distances"
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if "±" in line]
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    single = "AutoLabel, one label for all distances"
    assert [name for name, *_ in cells] == [
        *("one-hot", "one-hot, T", "one-hot, TA", "label smoothing", "label smoothing, T"),
        *("AutoLabel", "AutoLabel, T", single),
    ]
    for name, *shown in cells:
        labels, _, temperature = (single, "", "") if name == single else name.partition(", ")
        method, end = f"RandAug{ends[labels]}, 11,250 training images", temperature and f" {temperature}"
        metrics = ("accuracy", f"ece{end}", f"nll{end}", "caccuracy", f"cece{end}", f"cnll{end}")
        assert shown == [records[method, metric].shown() for metric in metrics], name
        assert records[method, "accuracy"].seeds == [20, 21, 22, 23]


def test_the_readmes_differences_are_of_the_fast_study():
    """Of AutoLabel from other labels, with their temperature if any, in percent points but for NLL."""
    text = " ".join((ROOT / "README.md").read_text().split())
    records = {(r.method, r.metric): r for r in page("table2", "fast").records}

    def told(metric, of, other="RandAug", temperature="", sign=1, labels="RandAug + AutoLabel"):
        scale, places = (1.0, "+.3f") if "nll" in metric else (100.0, "+.1f" if sign > 0 else ".1f")
        here = records[f"{labels}, 11,250 training images", metric]
        there = records[f"{other}, 11,250 training images", f"{metric}{temperature}"]
        values = [sign * scale * (a - b) for a, b in zip(here.values, there.values, strict=True)]
        part = Part("", here.seeds, values)
        return of.format(*(f"{value:{places}}" for value in (part.mean, *part.interval)))

    assert told("ece", "ECE falls by {} points [{}, {}] against one-hot", sign=-1) in text
    assert told("cece", "images by {} [{}, {}]. No difference", sign=-1) in text
    assert told("accuracy", "accuracy is certain: {} [{}, {}].") in text
    assert told("ece", "ECE of AutoLabel differs by {} [{}, {}], on", temperature=" TA") in text
    assert told("cece", "images by {} [{}, {}]; its", temperature=" TA") in text
    assert told("nll", "its NLL by {} [{}, {}] and", temperature=" TA") in text
    assert told("cnll", "and {} [{}, {}].", temperature=" TA") in text
    assert told("ece", "AutoLabel's ECE differs by {} [{}, {}], on", "RandAug + label smoothing") in text
    assert told("cece", "images by {} [{}, {}], its", "RandAug + label smoothing") in text
    assert told("nll", "its NLL by {} [{}, {}].", "RandAug + label smoothing") in text
    assert told("nll", "an NLL lower by {} [{}, {}] on clean", temperature=" TA").replace("+", "") in text
    first = text.partition("## Install")[0]
    hot, learned = (f"RandAug{labels}, 11,250 training images" for labels in ("", " + AutoLabel"))
    for metric, of in (("ece", "(ECE) from {} to {},"), ("cece", "images from {} to {}.")):
        means = (f"{100 * statistics.fmean(records[each, metric].values):.1f}" for each in (hot, learned))
        assert of.format(*means) in first
    whole = "RandAug + AutoLabel"
    for start, variant in (
        ("same way, NLL differs", f"{whole}, one label for all distances"),
        ("shuffled distances it differs", f"{whole}, shuffled buckets"),
    ):
        assert told("nll", f"{start} by {{}} [{{}}, {{}}], on corrupted", whole, labels=variant) in text
        assert told("cnll", "images by {} [{}, {}].", whole, labels=variant) in text
    mixed = {"other": "AugMix", "labels": "AugMix + AutoLabel"}
    assert told("ece", "lowers ECE by {} points [{}, {}], from", sign=-1, **mixed) in text
    assert told("cece", "images by {} [{}, {}]; in", sign=-1, **mixed) in text
    assert told("accuracy", "differs by {} [{}, {}]. The", **mixed) in text
    for start in ("with AugMix by", "their NLL is lower by"):
        lower = told("nll", f"{start} {{}} [{{}}, {{}}]", temperature=" TA", **mixed)
        assert lower.replace("+", "") in text
    lower = told("cnll", "images by {} [{}, {}]; the", temperature=" TA", **mixed)
    assert lower.replace("+", "") in text


def test_the_readmes_differences_with_all_images_are_of_the_fast_study():
    text = " ".join((ROOT / "README.md").read_text().split())
    records = {(r.method, r.metric): r for r in page("table2", "fast").records}

    def part(metric, temperature="", sign=1):
        here = records["RandAug + AutoLabel", metric]
        there = records["RandAug", f"{metric}{temperature}"]
        pairs = zip(here.values, there.values, strict=True)
        made = Part("", here.seeds, [100 * sign * (a - b) for a, b in pairs])
        return made.mean, *made.interval

    for metric, of in (("ece", "labels by {} [{}, {}], on"), ("cece", "images by {} [{}, {}], its")):
        assert of.format(*(f"{value:+.1f}" for value in part(metric))) in text
    assert "accuracy by {} [{}, {}]. A".format(*(f"{value:+.1f}" for value in part("accuracy"))) in text
    above = part("cece", " TA", -1)
    assert "to 6.0, {} [{}, {}] above AutoLabel's.".format(*(f"{value:.1f}" for value in above)) in text
    means = {
        (labels, metric): f"{100 * statistics.fmean(records[f'RandAug{labels}', metric].values):.1f}"
        for labels, metric in (("", "ece"), (" + AutoLabel", "ece"), ("", "cece"), ("", "cece TA"))
    }
    assert f"ECE is {means[' + AutoLabel', 'ece']} with AutoLabel instead of {means['', 'ece']}." in text
    assert f"rises from {means['', 'cece']} to {means['', 'cece TA']}," in text


def test_the_labels_that_the_readme_tells_are_those_of_the_fast_study():
    text = " ".join((ROOT / "README.md").read_text().split())
    row = rows_by_name("fast")["cifar100-randaug_autolabel-train11250"]
    made = study_of("fast").found([row])[row.name].values()
    means = sorted(reading(result, "label_mean") for result in made)
    fall = statistics.fmean(reading(result, "label_fall") for result in made)
    told = f"found labels of {means[0]:.2f} to {means[-1]:.2f} in the mean by itself, {fall:.2f} lower for"
    assert told in text


def test_what_a_run_costs_is_a_line_per_row_and_processor(tmp_path):
    """Medians of 50, 80 and 110 s, and of 30 s."""
    study = Study("fast", Results(tmp_path), {"cifar10": "."}, words=("--engine.precision=bf16",))
    row = rows_by_name("fast")["cifar10-vanilla"]
    for job, seconds, processor in zip(
        study.jobs(row), (50, 110, 80, 30), ("A", "A", "A", None), strict=True
    ):
        make_result(study, job)
        made = replace(read_result(study.results.file(job)), processor=processor)
        replace(made, seconds={"training": seconds, "measuring": 60.0}).write(study.results.file(job))
    flops = run_flops(study.planned(row)[0])
    cost = f"{flops / 1e15:.2f} | {flops / (0.15 * 312e12):.1f} |"
    lines = [line for line in script().costs(study).splitlines() if line.startswith("| cifar")]
    assert lines == [
        f"| cifar10-vanilla | A | 3 | 1.3 | 1.0 | {cost}",
        f"| cifar10-vanilla | not named | 1 | 0.5 | 1.0 | {cost}",
    ]


def test_the_page_is_made_of_the_tables():
    assert script().text() == (ROOT / "docs" / "results.md").read_text()


def test_in_short_has_the_sentence_of_each_verdict_decided_ones_first_and_says_that_some_is_not_run():
    told = {
        "paper": [
            {"verdict": "not run", "short": "Not run yet: A."},
            {"verdict": "undecided", "short": "C."},
        ],
        "ours": [{"verdict": "reversed", "short": ""}, {"verdict": "held", "short": "B."}],
    }
    head = "**In short**, at this size:\n\n"
    assert script().in_short(told) == f"{head}- B.\n- C.\n- What else it sums up is not run yet.\n"
    told["paper"].pop(0)
    assert script().in_short(told) == f"{head}- B.\n- C.\n"


def test_what_explains_several_tables_stands_on_the_page_once():
    """And what is of a table's own numbers stands with each, even if they agree to the letter."""
    parts = [f"## {name}\n\n| 1 |\n\n{LABELLED}\n\nAll of it with 10 images.\n" for name in "AB"]
    assert script()._once(parts) == [parts[0], "## B\n\n| 1 |\n\nAll of it with 10 images.\n"]


def test_tables_without_any_run_and_figures_of_one_point_are_named_in_one_line():
    text = script().text().partition("## CPU size")[0]
    study = study_of("fast")
    along = {"figure3": "magnitude", "figure6": "images", "figure7": "radius"}

    def waits(name):
        found = study.found(study.rows([name]))
        there = [row for row in study.rows([name]) if found[row.name]]
        if not study.rows([name]) or all(found.values()):
            return False
        return not there or (name in along and len({getattr(row, along[name]) for row in there}) < 2)

    waiting = {name for name in study.names() if waits(name)}
    (line,) = (line for line in text.splitlines() if line.startswith("Waiting for")) if waiting else ("",)
    for name in study.names():
        title = re.sub(r"(\d)", r" \1", name.capitalize())
        assert (f"## Fast: {title}:" in text) == (name not in waiting)
        assert (title in line) == (name in waiting)


def test_the_comparison_is_of_the_runs(tmp_path):
    comparison(study_of("fast")).write(tmp_path, chart=False)
    for end in ("md", "csv", "json", "tex"):
        kept = (RESULTS / "fast" / f"comparison.{end}").read_text()
        assert (tmp_path / f"comparison.{end}").read_text() == kept


def test_what_the_claims_compare_was_planned():
    """Each part of a claim stands in the plan or in what was added; some claims have lost parts since."""
    plan = yaml.safe_load((RESULTS / "plan-fast.yaml").read_text())
    written = [plan["claims"], *(added["claims"] for added in plan["added"])]
    told = [claim for families in written for family in families.values() for claim in family]
    planned = [part for claim in told for part in claim.get("parts", [])]
    for family in claims("fast").values():
        for claim in family:
            assert [part for part in claim.get("parts", []) if part not in planned] == [], claim["claim"]


@pytest.mark.parametrize("scale", MADE)
def test_a_claim_that_is_summed_up_has_a_sentence_for_every_verdict(scale):
    shorts = [claim["short"] for family in claims(scale).values() for claim in family if "short" in claim]
    assert len(shorts) >= 6
    for short in shorts:
        assert set(short) == {"held", "reversed", "undecided"}
        assert len(set(short.values())) == 3


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_that_was_made_belongs_to_a_row(scale):
    """None is left out of the tables, and none is of a recipe that has since changed."""
    study = study_of(scale)
    rows = study.rows(MADE[scale])
    jobs = [job for row in rows for some in (*study.tuning(row).values(), study.jobs(row)) for job in some]
    there = {path.stem for path in (RESULTS / scale / "runs").glob("*.json")}
    assert there <= {job.stem for job in jobs}, sorted(there - {job.stem for job in jobs})[:3]


@pytest.mark.parametrize("scale", SCALES)
def test_runs_hold_no_paths_and_their_seed_was_planned(scale):
    choosing = study_of(scale).choosing.seeds
    for path in (RESULTS / scale / "runs").glob("*.json"):
        found = read_result(path)
        assert "root" not in found.recipe["data"]
        assert found.seed in choosing or 20 <= found.seed < 40
        assert (found.seed in choosing) == (not found.evaluations)
        assert "/tmp" not in path.read_text()
