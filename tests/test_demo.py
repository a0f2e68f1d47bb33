import contextlib
import io
import sys
from typing import NamedTuple

import pytest
import torch
from rich.console import Console

from auglabel import cli
from auglabel.data.embedded import load_embedded
from auglabel.lab.commands import demo, demo_show


class Shown(NamedTuple):
    outcomes: list[demo.Outcome]
    printed: str
    page: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """`auglabel demo` with one seed and one epoch, in its own processes."""
    folder, printed, outcomes = tmp_path_factory.mktemp("demo"), io.StringIO(), []

    def run_all(*asked):
        outcomes.extend(real(*asked))
        return outcomes

    real = demo_show._run_all
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(printed):
        patched.chdir(folder)
        patched.setattr(demo_show, "_run_all", run_all)
        assert cli.main(["demo", "--seeds=1", "--epochs=1"]) == 0
    return Shown(outcomes, printed.getvalue(), (folder / demo_show.PAGE).read_text())


def test_it_prints_every_method_and_the_learned_labels_and_ends_with_its_page(shown):
    learned = ("shear_x", "equalize")
    for word in (*demo.METHODS, "clean", "noise", "occlude", *learned, "runs/demo.html"):
        assert word in shown.printed
    assert "RandAug + AutoLabel" in shown.page
    assert "occlude, 2,000 images" in shown.page
    assert '<figure class="sheet">' in shown.page


def test_it_ends_well_without_what_draws_its_page(shown, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "altair", None)
    demo_show._report(shown.outcomes, demo.recipe_for("AutoLabel", 0, 1), Console(width=200))
    assert "No page was written: charts need altair" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_outcome_in_any_process_on_the_embedded_test_images(shown, monkeypatch):
    asked = []
    real = demo.evaluate
    monkeypatch.setattr(
        demo,
        "evaluate",
        lambda model, test, *rest, **options: asked.append(test) or real(model, test, *rest, **options),
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in the demo's processes
    again = demo.run("AutoLabel", 0, epochs=1)
    torch.set_num_threads(threads)
    (first,) = (outcome for outcome in shown.outcomes if outcome.method == "AutoLabel")
    assert first.readings == again.readings
    assert first.table == again.table
    assert len(first.table) == 82
    assert min(first.table) < 1
    assert list(again.readings) == ["clean", *demo.DISTORTIONS]
    assert torch.equal(asked[0].fetch(torch.arange(2000)), load_embedded().test.images)


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
