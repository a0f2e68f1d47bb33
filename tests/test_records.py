"""The records of a run: what is written is read again, older files too, and damaged ones are named."""

import json
from dataclasses import replace

import pytest
import torch
from made_runs import evaluation, make_run, row, write_evaluation

from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.checkpoint import Checkpoint
from auglabel.lab.runs.evaluations import evaluations_of, read_evaluation
from auglabel.lab.runs.records import (
    CheckpointFacts,
    DataFacts,
    Epoch,
    Resumed,
    RunFacts,
    SplitRows,
    TrainingState,
    seconds_by_part,
)
from auglabel.lab.runs.run import Run

DATA = DataFacts("digits", "abc", ["0", "1"], ["small"], [0.5], [0.2], [1, 8, 8], {"train": 9, "test": 3})
FACTS = RunFacts({"torch": "2"}, 7, DATA, 1234, "weights", 1, "cpu", 4)


def test_facts_are_read_as_they_were_written_in_the_order_of_before(tmp_path):
    FACTS.write(tmp_path / "run.json")
    assert RunFacts.read(tmp_path / "run.json") == FACTS
    found = json.loads((tmp_path / "run.json").read_text())
    assert list(found) == [
        *("format", "versions", "seed", "data", "parameters", "measured", "processes", "device", "threads"),
        "checksum",
    ]
    assert list(found["data"]) == [
        *("name", "checksum", "classes", "notes", "mean", "std", "shape", "images"),
    ]


def test_facts_of_an_older_version_lack_some(tmp_path):
    data = {"name": "digits", "checksum": "abc", "images": {"train": 9}}
    about = {"format": "auglabel run, version 1", "versions": {}, "seed": 0, "parameters": 2, "data": data}
    (tmp_path / "run.json").write_text(json.dumps({**about, "of a later version": 1}))
    found = RunFacts.read(tmp_path / "run.json")
    assert found == RunFacts({}, 0, DataFacts("digits", "abc", images={"train": 9}), 2)
    assert (found.device, found.data.shape, found.resumed) == (None, None, None)


def test_other_versions_are_recorded_where_a_run_goes_on(tmp_path):
    run = Run(tmp_path)
    run.record_facts(FACTS)
    assert "torch 2, now" in run.record_versions(3)
    ((epoch, versions),) = [(each.epoch, each.versions) for each in run.facts().resumed]
    assert (epoch, versions["torch"]) == (3, torch.__version__)
    assert run.facts().resumed == [Resumed(3, versions)]
    assert run.record_versions(4) == ""


def test_a_run_that_goes_on_with_another_processor_names_none(tmp_path):
    run = Run(tmp_path)
    run.record_facts(replace(FACTS, processor="Fast One"))
    run.record_processor("Fast One")
    assert run.facts().processor == "Fast One"
    run.record_processor("Another")
    assert run.facts().processor is None
    run.record_processor("Another")  # which trained only a part
    assert run.facts().processor is None


def test_an_epoch_is_one_line_without_what_it_does_not_say(tmp_path):
    run = Run(tmp_path)
    short = Epoch(epoch=1, loss=float("nan"))
    full = Epoch(
        epoch=2,
        step=8,
        learning_rate=0.1,
        loss=0.5,
        validation={"nll": None, "count": 4},
        confidence={"mean": 0.9},
        seconds={"calibrating": 1.0},
        images_per_second=3.0,
        calibration_share=0.25,
        cpu_seconds=5.0,
    )
    assert list(short.as_json()) == ["epoch", "loss"]
    for epoch in (short, full):
        run.record_epoch(epoch, {"rotate": [0.9]} if epoch is full else None)
    first, second = run.epochs()
    assert (first.epoch, first.loss == first.loss, first.validation) == (1, False, {})
    assert second == full
    assert run.history() == [(2, {"rotate": [0.9]})]
    run.forget_after(1)
    assert [epoch.epoch for epoch in run.epochs()] == [1]
    with pytest.raises(ValueError, match="holds no epoch yet"):
        run.history()


def test_seconds_add_up_by_part_and_are_left_out_where_one_epoch_lacks_them():
    timed = Epoch(epoch=1, loss=1, seconds={"calibrating": 0.5, "validating": 0.25}, images_per_second=3.0)
    assert seconds_by_part(FACTS, [timed, timed]) == {"training": 6.0, "calibrating": 1.0, "validating": 0.5}
    assert seconds_by_part(FACTS, [timed, Epoch(epoch=2, loss=1)]) == {}
    assert seconds_by_part(FACTS, [timed, Epoch(epoch=2, loss=1, images_per_second=0.0, seconds={})]) == {}


def test_a_split_is_read_as_it_was_written(tmp_path):
    rows = SplitRows(torch.arange(5), torch.arange(2), torch.tensor([9]))
    Run(tmp_path).record_split(rows)
    assert all(torch.equal(a, b) for a, b in zip(rows, Run(tmp_path).split(), strict=True))


