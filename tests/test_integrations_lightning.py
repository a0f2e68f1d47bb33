"""The Lightning callback, against Lightning itself."""

import copy
import logging
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auglabel import AugmentAndLabel, AugMix, AutoLabelByClass, LabelSmoothing
from auglabel.data.embedded import load_embedded

lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

from auglabel.integrations.lightning import LightningCallback  # noqa: E402

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        self.shapes = {"training": [], "validation": []}

    def forward(self, images):
        return self.net(images.float() / 255 if images.dtype == torch.uint8 else images)

    def training_step(self, batch, batch_idx):
        images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
        self.shapes["training"].append(tuple(labels.shape))
        return F.cross_entropy(self(images), labels)

    def validation_step(self, batch, batch_idx):
        images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
        self.shapes["validation"].append(tuple(labels.shape))
        self.log("nll", F.cross_entropy(self(images), labels))

    test_step = validation_step

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Recording(LightningCallback):
    """Keeps the network as it was at each update, and the table after it."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.kept = []

    def _update(self, trainer, module):
        before = int(self.learned.updates)
        super()._update(trainer, module)
        if self.learned.updates > before:
            self.kept.append((copy.deepcopy(module.net), self.learned.table.clone()))


def loaders(count=200):
    data = load_embedded()
    train = TensorDataset(data.train.images[:count], data.train.labels[:count])
    validation = TensorDataset(data.validation.images[:count], data.validation.labels[:count])
    return DataLoader(train, batch_size=50), DataLoader(validation, batch_size=80)


def trainer_for(folder, *callbacks, epochs=2, **options):
    quietly = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(
        max_epochs=epochs,
        default_root_dir=folder,
        accelerator="cpu",
        devices=1,
        callbacks=list(callbacks),
        **quietly,
        **options,
    )


def callback(kind=LightningCallback, **options):
    labels = kind(AugMix(), num_classes=10, alpha=0.5, **options)
    labels.learned.table.fill_(0.9)  # so that it may move either way
    return labels


def test_training_batches_get_soft_targets_and_validation_and_test_stay_as_they_are(tmp_path):
    module, (train, validation) = Classifier(), loaders()
    trainer = trainer_for(tmp_path, callback())
    trainer.fit(module, train, validation)
    trainer.test(module, validation, verbose=False)
    assert set(module.shapes["training"]) == {(50, 10)}
    assert set(module.shapes["validation"]) == {(80,), (40,)}


def test_images_without_a_label_get_zeros_and_are_not_measured(tmp_path):
    train, validation = (
        DataLoader(TensorDataset(images, labels.where(torch.arange(200) % 4 > 0, -1)), batch_size=50)
        for images, labels in (loader.dataset.tensors for loader in loaders())
    )
    module, labels = Classifier(), callback(Recording, loader=validation, ignore_index=-1)
    trainer_for(tmp_path, labels, epochs=1).fit(module, train)
    assert module.net[1].weight.isfinite().all()
    assert len(labels.kept) == 1
    batch = next(iter(train))
    labels.on_train_batch_start(None, module, batch, 0)
    assert torch.equal(batch[1].sum(dim=1) == 0, torch.arange(50) % 4 == 0)


def test_the_table_is_that_of_a_plain_loop_from_the_same_networks(tmp_path):
    train, validation = loaders()
    recording = callback(Recording)
    trainer_for(tmp_path, recording, epochs=3).fit(Classifier(), train, validation)
    learned = callback().learned
    assert len(recording.kept) == 3
    for net, table in recording.kept:
        learned.update(net, validation)
        assert torch.equal(learned.table, table)
    assert (table != 0.9).all()


def test_auto_is_told_the_epochs_of_the_trainer(tmp_path):
    labels = LightningCallback(AugMix(), num_classes=10)
    trainer_for(tmp_path, labels, epochs=2).fit(Classifier(), *loaders())
    assert labels.learned.policy.auto.epochs == 2
    assert labels.learned.policy.auto.updates == 2


@pytest.mark.parametrize("after", ["training", "validation"])
def test_a_checkpoint_holds_the_labels_and_resuming_goes_on_with_them(tmp_path, after):
    train, validation = loaders()
    unbroken = callback(Recording)
    torch.manual_seed(1)
    trainer_for(tmp_path, unbroken, epochs=2).fit(Classifier(), train, validation)

    saver = ModelCheckpoint(tmp_path / "kept", save_on_train_epoch_end=after == "training")
    first = callback()
    torch.manual_seed(1)
    trainer_for(tmp_path, first, saver, epochs=1).fit(Classifier(), train, validation)
    saved = torch.load(saver.best_model_path, weights_only=True)["callbacks"]["LightningCallback"]
    assert torch.equal(saved["learned"]["policy.table"], unbroken.kept[0][1])

    second = callback()
    trainer = trainer_for(tmp_path, second, epochs=2)
    trainer.fit(Classifier(), train, validation, ckpt_path=saver.best_model_path)
    assert second.learned.updates == 2  # not updated twice for the epoch that was saved


def test_every_validation_inside_an_epoch_does_not_update(tmp_path):
    train, validation = loaders()
    recording = callback(Recording)
    trainer_for(tmp_path, recording, epochs=2, val_check_interval=0.5).fit(Classifier(), train, validation)
    assert len(recording.kept) == 2


def test_epochs_without_validation_update_too(tmp_path):
    train, validation = loaders()
    saver = ModelCheckpoint(tmp_path / "kept")
    recording = callback(Recording)
    how = {"check_val_every_n_epoch": 2, "num_sanity_val_steps": 0}
    trainer_for(tmp_path, recording, saver, epochs=2, **how).fit(Classifier(), train, validation)
    assert len(recording.kept) == 2
    saved = torch.load(saver.best_model_path, weights_only=True)["callbacks"]
    (state,) = (state for name, state in saved.items() if "Recording" in name)
    assert state["learned"]["updates"] == 2  # saved after validation, and the update came before


def test_a_second_fit_learns_on(tmp_path):
    train, validation = loaders()
    labels = callback()
    for _ in range(2):
        trainer_for(tmp_path, labels, epochs=1).fit(Classifier(), train, validation)
    assert labels.learned.updates == 2


def test_a_loader_may_be_given_and_batches_may_be_dictionaries(tmp_path):
    def named(examples):
        images, labels = zip(*examples, strict=True)
        return {"image": torch.stack(images), "label": torch.stack(labels)}

    train, validation = (DataLoader(each.dataset, 50, collate_fn=named) for each in loaders())
    labels = callback(loader=validation, keys=("image", "label"))
    trainer_for(tmp_path, labels, epochs=1).fit(Classifier(), train)
    assert labels.learned.updates == 1


def test_a_data_modules_validation_loader_is_used(tmp_path):
    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return loaders(100)[0]

        def val_dataloader(self):
            return loaders(100)[1]

    labels = callback()
    trainer_for(tmp_path, labels, epochs=1).fit(Classifier(), datamodule=Data())
    assert labels.learned.updates == 1


def test_images_that_are_normalised_already_may_come(tmp_path):
    data = load_embedded()
    images = (data.train.images[:100].float() / 255 - 0.286) / 0.353
    loader = DataLoader(TensorDataset(images, data.train.labels[:100]), batch_size=50)
    labels = callback(mean=[0.286], std=[0.353])
    trainer_for(tmp_path, labels, epochs=1).fit(Classifier(), loader, loader)
    assert labels.learned.updates == 1
    with pytest.raises(ValueError, match=r"look normalised: pass the mean= and std= that they were"):
        trainer_for(tmp_path, callback(), epochs=1).fit(Classifier(), loader, loader)


def test_labels_that_do_not_learn_need_no_validation_images(tmp_path):
    labels = LightningCallback(AugmentAndLabel(AugMix(), policy=LabelSmoothing(10, rho=0.1)))
    trainer_for(tmp_path, labels, epochs=1).fit(Classifier(), loaders()[0])


def test_mistakes_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="AutoLabelByClass needs predictions on training images"):
        LightningCallback(AugMix(), policy=AutoLabelByClass(10, 15))
    train, validation = loaders(50)
    with pytest.raises(ValueError, match="one validation loader, but the trainer has none"):
        trainer_for(tmp_path, callback()).fit(Classifier(), train)
    with pytest.raises(ValueError, match="one validation loader, but there are 2"):
        trainer_for(tmp_path, callback(loader=[validation, validation])).fit(Classifier(), train)
    tuples = DataLoader(train.dataset, 50, collate_fn=lambda some: tuple(torch.stack(c) for c in zip(*some)))  # noqa: B905
    with pytest.raises(TypeError, match="must be a list or a dictionary, got a tuple"):
        trainer_for(tmp_path, callback()).fit(Classifier(), tuples, validation)
    with pytest.raises(ValueError, match=r"images and labels at keys \('image', 'label'\)"):
        trainer_for(tmp_path, callback(keys=("image", "label"))).fit(Classifier(), train, validation)


def test_without_lightning_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "auglabel.integrations.lightning")
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    with pytest.raises(ImportError, match=r"needs Lightning.*pip install 'auglabel\[lightning\]'"):
        __import__("auglabel.integrations.lightning")


def test_the_example_learns_labels(tmp_path, capsys):
    table = runpy.run_path(str(EXAMPLES / "with_lightning.py"))["main"](epochs=1, root=str(tmp_path))
    assert table.min() < 1
    assert "label confidence" in capsys.readouterr().out


TWO_RANKS = """
import sys, torch, warnings, logging
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import test_integrations_lightning as here
from torch.utils.data import DataLoader, TensorDataset
from auglabel.integrations.lightning import LightningCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Counting(LightningCallback):
    def _update(self, trainer, module):
        update = self.learned.update
        self.learned.update = lambda *args: self.seen.append(update(*args))
        super()._update(trainer, module)
        del self.learned.update


