"""The training loop: against a plain one, against itself interrupted, against its own promises."""

import copy
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from train_by_steps import train

from auglabel.augment.clean import crop_and_flip
from auglabel.augment.randaug import RandAug
from auglabel.lab.parts.schedules import cosine
from auglabel.lab.recipe.build import data_for, model_for, optimizer_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.train import saving
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.trainer import Diverged, Trainer
from auglabel.measure import calibrate

SMALL = ["--split.train=150", "--split.validation=60", "--split.test=40", "--epochs=3", "--batch_size=40"]


def recipe_for(*words):
    return read_recipe("embedded", [*SMALL, *words])


def trainer_for(*words):
    recipe = recipe_for(*words)
    return Trainer(recipe, *data_for(recipe), device="cpu")


def neighbourhood(levels):
    """1 for a bucket itself, one half for the levels next to it, a quarter for those after, ..."""
    apart = (torch.arange(levels)[:, None] - torch.arange(levels)).abs()
    return 0.5 ** apart.double()


def pooled_step(memory, seen, neighbours, table):
    """What is remembered of count, confidence and correct; the gap of each bucket, and its accuracy."""
    memory = 0.3 * memory + seen.sums[:3].sum(dim=2)
    own, sure, right = memory
    share = (right + 1) / (own + 2)
    most = 0.7 * (share * (1 - share) / own).sqrt()

    def limited(figure, weights):
        mean = weights @ figure / (weights @ own)
        return mean.clamp(figure / own - most, figure / own + most)

    count = neighbours @ own
    trust = count / (count + 20)
    accuracy = limited(right, neighbours) * trust
    lends = ((table < 1) & (table.double() > accuracy + 1e-6)).double()
    gap = limited(sure - right, neighbours * torch.maximum(lends, torch.eye(len(own)))) * trust
    return memory, gap, accuracy


def exact_step(memory, seen, neighbours, table):
    count, sure, right = seen.sums[:3]
    ece = (sure - right).abs().sum(dim=1) / count.sum(dim=1)
    step = ece * torch.sign(sure.sum(dim=1) - right.sum(dim=1))
    return memory, step, right.sum(dim=1) / count.sum(dim=1)


@pytest.mark.parametrize(("rule", "step_of"), [("pooled", pooled_step), ("exact", exact_step)])
def test_the_loop_does_what_a_plain_loop_does_to_the_bit(rule, step_of):
    words = [f"--calibrate.rule={rule}", "--calibrate.bins=4", "--calibrate.memory=0.3", "--epochs=2"]
    words += ["--regime=randaug_autolabel", "--alpha=0.3", "--prepare.flip=true", "--prepare.pad=2"]
    recipe = recipe_for(*words)
    data, parts = data_for(recipe)
    trainer = Trainer(recipe, data, parts, device="cpu")
    records = train(trainer)

    model = model_for(recipe, data)
    augment, table = RandAug(), torch.ones(82)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    memory, step = torch.zeros(3, 82, dtype=torch.float64), 0
    neighbours = torch.block_diag(*(neighbourhood(levels) for levels in augment.grid.levels))
    for epoch in range(2):
        model.train()
        order = torch.randperm(150, generator=generator_for(0, "order", epoch))
        for rows in order.split(40):
            generator = generator_for(0, "augment", step)
            images, labels = parts.train.fetch(rows), parts.train.labels[rows]
            images = crop_and_flip(images, 2, True, generator)
            view = augment(images, labels, dtype=torch.float32, generator=generator)
            sure = table[view.bucket][:, None]
            others = torch.ones(len(rows), 10).scatter(1, labels[:, None], 0.0)
            targets = sure * (1 - others) + (1 - sure) / 9 * others
            optimizer.param_groups[0]["lr"] = 0.1 * cosine(step, 8, 0.1)
            optimizer.zero_grad()
            F.cross_entropy(model(view.images), targets).backward()
            optimizer.step()
            step += 1
        batch = [(parts.validation.fetch(torch.arange(60)), parts.validation.labels)]
        drawn = generator_for(0, "calibrate", epoch)
        few = {"visits": 2, "turn": epoch} if rule == "pooled" else {}
        seen = calibrate(model, augment, batch, bins=4, generator=drawn, **few)
        memory, gap, accuracy = step_of(memory, seen, neighbours, table)
        table = torch.maximum(table.double() - 0.3 * gap, accuracy).clamp(max=1).float()
    torch.testing.assert_close(trainer.table(), table)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(trainer.plain.state_dict()[name], value, rtol=1e-5, atol=1e-6)
    assert [record["step"] for record in records] == [4, 8]
    assert table.unique().numel() > 40


