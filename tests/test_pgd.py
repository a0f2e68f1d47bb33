import math

import pytest
import torch
import torch.nn.functional as F
from conftest import Waiting
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from auglabel.attack.pgd import margin, pgd


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def conv_net(seed=0, channels=1, classes=4):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(24, classes),
    )


def some(n=12, channels=1, size=7, classes=4, seed=0):
    images = torch.rand(n, channels, size, size, generator=seeded(seed))
    return images, torch.randint(classes, (n,), generator=seeded(seed + 1))


def right_at_first(n=200):
    """A network that small changes can fool, images, and the classes it gives them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 6, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(150, 4)).eval()
    images, _ = some(n)
    with torch.no_grad():
        model[3].bias -= model(images).mean(dim=0)
        return model, images, model(images).argmax(dim=1)


class Direction(nn.Module):
    """Two classes; the logit of class 1 is the sum of all pixels, that of class 0 is `bias`."""

    def __init__(self, bias=0.0):
        super().__init__()
        self.bias = nn.Parameter(torch.tensor(bias))
        self.seen = 0

    def forward(self, images):
        self.seen += len(images)
        total = images.sum(dim=(1, 2, 3))
        return torch.stack([self.bias.expand(len(images)), total], dim=1)


GREY = torch.full((4, 1, 5, 5), 0.5)
ZEROS = torch.zeros(4, dtype=torch.int64)


@given(
    seed=st.integers(0, 10_000),
    channels=st.sampled_from([1, 3]),
    epsilon=st.floats(0, 1),
    loss=st.sampled_from(["cross_entropy", "margin"]),
)
def test_a_linear_model_is_attacked_to_the_corner_from_any_start(seed, channels, epsilon, loss):
    images, labels = some(channels=channels, classes=2, seed=seed)
    linear = nn.Linear(channels * 49, 2)
    weight = 0.1 * torch.randn(2, channels * 49, generator=seeded(seed))
    linear.weight.data = weight
    moved = pgd(
        nn.Sequential(nn.Flatten(), linear), images, labels, epsilon, loss=loss, generator=seeded(seed)
    )
    uphill = (weight[1 - labels] - weight[labels]).sign().view_as(images)
    torch.testing.assert_close(moved, (images + epsilon * uphill).clamp(0, 1), atol=1e-6, rtol=0)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    channels=st.sampled_from([1, 3]),
    size=st.integers(2, 9),
    largest=st.floats(0, 1.5),
    restarts=st.integers(1, 3),
    early_stop=st.booleans(),
)
def test_no_image_leaves_its_ball_or_the_range_of_pixels(seed, channels, size, largest, restarts, early_stop):
    images, labels = some(channels=channels, size=size, seed=seed)
    images[:2] = images[:2].round()  # on the edge of the range
    epsilon = largest * torch.rand(12, generator=seeded(seed))
    moved = pgd(
        conv_net(seed, channels),
        images,
        labels,
        epsilon,
        steps=4,
        restarts=restarts,
        early_stop=early_stop,
        generator=seeded(seed),
    )
    assert ((moved - images).abs().amax(dim=(1, 2, 3)) <= epsilon + 1e-6).all()
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert moved.shape == images.shape
    assert moved.dtype == images.dtype


def test_attacks_raise_the_loss_and_the_images_given_are_left_alone():
    images, labels = some(n=64)
    model, before = conv_net().eval(), images.clone()
    moved = pgd(model, images, labels, 0.1, generator=seeded())
    assert torch.equal(images, before)
    clean, attacked = (F.cross_entropy(model(x), labels, reduction="none") for x in (images, moved))
    assert (attacked > clean).all()


@pytest.mark.parametrize("restarts", [1, 3])
@pytest.mark.parametrize("early_stop", [False, True])
def test_epsilon_zero_is_the_identity_to_the_bit(restarts, early_stop):
    images, labels = some()
    images[0], images[1] = -0.0, 0.0
    epsilon = torch.tensor([0.0, 0.1]).repeat(6)
    for radius, same in ((0.0, slice(None)), (0, slice(None)), (epsilon, slice(0, None, 2))):
        moved = pgd(conv_net(), images, labels, radius, restarts=restarts, early_stop=early_stop)
        assert torch.equal(moved[same].view(torch.int32), images[same].view(torch.int32))
    assert (moved[1::2] != images[1::2]).any(dim=(1, 2, 3)).all()


def test_the_start_is_uniform_in_the_ball_and_cut_at_the_edge_of_the_range():
    images = torch.full((200, 1, 10, 10), 0.5)
    images[100:] = 0.0
    moved = pgd(Direction(), images, torch.zeros(200).long(), 0.2, steps=1, step=1e-6, generator=seeded())
    offset = (moved[:100] - 0.5) / 0.2
    counts = torch.histc(offset, bins=10, min=-1, max=1)  # 10,000 draws: 1,000 in each, +- 30
    assert ((counts - 1000).abs() < 150).all()
    assert abs((moved[100:] <= 1e-6).double().mean() - 0.5) < 0.02  # half would be below 0


def test_four_default_steps_cover_one_epsilon():
    """Uphill is up everywhere: a pixel gets to the top if it started within 4 * epsilon/4 of it."""
    images, labels = torch.full((100, 1, 10, 10), 0.5), torch.zeros(100).long()
    for steps, share in ((4, 0.5), (6, 0.75), (8, 1.0)):
        moved = pgd(Direction(), images, labels, 0.2, steps=steps, generator=seeded())
        assert abs((moved == images + 0.2).double().mean() - share) < 0.02


def test_steps_may_differ_by_image():
    images, step = torch.full((2, 1, 50, 50), 0.5), torch.tensor([0.1, 0.3])
    moved = pgd(
        Direction(), images, ZEROS[:2], torch.tensor([0.2, 0.2]), steps=1, step=step, generator=seeded()
    )
    share = (moved == images + 0.2).double().mean(dim=(1, 2, 3))
    torch.testing.assert_close(share, torch.tensor([0.25, 0.75]).double(), atol=0.03, rtol=0)


def test_restarts_keep_one_that_fools_the_model_else_the_highest_loss():
    model, images, labels = right_at_first()
    generator = seeded()
    one_by_one = [pgd(model, images, labels, 0.05, steps=2, generator=generator) for _ in range(4)]
    best = pgd(model, images, labels, 0.05, steps=2, restarts=4, generator=seeded())

    fooled = 0
    for i in range(len(images)):
        tries = torch.stack([moved[i] for moved in one_by_one])
        logits = model(tries).detach()
        loss = F.cross_entropy(logits, labels[i].expand(4), reduction="none")
        fools = (logits.argmax(dim=1) != labels[i]).tolist()
        chosen = max(range(4), key=lambda k: (fools[k], loss[k].item()))
        assert torch.equal(best[i], tries[chosen])
        fooled += any(fools)
    assert 0 < fooled < len(images)


@pytest.mark.filterwarnings("ignore:The gradient is zero")
def test_a_restart_that_fools_wins_over_a_higher_loss():
    """Three classes in a ring: far up the loss on class 0 is higher, but only low down is it wrong."""

    class Ring(nn.Module):
        def forward(self, images):
            x = images.mean(dim=(1, 2, 3))
            up = x > 0.5
            zero = torch.zeros_like(x)
            # up: p(true) = 0.34 against 0.33, 0.33; down: 0.45 against 0.55
            high = torch.stack([zero + math.log(0.34), zero + math.log(0.33), zero + math.log(0.33)], dim=1)
            low = torch.stack([zero + math.log(0.45), zero + math.log(0.549), zero + math.log(0.001)], dim=1)
            return torch.where(up[:, None], high, low) + 0 * x[:, None]

    images, labels = torch.full((60, 1, 1, 1), 0.5), torch.zeros(60).long()
    moved = pgd(Ring(), images, labels, 0.1, steps=1, restarts=12, generator=seeded())
    assert (moved.flatten() <= 0.5).all()


@pytest.mark.filterwarnings("ignore:The gradient is zero")
def test_losses_are_compared_in_float32_whatever_the_logits_are():
    """Margins of 256 and 257: the same number in bfloat16."""

    class Coarse(nn.Module):
        def forward(self, images):
            x = images.mean(dim=(1, 2, 3))
            true = torch.full_like(x, -100)
            other = torch.where(x > 0.5, 157.0, 156.0) + 0 * x
            return torch.stack([true, other], dim=1).bfloat16()

    images, labels = torch.full((60, 1, 1, 1), 0.5), torch.zeros(60).long()
    moved = pgd(Coarse(), images, labels, 0.1, steps=1, restarts=12, loss="margin", generator=seeded())
    assert (moved > 0.5).all()


def test_without_restarts_each_step_looks_at_each_image_once():
    model = Direction()
    pgd(model, GREY, ZEROS, 0.1, steps=7)
    assert model.seen == 7 * 4
    model.seen = 0
    pgd(model, GREY, ZEROS, 0.1, steps=7, restarts=2)
    assert model.seen == 2 * (7 + 1) * 4


def test_early_stop_looks_no_more_at_images_that_fool_the_model():
    """Two images are wrong from the start; the sum of the others, about 12, never gets below 5."""
    model, labels = Direction(bias=5.0), torch.tensor([0, 1, 0, 1])
    moved = pgd(model, GREY, labels, 0.1, steps=8, early_stop=True, generator=seeded())
    assert model.seen == 4 + 7 * 2
    torch.testing.assert_close(moved[1::2], GREY[1::2] - 0.1)
    assert (moved[::2] != GREY[::2] + 0.1).any()  # stopped where they started

    model.seen = 0
    pgd(model, GREY, labels, 0.1, steps=3, restarts=2, early_stop=True)
    assert model.seen == (4 + 2 + 2 + 4) + (2 + 2 + 2 + 2)

    model.seen = 0
    pgd(model, GREY, ZEROS, 0.1, steps=3, restarts=9, early_stop=True)
    assert model.seen == 4 + 4


def test_early_stop_fools_whatever_every_step_fools():
    model, images, labels = right_at_first()
    for restarts in (1, 3):
        full, early = (
            pgd(
                model,
                images,
                labels,
                0.05,
                restarts=restarts,
                early_stop=early_stop,
                generator=seeded(),
            )
            for early_stop in (False, True)
        )
        with torch.no_grad():
            by_full, by_early = (model(moved).argmax(dim=1) != labels for moved in (full, early))
        assert 0 < by_full.sum() < len(images)
        assert not (by_full & ~by_early).any()


def test_early_stop_shifts_no_start_of_the_others():
    model, labels = Direction(bias=5.0), torch.tensor([0, 1, 0, 1])
    full, early = (
        pgd(model, GREY, labels, 0.1, steps=1, restarts=3, early_stop=early_stop, generator=seeded())
        for early_stop in (False, True)
    )
    assert torch.equal(full[1::2], early[1::2])


def test_same_seed_same_images():
    images, labels = some()
    first, again, other = (
        pgd(conv_net(), images, labels, 0.1, restarts=2, generator=seeded(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_soft_labels_that_are_one_hot_act_like_hard_ones():
    images, labels = some()
    model, images = conv_net().double(), images.double()
    hard, soft = (
        pgd(model, images, target, 0.1, restarts=2, generator=seeded())
        for target in (labels, F.one_hot(labels, 4).float())
    )
    assert torch.equal(hard, soft)


def test_soft_labels_push_the_prediction_away_from_all_of_the_label():
    """The model says (0.9, 0.1): further up raises the loss of label (1, 0), but lowers (0.6, 0.4)'s."""
    soft = torch.tensor([[1.0, 0.0], [0.6, 0.4]])
    moved = pgd(Direction(bias=12.5 + math.log(9)), GREY[:2], soft, 1e-3, generator=seeded())
    torch.testing.assert_close(moved[0], GREY[0] + 1e-3)
    torch.testing.assert_close(moved[1], GREY[1] - 1e-3)


