"""Two runs: the first learns labels and a temperature on held-out images, the second trains on everything."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from auglabel import RandAug, cli
from auglabel.errors import UserError
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.run import Run
from auglabel.lab.sweep.job import Job
from auglabel.lab.train.learned import Replay, labelled_images, replayed, tables_of
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.trainer import Trainer
from auglabel.table_file import save_table
from auglabel.util.checksummed_json import checksummed_line, parse_line, write_checksummed

SMALL = ["--split.train=80", "--split.validation=40", "--split.test=40", "--batch_size=20", "--tracker=none"]
SMALL += ["--model.widths=[8,16,16]", "--epochs=3"]
EVERYTHING = ["--split.train=120", "--split.validation=0"]


def train(out, *words):
    return cli.main(["train", "embedded", *SMALL, f"--out={out}", *words])


def run_of(out, *words):
    assert train(out, *words) == 0
    return Run(out)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("runs") / "first", "--regime=randaug_autolabel", "--alpha=0.5")


def replaying(run, *words):
    return ["--regime=randaug_autolabel", f"--labels.replay={run.path}", *words]


def trainer_for(*words):
    recipe = read_recipe("embedded", [word for word in [*SMALL, *words] if "tracker" not in word])
    return Trainer(recipe, *data_for(recipe), device="cpu")


def test_on_the_same_images_the_same_labels_make_the_same_weights(first, tmp_path):
    """What was calibrated on shifted nothing, so all that a replay could get wrong would show here."""
    run = run_of(tmp_path / "again", *replaying(first))
    assert run.tables_file.read_text() == first.tables_file.read_text()
    ours, theirs = run.weights().tensors, first.weights().tensors
    assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())
    assert len({str(table.confidence) for table in first.history()}) == 3


def test_everything_is_trained_on_and_nothing_is_held_out(first, tmp_path):
    run = run_of(tmp_path / "second", *replaying(first), *EVERYTHING)
    assert run.facts().data.images == {"train": 120, "validation": 0, "test": 40}
    assert run.facts().labelled_images == 120  # the same as the first run's
    assert first.facts().labelled_images == 120
    assert [line.validation for line in run.epochs()] == [{}, {}, {}]
    assert run.tables_file.read_text() == first.tables_file.read_text()


def test_labels_between_two_epochs_are_on_a_straight_line():
    tables = torch.tensor([[1.0, 1.0], [0.8, 0.9], [0.4, 0.7]])  # at the start, and after each of two epochs
    longer = Replay(10, tables, epochs=4)
    seen = [longer.table.tolist()]
    for epoch in range(1, 5):
        longer.go_to(epoch)
        seen.append(longer.table.tolist())
    expected = [[1.0, 1.0], [0.9, 0.95], [0.8, 0.9], [0.6, 0.8], [0.4, 0.7]]
    torch.testing.assert_close(torch.tensor(seen), torch.tensor(expected))
    shorter = Replay(10, tables, epochs=1)
    shorter.go_to(1)
    assert shorter.table.tolist() == tables[2].tolist()
    third = Replay(10, tables, epochs=3)
    third.go_to(2)  # after 4/3 epochs of the first run: a third of the way from 0.8 to 0.4
    torch.testing.assert_close(third.table, torch.tensor([0.8 - 0.4 / 3, 0.9 - 0.2 / 3]))


def test_a_longer_run_stopped_anywhere_ends_as_if_it_never_had(first):
    words = replaying(first, *EVERYTHING, "--epochs=5")
    whole = trainer_for(*words)
    finish(whole)
    for stop in (2, 3, 7, 14):
        one, other = trainer_for(*words), trainer_for(*words)
        finish(one, stop)
        restore(other, checkpoint_of(one), "x")
        finish(other)
        ours, theirs = checkpoint_of(other).tensors, checkpoint_of(whole).tensors
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], tensor) for key, tensor in theirs.items())


def finish(trainer, until=10**9):
    while trainer.state.epoch < trainer.recipe.training.epochs:
        for _ in trainer.epoch(lambda step: step >= until):
            pass
        if trainer.state.batch < trainer.per_epoch:
            return
        trainer.end_epoch()


def test_the_labels_of_each_epoch_are_those_that_the_first_run_trained_with(first):
    """Its tables.jsonl has them after each epoch, so the first epoch of both is one-hot."""
    trainer, used = trainer_for(*replaying(first, *EVERYTHING)), []
    for _ in range(3):
        used.append(trainer.table().clone())
        for _ in trainer.epoch(lambda step: False):
            pass
        trainer.end_epoch()
    grid = RandAug().grid
    kept = [[v for kind in grid.kinds for v in each.confidence[kind]] for each in first.history()]
    assert used[0].eq(1).all()
    assert [table.tolist() for table in used[1:]] == kept[:2]


def test_a_first_run_that_was_trained_again_makes_another_job(first, tmp_path):
    """Results of a sweep that replays it are then made again, not taken from before."""
    shutil.copytree(first.path, tmp_path / "run")

    def digest():
        return Job("second", read_recipe("embedded", replaying(Run(tmp_path / "run")))).digest

    before = digest()
    assert digest() == before
    shutil.rmtree(tmp_path / "run")
    run_of(tmp_path / "run", "--regime=randaug_autolabel", "--alpha=0.1")
    assert digest() != before
    Run(tmp_path / "run").tables_file.unlink()
    with pytest.raises(UserError, match=r"labels.replay: there is no .*tables.jsonl"):
        digest()


def test_a_first_run_that_began_with_a_table_is_replayed_from_it(tmp_path):
    grid = RandAug().grid
    save_table(tmp_path / "start.json", torch.full((82,), 0.75), grid)
    run = run_of(tmp_path / "run", "--alpha=0.5", f"--labels.start_table={tmp_path / 'start.json'}")
    assert tables_of(run, 10, grid)[0].tolist() == [0.75] * 82
    fixed = run_of(tmp_path / "fixed", "--labels=table", f"--labels.path={tmp_path / 'start.json'}")
    assert tables_of(fixed, 10, grid).tolist() == [[0.75] * 82] * 4


def test_labels_that_are_replayed_are_not_said_to_stay(first, tmp_path, capsys):
    run = run_of(tmp_path / "second", *replaying(first), "--give_back=0.4")
    said = capsys.readouterr().out
    assert "From epoch 2 of 3 on the 40 validation images are trained on too. Nothing is measured" in said
    assert "stay" not in said
    assert run.history()[0].confidence != run.history()[1].confidence != run.history()[2].confidence


def test_images_that_only_the_first_run_used_count_as_labelled(first, tmp_path):
    def labelled(*words):
        recipe = read_recipe("embedded", [word for word in [*SMALL, *words] if "tracker" not in word])
        return labelled_images(recipe, *data_for(recipe))

    assert labelled(*EVERYTHING) == 120
    assert labelled(*replaying(first), "--split.train=100", "--split.validation=0") == 120
    assert labelled(*replaying(first), "--split.train=130", "--split.validation=0") == 130
    one, other = (
        data_for(read_recipe("embedded", ["--split.train=80", "--split.validation=40", f"--seed={seed}"]))[1]
        for seed in (0, 1)
    )
    rows = {
        int(row) for parts in (one, other) for part in (parts.train, parts.validation) for row in part.rows
    }
    assert labelled(*replaying(first), "--seed=1") == len(rows) > 120


def test_runs_that_cannot_be_replayed_get_a_sentence(first, tmp_path, capsys):
    def complaint(run, *words):
        assert train(tmp_path / "second", *replaying(run), *EVERYTHING, *words) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert not (tmp_path / "second").exists()
        return said

    by_class = run_of(tmp_path / "by-class", "--labels=autolabel_by_class", "--labels.alpha=0.1")
    assert "was trained with autolabel_by_class, whose labels are not all in a table." in complaint(by_class)
    plain = run_of(tmp_path / "plain", "--regime=randaug")
    assert f"{plain.path} has no label table to replay: it was trained with one_hot, " in complaint(plain)
    assert "has labels for other distances: " in complaint(first, "--augment.m_max=3")
    assert "is not a run: it has no recipe.yaml." in complaint(Run(tmp_path / "nowhere"))
    unfinished = run_of(tmp_path / "unfinished", "--regime=randaug_autolabel", "--max-steps=3")
    assert "is not finished, so its labels cannot be replayed: auglabel train --resume" in complaint(
        unfinished
    )
    with pytest.raises(ValueError, match="was trained on 10 classes, but this run has 7"):
        tables_of(first, 7, RandAug().grid)
    assert train(tmp_path / "second", "--regime=randaug", f"--labels.replay={first.path}") == 1
    assert 'labels has no option "replay" for one_hot' in capsys.readouterr().err


def test_what_a_replay_would_ignore_is_refused(first, tmp_path, capsys):
    for words, told in (
        (["--labels.alpha=0.5"], r"^--labels.alpha: a replay learns no labels, .* got 0\.5\.$"),
        (["--labels.start_table=a.json"], r"^--labels.start_table: a replay begins .* a\.json\.$"),
    ):
        with pytest.raises(ValueError, match=told):
            read_recipe("embedded", replaying(first, *words))
    second = run_of(tmp_path / "second", *replaying(first))
    capsys.readouterr()
    assert train(tmp_path / "third", *replaying(second)) == 1
    told = f"{second.path} has learned no labels: it replays {first.path}, so name that run.\n"
    assert capsys.readouterr().err.endswith(told)


def test_an_option_replay_of_a_policy_of_the_user_s_own_names_no_run(first):
    recipe = read_recipe("embedded", replaying(first))
    assert replayed(recipe).path == first.path
    own = recipe.labels._replace(name="mine:policy")
    assert replayed(replace(recipe, labels=own)) is None


def test_a_shared_run_does_not_say_where_its_first_run_lies(first, tmp_path):
    run = run_of(tmp_path / "second", *replaying(first), *EVERYTHING)
    assert cli.main(["share", str(run.path), str(tmp_path / "shared")]) == 0
    assert str(first.path) not in (tmp_path / "shared" / "config.json").read_text()
    assert "replay" not in json.loads((tmp_path / "shared" / "config.json").read_text())["labels"]


def evaluation(run, *first):
    """What `auglabel eval` finds of `run`: at its own temperatures, or at those of the `first` run."""
    words = [f"--temperature={other.path}" for other in first]
    assert cli.main(["eval", str(run.path), "--resamples=0", *words]) == 0
    stem = "-".join(["clean", *(f"temperature_{other.path.name}" for other in first)])
    return json.loads((run.path / "eval" / f"{stem}.json").read_text())


def test_a_run_without_held_out_images_is_measured_at_the_temperature_of_another(first, tmp_path, capsys):
    run = run_of(tmp_path / "second", "--regime=randaug", *EVERYTHING)
    assert evaluation(run)["temperatures"] == {}
    theirs = evaluation(first)
    found = evaluation(run, first)
    assert found["temperatures"] == theirs["temperatures"]
    assert found["temperatures"].keys() == {"T", "TA"}
    assert found["temperature_from"] == str(first.path)
    assert theirs["temperature_from"] is None
    (row,) = found["rows"]
    assert row["scaled"]["T"]["accuracy"]["value"] == row["figures"]["accuracy"]["value"]
    assert row["scaled"]["T"]["nll"]["value"] != row["figures"]["nll"]["value"]
    told = f"The temperatures are those of {first.path}, fitted on its 40 validation images."
    assert told in found["notes"]
    assert cli.main(["share", str(run.path), str(tmp_path / "shared")]) == 0
    config = json.loads((tmp_path / "shared" / "config.json").read_text())
    assert config["temperature"] == theirs["temperatures"]["T"]
    assert cli.main(["report", str(run.path), f"--out={tmp_path / 'page.html'}"]) == 0


def test_a_temperature_of_its_own_comes_before_that_of_another_run(first, tmp_path):
    run = run_of(tmp_path / "own", "--regime=randaug")
    evaluation(run, first)  # whose file comes first by its name
    own = evaluation(run)["temperatures"]["T"]
    assert cli.main(["share", str(run.path), str(tmp_path / "shared")]) == 0
    assert json.loads((tmp_path / "shared" / "config.json").read_text())["temperature"] == own


@pytest.mark.parametrize("of", ["nothing", "everything", "other images"])
def test_a_run_that_has_no_temperature_to_give_gets_a_sentence(of, first, tmp_path, capsys):
    run = run_of(tmp_path / "run", "--regime=randaug", *EVERYTHING)
    given, told = {
        "nothing": ("runs/none", r"temperature must be both, clean, augmented or a run .*, got runs/none, "),
        "everything": (str(run.path), r"has no temperature to take\. There are no validation images"),
        "other images": (str(tmp_path / "other"), r"was trained on other images, so its temperature"),
    }[of]
    if of == "other images":
        draw = np.random.default_rng(0)
        images, labels = draw.integers(0, 256, (90, 28, 28), dtype=np.uint8), np.arange(90) % 10
        np.savez(tmp_path / "set.npz", images=images, labels=labels)
        words = ["--data=npz", f"--data.path={tmp_path / 'set.npz'}", "--regime=randaug", "--split.train=30"]
        run_of(tmp_path / "other", *words, "--split.validation=20", "--split.test=20")
    assert cli.main(["eval", str(run.path), "--resamples=0", f"--temperature={given}"]) == 1
    said = capsys.readouterr().err
    assert re.search(told, said), said
    assert said.count("\n") == 1


def test_test_images_that_the_first_run_learned_from_are_refused(tmp_path, capsys):
    """Data without a test part of their own: another seed draws other test images."""
    images = np.random.default_rng(0).integers(0, 256, (90, 28, 28), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", images=images, labels=np.arange(90) % 10)
    words = ["--data=npz", f"--data.path={tmp_path / 'set.npz'}", "--split.train=30", "--split.test=20"]
    first = run_of(tmp_path / "first", *words, "--regime=randaug_autolabel", "--split.validation=20")
    plain = run_of(tmp_path / "plain", *words, "--regime=randaug", "--split.validation=0", "--seed=1")
    rows, tested = first.split(), set(plain.split().test.tolist())
    seen = len(tested & {*rows.train.tolist(), *rows.validation.tolist()})
    told = f"{first.path} has learned from {seen} of this run's 20 test images: give both runs the same --sp"
    capsys.readouterr()
    assert seen > 0
    assert cli.main(["eval", str(plain.path), "--resamples=0", f"--temperature={first.path}"]) == 1
    assert told in capsys.readouterr().err
    words += ["--split.validation=0"]
    assert train(tmp_path / "second", *words, *replaying(first), "--seed=1") == 1
    assert told in capsys.readouterr().err
    assert train(tmp_path / "second", *words, *replaying(first)) == 0


def test_validation_images_of_the_test_part_are_not_tested_on_either(tmp_path):
    words = ["--split.validation_from=test", "--regime=randaug_autolabel"]
    first = run_of(tmp_path / "first", *words, "--split.seed=3")
    with pytest.raises(ValueError, match=r"has learned from 40 of this run's 40 test images"):
        trainer_for(*words, *replaying(first), "--split.seed=3", "--split.validation=0")
    trainer_for(*words, *replaying(first), "--split.seed=3", "--seed=5")


def test_a_run_of_before_reads_as_before(first, tmp_path):
    """run.json without the number of labelled images, metrics.jsonl without those of an epoch."""
    shutil.copytree(first.path, tmp_path / "old")
    old = Run(tmp_path / "old")
    facts = json.loads(old.facts_file.read_text())
    lines = [parse_line(line) for line in old.metrics_file.read_text().splitlines()]
    for each, newer in ((facts, "labelled_images"), *((line, "images") for line in lines)):
        del each[newer]
    write_checksummed(old.facts_file, facts)
    old.metrics_file.write_text("".join(f"{checksummed_line(line)}\n" for line in lines))
    assert old.facts().labelled_images is None
    assert old.epochs()[0].images is None
    assert evaluation(old)["temperatures"] == evaluation(first)["temperatures"]
    run = run_of(tmp_path / "second", *replaying(old), *EVERYTHING)
    assert run.tables_file.read_text() == first.tables_file.read_text()
