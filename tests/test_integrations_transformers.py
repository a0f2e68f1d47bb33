"""The collator, loss and callback for Hugging Face's Trainer, against Trainer itself."""

import copy
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from auglabel import (
    AugmentAndLabel,
    AugMix,
    AutoLabelByClass,
    Erasing,
    LabelSmoothing,
    Mixup,
    MixupLabels,
    SelfDistilled,
    SoftAugmentation,
)
from auglabel.augment.normalized import OnNormalized
from auglabel.data.embedded import Split, load_embedded

transformers = pytest.importorskip("transformers", reason="Transformers is not installed")

from transformers import Trainer, TrainerState, TrainingArguments  # noqa: E402

from auglabel.integrations.transformers import TransformersCallback, rows_of, view_of  # noqa: E402

EXAMPLE = Path(__file__).parents[1] / "examples" / "with_transformers.py"
MEAN, STD = [0.286], [0.353]


@pytest.fixture(scope="module")
def pictures():
    pictures = runpy.run_path(str(EXAMPLE))["Pictures"]
    data = load_embedded()
    return [
        pictures(Split(split.images[:200], split.labels[:200])) for split in (data.train, data.validation)
    ]


class Linear(nn.Module):
    """A plain module with the outputs that Trainer looks for."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def forward(self, pixel_values, labels=None):
        return {"logits": self.net(pixel_values)}


class Recording(TransformersCallback):
    """Keeps the network as it was at each update, and the table after it."""

    kept = ()

    def on_epoch_end(self, args, state, control, **others):
        super().on_epoch_end(args, state, control, **others)
        self.kept = (*self.kept, (copy.deepcopy(others["model"].net), self.learned.table.clone()))


def labels_for(pictures, kind=Recording, **options):
    labels = kind(AugMix(), 10, 0.5, validation=pictures[1], mean=MEAN, std=STD, **options)
    labels.learned.table.fill_(0.9)  # so that it may move either way
    return labels


def trainer_for(labels, pictures, folder, epochs=2, **options):
    args = TrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=40,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        **{"save_strategy": "no", "logging_strategy": "no"} | options,
    )
    return Trainer(
        Linear(),
        args,
        train_dataset=labels.training(pictures[0]),
        eval_dataset=pictures[1],
        data_collator=labels.collate,
        compute_loss_func=labels.loss,
        callbacks=[labels],
    )


def test_the_table_is_that_of_a_plain_loop_from_the_same_networks(pictures, tmp_path):
    labels = labels_for(pictures)
    trainer_for(labels, pictures, tmp_path, epochs=3).train()
    learned = AugmentAndLabel(OnNormalized(AugMix(), MEAN, STD), 10, alpha=0.5)
    learned.table.fill_(0.9)
    images, answers = pictures[1].images, pictures[1].labels
    assert len(labels.kept) == 3
    for net, table in labels.kept:
        learned.update(net, zip(images.split(64), answers.split(64), strict=True))
        assert torch.equal(learned.table, table)
    assert (table != 0.9).all()


def test_auto_is_told_the_epochs_of_the_trainer(pictures, tmp_path):
    labels = TransformersCallback(AugMix(), 10, validation=pictures[1], mean=MEAN, std=STD)
    trainer_for(labels, pictures, tmp_path, epochs=2).train()
    assert labels.learned.policy.auto.epochs == 2
    assert labels.learned.policy.auto.updates == 2


def test_resuming_goes_on_with_the_labels_of_the_checkpoint(pictures, tmp_path):
    keeping = {"save_strategy": "epoch", "seed": 3}
    unbroken = labels_for(pictures)
    trainer_for(unbroken, pictures, tmp_path, epochs=3, **keeping).train()
    state = json.loads((tmp_path / "checkpoint-10" / "trainer_state.json").read_text())
    saved = state["stateful_callbacks"]["auglabel"]
    assert torch.equal(torch.tensor(saved["policy.table"]), unbroken.kept[1][1])
    assert saved["updates"] == 2

    resumed = labels_for(pictures)
    trainer = trainer_for(resumed, pictures, tmp_path, epochs=3, **keeping)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-10"))
    assert torch.equal(resumed.learned.table, unbroken.learned.table)
    assert resumed.learned.updates == 3


def test_a_checkpoint_from_before_labels_could_be_frozen_is_resumed(pictures):
    labels = labels_for(pictures)
    state = {name: value.tolist() for name, value in labels.learned.state_dict().items()}
    del state["frozen"]
    state["policy.table"] = [0.25] * 15
    begun = TrainerState(num_train_epochs=2, stateful_callbacks={"auglabel": state})
    labels.on_train_begin(TrainingArguments("unused"), begun, None)
    assert labels.learned.table.tolist() == [0.25] * 15
    assert not labels.learned.frozen


def test_training_batches_are_moved_and_others_stay_as_they_are(pictures):
    labels = labels_for(pictures)
    examples = [pictures[0][row] for row in range(8)]
    batch = labels.collate(examples)
    assert torch.equal(batch["pixel_values"], pictures[0].images[:8])
    assert torch.equal(batch["labels"], pictures[0].labels[:8])
    marked = labels.training(pictures[0])
    batch = labels.collate([marked[row] for row in range(8)])
    assert not torch.equal(batch["pixel_values"], pictures[0].images[:8])
    assert batch["labels"].shape == (8, 6)


def test_examples_may_have_a_label_which_the_collator_renames(pictures, tmp_path):
    renamed = [
        [
            {"pixel_values": row["pixel_values"], "label": row["labels"]}
            for row in (part[i] for i in range(40))
        ]
        for part in pictures
    ]
    labels = labels_for(renamed, keys=("pixel_values", "label"))
    trainer_for(labels, renamed, tmp_path, epochs=1).train()
    assert labels.learned.updates == 1


def test_labels_by_class_see_the_training_predictions(pictures, tmp_path):
    policy = AutoLabelByClass(10, 15, alpha=0.5)
    even = policy.shares.clone()
    labels = TransformersCallback(AugMix(), validation=pictures[1], mean=MEAN, std=STD, policy=policy)
    logits, answers = torch.randn(6, 10), torch.tensor([3, 1, 4, 1, 5, 9])
    labels.loss(logits, answers)  # evaluation
    assert policy.count == 0
    trainer_for(labels, pictures, tmp_path, epochs=1).train()
    assert labels.learned.updates == 1
    assert not torch.equal(policy.shares, even)
    with pytest.raises(ValueError, match="SelfDistilled needs predictions on clean images"):
        TransformersCallback(AugMix(), validation=pictures[1], policy=SelfDistilled(10, 15))


@pytest.mark.parametrize("augment", [AugMix(), Mixup()])
@pytest.mark.parametrize("ignored", [-100, -1])
def test_images_without_a_label_teach_nothing_and_are_not_counted(augment, ignored, pictures):
    labels = TransformersCallback(
        augment, 10, 0.5, validation=pictures[1], mean=MEAN, std=STD, ignore_index=ignored
    )
    examples = [{**pictures[0][row]} for row in range(16)]
    for example in examples[::4]:
        example["labels"] = ignored
    marked = labels.training(examples)
    torch.manual_seed(0)
    rows = labels.collate([marked[row] for row in range(16)])["labels"]
    taught = (rows != -100).all(dim=1)
    assert not taught[::4].any()
    assert taught.sum() == 12 if isinstance(augment, AugMix) else 4 <= taught.sum() <= 12

    logits = torch.randn(16, 10)
    counted = labels.loss({"logits": logits}, rows, num_items_in_batch=rows.ne(-100).sum())
    targets = labels.learned.policy(view_of(rows[taught], logits[taught]))
    expected = F.cross_entropy(logits[taught], targets)
    torch.testing.assert_close(counted, expected, check_dtype=False)
    torch.testing.assert_close(labels.loss({"logits": logits}, rows), expected)

    plain = labels.collate(examples)["labels"]
    expected = F.cross_entropy(logits, plain, ignore_index=ignored)
    torch.testing.assert_close(labels.loss({"logits": logits}, plain), expected)
    for nobody in (torch.full_like(plain, ignored), torch.full_like(rows, -100)):
        assert labels.loss({"logits": logits}, nobody) == 0


def test_a_trainer_runs_where_some_images_have_no_label(pictures, tmp_path):
    some = [
        [{**part[row], "labels": part[row]["labels"] if row % 3 else -100} for row in range(200)]
        for part in pictures
    ]
    labels = labels_for(some, ignore_index=-100)
    trainer_for(labels, some, tmp_path).train()
    net, table = labels.kept[-1]
    assert (table != 0.9).all()
    assert net[1].weight.isfinite().all()


def test_evaluation_uses_plain_labels(pictures, tmp_path):
    labels = labels_for(pictures)
    trainer = trainer_for(labels, pictures, tmp_path)
    found = trainer.evaluate()["eval_loss"]
    logits = trainer.model.net(pictures[1].images)
    assert found == pytest.approx(F.cross_entropy(logits, pictures[1].labels).item(), rel=1e-4)


def test_the_loss_is_the_mean_over_all_images_of_a_step(pictures):
    labels = labels_for(pictures)
    marked = labels.training(pictures[0])
    batches = [labels.collate([marked[row] for row in rows]) for rows in (range(6), range(6, 16))]
    torch.manual_seed(0)
    logits = [torch.randn(len(batch["labels"]), 10) for batch in batches]
    count = sum(batch["labels"].ne(-100).sum() for batch in batches)  # as Trainer counts them
    parts = [
        labels.loss({"logits": z}, b["labels"], num_items_in_batch=count)
        for z, b in zip(logits, batches, strict=True)
    ]
    together = labels.loss({"logits": torch.cat(logits)}, torch.cat([b["labels"] for b in batches]))
    torch.testing.assert_close(sum(parts), together, check_dtype=False)


@pytest.mark.parametrize("augment", [AugMix(), Mixup(), Erasing()])
def test_rows_say_all_that_decides_targets(augment, pictures):
    pixels, labels = load_embedded().train.images[:20], load_embedded().train.labels[:20]
    view = augment(pixels, labels)
    for policy in (LabelSmoothing(10, rho=0.2), MixupLabels(10), SoftAugmentation(10)):
        again = view_of(rows_of(view), pixels)
        assert torch.equal(policy(again), policy(view))


def test_images_may_be_moved_in_worker_processes(pictures):
    labels = labels_for(pictures)
    loader = DataLoader(labels.training(pictures[0]), 40, collate_fn=labels.collate, num_workers=1)
    for batch in loader:
        assert labels.loss({"logits": torch.zeros(40, 10)}, batch["labels"]).isfinite()


def test_a_tuple_of_outputs_and_examples_without_labels_get_a_sentence(pictures):
    labels = labels_for(pictures)
    with pytest.raises(TypeError, match="the model must give logits, got list"):
        labels.loss([1], pictures[0].labels[:2])
    with pytest.raises(KeyError, match='a label "label", but it has: pixel_values, labels'):
        labels_for(pictures, keys=("pixel_values", "label")).training(pictures[0])[0]


def test_normalised_images_without_mean_and_std_get_a_sentence_that_names_them(pictures):
    labels = TransformersCallback(AugMix(), 10, 0.5, validation=pictures[1])
    rows = labels.training(pictures[0])
    with pytest.raises(ValueError, match=r"look normalised: pass the mean= and std= that they were"):
        labels.collate([rows[row] for row in range(4)])


def test_each_process_measures_its_own_share(pictures, monkeypatch):
    labels, dist = labels_for(pictures), torch.distributed
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    shares = []
    for rank in range(3):
        monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
        shares.append(torch.cat([answers for _, answers in labels._share()]))
        assert torch.equal(shares[rank], pictures[1].labels[rank::3])
    assert sum(len(share) for share in shares) == 200


def test_without_transformers_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "auglabel.integrations.transformers")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"needs Transformers.*pip install 'auglabel\[transformers\]'"):
        __import__("auglabel.integrations.transformers")


def test_the_example_runs_to_the_end(tmp_path, capsys):
    table = runpy.run_path(str(EXAMPLE))["main"](epochs=2, rows=500, folder=str(tmp_path))
    assert table.shape == (15,)
    assert "label confidence" in capsys.readouterr().out


def test_each_update_is_in_the_history_and_in_what_later_callbacks_log(pictures, tmp_path):
    class Keeping(transformers.TrainerCallback):
        logged = ()

        def on_log(self, args, state, control, logs=None, **others):
            self.logged = (*self.logged, dict(logs))

    labels, keeping = labels_for(pictures), Keeping()
    trainer = trainer_for(labels, pictures, tmp_path, logging_strategy="epoch")
    trainer.add_callback(keeping)
    trainer.train()
    history = [entry for entry in trainer.state.log_history if "auglabel/gap" in entry]
    assert [entry["step"] for entry in history] == [5, 10]
    for entry, logged, (_, table) in zip(history, keeping.logged, labels.kept, strict=False):
        assert entry["auglabel/label_confidence"] == pytest.approx(table.mean().item())
        assert 0 < entry["auglabel/share_of_time"] < 1
        assert {name: logged[name] for name in entry if "/" in name} == {
            name: value for name, value in entry.items() if "/" in name
        }
        assert "loss" in logged
    assert len(keeping.logged) == 3
    assert "auglabel/gap" not in keeping.logged[2]  # once each
