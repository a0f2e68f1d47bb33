"""The recipe for people's own pictures: which images it tests on, and what it costs."""

import numpy as np
import pytest
from PIL import Image

from auglabel.cli import main
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.run import Run
from auglabel.measure import calibrate

TINY = ["--data.size=8", "--model.widths=[4,4,4]", "--epochs=1", "--tracker=none"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))


def pictures(root, **parts):
    """So many pictures of a cat and as many of a dog in each part; `all` is the folder itself."""
    drawn = np.random.default_rng(0)
    for part, count in parts.items():
        for name in ("cat", "dog"):
            place = root / part.removeprefix("all") / name
            place.mkdir(parents=True)
            for number in range(count):
                pixels = drawn.integers(0, 256, (8, 8, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png")
    return root


def images_used(root, *words):
    _, parts = data_for(read_recipe("folder", [f"--data.root={root}", *TINY[:-1], *words]))
    return {name: len(part) for name, part in vars(parts).items()}


@pytest.mark.parametrize("name", ["test", "val"])
def test_all_images_of_a_test_folder_are_tested_on(tmp_path, name):
    root = pictures(tmp_path / "pictures", train=20, **{name: 10})
    assert images_used(root) == {"train": 34, "validation": 6, "test": 20}  # 15 % of 40


def test_a_fifth_becomes_the_test_part_where_there_is_none(tmp_path):
    root = pictures(tmp_path / "pictures", all=20)
    assert images_used(root) == {"train": 26, "validation": 6, "test": 8}


def test_fewer_test_images_are_used_on_request_alone_and_the_run_says_so(tmp_path, capsys):
    root = pictures(tmp_path / "pictures", train=20, test=10)
    assert main(["train", "folder", f"--data.root={root}", *TINY, f"--out={tmp_path / 'all'}"]) == 0
    assert "of the 20 test images" not in capsys.readouterr().out
    words = [f"--data.root={root}", *TINY, "--split.test=0.2", f"--out={tmp_path / 'some'}"]
    assert main(["train", "folder", *words]) == 0
    note = "split.test 0.2 uses 4 of the 20 test images"
    assert f"note: {note}\n" in capsys.readouterr().out
    assert note in Run(tmp_path / "some").facts().data.notes


def test_each_validation_image_is_measured_in_two_buckets_an_epoch(tmp_path, monkeypatch):
    root, asked = pictures(tmp_path / "pictures", train=20, test=10), []

    def spy(*words, visits, **others):
        asked.append(visits)
        return calibrate(*words, visits=visits, **others)

    monkeypatch.setattr("auglabel.augment_and_label.calibrate", spy)
    assert main(["train", "folder", f"--data.root={root}", *TINY, f"--out={tmp_path / 'run'}"]) == 0
    assert asked == [2]
