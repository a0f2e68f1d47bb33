"""On an accelerator the host runs ahead: a training step waits for no value of the device."""

import pytest
import torch
from stand_in_device import DEVICE, Elsewhere, StandIn, accelerator

from auglabel.augment.randaug import RandAug
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.train import trainer as training
from auglabel.lab.train.trainer import LOOK, Trainer

STEPS = 2 * LOOK
SMALL = [
    f"--split.train={8 * STEPS}",
    "--split.validation=8",
    "--split.test=8",
    "--epochs=2",
    "--batch_size=8",
]
METHODS = (
    *("vanilla", "randaug_ls", "randaug_autolabel", "augmix_autolabel", "mixup", "cutmix_autolabel"),
    *("augmix_js", "at_autolabel", "ccat", "trades", "wide_crop_soft", "erasing_autolabel"),
)
MORE = (
    ["--ema=0.9"],
    ["--clip=1"],
    ["--labels=self_distilled", "--ema=0.9"],
)


def trained(device, *words):
    """A trainer after an epoch, with what made the host wait in its steps."""
    recipe = read_recipe("embedded", [*SMALL, *words])
    with StandIn() as standing_in:
        trainer = Trainer(recipe, *data_for(recipe), device=device)
        standing_in.waits.clear()
        for _ in trainer.epoch(lambda step: False):
            pass
    return trainer, standing_in.waits


@pytest.fixture
def on_device(monkeypatch):
    def train(*words):
        monkeypatch.setattr(training, "accelerator_for", lambda recipe, device: accelerator())
        found = trained("auto", *words)
        monkeypatch.undo()
        return found

    return train


def weights(trainer, part="plain"):
    values = getattr(trainer, part).state_dict(keep_vars=True)
    return {name: each.here if isinstance(each, Elsewhere) else each for name, each in values.items()}


@pytest.mark.parametrize("words", [*([f"--regime={name}"] for name in METHODS), *MORE])
def test_a_training_step_waits_for_the_device_at_looks_alone_and_computes_what_the_cpu_does(words, on_device):
    there, waits = on_device(*words)
    here, _ = trained("cpu", *words)

    assert next(there.plain.parameters()).device == DEVICE
    assert waits == ["a copy to the host"] * (STEPS // LOOK)
    assert all(torch.equal(value, weights(here)[name]) for name, value in weights(there).items())
    if here.average is not None:
        assert all(torch.equal(v, weights(here, "average")[n]) for n, v in weights(there, "average").items())


def test_the_stand_in_counts_what_a_gpu_would_wait_for():
    def count(work):
        with StandIn() as standing_in:
            values = torch.arange(4.0).to(DEVICE, non_blocking=True)
            assert standing_in.waits == []
            work(values)
        return len(standing_in.waits)

    assert count(lambda values: values.sum().item()) == 1
    assert count(lambda values: values.cpu()) == 1
    assert count(lambda values: values.nonzero()) == 1
    assert count(lambda values: values[values > 1]) == 1
    assert count(lambda values: bool((values > 1).all())) == 1
    assert count(lambda values: values.long().bincount()) == 1
    assert count(lambda values: torch.zeros(4).to(DEVICE)) == 1
    assert count(lambda values: values[torch.tensor([1])]) == 1
    assert count(lambda values: values * 2 + torch.ones(4, device=DEVICE)) == 0
    with pytest.raises(RuntimeError, match="mixes tensors"):
        count(lambda values: values + torch.zeros(4))


def test_without_a_generator_operations_are_drawn_on_the_host_and_nothing_waits():
    images, labels = torch.randint(256, (6, 3, 8, 8), dtype=torch.uint8), torch.arange(6)
    torch.manual_seed(3)
    expected = RandAug()(images, labels)
    torch.manual_seed(3)
    with StandIn() as standing_in:
        sent = (part.to(DEVICE, non_blocking=True) for part in (images, labels))
        view = RandAug()(*sent)

    assert standing_in.waits == []
    assert torch.equal(view.images.here, expected.images)
    assert torch.equal(view.bucket.here, expected.bucket)