def test_as_many_visits_as_buckets_are_enough():
    trainer = trainer_for("--regime=mixup_autolabel", "--calibrate.visits=50", "--epochs=1")
    train(trainer)
    assert trainer.learned.pool.sums[0].tolist() == [60] * 5


def test_it_takes_several_epochs_to_see_all_buckets_only_where_few_images_visit_them():
    def epochs(*words):
        trainer = trainer_for(*words)
        return trainer.learned.updates_to_see_all(len(trainer.parts.validation))

    few = ["--split.validation=10"]
    assert epochs("--regime=randaug_autolabel", *few) == 5
    assert epochs("--regime=randaug_autolabel") == 1
    assert epochs("--regime=randaug_autolabel", "--calibrate.rule=exact", *few) == 1
    assert epochs("--regime=randaug", *few) == 0


REGIMES = {
    "autolabel": ["--regime=randaug_autolabel", "--alpha=0.3"],
    "auto": ["--regime=randaug_autolabel"],
    "averaged": ["--regime=augmix_autolabel", "--alpha=0.3", "--ema=0.9", "--clip=1", "--calibrate.visits=2"],
    "dropout": ["--model=tests.networks:with_dropout", "--regime=mixup", "--calibrate.visits=2"],
    "attacked": ["--regime=at_autolabel", "--augment.steps=2", "--calibrate.visits=1", "--split.train=80"],
    "consistent": ["--regime=augmix_js"],
    "adamw": ["--regime=randaug_autolabel", "--alpha=0.3", "--optimizer=adamw"],
    "focal": ["--regime=wide_crop_autolabel", "--alpha=0.3", "--loss=focal", "--gamma=2"],
    "weighted": ["--regime=erasing_soft"],
    "by class": ["--regime=randaug", "--labels=autolabel_by_class", "--alpha=0.3"],
    "self-distilled": ["--regime=randaug", "--labels=self_distilled", "--alpha=0.3", "--ema=0.8"],
    "trades": ["--regime=trades", "--augment.steps=2", "--calibrate.visits=1", "--split.train=80"],
}


def test_a_run_tells_auto_how_many_epochs_it_has():
    assert trainer_for("--regime=randaug_autolabel", "--epochs=7").learned.policy.auto.epochs == 7


@pytest.mark.parametrize("name", REGIMES)
def test_a_run_stopped_anywhere_ends_as_if_it_never_had(name, monkeypatch):
    monkeypatch.syspath_prepend(".")
    words = REGIMES[name]
    whole = trainer_for(*words)
    expected = train(whole)
    for stop in (1, 3, 4, 6):
        first = trainer_for(*words)
        records = train(first, until=stop)
        second = trainer_for(*words)
        restore(second, checkpoint_of(first), "x")
        records += train(second)
        assert records == expected
        ours, theirs = checkpoint_of(second), checkpoint_of(whole)
        assert ours.tensors.keys() == theirs.tensors.keys()
        for key, tensor in theirs.tensors.items():
            assert torch.equal(ours.tensors[key], tensor), key


def test_a_run_stopped_between_the_last_step_of_an_epoch_and_its_end_goes_on_too():
    whole = trainer_for(*REGIMES["averaged"])
    expected = train(whole)
    first, second = trainer_for(*REGIMES["averaged"]), trainer_for(*REGIMES["averaged"])
    assert len(list(first.epoch(lambda step: False))) == first.per_epoch
    restore(second, checkpoint_of(first), "x")
    assert second.state.batch == second.per_epoch
    assert train(second) == expected
    for key, tensor in checkpoint_of(whole).tensors.items():
        assert torch.equal(checkpoint_of(second).tensors[key], tensor), key


def test_cpu_time_of_all_ranks_is_saved_and_handed_back_once(monkeypatch):
    first = trainer_for()
    first.world, first.state.cpu = 2, 3.0
    monkeypatch.setattr(saving, "gather_object", lambda own: [*own, (replace(own[0][0], cpu=4.0), own[0][1])])
    checkpoint = checkpoint_of(first)
    assert checkpoint.facts["cpu"] == 7.0
    ranks = [trainer_for(), trainer_for()]
    for number, each in enumerate(ranks):
        each.rank, each.world = number, 2
        restore(each, checkpoint, "x")
    assert [each.state.cpu for each in ranks] == [7.0, 0.0]


