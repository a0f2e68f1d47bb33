"""One run with its measurements: made once, kept apart from other versions, and true to what eval says."""

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from made_results import make_result
from sweeps import SMALL, TINY

from auglabel.lab.evaluate import corrupted
from auglabel.lab.evaluate.network import network_of_run
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.study.readings import reading
from auglabel.lab.sweep import forecast, job
from auglabel.lab.sweep.executor import Executor, attempt
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement, digest_words
from auglabel.lab.sweep.result import KEPT, read_result
from auglabel.lab.train import train
from auglabel.util.processor import processor_kind

ROOT = Path(__file__).parents[1]
MEASURED = (Measurement("clean"), Measurement("fog", images=10))
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


def test_a_result_names_the_processor_that_trained_it_not_the_one_that_measures(tmp_path, monkeypatch):
    results = Results(tmp_path / "results", tmp_path / "runs")
    monkeypatch.setattr(train, "processor_kind", lambda device: "Fast One")
    run = results.run(tiny())
    train.train(tiny().recipe, run.path, train.TrainOptions(tracker=("none",)))
    monkeypatch.setattr(train, "processor_kind", lambda device: "Another")
    assert results.perform(tiny()).processor == "Fast One"
    assert json.loads(results.file(tiny()).read_text())["processor"] == "Fast One"


def test_a_processor_is_told_from_others_of_its_name(tmp_path):
    (tmp_path / "proc").mkdir()
    lines = "model name\t: Fast One\ncpu family\t: 25\nmodel\t\t: 17\n\nmodel name\t: Another\n"
    (tmp_path / "proc" / "cpuinfo").write_text(lines)
    kind = f"Fast One, family 25, model 17, {torch.backends.cpu.get_cpu_capability()}"
    assert processor_kind(root=tmp_path) == kind
    assert processor_kind(torch.device("cpu"), tmp_path) == kind


def test_a_run_on_a_gpu_names_the_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU {device.index}")
    assert processor_kind(torch.device("cuda", 1)) == "GPU 1"


def test_a_result_has_the_numbers_that_eval_wrote(made):
    results, done, result = made
    folder = results.run(done).path / "eval"
    for evaluation, name in zip(result.evaluations, ("clean", "fog-10images"), strict=True):
        written = json.loads((folder / f"{name}.json").read_text())
        assert result.temperatures == written["temperatures"]
        assert evaluation.notes == written["notes"]
        for row, theirs in zip(evaluation.rows, written["rows"], strict=True):
            assert [row.on, row.severity, row.count] == [theirs[key] for key in ("on", "severity", "count")]
            for metric in KEPT:
                assert row.value(metric) == round(theirs["figures"][metric]["value"], 6)
                for at in ("T", "TA"):  # a network this small may have no temperature of lowest NLL
                    scaled = theirs["scaled"].get(at)
                    expected = None if scaled is None else round(scaled[metric]["value"], 6)
                    assert row.value(f"{metric} {at}") == expected


def test_a_result_says_what_it_is_of(made):
    results, done, result = made
    run = results.run(done)
    assert result.validation == run.epochs()[-1].validation
    assert result.recipe == done.recipe.as_dict()
    assert (result.name, result.seed, result.digest) == ("tiny-seed0", 0, done.digest)
    assert result.data.images == {"train": 60, "validation": 40, "test": 40}
    assert (result.data.name, result.data.checksum) == (run.facts().data.name, run.facts().data.checksum)
    assert result.labels == json.loads(run.table_file.read_text())["confidence"]
    assert result.labelled_images == 100
    assert result.measured == [{"on": "clean"}, {"on": "fog", "images": 10}]
    labels = [value for kind in result.labels.values() for value in kind]
    assert result.label_spread == pytest.approx(
        {"mean": sum(labels) / len(labels), "lowest": min(labels), "highest": max(labels)}, abs=1e-6
    )
    assert result == results.read(done)


