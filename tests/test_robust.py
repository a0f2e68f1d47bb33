import copy
import functools
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from conftest import Waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from auglabel.attack.robust import Sanity, adversarial_accuracy, sanity
from auglabel.data.embedded import load_embedded
from auglabel.models.small import SmallNet


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@functools.cache
def trained():
    """A small network after four passes over the embedded images: about 80 % right."""
    data = load_embedded().train
    torch.manual_seed(0)
    model = SmallNet(10, widths=(8, 16, 32), mean=(0.2860,), std=(0.3530,))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 240, pct_start=0.2, cycle_momentum=False)
    for _ in range(4):
        for rows in torch.randperm(len(data.labels), generator=seeded()).split(50):
            loss = F.cross_entropy(model(data.images[rows]), data.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval().requires_grad_(False)


def unseen(n):
    """The first `n` test images, in floating point, and their labels."""
    data = load_embedded().test
    return data.images[:n].float() / 255, data.labels[:n]


@settings(max_examples=50)
@given(
    seed=st.integers(0, 1000), epsilon=st.floats(0.01, 0.4), loss=st.sampled_from(["cross_entropy", "margin"])
)
def test_a_linear_model_keeps_what_no_corner_of_the_ball_can_take(seed, epsilon, loss):
    images, labels = torch.rand(40, 1, 4, 4, generator=seeded(seed)), torch.arange(40) % 2
    linear = nn.Linear(16, 2)
    linear.weight.data = torch.randn(2, 16, generator=seeded(seed))
    linear.bias.data = -linear.weight.data.sum(dim=1) / 2
    model = nn.Sequential(nn.Flatten(), linear)
    away = linear.weight.data[1 - labels] - linear.weight.data[labels]
    worst = (images.flatten(1) + epsilon * away.sign()).clamp(0, 1)
    expected = (linear(worst).argmax(dim=1) == labels).double().mean().item()
    found = adversarial_accuracy(model, images, labels, epsilon, steps=4, restarts=2, loss=loss, batch=16)
    assert found == pytest.approx(expected, abs=1e-9)


def test_epsilon_zero_gives_the_clean_accuracy_and_attacks_lower_it():
    images, labels = unseen(200)
    clean = (trained()(images).argmax(dim=1) == labels).double().mean().item()
    assert adversarial_accuracy(trained(), images, labels, 0) == clean
    assert adversarial_accuracy(trained(), images, labels, 0.03, steps=10, restarts=1) < clean - 0.1


@pytest.mark.filterwarnings("ignore:The gradient is zero")
def test_images_wrong_when_clean_are_not_attacked_and_never_count():
    class Jump(nn.Module):
        """Says class 1 exactly at grey, where every image starts; class 0 elsewhere."""

        seen = 0

        def forward(self, images):
            Jump.seen += len(images)
            x = images.mean(dim=(1, 2, 3))
            one = torch.where(x == 0.5, 1.0, -1.0) + 0 * x
            return torch.stack([0 * x, one], dim=1)

    images, labels = torch.full((6, 1, 2, 2), 0.5), torch.tensor([0, 0, 0, 0, 1, 1])
    assert adversarial_accuracy(Jump(), images, labels, 0.1, steps=5, restarts=2) == 0
    # 6 clean; 2 right ones fooled by their start and looked at once more; 2 at the end
    assert Jump.seen == 6 + 2 + 2 + 2


def test_batches_change_nothing():
    images, labels = unseen(60)
    one, many = (
        adversarial_accuracy(
            trained(), images, labels, 0.02, steps=40, restarts=1, batch=batch, generator=seeded()
        )
        for batch in (60, 7)
    )
    assert one == pytest.approx(many, abs=1.5 / 60)


def test_the_model_is_looked_at_in_evaluation_mode_and_left_as_it_was():
    images, labels = unseen(60)
    model = nn.Sequential(copy.deepcopy(trained()), nn.Dropout(0.9))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    for epsilon in (0, 0.02):
        evaluating, training = (
            adversarial_accuracy(model.train(mode), images, labels, epsilon, steps=5, generator=seeded())
            for mode in (False, True)
        )
        assert evaluating == training
    sanity(model, images[:20], labels[:20], 0.02, steps=(2,))
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_each_rank_attacks_on_its_own():
    images, labels = unseen(20)
    alone, wrapped = (
        sanity(model, images, labels, 0.02, steps=(2,), generator=seeded())
        for model in (trained(), Waiting(trained()))
    )
    assert alone == wrapped
    assert adversarial_accuracy(Waiting(trained()), images, labels, 0) == alone.by_epsilon[0]


def test_more_restarts_and_the_same_seed():
    images, labels = unseen(150)
    once, again, more = (
        adversarial_accuracy(trained(), images, labels, 0.03, steps=5, restarts=restarts, generator=seeded())
        for restarts in (1, 1, 4)
    )
    assert once == again
    assert more <= once


def test_an_honest_network_raises_no_suspicion():
    images, labels = unseen(200)
    found = sanity(trained(), images, labels, 0.03, steps=(1, 5, 20), generator=seeded())
    assert found.suspicions == []
    assert list(found.by_epsilon) == [0, 0.015, 0.03, 0.06, 0.12, 1.0]
    assert list(found.by_steps) == [1, 5, 20]
    assert found.by_steps[20] == found.by_epsilon[0.03] == found.by_loss["cross_entropy"]
    assert found.by_epsilon[0] > 0.7
    assert found.by_epsilon[1.0] == 0
    assert found.count == 200


class Masked(nn.Module):
    """`trained` with its gradients hidden from an attack on the cross-entropy."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.inside = trained()

    def forward(self, images):
        if self.way == "quantised":
            return self.inside((8 * images).round() / 8)
        return 1e6 * self.inside(images)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("quantised", ["At epsilon 1 any image is allowed", "the gradient is zero"]),
        ("loud", ["On the margin loss accuracy is", "the gradient is zero"]),
    ],
)
def test_hidden_gradients_are_suspicious(way, words):
    images, labels = unseen(100)
    found = sanity(Masked(way), images, labels, 0.06, steps=(1, 10), generator=seeded())
    told = " ".join(found.suspicions)
    assert all(word in told for word in words), told


HONEST = Sanity(
    count=500,
    by_epsilon={0.0: 0.9, 0.03: 0.5, 1.0: 0.0},
    by_steps={1: 0.6, 10: 0.5, 50: 0.51},
    by_loss={"cross_entropy": 0.51, "margin": 0.45},
    blind=0.0,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        (
            {"by_epsilon": {0.0: 0.9, 0.03: 0.5, 1.0: 0.012}},
            "any image is allowed, yet accuracy is 1.2%, not 0",
        ),
        ({"by_epsilon": {0.0: 0.9, 0.01: 0.3, 0.03: 0.5, 1.0: 0.0}}, "rises by 20.0% as the epsilon grows"),
        ({"by_steps": {1: 0.4, 10: 0.5, 50: 0.45}}, "rises by 10.0% as the number of steps grows"),
        ({"by_loss": {"cross_entropy": 0.5, "margin": 0.4}}, "margin loss accuracy is 10.0% lower"),
        ({"blind": 0.25}, "At 25.0% of the images the gradient is zero"),
    ],
)
def test_each_suspicion_is_put_in_words(change, words):
    told = replace(HONEST, **change).suspicions
    assert (told == []) if words is None else (len(told) == 1 and words in told[0])


def test_few_images_are_allowed_more_noise():
    assert replace(HONEST, count=20, by_steps={1: 0.4, 10: 0.5}).suspicions == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1}, "epsilon must be a finite number of at least 0"),
        ({"epsilon": math.nan}, "epsilon must be a finite number"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"restarts": 0}, "restarts must be at least 1"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"images": torch.full((2, 1, 4, 4), 2.0)}, r"in \[0, 1\]"),
        ({"images": torch.empty(0, 1, 4, 4), "labels": torch.empty(0).long()}, "needs images, got none"),
        ({"labels": torch.tensor([0, 2])}, r"labels must be in 0..1 for 2 classes, got 2"),
        ({"loss": "hinge"}, "loss must be"),
    ],
)
def test_values_that_mean_nothing_are_refused(options, message):
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    model[1].bias.data = torch.tensor([100.0, 0.0])
    given = {"images": torch.rand(2, 1, 4, 4), "labels": torch.zeros(2).long(), "epsilon": 0.1} | options
    with pytest.raises(ValueError, match=message):
        adversarial_accuracy(model, **given)


def test_soft_labels_and_odd_orders_are_refused():
    model, images, labels = (
        nn.Sequential(nn.Flatten(), nn.Linear(16, 2)),
        torch.rand(2, 1, 4, 4),
        torch.zeros(2),
    )
    with pytest.raises(TypeError, match="labels must be an int64 tensor"):
        adversarial_accuracy(model, images, torch.full((2, 2), 0.5), 0.1)
    for epsilon, steps in ((0, (1, 2)), (0.1, ()), (0.1, (5, 1)), (0.1, (5, 5))):
        with pytest.raises(ValueError, match="sanity takes an epsilon above 0 and growing steps, got"):
            sanity(model, images, labels.long(), epsilon, steps=steps)
