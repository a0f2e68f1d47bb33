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


def test_the_test_images_are_what_is_measured(monkeypatch):
    seen = []
    real = demo.measure
    monkeypatch.setattr(
        demo, "measure", lambda *args, **options: seen.append(real(*args, **options)) or seen[-1]
    )
    data = load_embedded()
    asked = []
    real_test = demo.test
    monkeypatch.setattr(
        demo, "test", lambda model, split, seed: asked.append(split) or real_test(model, split, seed)
    )
    demo.run("one-hot", 0, epochs=1)
    assert seen[0].count.tolist() == [2000] * 5
    assert torch.equal(asked[0].images, data.test.images)


def test_validation_images_move_on_through_the_buckets(monkeypatch):
    turns = []
    real = demo.calibrate
    monkeypatch.setattr(
        demo, "calibrate", lambda *args, **options: turns.append(options["turn"]) or real(*args, **options)
    )
    demo.train(AutoLabel(10, 82, alpha=0.1), RandAug(), 0, epochs=3)
    assert turns == [0, 1, 2]


def outcome(method, seed, accuracy):
    """Accuracy as given on clean images, and 10, 20, 30 and 40 points less under the distortions."""
    names = ("clean", *demo.DISTORTIONS)
    readings = {name: demo.Reading(accuracy - i / 10, 0.1, 0.09, 1.0, 0.5) for i, name in enumerate(names)}
    table = [0.5 + 0.2 * seed] * 82 if method == "AutoLabel" else None
    return demo.Outcome(method, seed, readings, table, 1.0, 0.1)


def test_the_tables_show_mean_and_spread_over_seeds():
    outcomes = [outcome(method, seed, (0.80, 0.84)[seed]) for method in demo.METHODS for seed in (0, 1)]
    table = demo_show.results(outcomes)
    accuracy = list(table.columns[2].cells)
    assert accuracy[::3] == ["82.0±2.8", "57.0±2.8", "72.0±2.8", "62.0±2.8", "52.0±2.8", "42.0±2.8"]
    assert next(iter(table.columns[3].cells)) == "10.0±0.0"
    assert next(iter(table.columns[5].cells)) == "1.00±0.00"
    assert str(next(iter(demo_show.heat_map(outcomes).columns[1].cells))).strip() == "60"


def test_occlusion_reaches_every_corner():
    hidden = demo.occlude(torch.zeros(4000, 1, 28, 28), torch.Generator().manual_seed(0)).amax(dim=(0, 1))
    assert (hidden == 0.5).all()
