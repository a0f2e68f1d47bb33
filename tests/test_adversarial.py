import math

import pytest
import torch
from torch import nn

from auglabel import calibrate
from auglabel.augment.adversarial import Adversarial

LABELS = torch.arange(500) % 10


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images(grey_images):
    return grey_images.float() / 255


def moved_by(view, images):
    return (view.images - images).abs().amax(dim=(1, 2, 3))


def test_strength_is_the_share_of_epsilon_max_that_each_image_may_move(linear_model, images):
    view = Adversarial(epsilon_max=0.05)(images, LABELS, linear_model, generator=seeded())
    torch.testing.assert_close(moved_by(view, images), 0.05 * view.strength, atol=1e-6, rtol=0)
    assert view.strength.min() < 0.02
    assert view.strength.max() > 0.98
    assert torch.equal(view.bucket, (10 * view.strength).ceil().long() - 1)
    assert torch.equal(view.labels, LABELS)


def test_every_bucket_can_be_asked_for(linear_model, images):
    bucket = torch.arange(500) % 4
    augment = Adversarial(epsilon_max=0.04, levels=4, clean_share=0.5)
    view = augment(images, LABELS, linear_model, bucket=bucket, generator=seeded())
    assert torch.equal(view.bucket, bucket)
    epsilon = moved_by(view, images)
    assert (epsilon > 0.01 * bucket).all()  # nothing is left clean
    assert (epsilon <= 0.01 * (bucket + 1) + 1e-6).all()


def test_attacks_go_against_the_hard_label(linear_model, images):
    labels = linear_model(images).argmax(dim=1)
    view = Adversarial(epsilon_max=0.1, fixed=True)(images, labels, linear_model)
    right = (linear_model(view.images).argmax(dim=1) == labels).float().mean()
    assert right < 0.5


def test_reach_is_how_far_an_image_moved_over_its_own_radius(linear_model, images):
    augment = Adversarial(epsilon_max=0.05, clean_share=0.5, levels=4)
    view = augment(images, LABELS, linear_model, generator=seeded())
    assert (view.reach[:250] == 0).all()
    radius = 0.05 * view.strength[250:]
    expected = moved_by(view, images)[250:] / radius
    torch.testing.assert_close(view.reach[250:], expected.clamp(max=1), atol=1e-5, rtol=0)
    assert view.reach[250:].min() > 0.99  # PGD goes to the end of its ball, however small


def test_an_image_that_cannot_move_has_no_reach(linear_model, images):
    view = Adversarial(epsilon_max=0.0)(images[:4], LABELS[:4], linear_model)
    assert view.reach.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("bucket", [None, torch.zeros(500, dtype=torch.int64)])
def test_fixed_always_takes_the_largest_epsilon_in_one_bucket(linear_model, images, bucket):
    augment = Adversarial(epsilon_max=0.03, fixed=True)
    view = augment(images, LABELS, linear_model, bucket=bucket)
    assert len(augment.grid) == 1
    assert (view.strength == 1).all()
    assert (view.bucket == 0).all()
    torch.testing.assert_close(moved_by(view, images), torch.full((500,), 0.03), atol=1e-6, rtol=0)


@pytest.mark.parametrize("fixed", [False, True])
def test_a_clean_share_is_left_alone_and_costs_nothing(linear_model, images, fixed):
    seen = []
    linear_model.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    augment = Adversarial(epsilon_max=0.05, steps=3, fixed=fixed, clean_share=0.3)
    before = images.clone()
    view = augment(images, LABELS, linear_model)
    assert torch.equal(view.images[:150], images[:150])
    assert torch.equal(images, before)
    assert (view.strength[:150] == 0).all()
    assert (view.bucket[:150] == 0).all()
    assert (view.strength[150:] > 0).all()
    torch.testing.assert_close(moved_by(view, images), 0.05 * view.strength, atol=1e-6, rtol=0)
    assert seen == [350] * 3


def test_all_or_nothing_may_be_clean(linear_model, images):
    view = Adversarial(clean_share=1.0)(images, LABELS, linear_model)
    assert torch.equal(view.images, images)
    nothing = torch.empty(0, 1, 28, 28), torch.empty(0, dtype=torch.int64)
    for share in (0.0, 0.5):
        assert len(Adversarial(clean_share=share)(*nothing, linear_model)) == 0


def test_bytes_come_back_as_floating_point(linear_model, grey_images, images):
    from_bytes, from_floats = (
        Adversarial()(given, LABELS, linear_model, generator=seeded()) for given in (grey_images, images)
    )
    assert from_bytes.images.dtype == torch.float32
    assert torch.equal(from_bytes.images, from_floats.images)


def test_same_seed_same_view_and_steps_count(linear_model, images):
    first, again, other = (
        Adversarial()(images, LABELS, linear_model, generator=seeded(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.strength, again.strength)
    assert not torch.equal(first.images, other.images)
    seen = []
    linear_model.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    Adversarial(steps=4)(images, LABELS, linear_model)
    assert seen == [500] * 4


def test_calibrating_attacks_inside_no_grad_and_leaves_the_model_as_it_was(images):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 10)).train()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    labels = model.eval()(images).argmax(dim=1)
    model.train()
    seen = calibrate(model, Adversarial(epsilon_max=0.01), [(images, labels)], generator=seeded())
    assert seen.count.tolist() == [500] * 10
    assert seen.accuracy[0] > seen.accuracy[4] > seen.accuracy[9]
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_missing_model_is_named(images):
    with pytest.raises(
        ValueError, match=r"Adversarial needs the model: call augment\(images, labels, model\)"
    ):
        Adversarial()(images, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon_max": -0.1}, r"epsilon_max must be in \[0, 1\], got -0.1"),
        ({"epsilon_max": 8}, r"epsilon_max must be in \[0, 1\], got 8"),
        ({"epsilon_max": math.nan}, "epsilon_max must be"),
        ({"levels": 0}, "levels must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"clean_share": 1.5}, r"clean_share must be in \[0, 1\]"),
        ({"clean_share": -0.5}, r"clean_share must be in \[0, 1\]"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Adversarial(**options)


def test_buckets_that_are_not_there_are_refused(linear_model, images):
    with pytest.raises(ValueError, match=r"bucket must be in 0..9 for 10 buckets, got 10"):
        Adversarial()(images, LABELS, linear_model, bucket=torch.full((500,), 10))


def test_against_the_prediction_the_labels_do_not_matter():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    images = torch.rand(6, 3, 4, 4)
    augment = Adversarial(epsilon_max=0.1, fixed=True, against="prediction")
    views = [
        augment(images, labels, model, generator=torch.Generator().manual_seed(0)).images
        for labels in (torch.zeros(6).long(), torch.ones(6).long())
    ]
    assert torch.equal(*views)
    p, q = model(images).softmax(dim=1), model(views[0]).softmax(dim=1)
    random = images + 0.1 * (2 * torch.rand(images.shape) - 1)
    r = model(random).softmax(dim=1)
    assert (p * (p / q).log()).sum() > (p * (p / r).log()).sum()
    with pytest.raises(ValueError, match=r'against must be "label" or "prediction", got .nothing.'):
        Adversarial(against="nothing")
