"""Same seed, same recipe, same machine: the same bits, however the work was cut up.

tests/test_train.py has the same of images in memory: runs that were stopped, killed and resumed.
"""

import json
import random

import numpy as np
import pytest
from PIL import Image
from sweeps import results_in, sweep
from test_train import content

from auglabel import cli
from auglabel.lab.runs.run import Run

STEPS = 8


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """72 pictures of three classes, of two sizes."""
    place, draw = tmp_path_factory.mktemp("data") / "pictures", np.random.default_rng(0)
    for number in range(72):
        folder = place / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        shape = (24, 24, 3) if number % 2 else (30, 26, 3)
        pixels = draw.integers(0, 190, shape, dtype=np.uint8) + 20 * (number % 3)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    return place


def train(out, pictures, *words, workers=0):
    """Streamed, cut at random and augmented; AutoLabel; two epochs of four steps."""
    base = ["train", "folder", f"--data.root={pictures}", "--data.memory_gb=0", "--data.size=20"]
    base += ["--data.train_crop=random_resized", "--batch_size=10", "--epochs=2", "--model.widths=[4,8,8]"]
    base += ["--split.train=40", "--split.validation=16", "--split.test=16", "--alpha=0.3", "--tracker=none"]
    assert cli.main([*base, f"--out={out}", f"--workers={workers}", *words]) == 0
    return out


@pytest.fixture(scope="module")
def whole(pictures, tmp_path_factory):
    """A run that was never stopped, without workers."""
    return train(tmp_path_factory.mktemp("runs") / "whole", pictures)


def test_streamed_images_train_to_the_same_bits_with_workers_and_without(whole, pictures, tmp_path):
    assert Run(whole).facts().data.images["train"] == 40
    assert content(train(tmp_path / "two", pictures, workers=2)) == content(whole)


def test_two_runs_in_a_row_are_equal(whole, pictures, tmp_path):
    assert content(train(tmp_path / "again", pictures)) == content(whole)
    assert content(train(tmp_path / "other", pictures, "--seed=1"))[2] != content(whole)[2]


def test_a_run_resumed_at_a_random_step_is_equal_whatever_the_workers(whole, pictures, tmp_path):
    stop = random.Random(7).randrange(1, STEPS)
    train(tmp_path / "run", pictures, f"--max_steps={stop}", workers=2)
    assert not (tmp_path / "run" / "model.safetensors").exists()
    train(tmp_path / "run", pictures, "--resume", f"--max_steps={STEPS - 1}", workers=0)
    assert content(train(tmp_path / "run", pictures, "--resume", workers=2)) == content(whole)


def evaluation(out, run, *words):
    """What was measured, less when and by which version."""
    assert cli.main(["eval", str(run), "--resamples=20", f"--out={out}", *words]) == 0
    (file,) = out.glob("*.json")
    return {key: value for key, value in json.loads(file.read_text()).items() if key in ("rows", "means")}


def test_measurements_are_equal_with_workers_without_and_again(whole, tmp_path):
    words = ["--on=clean,gaussian_noise,pgd", "--steps=3", "--restarts=1"]
    first, again, helped = (
        evaluation(tmp_path / f"eval-{name}", whole, *words, f"--workers={workers}")
        for name, workers in (("first", 0), ("again", 0), ("helped", 2))
    )
    assert len(first["rows"]) == 7
    assert first == again == helped


def test_corrupted_copies_are_equal_with_one_worker_and_two(tmp_path):
    """tests/test_copies.py has the same of folders."""
    found = []
    for workers in (1, 2):
        out = tmp_path / f"copies{workers}"
        words = ["--suite=gaussian_noise,frost", "--images=6", "--layout=npy", f"--workers={workers}"]
        assert cli.main(["corrupt", "embedded", str(out), *words]) == 0
        found.append({path.name: path.read_bytes() for path in out.glob("*.npy")})
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_a_sweep_has_the_same_results_with_one_worker_and_two(tmp_path):
    found = []
    for workers in (1, 2):
        assert sweep(tmp_path / str(workers), "--over=alpha=0.1,0.3", "--seeds=1", workers=workers) == 0
        results = results_in(tmp_path / str(workers)).values()
        found.append([{k: v for k, v in one.items() if k not in ("seconds", "checksum")} for one in results])
    assert len(found[0]) == 2
    assert found[0] == found[1]


def test_a_report_written_twice_is_the_same_page(whole, tmp_path):
    for name in ("one", "two"):
        assert cli.main(["report", str(whole), f"--out={tmp_path / name}.html"]) == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
