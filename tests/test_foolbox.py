import sys

import pytest
import torch
from test_robust import Waiting, trained, unseen
from torch import nn

from auglabel.attack.foolbox import ATTACKS, foolbox_attack
from auglabel.attack.pgd import pgd

SHORT = {"hop_skip_jump": {"steps": 1, "initial_gradient_eval_steps": 10}, "noise": {"repeats": 5}}


@pytest.fixture(autouse=True)
def foolbox(request):
    if "without_foolbox" not in request.node.name:
        pytest.importorskip("foolbox")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).double().mean().item()


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_stays_in_its_ball_and_takes_some_accuracy(name):
    images, labels = unseen(40)
    epsilon = 0.1
    moved = foolbox_attack(
        trained(), images, labels, epsilon, name, generator=seeded(), **SHORT.get(name, {})
    )
    assert ((moved - images).abs() <= epsilon + 1e-6).all()
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert not moved.requires_grad
    assert accuracy(trained(), moved, labels) < accuracy(trained(), images, labels)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.02, 10), (0.05, 20)])
def test_our_pgd_is_as_strong_as_foolbox_within_a_point(epsilon, steps):
    images, labels = unseen(600)
    ours = pgd(trained(), images, labels, epsilon, steps=steps, generator=seeded())
    theirs = foolbox_attack(
        trained(), images, labels, epsilon, "pgd", steps=steps, rel_stepsize=0.25, generator=seeded()
    )
    by_ours, by_theirs = (accuracy(trained(), moved, labels) for moved in (ours, theirs))
    assert 0.1 < by_theirs < accuracy(trained(), images, labels) - 0.1
    assert by_ours == pytest.approx(by_theirs, abs=0.01)


class Rounding(nn.Module):
    def forward(self, images):
        return (16 * images).round() / 16


def test_asking_for_predictions_alone_sees_through_hidden_gradients():
    images, labels = unseen(30)
    model = nn.Sequential(Rounding(), trained())
    clean = accuracy(model, images, labels)
    blind = foolbox_attack(model, images, labels, 0.12, "fgsm")
    assert accuracy(model, blind, labels) == clean
    moved = foolbox_attack(model, images, labels, 0.12, "hop_skip_jump", generator=seeded(), steps=2)
    assert accuracy(model, moved, labels) < clean - 0.05


@pytest.mark.parametrize("name", ATTACKS)
def test_the_model_and_the_random_stream_stay_as_they_were(name):
    images, labels = unseen(10)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 10)).train()
    model[2].bias.requires_grad_(False)
    model[2].weight.grad = torch.ones_like(model[2].weight)
    labels = model.eval()(images).argmax(dim=1)
    model.train()[2].eval()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    stream = torch.random.get_rng_state()
    with torch.no_grad():
        moves = [
            foolbox_attack(model, images, labels, 0.1, name, generator=seeded(seed), **SHORT.get(name, {}))
            for seed in (1, 1)
        ]
    assert torch.equal(*moves)
    assert torch.equal(torch.random.get_rng_state(), stream)
    assert [module.training for module in model.modules()] == [True, True, True, False]
    assert [parameter.requires_grad for parameter in model.parameters()] == [True, True, True, False]
    assert (model[2].weight.grad == 1).all()
    assert model[1].weight.grad is None
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


def test_hop_skip_jump_leaves_what_is_wrong_already_and_needs_another_class():
    images, _ = unseen(8)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    wrong = (model(images).argmax(dim=1) + 1) % 10
    assert torch.equal(foolbox_attack(model, images, wrong, 0.1, "hop_skip_jump"), images)
    model[1].bias.data[3] = 100.0
    with pytest.raises(ValueError, match=r"takes the whole batch for class 3\. Give a batch with several"):
        foolbox_attack(model, images, torch.full((8,), 3), 0.1, "hop_skip_jump")


def test_hop_skip_jump_minds_the_max_norm():
    images, labels = unseen(8)
    default, largest, length = (
        foolbox_attack(
            trained(),
            images,
            labels,
            0.1,
            "hop_skip_jump",
            generator=seeded(),
            **SHORT["hop_skip_jump"],
            **more,
        )
        for more in ({}, {"constraint": "linf"}, {"constraint": "l2"})
    )
    assert torch.equal(default, largest)
    assert not torch.equal(default, length)


def test_an_empty_batch_comes_back_empty():
    nothing = torch.empty(0, 1, 28, 28), torch.empty(0, dtype=torch.int64)
    assert foolbox_attack(trained(), *nothing, 0.1, "pgd").shape == (0, 1, 28, 28)


@pytest.mark.parametrize("name", ["fgsm", "noise"])
def test_each_rank_attacks_on_its_own(name):
    alone, wrapped = (
        foolbox_attack(model, *unseen(5), 0.1, name, generator=seeded())
        for model in (trained(), Waiting(trained()))
    )
    assert torch.equal(alone, wrapped)


def test_names_options_and_values_that_mean_nothing_are_refused():
    images, labels = unseen(2)
    with pytest.raises(ValueError, match=r'name must be one of pgd, fgsm, .*, got "cw"'):
        foolbox_attack(trained(), images, labels, 0.1, "cw")
    with pytest.raises(TypeError, match=r"pgd does not take these options.*stride.*See foolbox's Linf"):
        foolbox_attack(trained(), images, labels, 0.1, "pgd", stride=1)
    with pytest.raises(ValueError, match="epsilon must be a finite number of at least 0"):
        foolbox_attack(trained(), images, labels, -0.1, "pgd")
    with pytest.raises(TypeError, match="got a uint8"):
        foolbox_attack(trained(), (255 * images).byte(), labels, 0.1, "pgd")


class Detached(nn.Module):
    def forward(self, images):
        return images.detach()


def test_a_model_without_gradients_to_its_input_is_refused():
    images, labels = unseen(2)
    for name in ("pgd", "fgsm", "deepfool"):
        with pytest.raises(ValueError, match="gives no gradient to its input, so the attack would be blind"):
            foolbox_attack(nn.Sequential(Detached(), trained()), images, labels, 0.1, name)


def test_without_foolbox_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "foolbox", None)
    images, labels = torch.zeros(2, 1, 28, 28), torch.zeros(2, dtype=torch.int64)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    with pytest.raises(ImportError, match=r"needs foolbox.*pip install 'auglabel\[attack\]'"):
        foolbox_attack(model, images, labels, 0.1, "pgd")