if __name__ == "__main__":
    data = here.load_embedded()
    train = DataLoader(TensorDataset(data.train.images[:80], data.train.labels[:80]), batch_size=20)
    rows = TensorDataset(data.validation.images[:75], data.validation.labels[:75])  # odd: one will be padding
    labels = here.callback(Counting)
    labels.seen = []
    trainer = here.lightning.Trainer(
        max_epochs=2, default_root_dir=sys.argv[2], accelerator="cpu", devices=2, strategy="ddp",
        callbacks=[labels], logger=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(here.Classifier(), train, DataLoader(rows, batch_size=20))
    counts = torch.stack([seen.count for seen in labels.seen])
    found = {"table": labels.learned.table, "counts": counts}
    torch.save(found, f"{sys.argv[2]}/rank{trainer.global_rank}.pt")
"""


def test_two_ranks_measure_each_image_once_and_hold_the_same_table(tmp_path):
    (tmp_path / "two_ranks.py").write_text(TWO_RANKS)
    command = [sys.executable, "two_ranks.py", str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    one, other = (torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2))
    assert torch.equal(one["table"], other["table"])
    assert (one["table"] != 0.9).all()
    assert torch.equal(one["counts"], other["counts"])
    assert (one["counts"].sum(dim=1) == 2 * 75).all()  # two visits of each image


@pytest.mark.parametrize("workers", [0, 1])
def test_validation_sees_all_its_batches_also_with_workers_that_stay(tmp_path, workers):
    data = load_embedded()
    train = DataLoader(TensorDataset(data.train.images[:40], data.train.labels[:40]), batch_size=20)
    validation = DataLoader(
        TensorDataset(data.validation.images[:80], data.validation.labels[:80]),
        batch_size=20,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    module = Classifier()
    trainer = lightning.Trainer(
        callbacks=[LightningCallback(AugMix(), num_classes=10, alpha=0.5)],
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, train, validation)
    assert len(module.shapes["validation"]) == 2 * 4


@pytest.mark.parametrize("precision", ["bf16-true", "bf16-mixed"])
def test_labels_are_learned_in_half_precision(tmp_path, precision):
    data = load_embedded()
    images, labels = data.train.images[:40].float() / 255, data.train.labels[:40]
    loader = DataLoader(TensorDataset(images, labels), batch_size=20)
    callback = LightningCallback(AugMix(), num_classes=10, alpha=0.5)
    trainer = lightning.Trainer(
        callbacks=[callback],
        max_epochs=1,
        logger=False,
        enable_progress_bar=False,
        precision=precision,
        default_root_dir=tmp_path,
    )
    trainer.fit(Classifier(), loader, loader)
    assert callback.learned.updates == 1
    assert (callback.learned.table < 1).any()


def test_each_update_is_logged(tmp_path):
    class Keeping(lightning.Callback):
        logged = ()

        def on_train_epoch_end(self, trainer, pl_module):
            self.logged = (*self.logged, dict(trainer.callback_metrics))

    train, validation = loaders()
    labels, keeping = callback(Recording), Keeping()
    trainer_for(tmp_path, labels, keeping).fit(Classifier(), train, validation)
    again = callback().learned
    for logged, (net, table) in zip(keeping.logged, labels.kept, strict=True):
        seen = again.update(net, validation)
        gap = (seen.confidence - seen.accuracy) * seen.count / seen.count.sum()
        assert logged["auglabel/gap"].item() == pytest.approx(gap.nansum().item(), abs=1e-6)
        assert logged["auglabel/label_confidence"].item() == pytest.approx(table.mean().item())
        assert 0 < logged["auglabel/share_of_time"] < 1