def test_margin_is_the_largest_other_logit_minus_the_true_one():
    logits = torch.tensor([[2.0, 5.0, 1.0], [2.0, 5.0, 1.0], [-3.0, -7.0, -4.0]])
    torch.testing.assert_close(margin(logits, torch.tensor([0, 1, 0])), torch.tensor([3.0, -3.0, -1.0]))


@pytest.mark.filterwarnings("ignore:The gradient is zero")
def test_the_margin_loss_sees_where_cross_entropy_is_blind():
    """Logits a million apart: the softmax is exactly (0, 1) and its gradient exactly 0."""

    class Loud(Direction):
        def forward(self, images):
            return 1e6 * super().forward(images)

    ones = torch.ones(4, dtype=torch.int64)
    by_entropy, by_margin = (
        pgd(Loud(bias=5.0), GREY, ones, 0.1, loss=loss, generator=seeded())
        for loss in ("cross_entropy", "margin")
    )
    torch.testing.assert_close(by_margin, GREY - 0.1)
    assert (by_entropy != GREY - 0.1).any()


def test_modes_statistics_parameters_and_gradients_stay_as_they_were():
    images, labels = some()
    model = conv_net().train()
    model[5].eval()
    model[6].bias.requires_grad_(False)
    model(images).sum().backward()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]

    moved = pgd(model, images.requires_grad_(), labels, 0.1, restarts=2)

    assert [module.training for module in model.modules()] == [True] * 6 + [False, True]
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert [p.requires_grad for p in model.parameters()] == [True] * 4 + [False]
    for parameter, before in zip(model.parameters(), gradients, strict=True):
        assert before is parameter.grad is None or torch.equal(parameter.grad, before)
    assert images.grad is None
    assert not moved.requires_grad


