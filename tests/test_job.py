"""One run with its measurements: made once, kept apart from other versions, and true to what eval says."""

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import SMALL, TINY

from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep import forecast, job
from auglabel.lab.sweep.job import KEPT, Job, Results

ROOT = Path(__file__).parents[1]
MEASURED = ("--on=clean --resamples=0", "--on=fog --images=10 --resamples=0")
VIEWS = Choice("randaug", {"operations": ["rotate", "equalize"]})


def tiny(name="tiny-seed0", measured=(), views=None, words=()):
    return Job(name, read_recipe("embedded", [*TINY, *words]), measured, views)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A job that was performed, its result, and where."""
    folder = tmp_path_factory.mktemp("job")
    results, done = Results(folder / "results", folder / "runs"), tiny(measured=MEASURED, views=VIEWS)
    return results, done, results.perform(done)


@pytest.fixture
def there(made, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(made[0].path.parent, tmp_path / "job")
    return Results(tmp_path / "job" / "results", tmp_path / "job" / "runs")


def refuse(*arguments, **options):
    raise AssertionError("this was done before")


def test_a_result_has_the_numbers_that_eval_wrote(made):
    results, done, result = made
    folder = results.run(done).path / "eval"
    for evaluation, name in zip(result["evaluations"], ("clean", "fog-10images"), strict=True):
        written = json.loads((folder / f"{name}.json").read_text())
        assert evaluation["temperature"] == written["temperature"]
        assert len(evaluation["rows"]) == len(written["rows"])
        for row, theirs in zip(evaluation["rows"], written["rows"], strict=True):
            found = dict(zip(evaluation["columns"], row, strict=True))
            assert [found[key] for key in ("on", "severity", "count")] == [
                theirs[key] for key in ("on", "severity", "count")
            ]
            for metric in KEPT:
                assert found[metric] == round(theirs["figures"][metric]["value"], 6)
                assert found[f"scaled_{metric}"] == round(theirs["scaled"][metric]["value"], 6)


def test_a_result_says_what_it_is_of(made):
    results, done, result = made
    run = results.run(done)
    assert result["validation"] == run.epochs()[-1].validation
    assert result["recipe"] == done.recipe.as_dict()
    assert (result["name"], result["seed"], result["digest"]) == ("tiny-seed0", 0, done.digest)
    assert result["data"]["images"] == {"train": 60, "validation": 40, "test": 40}
    assert result["labels"] == json.loads(run.table_file.read_text())["confidence"]
    assert result == results.read(done)


def test_views_are_every_test_image_in_every_bucket_of_another_augmentation(made):
    views = made[2]["views"]
    assert {kind: len(part["ece"]) for kind, part in views.items()} == {"rotate": 10, "equalize": 1}
    assert views["rotate"]["count"] == [40] * 10
    assert all(0 <= value <= 1 for part in views.values() for value in part["accuracy"])


def test_a_result_that_is_there_is_not_made_again(made, monkeypatch):
    results, done, result = made
    before = results.file(done).stat().st_mtime_ns
    monkeypatch.setattr(job, "train", refuse)
    monkeypatch.setattr(job, "evaluate_run", refuse)
    assert results.perform(done) == result
    assert results.file(done).stat().st_mtime_ns == before


def test_a_run_that_was_trained_but_not_measured_is_only_measured(made, there, monkeypatch):
    _, done, result = made
    there.file(done).unlink()
    monkeypatch.setattr(job, "train", refuse)
    again = there.perform(done)
    assert {k: v for k, v in again.items() if k != "seconds"} == {
        k: v for k, v in result.items() if k != "seconds"
    }


def test_another_version_of_the_recipe_has_another_file_and_is_named(made):
    results, done, _ = made
    for other in (
        tiny(measured=MEASURED, views=VIEWS, words=["--alpha=0.3"]),
        tiny(measured=MEASURED[:1], views=VIEWS),
        tiny(measured=MEASURED),
    ):
        assert results.read(other) is None
        assert results.others(other) == [results.file(done)]
    assert results.others(done) == []
    assert results.others(tiny(name="tiny-seed1")) == []
    assert results.others(tiny(name="tiny")) == []


def test_the_digest_is_of_what_is_not_as_usual_of_measurements_and_of_views():
    """So that an option which the code learns later, at its usual value, is no other recipe."""
    recipe = read_recipe(
        None, ["--data=embedded", "--epochs=3", "--labels=label_smoothing", "--labels.rho=0.1"]
    )
    unusual = {"epochs": 3, "data.name": "embedded", "model.name": "small", "augment.name": "randaug"}
    unusual |= {"labels.name": "label_smoothing", "labels.rho": 0.1, "schedule.name": "cosine"}
    decides = [unusual, ["--on=clean"], ["randaug", {"operations": ["rotate"]}]]
    text = json.dumps(decides, sort_keys=True)
    done = Job("a", recipe, ("--on=clean",), Choice("randaug", {"operations": ["rotate"]}))
    assert done.digest == hashlib.sha256(text.encode()).hexdigest()[:8]


def test_the_digest_is_not_of_where_data_lie():
    here, elsewhere = (Job("a", read_recipe("cpu-cifar10", [f"--data.root={root}"])) for root in "xy")
    assert here.digest == elsewhere.digest
    assert "root" not in here.plain["data"]


def test_a_result_whose_usual_values_were_others_is_named(tmp_path):
    results = Results(tmp_path / "results", tmp_path / "runs")
    done = tiny()
    results.perform(done)
    result = json.loads(results.file(done).read_text())
    result["recipe"]["optimizer"]["momentum"] = 0.8
    del result["checksum"]
    results.file(done).write_text(json.dumps(result))
    with pytest.raises(ValueError, match=r"another version of its recipe, which had optimizer.momentum 0.8"):
        results.read(done)


def test_a_network_of_the_users_own_module_is_trained_and_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    results = Results(tmp_path / "results", tmp_path / "runs")
    words = [*SMALL, "--epochs=2", "--model=tests.networks:without_norms"]
    done = Job("own", read_recipe("embedded", words), MEASURED[:1])
    (evaluation,) = results.perform(done)["evaluations"]
    assert evaluation["rows"][0][:3] == ["clean", None, 40]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is damaged, or not a result: it is not JSON"),
        ('{"format": "x"}', "is not a result, or of another version"),
        (
            '{"format": "auglabel result, version 1", "checksum": "0"}',
            "its checksum does not fit its content",
        ),
    ],
)
def test_a_file_that_is_no_result_is_named(made, there, text, complaint):
    there.file(made[1]).write_text(text)
    with pytest.raises(ValueError, match=complaint) as caught:
        there.read(made[1])
    assert str(there.file(made[1])) in str(caught.value)


def test_the_cost_of_a_result_that_is_there_is_what_it_took(made, monkeypatch):
    results, done, result = made
    monkeypatch.setattr(forecast, "forecast", refuse)
    assert forecast.core_hours([done], results) == [sum(result["seconds"].values()) / 3600]


def test_the_cost_of_other_seeds_is_found_out_once(tmp_path, monkeypatch):
    monkeypatch.setattr(forecast, "forecast", lambda job: 3600.0 * job.recipe.training.epochs)
    jobs = [replace(tiny(), recipe=tiny().recipe.changed("seed", seed)) for seed in range(3)]
    jobs.append(tiny(words=["--epochs=5"]))
    tried = []
    assert forecast.core_hours(jobs, Results(tmp_path), tried.append) == [2, 2, 2, 5]
    assert len(tried) == 2


def test_an_epoch_of_a_few_steps_costs_something():
    """Three steps, fewer than are timed; and a hundred times the epochs about a hundred times that."""
    short, long = forecast.forecast(tiny()), forecast.forecast(tiny(words=["--epochs=200"]))
    assert short > 0
    assert 20 < long / short < 500