def test_a_result_says_what_the_last_network_does_on_augmented_validation_images(made):
    """40 validation images, 20 draws of each: accuracy and NLL by hand, over the very views."""
    results, done, result = made
    network = network_of_run(results.run(done), [])
    right, nll = 0, 0.0
    images, labels = network.parts.validation.fetch(torch.arange(40)), network.parts.validation.labels
    for turn in range(20):
        generator = generator_for(0, "augmented/None", turn)
        view = network.augment(images / 255, labels, network.model, generator=generator)
        with torch.no_grad():
            scores = network.model.eval()(view.images).double().log_softmax(dim=1)
        right += int((scores.argmax(dim=1) == labels).sum())
        nll -= float(scores[torch.arange(40), labels].sum())
    seen = result.validation_augmented
    assert (seen["count"], seen["accuracy"]) == (800, right / 800)
    assert seen["nll"] == pytest.approx(nll / 800, rel=1e-5)
    assert set(seen) == {"count", "accuracy", "confidence", "ece", "debiased_ece", "nll", "brier"}


def test_a_job_without_measurements_says_so_too(tmp_path):
    """Choices of rho and alpha rest on it, and look at no test image."""
    result = Results(tmp_path / "results", tmp_path / "runs").perform(tiny())
    assert result.evaluations == []
    assert result.validation_augmented["count"] == 800
    assert set(result.temperatures) <= {"T", "TA"}


def test_a_corruption_is_made_once_for_all_jobs_on_the_same_images(made, there, monkeypatch):
    results, done, result = made
    kept = sorted(path.name for path in (results.runs / "corrupted").iterdir())
    assert [name.rpartition("-")[0] for name in kept] == [f"fog-{severity}" for severity in range(1, 6)]
    there.file(done).unlink()
    monkeypatch.setattr(corrupted.Made, "fetch", refuse)
    assert there.perform(done).evaluations == result.evaluations


@pytest.mark.parametrize(("given", "training", "measuring"), [(None, 2, None), (3, 3, 3), (0, 0, 0)])
def test_loader_workers_are_those_of_training_and_measuring_and_change_no_identity(
    given, training, measuring, tmp_path, monkeypatch
):
    seen = {}

    def spy(name, really, *words):
        seen[name] = words
        return really(*words)

    for name in ("train", "fit", "measure_network"):
        monkeypatch.setattr(job, name, partial(spy, name, getattr(job, name)))
    done = tiny(measured=MEASURED[:1])
    results = Results(tmp_path / "results", tmp_path / "runs")
    trouble = attempt(results, done, **Executor(loader_workers=given).per_run)
    assert trouble is None
    assert seen["train"][2].workers == training
    assert [seen["fit"][1].workers, seen["measure_network"][1].options.workers] == [measuring] * 2
    assert results.read(done) is not None


def test_several_processes_get_the_loader_workers_too(tmp_path, monkeypatch):
    def given(processes, recipe, run, typed, log):
        raise OSError(" ".join(typed))

    monkeypatch.setattr(job, "train_by_several", given)
    results = Results(tmp_path / "results", tmp_path / "runs")
    assert attempt(results, tiny(), processes=2, loader_workers=5) == "--workers=5"
    assert attempt(results, tiny(), processes=2) == ""


OLD_WORDS = {  # as they stood in the digests of results that are kept
    Measurement("clean"): "--on=clean --resamples=0",
    Measurement("corrupted", suite="paper", images=1000): (
        "--on=corrupted --suite=paper --images=1000 --resamples=0"
    ),
    Measurement("pgd", images=1000, epsilon=0.1): "--on=pgd --images=1000 --resamples=0 --epsilon=0.1",
    Measurement("pgd", epsilon=0.03): "--on=pgd --epsilon=0.03 --resamples=0",
    Measurement("corrupted", suite="standard"): "--on=corrupted --suite=standard --resamples=0",
    Measurement("fog", images=10): "--on=fog --images=10 --resamples=0",
    Measurement("my module:f"): "'--on=my module:f' --resamples=0",
}


def test_measurements_enter_the_digest_by_the_words_they_always_had():
    assert {each: each.words for each in OLD_WORDS} == OLD_WORDS
    copied = [Measurement("corrupted", suite="fog", copies=where) for where in ("here", "there")]
    assert digest_words(copied) == ["--on=corrupted --suite=fog --resamples=0 --copies"] * 2
    assert copied[0].as_dict() == {"on": "corrupted", "suite": "fog", "copies": True}
    both = [Measurement("clean", augmented=True), Measurement("fog", augmented=True)]
    plain = ["--on=clean --resamples=0", "--on=fog --resamples=0"]
    assert digest_words(both) == [*plain, *(f"{words} --temperature=augmented" for words in plain)]
    assert digest_words([Measurement("fog", severities=(1, 3))]) == [
        "--on=fog --resamples=0 --severities=1,3"
    ]