def test_facts_of_a_checkpoint_are_read_as_they_were_written():
    facts = CheckpointFacts(
        TrainingState(epoch=2, batch=3, loss=1.5, images=9, best=0.5, training=4.0, calibrating=1.0, cpu=6.0),
        2,
        {"scale": 8.0},
        {"rank0": {"loss": 1.0, "images": 4}, "rank1": {"loss": 0.5, "images": 5}},
    )
    found = CheckpointFacts.read(json.loads(json.dumps(facts.as_json())))
    assert found == facts
    assert found.rank(1) == {"loss": 0.5, "images": 5}
    assert found.state.calibration_share == 0.2
    with pytest.raises(ValueError, match="it does not say rank2"):
        found.rank(2)


@pytest.mark.parametrize(
    ("change", "clause"),
    [({"epoch": "2"}, "epoch must be a whole number"), ({"surprise": 1}, "it has surprise")],
)
def test_strange_facts_of_a_checkpoint_are_named(change, clause):
    facts = CheckpointFacts(TrainingState(), 1).as_json() | change
    with pytest.raises(ValueError, match=clause):
        CheckpointFacts.read(facts)


def old_evaluation(notes):
    figures = {"ece": {"value": 0.1, "low": None, "high": None}}
    scaled = {"ece": {"value": 0.2, "low": None, "high": None}}
    row = {"on": "clean", "severity": None, "count": 9, "figures": figures, "scaled": scaled}
    mean = {"on": "corrupted", "pairs": 2, "figures": {"ece": 0.3}, "scaled": None}
    return {
        **{"format": "auglabel evaluation, version 1", "checkpoint": "last", "epoch": 1},
        **{"data": {"checksum": "abc"}, "temperature": 1.5, "notes": notes, "rows": [row], "means": [mean]},
    }


@pytest.mark.parametrize(
    ("notes", "at"), [([], "T"), (["The temperature was fitted on augmented validation images."], "TA")]
)
def test_an_evaluation_of_version_1_is_read_in_the_form_of_today(tmp_path, notes, at):
    (tmp_path / "old.json").write_text(json.dumps(old_evaluation(notes)))
    found = read_evaluation(tmp_path / "old.json")
    assert found.temperatures == {at: 1.5}
    assert found.rows[0].scaled == {at: {"ece": 0.2}}
    assert found.rows[0].values == {"ece": 0.1}
    assert (found.means[0].values, found.means[0].scaled) == ({"ece": 0.3}, {})


def test_an_evaluation_of_version_1_without_a_temperature_has_none(tmp_path):
    old = old_evaluation(["There are no validation images, so no temperature was fitted."])
    old["temperature"] = old["rows"][0]["scaled"] = None
    (tmp_path / "old.json").write_text(json.dumps(old))
    found = read_evaluation(tmp_path / "old.json")
    assert (found.temperatures, found.rows[0].scaled) == ({}, {})


def test_metrics_of_an_evaluation_are_read_by_name(tmp_path):
    run, both = make_run(tmp_path / "run"), row(0.8, 0.2)  # at T, half the ECE
    both["scaled"]["TA"] = both["figures"]
    file = write_evaluation(run, {"rows": [row(0.8, 0.2), both], "means": [], "epoch": 3})
    first, second = read_evaluation(file).rows
    names = ("ece", "ece T", "ece TA", "no such")
    assert [first.value(name) for name in names] == [0.2, 0.1, None, None]
    assert [second.value(name) for name in names] == [0.2, 0.1, 0.2, None]
    assert first.with_temperatures(second).value("ece TA") == 0.2
    assert first.bins.count == [6.0, 4.0]


def test_evaluations_of_another_epoch_are_left_out_with_a_note(tmp_path):
    run = Run(make_run(tmp_path / "run", evaluation=evaluation(0.8, 0.1)))
    found, notes = evaluations_of(run, 3, run.facts().data.checksum)
    assert (list(found), notes) == (["clean"], [])
    found, (note,) = evaluations_of(run, 4, run.facts().data.checksum)
    assert found == {}
    assert "it was measured after epoch 3, but the run is at 4" in note


def test_the_network_of_a_run_has_its_averaged_weights_and_those_of_the_best_checkpoint(tmp_path):
    recipe = read_recipe("embedded", ["--model.widths=[4,4,4]", "--split.train=40"])
    data, _ = data_for(recipe)
    run = Run(tmp_path / "run")
    run.begin(recipe)
    with pytest.raises(ValueError, match="has no checkpoint yet: auglabel train --resume"):
        run.network(recipe, data)
    plain = model_for(recipe, data).state_dict()
    named = {f"model.{name}": value for name, value in plain.items()}
    average = {f"average.module.{name}": value + 1 for name, value in plain.items()}
    run.save(4, Checkpoint(named, {"epoch": 1}), keep=2, best=True)
    run.save(8, Checkpoint(named | average, {"epoch": 2}), keep=2, best=False)
    last, best = run.network(recipe, data), run.network(recipe, data, "best")
    assert last[1].about == {"checkpoint": "last", "epoch": 2, "averaged": True}
    assert best[1].about == {"checkpoint": "best", "epoch": 1, "averaged": False}
    for name, value in plain.items():
        assert torch.equal(last[0].state_dict()[name], value + 1)
        assert torch.equal(best[0].state_dict()[name], value)
    other = read_recipe("embedded", ["--model.widths=[4,4,8]", "--split.train=40"])
    with pytest.raises(ValueError, match=r"the weights in .*run are of another network"):
        run.network(other, data)
