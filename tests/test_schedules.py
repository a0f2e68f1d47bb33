import pytest

from auglabel.lab.parts.schedules import SCHEDULES, cosine, one_cycle, steps
from auglabel.lab.recipe.read import read_recipe


def rate(name, epoch, images, batch):
    """The rate at the first step of an epoch, of a paper recipe, as a part of the highest."""
    recipe = read_recipe(name, ["--data.root=x"])
    per_epoch = -(-images // batch)
    shape = SCHEDULES[recipe.schedule.name]
    step = round(epoch * per_epoch)
    return shape(step, recipe.training.epochs * per_epoch, **recipe.schedule.options)


@pytest.mark.parametrize("batch", [128, 512])
def test_cifar_drops_by_five_at_the_first_step_of_epochs_60_120_and_160(batch):
    per_epoch = -(-45000 // batch)
    just = 1 / per_epoch
    for epoch, level in ((1, 1), (60, 0.2), (120, 0.04), (160, 0.008)):
        assert rate("cifar100", epoch, 45000, batch) == pytest.approx(level)
        before = level if epoch == 1 else 5 * level
        assert rate("cifar100", epoch - just, 45000, batch) == pytest.approx(before)


def test_cifar_rises_in_a_straight_line_through_the_first_epoch():
    per_epoch = -(-45000 // 128)
    for step in (0, 10, per_epoch - 1):
        assert rate("cifar100", step / per_epoch, 45000, 128) == pytest.approx((step + 1) / per_epoch)


@pytest.mark.parametrize("batch", [256, 4096])
def test_imagenet_drops_by_ten_at_epochs_30_60_and_80_and_warms_up_for_five(batch):
    images, per_epoch = 1281167, -(-1281167 // batch)
    for epoch, level in ((30, 0.1), (60, 0.01), (80, 0.001)):
        assert rate("imagenet", epoch, images, batch) == pytest.approx(level)
        assert rate("imagenet", epoch - 1 / per_epoch, images, batch) == pytest.approx(10 * level)
    assert rate("imagenet", 2.5, images, batch) == pytest.approx(0.5, abs=2 / per_epoch)
    assert rate("imagenet", 5, images, batch) == 1


def test_cosine_rises_to_one_then_falls_to_almost_nothing():
    values = [cosine(step, 100, warmup=0.1) for step in range(100)]
    assert values[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert values[10] == 1
    assert values[55] == pytest.approx(0.5)
    assert 0 < values[99] < 0.001


def test_no_warm_up_and_a_run_of_one_step_are_fine():
    assert cosine(0, 1, warmup=0) == 1
    assert steps(0, 1, warmup=0, drops=()) == 1


def test_one_cycle_goes_up_and_down_in_straight_lines():
    rates = [one_cycle(step, 20, warmup=0.25, start=0.2, end=0.1) for step in range(21)]
    assert rates[:6] == pytest.approx([0.2, 0.36, 0.52, 0.68, 0.84, 1.0])
    assert rates[5:] == pytest.approx([1 - 0.06 * step for step in range(16)])
    assert one_cycle(0, 10, warmup=0.0) == 1
    with pytest.raises(ValueError, match=r"warmup must be in \[0, 1\]"):
        one_cycle(0, 10, warmup=2)
