"""Validation images that join the training images: which are seen when, and what is no longer measured."""

import json
import re
from multiprocessing import active_children

import pytest
import torch
import torch.nn.functional as F
from train_by_steps import train

from auglabel import AutoLabel, RandAug, cli
from auglabel.augment.clean import crop_and_flip
from auglabel.lab.parts.schedules import cosine
from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.checkpoint import load_checkpoint
from auglabel.lab.runs.run import Run
from auglabel.lab.share.sharing import load_shared
from auglabel.lab.sweep import forecast
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.trainer import Trainer
from auglabel.measure import calibrate

SMALL = ["--split.train=150", "--split.validation=60", "--split.test=40", "--batch_size=40"]
# 3 epochs: two of 4 steps on 150 images, then one of 6 on 210
BACK = ["--epochs=3", "--give_back=0.7", "--model.widths=[4,4,4]"]
REGIMES = {
    "autolabel": ["--regime=randaug_autolabel", "--alpha=0.3"],
    "one-hot": ["--regime=randaug"],
    "smooth": ["--regime=randaug_ls", "--ema=0.9"],
    "averaged": ["--regime=augmix_autolabel", "--alpha=0.3", "--ema=0.9"],
    "auto": ["--regime=randaug_autolabel", "--alpha=auto"],
    "by class": ["--labels=autolabel_by_class", "--labels.alpha=0.3"],
    "self-distilled": ["--labels=self_distilled", "--labels.alpha=0.3", "--ema=0.9"],
    "mixup": ["--regime=mixup_autolabel", "--alpha=0.3", "--split.validation=61"],
}


def trainer_for(*words):
    recipe = read_recipe("embedded", [*SMALL, *BACK, *words])
    return Trainer(recipe, *data_for(recipe), device="cpu")


def test_each_epoch_sees_the_images_of_a_hand_made_list():
    trainer = trainer_for("--regime=randaug_autolabel")
    parts = trainer.parts
    source, seen = parts.train.source, []
    fetch = source.fetch
    source.fetch = lambda rows, draw=None: seen.append(rows.tolist()) or fetch(rows, draw)

    def expected(rows, epoch):
        order = torch.randperm(len(rows), generator=generator_for(0, "order", epoch))
        return [rows[some].tolist() for some in order.split(40)]

    for epoch in range(3):
        seen.clear()
        for _ in trainer.epoch(lambda step: False):
            pass
        rows = parts.train.rows if epoch < 2 else torch.cat([parts.train.rows, parts.validation.rows])
        assert seen == expected(rows, epoch)
        assert len({row for batch in seen for row in batch}) == (150, 150, 210)[epoch]
        seen.clear()
        assert trainer.end_epoch().images == (150, 150, 210)[epoch]
        # calibration visits and a measurement as they are; then nothing
        assert sorted({row for batch in seen for row in batch}) == (
            sorted(parts.validation.rows.tolist()) if epoch < 2 else []
        )


def test_worker_processes_of_images_held_out_end_when_these_are_given_back():
    recipe = read_recipe("embedded", [*SMALL, *BACK, "--regime=randaug_autolabel"])
    data, parts = data_for(recipe)
    for source in (parts.train.source, parts.train, parts.validation):
        source.streams = True  # as are images that are decoded when they are needed
    trainer, counts, others = Trainer(recipe, data, parts, device="cpu", workers=1), [], active_children()
    for _ in range(3):
        for _ in trainer.epoch(lambda step: False):
            pass
        trainer.end_epoch()
        counts.append(len(set(active_children()) - set(others)))
    assert counts == [2, 2, 1]  # one for training and one for validation images; then one for all