def test_a_measurement_asks_for_what_its_words_say():
    request = Measurement("corrupted", suite="fog,snow", images=7, severities=(1, 3)).request()
    assert [(each.on, each.severity) for each in request.conditions] == [
        ("fog", 1),
        ("fog", 3),
        ("snow", 1),
        ("snow", 3),
    ]
    assert (request.options.images, request.options.resamples) == (7, 0)
    assert Measurement("pgd", epsilon=0.1).request().attack.epsilon == 0.1


def test_a_result_of_version_1_is_read_in_the_form_of_today(tmp_path):
    """Its evaluation at TA joins the one at T, row by row, whatever their order."""
    names = ["accuracy", "confidence", "ece", "debiased_ece", "nll", "brier"]
    columns = ["on", "severity", "count", *names, *(f"scaled_{name}" for name in names)]
    fog = [["fog", s, 9, *[0.1 * s] * 6, *[0.2 * s] * 6] for s in (1, 2)]
    at_ta = [["fog", s, 9, *[0.1 * s] * 6, *[0.3 * s] * 6] for s in (2, 1)]
    old = {
        "format": "auglabel result, version 1",
        **{"recipe": {}, "validation": None, "views": None, "labels": {"rotate": [1.0, 0.7], "shear": [0.1]}},
        **{"name": "old", "digest": "0", "measured": [], "versions": {}, "seed": 0, "parameters": 1},
        "seconds": {"training": 1.0},
        "data": {"name": "", "checksum": "", "images": {"train": 1000, "validation": 500, "test": 7}},
        "evaluations": [
            {"words": "--on=fog --resamples=0", "temperature": 1.5, "columns": columns, "rows": fog},
            {
                **{"words": "--on=fog --resamples=0 --temperature=augmented", "temperature": 2.5},
                **{"columns": columns, "rows": at_ta},
            },
        ],
    }
    (tmp_path / "old.json").write_text(json.dumps(old))
    found = read_result(tmp_path / "old.json")
    (evaluation,) = found.evaluations
    for severity, row in zip((1, 2), evaluation.rows, strict=True):
        assert (row.on, row.severity, row.count) == ("fog", severity, 9)
        assert [row.value(f"ece{at}") for at in ("", " T", " TA")] == [n * severity for n in (0.1, 0.2, 0.3)]
    assert found.temperatures == {"T": 1.5, "TA": 2.5}
    assert found.labelled_images == 1500
    assert found.validation_augmented is None
    assert found.label_spread == {"mean": 0.6, "lowest": 0.1, "highest": 1.0}
    assert reading(found, "cece TA") == pytest.approx(0.45)
    assert reading(found, "caurc") is None


def test_views_are_every_test_image_in_every_bucket_of_another_augmentation(made):
    views = made[2].views
    assert {kind: len(part.ece) for kind, part in views.items()} == {"rotate": 10, "equalize": 1}
    assert views["rotate"].count == [40] * 10
    assert all(0 <= value <= 1 for part in views.values() for value in part.accuracy)


def test_a_result_that_is_there_is_not_made_again(made, monkeypatch):
    results, done, result = made
    before = results.file(done).stat().st_mtime_ns
    monkeypatch.setattr(job, "train", refuse)
    monkeypatch.setattr(job, "measure_network", refuse)
    assert results.perform(done) == result
    assert results.file(done).stat().st_mtime_ns == before


def test_a_run_that_was_trained_but_not_measured_is_only_measured(made, there, monkeypatch):
    _, done, result = made
    there.file(done).unlink()
    monkeypatch.setattr(job, "train", refuse)
    assert replace(there.perform(done), seconds=result.seconds) == result


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
    decides = [unusual, ["--on=clean --resamples=0"], ["randaug", {"operations": ["rotate"]}]]
    text = json.dumps(decides, sort_keys=True)
    done = Job("a", recipe, (Measurement("clean"),), Choice("randaug", {"operations": ["rotate"]}))
    assert done.digest == hashlib.sha256(text.encode()).hexdigest()[:8]