def test_modes_come_back_after_an_error():
    model = conv_net(channels=3).train()
    with pytest.raises(RuntimeError):
        pgd(model, *some(channels=1), 0.1)
    assert all(module.training for module in model.modules())


def test_attacks_are_crafted_in_evaluation_mode():
    images, labels = some()
    model = conv_net()
    training, evaluating = (
        pgd(model.train(mode), images, labels, 0.1, generator=seeded()) for mode in (True, False)
    )
    assert torch.equal(training, evaluating)


def test_each_rank_attacks_on_its_own():
    images, labels = some()
    alone, wrapped = (
        pgd(model, images, labels, 0.1, restarts=2, generator=seeded())
        for model in (conv_net(), Waiting(conv_net()))
    )
    assert torch.equal(alone, wrapped)


def test_gradients_are_found_inside_no_grad():
    images, labels = some()
    with torch.no_grad():
        inside = pgd(conv_net(), images, labels, 0.1, generator=seeded())
        assert not torch.is_grad_enabled()
    assert torch.equal(inside, pgd(conv_net(), images, labels, 0.1, generator=seeded()))


@pytest.mark.parametrize("loss", ["cross_entropy", "margin"])
def test_autocast_leaves_images_in_float32_and_training_after_it_whole(loss):
    images, labels = some(n=64)
    model = conv_net()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        moved = pgd(model, images, labels, 0.1, loss=loss, restarts=2, generator=seeded())
        assert model(images).dtype == torch.bfloat16
        F.cross_entropy(model(moved), labels).backward()
    assert moved.dtype == torch.float32
    assert ((moved - images).abs() <= 0.1 + 1e-6).all()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    clean, attacked = (F.cross_entropy(model(x), labels) for x in (images, moved))
    assert attacked > clean + 0.01