def test_the_loop_does_what_a_plain_loop_does_to_the_bit():
    trainer = trainer_for("--regime=randaug_autolabel", "--alpha=0.3", "--calibrate.rule=exact")
    records = train(trainer)

    recipe, parts = trainer.recipe, trainer.parts
    model = model_for(recipe, data_for(recipe)[0])
    augment, policy = RandAug(), AutoLabel(10, 82, alpha=0.3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    rows, labels = parts.train.rows, parts.train.source.labels
    step, tables = 0, []
    for epoch in range(3):
        if epoch == 2:
            rows = torch.cat([rows, parts.validation.rows])
        model.train()
        for some in torch.randperm(len(rows), generator=generator_for(0, "order", epoch)).split(40):
            generator = generator_for(0, "augment", step)
            images = crop_and_flip(
                parts.train.source.images[rows[some]], trainer.prepare.pad, trainer.prepare.flip, generator
            )
            view = augment(images, labels[rows[some]], dtype=torch.float32, generator=generator)
            optimizer.param_groups[0]["lr"] = 0.1 * cosine(step, 4 + 4 + 6, 0.1)
            optimizer.zero_grad()
            F.cross_entropy(model(view.images), policy(view)).backward()
            optimizer.step()
            step += 1
        if epoch < 2:
            batch = [(parts.validation.fetch(torch.arange(60)), parts.validation.labels)]
            policy.update(calibrate(model, augment, batch, generator=generator_for(0, "calibrate", epoch)))
        tables.append(policy.table.clone())
    assert torch.equal(trainer.table(), tables[1])  # learned before the first step on a validation image
    assert not torch.equal(tables[0], tables[1])
    for name, value in model.state_dict().items():
        assert torch.equal(trainer.plain.state_dict()[name], value), name
    assert [record["step"] for record in records] == [4, 8, 14]
    assert records[-1]["learning_rate"] == pytest.approx(0.1 * cosine(13, 14, 0.1))
    assert ["validation" in record for record in records] == [True, True, False]


@pytest.mark.parametrize("name", REGIMES)
def test_a_run_stopped_before_at_or_after_the_switch_ends_as_if_it_never_had(name):
    whole = trainer_for(*REGIMES[name])
    expected = train(whole)
    assert whole.steps == 4 + 4 + 6
    for stop in (1, 7, 8, 9, 13):
        first, second = trainer_for(*REGIMES[name]), trainer_for(*REGIMES[name])
        records = train(first, until=stop)
        assert first.step == stop
        restore(second, checkpoint_of(first), "x")
        assert second.step == stop
        assert records + train(second) == expected
        require_equal(second, whole)


def test_a_run_stopped_between_its_last_held_out_step_and_the_end_of_that_epoch_learns_from_it():
    words = REGIMES["averaged"]
    whole, first, second = trainer_for(*words), trainer_for(*words), trainer_for(*words)
    expected = train(whole)
    train(first, until=4)
    assert len(list(first.epoch(lambda step: False))) == 4
    restore(second, checkpoint_of(first), "x")
    assert (second.state.epoch, second.state.batch) == (1, 4)
    assert train(second) == expected[1:]
    require_equal(second, whole)


def require_equal(one, other):
    ours, theirs = checkpoint_of(one).tensors, checkpoint_of(other).tensors
    assert ours.keys() == theirs.keys()
    for key, tensor in theirs.items():
        assert torch.equal(ours[key], tensor), key
    assert torch.equal(one.learned.updates, other.learned.updates) or not one.learned.policy.adaptive


def test_a_checkpoint_with_more_steps_than_its_epoch_has_is_refused():
    """The last epoch has 6, but the one before it has 4."""
    trainer, other = trainer_for("--regime=randaug"), trainer_for("--regime=randaug")
    train(trainer, until=13)
    checkpoint = checkpoint_of(trainer)
    assert (checkpoint.facts["epoch"], checkpoint.facts["batch"]) == (2, 5)
    restore(other, checkpoint, "x")
    checkpoint.facts["epoch"] = 1
    with pytest.raises(ValueError, match="batch cannot be 5"):
        restore(other, checkpoint, "x")


def test_alpha_auto_is_told_of_the_epochs_in_which_labels_are_learned():
    assert trainer_for("--alpha=auto").learned.policy.auto.epochs == 2
    assert trainer_for("--alpha=auto", "--give_back=null").learned.policy.auto.epochs == 3


def test_before_the_switch_nothing_is_changed_but_the_length_of_the_schedule():
    level = ["--alpha=0.3", "--schedule=steps", "--schedule.warmup=0", "--schedule.drops=[]"]
    back, plain = trainer_for(*level), trainer_for(*level, "--give_back=null")
    assert train(back, until=8) == train(plain, until=8)
    require_equal(back, plain)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--give_back=0"], r"--give_back: give_back must leave an epoch before .* but 0\.0 is 0 of 3\."),
        (["--give_back=1"], r"but 1\.0 is 3 of 3\. The usual value is 0\.7\."),
        (["--give_back=0.1"], r"but 0\.1 is 0 of 3\."),
        (["--give_back=0.7", "--epochs=1"], r"but 0\.7 is 1 of 1\."),
        (["--give_back=-0.5"], r"give_back must be .*-0\.5"),
        (["--give_back=half"], r"give_back must be a number or null, got half"),
        (["--split.validation=0", "--regime=randaug"], r"give_back needs validation images to train on, but"),
    ],
)
def test_a_wrong_value_is_one_sentence(words, complaint, tmp_path, capsys):
    assert cli.main(["train", "embedded", *SMALL, *BACK, *words, f"--out={tmp_path / 'run'}"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(complaint, said), said
    assert not (tmp_path / "run").exists()


def test_validation_images_of_the_test_part_are_not_trained_on():
    with pytest.raises(ValueError, match=r'test part cannot be trained on.* use validation_from "train"'):
        trainer_for("--split.validation_from=test", "--split.test=40")


def test_a_share_is_rounded_to_the_nearest_epoch():
    def held_out(share, epochs):
        recipe = read_recipe("embedded", [f"--give_back={share}", f"--epochs={epochs}"])
        return recipe.training.held_out_epochs

    assert [held_out(0.7, epochs) for epochs in (2, 3, 10, 20, 36)] == [1, 2, 7, 14, 25]
    assert read_recipe("embedded", ["--epochs=9"]).training.held_out_epochs == 9


def test_a_forecast_counts_longer_epochs_and_measures_while_images_are_held_out(monkeypatch):
    monkeypatch.setattr(forecast, "_train", lambda trainer, steps: 1.0 * steps)
    monkeypatch.setattr(forecast, "_prediction", lambda trainer: 1.0)
    job = Job("x", read_recipe("embedded", [*SMALL, *BACK, "--regime=randaug"]), (Measurement(),))
    assert list(forecast._parts(job)) == [14, 60 * 2, 40]
    held = Job("x", job.recipe.changed("give_back", None), (Measurement(),))
    assert list(forecast._parts(held)) == [12, 60 * 3, 60 + 5000, 40]
    learned = Job("x", read_recipe("embedded", [*SMALL, *BACK]))
    ticks = iter(range(100))
    monkeypatch.setattr(forecast.time, "process_time", lambda: next(ticks))
    assert list(forecast._parts(learned))[1] == 1 * (60 / 60) * 2  # a second for all 60, in two epochs


def run_of(out, *words):
    assert cli.main(["train", "embedded", *SMALL, *BACK, *words, f"--out={out}", "--tracker=none"]) == 0
    return Run(out)


@pytest.fixture(scope="module")
def back(tmp_path_factory):
    return run_of(tmp_path_factory.mktemp("runs") / "back", "--regime=randaug_autolabel", "--alpha=0.3")


def test_a_run_says_when_images_join_and_which_weights_are_best(tmp_path, capsys):
    run = run_of(tmp_path / "run", "--regime=randaug_ls")
    said = capsys.readouterr().out
    assert "From epoch 3 of 3 on the 60 validation images are trained on too" in said
    assert "the best checkpoint is the last epoch's, and auglabel eval fits no temperature." in said
    assert "epoch 3/3  loss" in said
    assert [bool(line.validation) for line in run.epochs()] == [True, True, False]
    assert [line.images for line in run.epochs()] == [150, 150, 210]
    assert load_checkpoint(run.best_file).facts["epoch"] == 3
    assert run.facts().labelled_images == 210
    assert run_of(tmp_path / "plain", "--regime=randaug", "--give_back=null").facts().labelled_images == 210
    assert "are trained on too" not in capsys.readouterr().out


def test_the_labels_on_disk_stay_from_the_switch_on(back):
    first, second, third = (table.confidence for table in back.history())
    assert first != second
    assert second == third


def test_no_temperature_is_fitted_on_images_that_were_trained_on(back, capsys):
    words = ["--resamples=0", "--images=20"]
    assert cli.main(["eval", str(back.path), *words]) == 0
    told = "No temperature was fitted: the run was trained on its validation images too."
    assert told in " ".join(capsys.readouterr().out.split())
    found = json.loads((back.path / "eval" / "clean-20images.json").read_text())
    assert found["temperatures"] == {}
    assert found["rows"][0]["scaled"] == {}
    for choice in ("clean", "augmented"):
        assert cli.main(["eval", str(back.path), *words, f"--temperature={choice}"]) == 0
        assert told in " ".join(capsys.readouterr().out.split())


def test_weights_of_before_the_switch_get_their_temperature(tmp_path, capsys):
    words = ["--regime=randaug", "--max-steps=8"]
    run = run_of(tmp_path / "run", *words)
    assert cli.main(["eval", str(run.path), "--resamples=0", "--images=20"]) == 0
    assert json.loads((run.path / "eval" / "clean-20images.json").read_text())["temperatures"].keys() == {
        "T",
        "TA",
    }
    assert cli.main(["train", "--resume", f"--out={run.path}", "--max-steps=9", "--tracker=none"]) == 0
    assert cli.main(["eval", str(run.path), "--resamples=0", "--images=20"]) == 0
    assert json.loads((run.path / "eval" / "clean-20images.json").read_text())["temperatures"] == {}


def test_audit_share_and_report_know_that_nothing_was_held_out(back, tmp_path, capsys):
    assert cli.main(["audit", str(back.path)]) == 1
    assert "was trained on its validation images too: audit it with --part test." in capsys.readouterr().err
    assert cli.main(["audit", str(back.path), "--part=test", "--images=20"]) == 0
    assert cli.main(["share", str(back.path), str(tmp_path / "shared")]) == 0
    card = (tmp_path / "shared" / "README.md").read_text()
    assert "No temperature was fitted: the validation images were trained on, too." in card
    joined = "joined by 60 validation images after 70% of the epochs, with"
    assert f"on 150 images of embedded Fashion-MNIST, {joined}" in card
    assert load_shared(tmp_path / "shared").temperature == 1
    assert cli.main(["eval", str(back.path), "--resamples=0", "--images=20"]) == 0
    assert cli.main(["report", str(back.path), f"--out={tmp_path / 'page.html'}"]) == 0
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_job_leaves_a_result_without_temperatures(tmp_path):
    recipe = read_recipe("embedded", [*SMALL, *BACK, "--regime=randaug"])
    result = Results(tmp_path, tmp_path / "runs").perform(Job("x", recipe, (Measurement(images=20),)))
    assert result.validation is None
    assert result.validation_augmented is None
    assert result.temperatures == {}
    assert result.labelled_images == 210
    (row,) = result.evaluations[0].rows
    assert row.value("ece T") is None
    assert row.value("ece") is not None
    assert Job("x", recipe).digest != Job("x", recipe.changed("give_back", None)).digest
