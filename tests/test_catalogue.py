"""The contract of every augmentation, policy and regime in the catalogue."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auglabel import LabelPolicy
from auglabel.augment.base import Augmentation
from auglabel.augment.mixing import Mixup
from auglabel.lab.parts.catalogue import AUGMENTATIONS, LABELS, LOSSES, REGIMES, labels_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.table_file import save_table

OPTIONS = {"label_smoothing": {"rho": 0.1}}
GRID = Mixup().grid  # 5 buckets
EXTRA = {"several operations": ("randaug", {"num_ops": 2}), "three chains": ("augmix", {"chains": 3})}
EXTRA |= {"fixed epsilon": ("adversarial", {"fixed": True})}
CASES = {name: (name, {}) for name in AUGMENTATIONS} | EXTRA


@pytest.fixture(params=CASES, ids=lambda name: name.replace(" ", "-"))
def augment(request) -> Augmentation:
    name, options = CASES[request.param]
    return AUGMENTATIONS[name](**options)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 12, 4))


def batch(n=30, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (n, 3, 12, 12), generator=generator, dtype=torch.uint8)
    images = images if dtype == torch.uint8 else (images.double() / 255).to(dtype)
    return images, torch.randint(4, (n,), generator=generator)


def seeded(seed=7):
    return torch.Generator().manual_seed(seed)


def test_every_bucket_can_be_revisited_for_every_example(augment, model):
    images, labels = batch()
    for bucket in range(len(augment.grid)):
        asked = torch.full((30,), bucket)
        view = augment(images, labels, model, bucket=asked, generator=seeded())
        assert torch.equal(view.bucket, asked)
        again = augment(images, labels, model, bucket=asked, generator=seeded())
        assert torch.equal(view.images, again.images)


def test_training_views_know_their_bucket(augment, model):
    images, labels = batch(200)
    view = augment(images, labels, model, generator=seeded())
    assert view.bucket.min() >= 0
    assert view.bucket.max() < len(augment.grid)
    if len(augment.grid) <= 15:
        assert len(view.bucket.unique()) == len(augment.grid)


def test_same_seed_same_view_and_no_other_randomness(augment, model):
    images, labels = batch()
    before = torch.get_rng_state()
    first, again, other = (augment(images, labels, model, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.strength, again.strength)
    assert torch.equal(first.images, other.images) == (type(augment).__name__ == "Clean")  # draws nothing


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64, torch.float16])
def test_shape_dtype_and_range(augment, model, dtype):
    images, labels = batch(dtype=dtype)
    kept = images.clone()
    attacks = type(augment).__name__ == "Adversarial"
    if attacks and dtype in (torch.float16, torch.float64):
        model = nn.Sequential(nn.Flatten(), nn.Linear(432, 4)).to(dtype)
    view = augment(images, labels, model, generator=seeded())
    assert torch.equal(images, kept)
    assert view.images.shape == images.shape
    assert view.images.dtype == (torch.float32 if attacks and dtype == torch.uint8 else dtype)
    assert torch.equal(view.labels, labels)
    if view.images.is_floating_point():
        assert view.images.min() >= 0
        assert view.images.max() <= 1
    assert view.images.device == view.bucket.device == view.strength.device == images.device
    assert not view.images.requires_grad


def test_bytes_may_come_out_as_floats(augment, model):
    images, labels = batch(dtype=torch.uint8)
    as_floats = augment(images, labels, model, dtype=torch.float32, generator=seeded()).images
    assert as_floats.dtype == torch.float32
    assert as_floats.max() <= 1
    plain = augment(images, labels, model, generator=seeded()).images
    torch.testing.assert_close(as_floats, plain.float() / (255 if plain.dtype == torch.uint8 else 1))
    with pytest.raises(ValueError, match=r"dtype must be a floating point one, got torch.int32"):
        augment(images, labels, model, dtype=torch.int32)


def test_what_comes_out_may_go_in_again(augment, model):
    white, labels = torch.ones(60, 3, 12, 12), torch.zeros(60, dtype=torch.int64)
    for seed in range(3):
        once = augment(white, labels, model, generator=seeded(seed))
        augment(once.images, labels, model, generator=seeded(seed))


def test_a_strength_lies_in_its_bucket(augment, model):
    images, labels = batch(200)
    view = augment(images, labels, model, generator=seeded())
    levels = torch.tensor(augment.grid.levels)
    first = levels.cumsum(0) - levels
    kind = torch.searchsorted(first, view.bucket, right=True) - 1
    assert torch.equal(augment.grid.locate(kind, view.strength).bucket, view.bucket)


def test_a_bucket_that_is_not_there_is_refused(augment, model):
    images, labels = batch(2)
    count = len(augment.grid)
    with pytest.raises(ValueError, match=rf"bucket must be in 0..{count - 1} for {count} buckets"):
        augment(images, labels, model, bucket=torch.tensor([0, count]))


@pytest.mark.parametrize("name", LABELS)
def test_policies_give_distributions_and_survive_a_checkpoint(name, tmp_path):
    options = dict(OPTIONS.get(name, {}))
    save_table(tmp_path / "table.json", torch.tensor([0.5, 0.6, 0.7, 0.8, 0.9]), GRID)
    options |= {"path": str(tmp_path / "table.json")} if name == "table" else {}
    policy, fresh = (labels_for(name, 4, GRID, **options) for _ in range(2))
    images, labels = batch()
    for augmentation in ("mixup", "cutmix", "clean"):
        view = AUGMENTATIONS[augmentation]()(images, labels, generator=seeded())
        if policy.needs_prediction:
            view = replace(view, prediction=torch.rand(30, 4, generator=seeded()).softmax(dim=1))
        policy.see(torch.randn(30, 4, generator=seeded()), labels)
        targets = policy(view)
        assert isinstance(policy, LabelPolicy)
        assert targets.shape == (30, 4)
        assert (targets >= 0).all()
        torch.testing.assert_close(targets.sum(dim=1), torch.ones(30))
        fresh.load_state_dict(policy.state_dict())
        assert torch.equal(fresh(view), targets)


@pytest.mark.parametrize("name", REGIMES)
def test_every_regime_builds_and_takes_a_step(name, model):
    chosen = REGIMES[name]
    augment = AUGMENTATIONS[chosen.augment](**chosen.augment_options)
    policy = labels_for(chosen.labels, 4, augment.grid, **chosen.label_options)
    images, labels = batch()
    view = augment(images, labels, model, generator=seeded())
    again = lambda: augment(images, labels, model, generator=seeded(8))  # noqa: E731
    loss = LOSSES[chosen.loss](model, images, view, policy, again)
    loss.backward()
    if name == "trades":
        assert loss > F.cross_entropy(model(images), labels)
    assert loss.isfinite()
    assert model[1].weight.grad.abs().sum() > 0
    model.zero_grad()


def test_an_unknown_regime_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r'no regime "randaug_autolabl".*Did you mean "randaug_autolabel"\?'):
        read_recipe("embedded", ["--regime=randaug_autolabl"])
