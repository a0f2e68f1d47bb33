"""torch.compile changes no result beyond float error: of augmentations with the same draws, and of training.

Graphs are traced and run without torch's code generator, whose compiler takes minutes; benchmarks/compile.py
compares with that.
"""

import warnings
from functools import partial

import pytest
import torch

from auglabel.augment.augmix import AugMix
from auglabel.augment.mixing import CutMix, Mixup
from auglabel.augment.randaug import RandAug
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.train.trainer import Trainer

traced = partial(torch.compile, backend="aot_eager")


@pytest.fixture(autouse=True)
def quiet():
    """torch speaks of caches that it looks through."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("augment", [RandAug(), AugMix(), Mixup(), CutMix()], ids=repr)
def test_a_compiled_augmentation_gives_the_same_view(augment):
    images, labels = torch.rand(8, 3, 16, 16), torch.arange(8)
    expected, found = (
        call(images, labels, generator=torch.Generator().manual_seed(3))
        for call in (augment, traced(augment.__call__))
    )
    torch.testing.assert_close(found.images, expected.images)
    assert torch.equal(found.bucket, expected.bucket)
    assert not torch.equal(found.images, images)


def test_a_compiled_network_trains_as_it_does_otherwise(monkeypatch):
    asked = []

    def compiled(model):
        asked.append(model)
        really(model, backend="aot_eager")

    really = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", compiled)
    words = ["--split.train=40", "--split.validation=10", "--split.test=10", "--batch_size=20", "--epochs=1"]
    weights = []
    for more in ([], ["--engine.compile=true"]):
        recipe = read_recipe("embedded", [*words, *more])
        trainer = Trainer(recipe, *data_for(recipe), device="cpu")
        for _ in trainer.epoch(lambda step: False):
            pass
        weights.append(trainer.plain.state_dict())
    assert len(asked) == 1
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-4, atol=1e-5)
