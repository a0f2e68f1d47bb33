import contextlib
import io
import shutil
import sys
from typing import NamedTuple

import pytest

from auglabel import cli
from auglabel.lab.commands import demo
from auglabel.lab.runs.run import Run


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
    for word in (
        "one-hot, T",
        "label smoothing",
        "AutoLabel",
        "clean",
        "corrupted",
        "shear_x",
        "runs/demo.html",
    ):
        assert word in shown.printed
    assert "With one seed of one-hot nothing can be told apart" in shown.page
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
    assert cli.main(["demo", "--seeds=1", "--epochs=1"]) == 0
    assert "No page was written: charts need altair" in capsys.readouterr().out


def test_its_runs_are_ordinary_ones_on_the_embedded_images(shown, monkeypatch):
    monkeypatch.chdir(shown.folder)
    contest = demo.contest_of(demo.DemoOptions(1, 1))
    for candidate in contest.candidates:
        (job,) = contest.jobs(candidate)
        assert contest.results.run(job).facts().data.images == {
            "train": 1000,
            "validation": 1000,
            "test": 2000,
        }
        clean, corrupted = contest.results.read(job).evaluations
        assert [(row.on, row.count) for row in clean.rows] == [("clean", 2000)]
        assert {row.count for row in corrupted.rows} == {400}
        assert len(corrupted.rows) == 85  # 17 corruptions, 5 severities


def test_methods_share_everything_but_their_labels():
    contest = demo.contest_of(demo.DemoOptions(1, 2))
    first, *others = (contest.jobs(candidate)[0].recipe for candidate in contest.candidates)
    assert first.augment.options["magnitudes"] == "wide"
    for other in others:
        assert {line.partition(":")[0].partition(".")[0] for line in first.differences(other)} == {"labels"}


def test_the_table_of_labels_has_the_mean_over_seeds():
    learned = demo.learned_table([{"rotate": [0.5, 0.7]}, {"rotate": [0.7, 0.9]}])
    assert [str(next(iter(column.cells))).strip() for column in learned.columns[1:]] == ["60", "80"]
