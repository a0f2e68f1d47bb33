import contextlib
import io
import shutil
import sys
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from rich.console import Console

from auglabel import cli
from auglabel.lab.commands import demo
from auglabel.lab.parts.catalogue import AUGMENTATIONS
from auglabel.lab.runs.evaluations import MeasuredRow
from auglabel.lab.runs.run import Run
from auglabel.lab.sweep.result import ResultEvaluation


class Shown(NamedTuple):
    folder: object
    printed: str
    page: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """`auglabel demo` with one seed and one epoch, in its own processes."""
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(printed):
        patched.chdir(folder)
        assert cli.main(["demo", "--seeds=1", "--epochs=1"]) == 0
    return Shown(folder, printed.getvalue(), (folder / demo.PAGE).read_text())


def test_it_prints_every_method_and_the_learned_labels_and_ends_with_its_page(shown):
    learned = ("shear_x", "equalize")
    for word in (*demo.METHODS, "clean", *demo.CORRUPTIONS, *learned, "runs/demo.html"):
        assert word in shown.printed
    assert "RandAug + AutoLabel" in shown.page
    for name in demo.CORRUPTIONS:
        assert name in shown.page
    assert '<figure class="sheet">' in shown.page


def test_it_goes_on_with_the_runs_that_are_there(shown, monkeypatch, capsys):
    monkeypatch.chdir(shown.folder)
    before = {path: path.stat().st_mtime_ns for path in (shown.folder / demo.FOLDER).rglob("*.json")}
    assert len(before) > 3
    assert cli.main(["demo", "--seeds=1", "--epochs=1"]) == 0
    assert "3 runs, 0 of them to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in (shown.folder / demo.FOLDER).rglob("*.json")} == before


def test_it_trains_again_where_a_result_is_left_without_its_run(shown, tmp_path, monkeypatch, capsys):
    shutil.copytree(shown.folder, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    (lost,) = (tmp_path / "copy" / demo.FOLDER / "runs").glob("AutoLabel*/")
    shutil.rmtree(lost)
    assert cli.main(["demo", "--seeds=1", "--epochs=1"]) == 0
    assert "3 runs, 1 of them to do" in capsys.readouterr().out
    assert Run(lost).model_file.exists()


def test_it_ends_well_without_what_draws_its_page(shown, monkeypatch, capsys):
    monkeypatch.chdir(shown.folder)
    monkeypatch.setitem(sys.modules, "altair", None)
    jobs = [jobs[0] for jobs in demo.sweep_of(demo.DemoOptions(1, 1)).jobs]
    demo._report(jobs, demo.sweep_of(demo.DemoOptions(1, 1)).results, Console(width=200))
    assert "No page was written: charts need altair" in capsys.readouterr().out


def test_its_runs_are_ordinary_ones_on_the_embedded_images(shown, monkeypatch):
    monkeypatch.chdir(shown.folder)
    sweep = demo.sweep_of(demo.DemoOptions(1, 1))
    for (job,) in sweep.jobs:
        run = sweep.results.run(job)
        assert isinstance(run, Run)
        assert run.facts().data.images == {"train": 1000, "validation": 1000, "test": 2000}
        result = sweep.results.read(job)
        assert [each.rows[0].on for each in result.evaluations] == ["clean", *demo.CORRUPTIONS]
        assert [len(each.rows) for each in result.evaluations] == [1, 5, 5, 5, 5]


def test_methods_share_everything_but_their_labels():
    first, *others = (jobs[0].recipe for jobs in demo.sweep_of(demo.DemoOptions(1, 2)).jobs)
    for other in others:
        assert {line.partition(":")[0].partition(".")[0] for line in first.differences(other)} == {"labels"}


def test_randaug_contains_none_of_the_corruptions():
    assert not {*demo.CORRUPTIONS} & {*AUGMENTATIONS["randaug"]().operations}


def result(accuracy):
    """Accuracy as given on clean images; 10, 20, 30 and 40 points less where corrupted, on average."""
    others = {"ece": 0.1, "debiased_ece": 0.09, "nll": 1.0, "brier": 0.5}
    evaluations = [[MeasuredRow("clean", None, 2000, others | {"accuracy": accuracy}, {})]]
    for number, name in enumerate(demo.CORRUPTIONS, start=1):
        reached = [accuracy - number / 10 + step / 100 for step in (-2, -1, 0, 1, 2)]
        rows = [
            MeasuredRow(name, severity, 2000, others | {"accuracy": each}, {})
            for severity, each in enumerate(reached, 1)
        ]
        evaluations.append(rows)
    return SimpleNamespace(evaluations=[ResultEvaluation([], rows) for rows in evaluations])


def test_the_tables_show_mean_and_spread_over_seeds():
    table = demo.measured_table({method: [result(0.80), result(0.84)] for method in demo.METHODS})
    accuracy = list(table.columns[2].cells)
    assert accuracy[::3] == ["82.0±2.8", "57.0±2.8", "72.0±2.8", "62.0±2.8", "52.0±2.8", "42.0±2.8"]
    assert next(iter(table.columns[3].cells)) == "10.0±0.0"
    assert next(iter(table.columns[5].cells)) == "1.00±0.00"
    assert list(table.columns[0].cells)[::3] == ["clean", "all four", *demo.CORRUPTIONS]
    learned = demo.learned_table([{"rotate": [0.5, 0.7]}, {"rotate": [0.7, 0.9]}])
    assert [str(next(iter(column.cells))).strip() for column in learned.columns[1:]] == ["60", "80"]
