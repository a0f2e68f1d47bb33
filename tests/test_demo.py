import pytest
import torch

from auglabel import AutoLabel, LabelSmoothing, OneHot, RandAug
from auglabel.data.embedded import load_embedded
from auglabel.lab import demo, demo_show


def test_the_same_seed_gives_the_same_outcome():
    first, again = (demo.run("AutoLabel", 3, epochs=1) for _ in range(2))
    assert first.readings == again.readings
    assert first.table == again.table
    assert len(first.table) == 82
    assert min(first.table) < 1


def test_methods_share_images_weights_and_transformations_and_calibrating_shifts_none():
    policies = [OneHot(10), LabelSmoothing(10, rho=0.0), AutoLabel(10, 82, alpha=0.0)]  # one-hot, three times
    first, *others = (demo.train(policy, RandAug(), 3, epochs=2)[0].state_dict() for policy in policies)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("name", demo.DISTORTIONS)
def test_distortions_stay_in_range_and_do_something(name):
    images = load_embedded().test.images[:50].float() / 255
    moved = demo.DISTORTIONS[name](images, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert (moved - images).abs().mean() > 0.02


def outcome(method, seed, accuracy):
    readings = {name: demo.Reading(accuracy, 0.1, 0.09, 1.0, 0.5) for name in ("clean", *demo.DISTORTIONS)}
    return demo.Outcome(method, seed, readings, [0.5] * 82 if method == "AutoLabel" else None, 1.0, 0.1)


def test_the_table_shows_mean_and_spread_over_seeds():
    outcomes = [outcome(method, seed, (0.80, 0.84)[seed]) for method in demo.METHODS for seed in (0, 1)]
    table = demo_show.results(outcomes)
    assert next(iter(table.columns[2].cells)) == "82.0±2.8"
    assert next(iter(table.columns[3].cells)) == "10.0±0.0"
    assert len(table.rows) == 6 * len(demo.METHODS)
