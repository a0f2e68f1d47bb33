"""What results/ and docs/results.md say is what the runs in results/ say."""

import functools
import importlib.util
import json
from pathlib import Path

import pytest
from rich.console import Console

from auglabel.lab.paper.assemble import page_of
from auglabel.lab.paper.choices import choices
from auglabel.lab.paper.rows_cpu import CPU
from auglabel.lab.paper.study import NAMES, Study
from auglabel.lab.paper.verdict_page import write_verdicts
from auglabel.lab.sweep.job import Results, read_result

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "cpu"

pytestmark = pytest.mark.skipif(not KEPT.exists(), reason="there are no results here")


@pytest.fixture(scope="module")
def study():
    return Study("cpu", Results(KEPT / "runs"))


@pytest.fixture(scope="module")
def page(study):
    """A table or figure by its name, made once."""
    return functools.cache(lambda name: page_of(name, study))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_made_of_the_runs_that_are_there(name, page, tmp_path):
    page(name).write(tmp_path, chart=(KEPT / f"{name}.svg").exists())
    for end in ("md", "csv", "json", "tex"):
        assert (tmp_path / f"{name}.{end}").read_text() == (KEPT / f"{name}.{end}").read_text()


def test_the_choices_are_those_of_the_tuning_runs_and_the_recipes_have_them(study):
    assert (KEPT / "choices.md").read_text() == choices(study).markdown(chart=False)
    for row in study.rows(CPU):
        chosen = study.chosen(row)
        if row.values and chosen is not None:
            recipe = study.planned(row)[0].recipe
            plain = Study("cpu", study.results)._recipe(row, [], 0)
            assert plain.labels == recipe.labels, row.recipe


def test_the_verdicts_are_those_of_the_runs(study, tmp_path):
    with (tmp_path / "said").open("w") as file:
        write_verdicts(study, tmp_path, Console(file=file))
    for end in ("md", "csv", "json", "tex"):
        assert (tmp_path / f"verdicts.{end}").read_text() == (KEPT / f"verdicts.{end}").read_text()


def test_the_page_is_made_of_the_tables():
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "scripts" / "results_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.text() == (ROOT / "docs" / "results.md").read_text()


def test_the_readmes_table_is_that_of_the_runs(page):
    found = {(r.method, r.metric): r.shown() for r in page("table2").records if r.data == "cifar10"}
    text = (ROOT / "README.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(("| RandAug", "| AugMix")) and "±" in line]
    assert len(rows) == 8
    for row in rows:
        _, method, accuracy, *others, _ = (cell.strip() for cell in row.split("|"))
        scaled = " T" if "temperature" in method else ""
        method = method.partition(",")[0]
        assert accuracy == found[method, "accuracy"]
        assert others == [found[method, f"{metric}{scaled}"] for metric in ("ece", "cece", "nll", "cnll")]


def test_every_run_that_was_made_belongs_to_a_row(study):
    """None is left out of the tables, and none is of a recipe that has since changed."""
    rows = study.rows(CPU)
    jobs = [job for row in rows for some in (*study.tuning(row).values(), study.jobs(row)) for job in some]
    known = {job.stem for job in jobs}
    there = {path.stem for path in (KEPT / "runs").glob("*.json")}
    assert there <= known, sorted(there - known)[:3]


def test_runs_hold_no_paths_and_their_seed_was_planned():
    for path in (KEPT / "runs").glob("*.json"):
        found = read_result(path)
        assert "root" not in found["recipe"]["data"]
        assert found["seed"] == 100 or 20 <= found["seed"] < 40
        assert (found["seed"] == 100) == (not found["evaluations"])
        assert "/tmp" not in json.dumps(found)