def test_a_checkpoint_without_cpu_time_leaves_it_unknown():
    first, second = trainer_for(), trainer_for()
    train(first, until=1)
    checkpoint = checkpoint_of(first)
    del checkpoint.facts["cpu"]
    restore(second, checkpoint, "x")
    assert math.isnan(second.state.cpu)
    list(second.epoch(lambda step: False))
    assert second.end_epoch().cpu_seconds is None
    restore(first, checkpoint_of(second), "x")
    assert math.isnan(first.state.cpu)


def test_a_checkpoint_that_does_not_name_its_distances_is_of_another_version():
    trainer = trainer_for("--regime=randaug_autolabel")
    checkpoint = checkpoint_of(trainer)
    del checkpoint.tensors["pool._extra_state"]
    with pytest.raises(ValueError, match=r"x: the last checkpoint .* names no distances"):
        restore(trainer, checkpoint, "x")


def test_labels_move_only_the_labels():
    """AutoLabel with alpha 0 is one-hot: calibrating shifts neither weights nor draws."""
    plain, learned = (
        trainer_for(*words) for words in (["--regime=randaug"], ["--regime=randaug_autolabel", "--alpha=0"])
    )
    train(plain), train(learned)
    for name, tensor in plain.plain.state_dict().items():
        assert torch.equal(tensor, learned.plain.state_dict()[name])


def test_every_method_starts_from_the_same_weights_and_split():
    first, other = trainer_for("--regime=randaug"), trainer_for("--regime=at")
    assert torch.equal(first.parts.train.rows, other.parts.train.rows)
    for name, tensor in first.plain.state_dict().items():
        assert torch.equal(tensor, other.plain.state_dict()[name])


def test_averaged_weights_are_what_is_calibrated_measured_and_kept():
    trainer = trainer_for("--ema=0.5", "--regime=randaug_autolabel", "--alpha=0.1", "--epochs=1")
    before = {name: value.clone() for name, value in trainer.plain.named_parameters()}
    steps = []
    for _ in trainer.epoch(lambda step: step >= 2):
        steps.append({name: value.detach().clone() for name, value in trainer.plain.named_parameters()})
    assert before.keys() == steps[0].keys()
    for name, value in trainer.measured.named_parameters():
        torch.testing.assert_close(value, 0.5 * steps[0][name] + 0.5 * steps[1][name])
    assert trainer.measured is not trainer.plain
    record = trainer.measure_validation()
    trainer.average = None
    assert trainer.measure_validation() != record


def test_self_distilled_labels_are_those_of_the_averaged_network():
    """A step by hand: the averaged network's prediction on the image before it is moved."""
    words = ["--regime=randaug", "--labels=self_distilled", "--alpha=0.3", "--ema=0.5"]
    trainer = trainer_for(*words)
    list(trainer.epoch(lambda step: step >= 2))
    kept, real = [], trainer.loss
    teacher = copy.deepcopy(trainer.measured).eval()

    def loss(model, images, view, policy, again):
        kept.append((images, view))
        return real(model, images, view, policy, again)

    trainer.loss = loss
    list(trainer.epoch(lambda step: step >= 3))
    ((images, view),) = kept
    with torch.no_grad():
        expected = teacher(images.float() / 255).softmax(dim=1)
    torch.testing.assert_close(view.prediction, expected)
    with pytest.raises(ValueError, match=r"self_distilled takes targets from averaged weights: add --ema"):
        trainer_for(*words[:-1])


def test_weight_decay_may_spare_normalisation_layers_but_not_biases():
    recipe = recipe_for("--optimizer.decay=not_norms", "--weight_decay=0.5")
    model = model_for(recipe, data_for(recipe)[0])
    decaying, spared = optimizer_for(recipe, model).param_groups
    norms = {p for m in model.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()}
    assert set(spared["params"]) == norms
    assert spared["weight_decay"] == 0
    assert decaying["weight_decay"] == 0.5
    assert any(p is model.head.bias for p in decaying["params"])
    everything = optimizer_for(recipe_for("--optimizer.decay=everything"), model).param_groups
    assert [len(group["params"]) for group in everything] == [len(list(model.parameters()))]


def test_adamw_spares_biases_too_and_shrinks_the_others_by_the_rate():
    """The first step by hand: both averages are of one gradient, which leaves its sign."""
    trainer = trainer_for("--optimizer=adamw", "--learning_rate=0.01", "--weight_decay=0.5", "--warmup=0")
    before = {name: p.detach().clone() for name, p in trainer.plain.named_parameters()}
    next(trainer.epoch(lambda step: False))
    kept = {name for name, p in before.items() if p.dim() == 1}
    assert {"head.bias"} < kept < before.keys()
    for name, p in trainer.plain.named_parameters():
        shrunk = before[name] * (1 if name in kept else 1 - 0.01 * 0.5)
        torch.testing.assert_close(p.detach(), shrunk - 0.01 * p.grad / (p.grad.abs() + 1e-8))