@pytest.mark.parametrize("early_stop", [False, True])
@pytest.mark.parametrize("restarts", [1, 2])
def test_the_memory_format_is_kept(restarts, early_stop):
    images, labels = some(channels=3)
    shapes = []
    model = conv_net(channels=3)
    model.register_forward_pre_hook(
        lambda _, args: shapes.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    images = images.to(memory_format=torch.channels_last)
    moved = pgd(model, images, labels, 0.1, restarts=restarts, early_stop=early_stop)
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert all(shapes)


def test_one_image_repeated_without_memory_of_its_own_can_be_attacked():
    images = some(n=1)[0].expand(5, 1, 7, 7)
    moved = pgd(conv_net(), images, torch.zeros(5).long(), 0.1)
    assert len({tuple(image.flatten().tolist()) for image in moved}) == 5


def test_an_empty_batch_comes_back_empty():
    moved = pgd(conv_net(), torch.empty(0, 1, 7, 7), torch.empty(0, dtype=torch.int64), 0.1, restarts=2)
    assert moved.shape == (0, 1, 7, 7)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must be a finite number of at least 0, got -0.1"),
        ({"epsilon": NAN}, "epsilon must be a finite number.*got nan"),
        ({"epsilon": INF}, "epsilon must be a finite number.*got inf"),
        ({"epsilon": torch.tensor([0.1, 0.1, -0.5, 0.1])}, "epsilon must be finite and at least 0, got -0.5"),
        ({"epsilon": torch.tensor([0.1, NAN, 0.1, 0.1])}, "epsilon must be finite and at least 0, got nan"),
        ({"epsilon": torch.tensor([0.1, INF, 0.1, 0.1])}, "epsilon must be finite and at least 0, got inf"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
        ({"step": 0}, "step must be above 0, got 0"),
        ({"step": -0.1}, "step must be a finite number of at least 0, got -0.1"),
        ({"step": torch.tensor([0.1, 0.0, 0.1, 0.1])}, "step must be finite and above 0, got 0.0"),
        ({"images": GREY + 1}, r"in \[0, 1\], got values from 1.5 to 1.5"),
        ({"images": GREY * NAN}, "some values are nan"),
        ({"images": GREY[0]}, r"shape \(B, C, H, W\)"),
        ({"labels": ZEROS[:3]}, "equal length.*images 4, labels 3"),
        ({"labels": ZEROS + 2}, r"labels must be in 0..1 for 2 classes, got 2"),
        ({"labels": ZEROS - 1}, r"labels must be in 0..1 for 2 classes, got -1"),
        ({"labels": torch.full((4, 2), 0.7)}, "Soft labels must be probabilities, each row adding up to 1"),
        ({"labels": torch.tensor([[1.5, -0.5]] * 4)}, "Soft labels must be probabilities"),
        ({"labels": torch.full((4, 2), NAN)}, "Soft labels must be probabilities"),
        ({"labels": torch.full((4, 4), 0.25)}, "one column for each of the model's 2 classes, got 4"),
        ({"labels": torch.full((4, 2), 0.5), "loss": "margin"}, 'loss "margin" needs hard labels'),
        ({"loss": "mse"}, 'loss must be "cross_entropy" or "margin", got \'mse\''),
    ],
)
def test_values_that_mean_nothing_are_refused(options, message):
    given = {"images": GREY, "labels": ZEROS, "epsilon": 0.1} | options
    with pytest.raises(ValueError, match=message):
        pgd(Direction(), **given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": lambda images: images}, "model must be a torch.nn.Module, got function"),
        ({"images": torch.zeros(4, 1, 5, 5, dtype=torch.uint8)}, r"floating point in \[0, 1\], got a uint8"),
        ({"labels": ZEROS.int()}, r"labels must be classes \(B,\) in int64 or probabilities.*got a int32"),
        ({"labels": ZEROS.float()}, r"labels must be classes.*got a float32 tensor of shape \(4,\)"),
        ({"labels": ZEROS[:, None]}, r"labels must be classes.*got a int64 tensor of shape \(4, 1\)"),
        ({"labels": [0, 0, 0, 0]}, "labels must be a tensor"),
        ({"epsilon": torch.tensor([0.1])}, r"epsilon must be a number or a.* of shape \(4,\), got a float32"),
        ({"epsilon": ZEROS}, r"epsilon must be a number or a floating point tensor"),
        ({"epsilon": "0.1"}, "epsilon must be a number, got str '0.1'"),
        ({"step": torch.ones(2)}, r"step must be a number or a floating point tensor of shape \(4,\)"),
        ({"steps": 2.0}, "steps must be a whole number"),
        ({"restarts": True}, "restarts must be a whole number"),
    ],
)
def test_wrong_types_are_refused(options, message):
    given = {"model": Direction(), "images": GREY, "labels": ZEROS, "epsilon": 0.1} | options
    with pytest.raises(TypeError, match=message):
        pgd(**given)


