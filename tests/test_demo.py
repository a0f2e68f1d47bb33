import pytest
import torch

from auglabel.data.embedded import load_embedded
from auglabel.lab import demo, demo_show


def test_the_same_seed_gives_the_same_outcome():
    first, again = (demo.run("AutoLabel", 3, epochs=1) for _ in range(2))
    assert first.readings == again.readings
    assert first.table == again.table
    assert len(first.table) == 82
    assert min(first.table) < 1


def test_methods_share_everything_but_their_labels():
    first, *others = (demo.recipe_for(method, 3, 2) for method in demo.METHODS)
    for other in others:
        assert {line.partition(":")[0].partition(".")[0] for line in first.differences(other)} == {"labels"}


@pytest.mark.parametrize("name", demo.DISTORTIONS)
def test_distortions_stay_in_range_and_do_something(name):
    images = load_embedded().test.images[:50].float() / 255
    moved = demo.DISTORTIONS[name](images, torch.Generator().manual_seed(0))
    assert moved.shape == images.shape
    assert moved.min() >= 0
    assert moved.max() <= 1
    assert (moved - images).abs().mean() > 0.02


def test_the_embedded_test_images_are_what_is_measured(monkeypatch):
    asked = []
    real = demo.evaluate
    monkeypatch.setattr(
        demo,
        "evaluate",
        lambda model, test, *rest, **options: asked.append(test) or real(model, test, *rest, **options),
    )
    outcome = demo.run("one-hot", 0, epochs=1)
    assert list(outcome.readings) == ["clean", *demo.DISTORTIONS]
    assert torch.equal(asked[0].fetch(torch.arange(2000)), load_embedded().test.images)


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
    assert str(next(iter(demo_show.learned(outcomes).columns[1].cells))).strip() == "60"


def test_occlusion_reaches_every_corner():
    hidden = demo.occlude(torch.zeros(4000, 1, 28, 28), torch.Generator().manual_seed(0)).amax(dim=(0, 1))
    assert (hidden == 0.5).all()