def test_adamw_goes_up_and_then_down_half_a_cosine():
    trainer = trainer_for("--optimizer=adamw", "--schedule.warmup=0.25")  # 12 steps, 3 of them up
    rates = []
    while trainer.state.epoch < 3:
        rates += [trainer.optimizer.param_groups[1]["lr"] for _ in trainer.epoch(lambda step: False)]
        trainer.end_epoch()
    assert rates[:4] == pytest.approx([1e-3 / 3, 2e-3 / 3, 1e-3, 1e-3])
    assert rates[6] == pytest.approx(1e-3 * 3 / 4)  # 3 of 9 steps down: cos(60 degrees) is one half
    assert rates[9] == pytest.approx(1e-3 / 4)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        ({"adam_step.head.bias": torch.zeros(3)}, r"1 of another shape \(head.bias\)"),
        ({"adam_mean.tail": torch.zeros(3)}, r"1 unknown \(tail\)"),
    ],
)
def test_a_checkpoint_of_adamw_that_does_not_fit_is_refused(spoil, complaint):
    trainer = trainer_for("--optimizer=adamw")
    next(trainer.epoch(lambda step: False))
    checkpoint = checkpoint_of(trainer)
    checkpoint.tensors.update(spoil)
    with pytest.raises(ValueError, match=complaint):
        restore(trainer_for("--optimizer=adamw"), checkpoint, "x")


def test_the_rate_grows_with_the_batch_where_the_recipe_says_so():
    trainer = trainer_for("--optimizer.per_batch=10", "--schedule.warmup=0")
    next(trainer.epoch(lambda step: False))
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 40 / 10)


def test_a_loss_that_is_no_number_stops_training_and_names_the_step():
    trainer = trainer_for("--learning_rate=1e20", "--schedule.warmup=0")
    with pytest.raises(Diverged, match=r"the loss is (nan|inf) at step [2-9]\. Try a lower"):
        train(trainer)


def test_clipped_gradients_move_weights_no_further_than_the_rate_allows():
    trainer = trainer_for(
        "--clip=0.001", "--schedule.warmup=0", "--weight_decay=0", "--momentum=0", "--nesterov=false"
    )
    before = [p.detach().clone() for p in trainer.plain.parameters()]
    next(trainer.epoch(lambda step: False))
    moved = torch.cat([(p - q).flatten() for p, q in zip(trainer.plain.parameters(), before, strict=True)])
    assert moved.norm().item() == pytest.approx(0.1 * 0.001, rel=1e-3)


def test_a_network_that_does_not_fit_the_data_is_one_sentence(monkeypatch):
    monkeypatch.syspath_prepend(".")
    for name, complaint in (
        (
            "tests.networks:two_classes",
            r"must give 10 logits, one per class of embedded Fashion-MNIST, got \(1, 2\)",
        ),
        ("tests.networks:wants_colour", r"does not take the 1 x 28 x 28 images of embedded Fashion-MNIST"),
        ("tests.networks:no_network", r"must return a torch.nn.Module, got a int"),
    ):
        with pytest.raises(ValueError, match=complaint):
            trainer_for(f"--model={name}")


def test_bfloat16_trains_too():
    trainer = trainer_for("--precision=bf16", "--epochs=1")
    (record,) = train(trainer)
    assert 0 < record["loss"] < 5
    assert all(p.dtype == torch.float32 for p in trainer.plain.parameters())


def test_a_single_training_image_is_refused():
    with pytest.raises(ValueError, match="at least 2 images"):
        trainer_for("--split.train=1")


def test_cudnn_is_deterministic_unless_the_recipe_lets_it_choose(monkeypatch):
    for flag in ("deterministic", "benchmark"):
        monkeypatch.setattr(torch.backends.cudnn, flag, False)  # put back afterwards
    for words, deterministic in (((), True), (("--engine.deterministic=false",), False), ((), True)):
        trainer = trainer_for(*words)
        assert torch.backends.cudnn.deterministic is deterministic
        assert torch.backends.cudnn.benchmark is not deterministic
        assert trainer.recipe.as_dict()["engine"]["deterministic"] is deterministic