def test_the_digest_names_an_optimiser_that_is_not_sgd():
    recipe = read_recipe(None, ["--epochs=3", "--optimizer=adamw", "--betas=[0.9,0.95]"])
    unusual = {"epochs": 3, "data.name": "embedded", "model.name": "small", "augment.name": "randaug"}
    unusual |= {"labels.name": "one_hot", "schedule.name": "cosine"}
    unusual |= {"optimizer.name": "adamw", "optimizer.betas": [0.9, 0.95]}
    text = json.dumps([unusual, [], None], sort_keys=True)
    assert Job("a", recipe).digest == hashlib.sha256(text.encode()).hexdigest()[:8]


def test_the_digest_is_not_of_where_data_lie():
    here, elsewhere = (Job("a", read_recipe("cpu-cifar10", [f"--data.root={root}"])) for root in "xy")
    assert here.digest == elsewhere.digest
    assert "root" not in here.plain["data"]


def test_a_result_of_ccat_without_a_radius_is_of_another_recipe(tmp_path):
    results, now = Results(tmp_path), tiny(words=["--regime=ccat"])
    make_result(SimpleNamespace(results=results), now)
    assert results.read(now) is not None
    result = json.loads(results.file(now).read_text())
    assert result["recipe"]["labels"].pop("radius") == "drawn"
    del result["checksum"]
    results.file(now).write_text(json.dumps(result))
    with pytest.raises(ValueError, match=r"another version of its recipe, which had labels.radius largest"):
        results.read(now)


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
    ((row,),) = (evaluation.rows for evaluation in results.perform(done).evaluations)
    assert (row.on, row.severity, row.count) == ("clean", None, 40)


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


@pytest.mark.parametrize("entry", ["seed", "seconds", "versions", "data", "labelled_images", "temperatures"])
def test_a_result_that_lacks_an_entry_is_damaged(made, there, entry):
    found = json.loads(there.file(made[1]).read_text())
    del found["checksum"], found[entry]
    there.file(made[1]).write_text(json.dumps(found))
    with pytest.raises(ValueError, match=f"is damaged or of another version: it does not say {entry}"):
        there.read(made[1])


def test_what_is_written_of_a_result_is_what_was_read(made, tmp_path):
    results, done, result = made
    result.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == results.file(done).read_bytes()
    assert read_result(tmp_path / "again.json") == result


def test_the_cost_of_a_result_that_is_there_is_what_it_took(made, monkeypatch):
    results, done, result = made
    monkeypatch.setattr(forecast, "timings", refuse)
    told = forecast.forecast([done], results, 60)
    assert (told.hours, told.rough) == ([sum(result.seconds.values()) / 3600], False)


@pytest.fixture
def timed(monkeypatch):
    """Every job takes an hour per epoch; the names of those that are timed."""
    names = []

    def timings(jobs, limit, told):
        names.extend(job.name for job in jobs.values())
        return {
            kind: forecast.Timing(3600.0 * job.recipe.training.epochs, rough=False)
            for kind, job in jobs.items()
        }

    monkeypatch.setattr(forecast, "timings", timings)
    return names


def test_the_cost_of_other_seeds_is_found_out_once(tmp_path, timed):
    jobs = [replace(tiny(), recipe=tiny().recipe.changed("seed", seed)) for seed in range(3)]
    jobs.append(tiny(words=["--epochs=5"]))
    assert forecast.forecast(jobs, Results(tmp_path), 60).hours == [2, 2, 2, 5]
    assert len(timed) == 2


def test_labels_that_do_not_learn_cost_the_same_and_those_that_do_are_tried_apart(tmp_path, timed):
    regimes = (["randaug"], ["randaug_ls"], ["randaug", "--augment.m_max=4"], ["randaug_autolabel"])
    jobs = [tiny(words=[f"--regime={regime}", *more]) for regime, *more in regimes]
    forecast.forecast(jobs, Results(tmp_path), 60)
    assert len(timed) == 2


def test_an_epoch_of_a_few_steps_costs_something():
    """Three steps, fewer than are timed; and a hundred times the epochs about a hundred times that."""
    short, long = forecast.seconds_of(tiny()), forecast.seconds_of(tiny(words=["--epochs=200"]))
    assert short > 0
    assert 20 < long / short < 500


def test_a_radius_of_zero_is_kept_of_a_measurement():
    assert Measurement("pgd", epsilon=0.0).as_dict() == {"on": "pgd", "epsilon": 0.0}