class Without(nn.Module):
    """A model that lets no gradient through to its input, each in its own way."""

    def __init__(self, way):
        super().__init__()
        self.way = way
        self.linear = nn.Linear(25, 2)

    def forward(self, images):
        flat = images.flatten(1)
        if self.way == "no_grad":
            with torch.no_grad():
                return self.linear(flat)
        if self.way == "bytes":
            return self.linear((255 * flat).to(torch.uint8) / 255)
        return self.linear(flat.detach())


@pytest.mark.parametrize("way", ["no_grad", "bytes", "detach"])
def test_a_model_without_gradients_to_its_input_is_refused(way):
    model = Without(way).train()
    with pytest.raises(ValueError, match="gives no gradient to its input, so the attack would be blind"):
        pgd(model, GREY, ZEROS, 0.1)
    assert model.training


def test_models_that_do_not_return_logits_are_refused():
    with pytest.raises(
        ValueError, match=r"must return logits \(4, K\) with K >= 2, got a float32 .*\(4, 1\)"
    ):
        pgd(nn.Sequential(nn.Flatten(), nn.Linear(25, 1)), GREY, ZEROS, 0.1)
    with pytest.raises(ValueError, match=r"must return logits \(4, K\)"):
        pgd(nn.Identity(), GREY, ZEROS, 0.1)


def test_inference_mode_is_refused_with_the_way_out():
    with (
        torch.inference_mode(),
        pytest.raises(RuntimeError, match=r"inference_mode is on\. Use torch.no_grad instead"),
    ):
        pgd(Direction(), GREY, ZEROS, 0.1)


def test_a_zero_gradient_everywhere_is_said():
    class Stairs(nn.Module):
        def forward(self, images):
            return images.round().flatten(1)[:, :3]

    with pytest.warns(UserWarning, match="the attack is blind"):
        pgd(Stairs(), torch.rand(2, 1, 2, 2), torch.tensor([0, 1]), 0.1)


def test_nan_logits_are_refused():
    class Broken(nn.Module):
        def forward(self, images):
            return images.flatten(1)[:, :3] * float("nan")

    with pytest.raises(ValueError, match="its logits hold nan"):
        pgd(Broken(), torch.rand(2, 1, 2, 2), torch.tensor([0, 1]), 0.1)
