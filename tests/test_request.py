"""`auglabel eval` as a user has it: on a run, on a network from elsewhere, and on what cannot be measured."""

import csv
import json
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file
from sklearn.metrics import accuracy_score, log_loss

from auglabel import cli
from auglabel.data.embedded import load_embedded
from auglabel.data.npz import npz
from auglabel.lab.runs.run import Run
from auglabel.models.resnet import ResNet
from auglabel.models.small import SmallNet

ROOT = Path(__file__).parents[1]
SPLIT = ["--split.train", "100", "--split.validation", "60", "--split.test", "200"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two epochs on 100 images."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    words = ["train", "embedded", "--epochs", "2", *SPLIT, "--tracker", "none", "--out", str(out)]
    assert cli.main(words) == 0
    return out


@pytest.fixture
def run(trained, tmp_path):
    """A copy that a test may spoil."""
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])


def refuse(token):
    raise AssertionError(f"{token} is not JSON")


def results(folder, name="clean"):
    found = json.loads((folder / f"{name}.json").read_text(), parse_constant=refuse)
    with (folder / f"{name}.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == sum(1 + len(row["scaled"]) for row in found["rows"])
    return found


def complaint(capsys, *words):
    """The one sentence that `auglabel eval` ends with."""
    capsys.readouterr()
    assert cli.main(["eval", *map(str, words)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("auglabel: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("which", ["last", "best"])
def test_a_run_is_measured_with_the_weights_asked_for(run, which, capsys):
    assert cli.main(["eval", str(run), "--checkpoint", which, "--resamples", "20"]) == 0
    name = "clean" if which == "last" else "clean-best"
    found = results(run / "eval", name)
    paths = {"last": Run(run).steps()[-1], "best": Run(run).best_file}
    tensors = load_file(paths[which])
    model = SmallNet(10, mean=(0.5,), std=(0.5,))
    model.load_state_dict({n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")})
    rows, data = load_file(Run(run).split_file)["test"], load_embedded().test
    with torch.no_grad():
        probs = model.eval()(data.images[rows]).double().softmax(dim=1)
    (row,) = found["rows"]
    assert (found["checkpoint"], found["averaged"], row["count"]) == (which, False, 200)
    accuracy = row["figures"]["accuracy"]
    assert accuracy["value"] == accuracy_score(data.labels[rows], probs.argmax(dim=1))
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]
    assert row["figures"]["nll"]["value"] == pytest.approx(
        log_loss(data.labels[rows], probs, labels=range(10)), rel=1e-4
    )
    assert found["data"]["checksum"] == Run(run).facts().data.checksum
    assert found["attack"] is None
    printed = capsys.readouterr().out
    assert f"{100 * accuracy['value']:.1f}" in printed
    assert f"wrote {run / 'eval' / name}.json and .csv" in printed


def test_a_run_is_measured_at_the_temperature_of_clean_and_of_augmented_images(run, capsys):
    assert cli.main(["eval", str(run), "--resamples", "0"]) == 0
    both = results(run / "eval")
    assert list(both["temperatures"]) == ["T", "TA"]
    assert both["temperatures"]["T"] != both["temperatures"]["TA"]
    (row,) = both["rows"]
    assert row["figures"] != row["scaled"]["T"] != row["scaled"]["TA"]
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f" at {at} " in printed for at in ("T", "TA"))
    assert f"on augmented ones, {both['temperatures']['TA']:.3g}" in printed


@pytest.mark.parametrize(("which", "at"), [("clean", "T"), ("augmented", "TA")])
def test_one_of_the_temperatures_alone_is_the_one_of_both(run, which, at):
    assert cli.main(["eval", str(run), "--resamples", "0"]) == 0
    assert cli.main(["eval", str(run), "--resamples", "0", "--temperature", which]) == 0
    both, one = results(run / "eval"), results(run / "eval", f"clean-temperature_{which}")
    assert one["temperatures"] == {at: both["temperatures"][at]}
    assert one["rows"][0]["scaled"] == {at: both["rows"][0]["scaled"][at]}
    assert one["rows"][0]["figures"] == both["rows"][0]["figures"]


def test_a_temperature_of_augmented_images_needs_a_run(run, capsys):
    words = ["--model", "small", "--weights", run / "model.safetensors", "--data", "embedded"]
    told = complaint(capsys, *words, "--temperature", "augmented")
    assert "--temperature augmented goes with a run" in told
    assert "must be both, clean, augmented or a run" in complaint(capsys, run, "--temperature", "hot")


def test_several_conditions_of_a_run_in_one_table(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "weather.py").write_text(
        "def fog(images, severity, generator):\n    return images / severity\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["--on", "clean, pgd,weather:fog", "--images", "30", "--resamples", "0", "--steps", "2"]
    assert cli.main(["eval", str(run), *words, "--restarts", "1", "--out", str(tmp_path / "out")]) == 0
    found = results(tmp_path / "out", "clean-pgd-weather.fog-epsilon0.03-30images")
    assert [(row["on"], row["severity"], row["count"]) for row in found["rows"]] == [
        ("clean", None, 30),
        ("pgd", None, 30),
        *(("weather:fog", severity, 30) for severity in range(1, 6)),
    ]
    clean, attacked, first, *others = (row["figures"]["accuracy"]["value"] for row in found["rows"])
    assert attacked <= clean == first  # severity 1 divides by 1
    fog, corrupted = found["means"]
    assert fog["figures"]["accuracy"] == pytest.approx((first + sum(others)) / 5)
    assert corrupted["figures"] == fog["figures"]
    assert found["attack"] == {"epsilon": 0.03, "steps": 2, "restarts": 1}
    assert "mean of 5" in capsys.readouterr().out


def test_averaged_weights_are_the_ones_measured(tmp_path):
    out = tmp_path / "averaged"
    words = ["train", "embedded", "--epochs", "1", *SPLIT, "--tracker", "none", "--ema", "0.9"]
    assert cli.main([*words, "--out", str(out)]) == 0
    assert cli.main(["eval", str(out), "--resamples", "0"]) == 0
    assert results(out / "eval")["averaged"] is True


@pytest.fixture
def foreign(tmp_path):
    """Weights of a network that nobody here trained, and what to say to have them measured."""
    from networks import without_norms

    torch.manual_seed(1)
    model, data = without_norms(10), load_embedded().train
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(20):
        optimizer.zero_grad()
        F.cross_entropy(model(data.images[:1000]), data.labels[:1000]).backward()
        optimizer.step()
    save_file(model.state_dict(), tmp_path / "foreign.safetensors")
    words = ["--model", "tests.networks:without_norms", "--data", "embedded"]
    words += ["--weights", str(tmp_path / "foreign.safetensors"), "--resamples", "0"]
    return model, [*words, "--out", str(tmp_path / "out")]


def test_a_network_nobody_here_trained_is_measured(foreign, tmp_path, capsys):
    model, words = foreign
    assert cli.main(["eval", *words]) == 0
    found = results(tmp_path / "out")
    data = load_embedded().test
    with torch.no_grad():
        probs = model(data.images).double().softmax(dim=1)
    (row,) = found["rows"]
    assert row["count"] == len(data.labels)
    assert row["figures"]["accuracy"]["value"] == accuracy_score(data.labels, probs.argmax(dim=1))
    assert row["figures"]["nll"]["value"] == pytest.approx(log_loss(data.labels, probs), rel=1e-4)
    assert found["model"] == "tests.networks:without_norms"
    scaled = log_loss(data.labels, (probs.log() / found["temperatures"]["T"]).softmax(dim=1))
    assert row["scaled"]["T"]["nll"]["value"] == pytest.approx(scaled, rel=1e-4)
    (note,) = found["notes"]
    assert note.endswith("cut from the training part, which this network may know.")
    assert note[:40] in capsys.readouterr().out


def colour_set(path):
    """24 pictures of 32 x 32 in three classes, without a test part."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    np.savez(path, train_images=pixels, train_labels=np.arange(24) % 3)
    return path


def test_published_weights_need_no_normalisation(tmp_path):
    path = colour_set(tmp_path / "colours.npz")
    torch.manual_seed(0)
    data = npz(path)
    model = ResNet(3, depth=18, mean=data.mean, std=data.std)
    plain = {name: value for name, value in model.state_dict().items() if "normalize" not in name}
    assert len(plain) == len(model.state_dict()) - 2
    save_file(plain, tmp_path / "resnet18.safetensors")
    words = ["--model", "resnet", "--model.depth", "18", "--weights", str(tmp_path / "resnet18.safetensors")]
    words += ["--data", "npz", "--data.path", str(path), "--resamples", "0", "--out", str(tmp_path)]
    assert cli.main(["eval", *words, "--split.test", "10"]) == 0
    found = results(tmp_path)
    assert found["rows"][0]["count"] == 10
    assert "has no test part" in " ".join(found["notes"])


def test_weights_of_another_network_are_counted(foreign, tmp_path, capsys):
    model, words = foreign
    state = model.state_dict()
    other = {"2.weight": state["2.weight"][:, :5].clone(), "2.bias": state["2.bias"], "new": torch.ones(1)}
    save_file(other, tmp_path / "foreign.safetensors")
    error = complaint(capsys, *words)
    assert "2 missing (4.bias), 1 unknown (new), 1 of another shape (2.weight)" in error


def prefixed(prefix):
    return lambda state: {f"{prefix}{name}": value for name, value in state.items()}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"epoch": 3, "state_dict": state},
        lambda state: {"model_state_dict": prefixed("module.")(state)},
        prefixed("module._orig_mod."),
        lambda state: {"epoch": 3, "state_dict": prefixed("model.")(state)},  # of Lightning
    ],
)
def test_weights_that_torch_saved_are_measured_as_those_of_safetensors(foreign, wrapped, tmp_path):
    model, words = foreign
    assert cli.main(["eval", *words]) == 0
    before = results(tmp_path / "out")["rows"]
    torch.save(wrapped(model.state_dict()), tmp_path / "foreign.pth")
    assert cli.main(["eval", *(word.replace(".safetensors", ".pth") for word in words)]) == 0
    assert results(tmp_path / "out")["rows"] == before


def test_a_pickle_as_weights_is_refused(foreign, tmp_path, capsys):
    _, words = foreign
    (tmp_path / "foreign.safetensors").write_bytes(pickle.dumps({"weight": 1}))
    assert "is not a safetensors file" in complaint(capsys, *words)
    (tmp_path / "foreign.safetensors").unlink()
    assert "there is no file" in complaint(capsys, *words)


def test_a_run_without_a_whole_checkpoint_says_so(run, capsys):
    for path in Run(run).steps():
        path.write_bytes(path.read_bytes()[:1000])
    assert "no checkpoint that can be read" in complaint(capsys, run)
    for path in Run(run).checkpoints.iterdir():
        path.unlink()
    assert "has no checkpoint yet: auglabel train --resume" in complaint(capsys, run)
    assert "there is no checkpoint" in complaint(capsys, run, "--checkpoint", "best")


def test_other_data_than_the_run_was_trained_with_are_refused(run, capsys):
    facts = json.loads(Run(run).facts_file.read_text())
    facts["data"]["checksum"] = "0" * 64
    del facts["checksum"]
    Run(run).facts_file.write_text(json.dumps(facts))
    error = complaint(capsys, run)
    assert "was begun with other images: their checksum was 000000000000..., but that of" in error


def test_another_split_or_recipe_than_the_run_was_trained_with_is_refused(run, capsys):
    assert "split.test: 50, not 200 was asked for" in complaint(capsys, run, "--split.test", "50")
    rows = Run(run).split()
    Run(run).record_split(rows._replace(test=rows.test.flip(0)))
    assert "another split than its recipe makes now" in complaint(capsys, run)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--on", "claen"], 'Did you mean "clean"?'),
        (["--on", "clean,foolbox:fgms"], 'Did you mean "fgsm"?'),
        (["--on", "nowhere:f"], 'no module "nowhere"'),
        (["--steps", "0", "--on", "pgd"], "--steps must be at least 1, got 0"),
        (["--epsilon", "-1", "--on", "pgd"], "--epsilon must be in [0, 1], got -1"),
        (["--images", "0"], "--images must be at least 1"),
        (["--resamples", "-1"], "--resamples must be at least 0"),
        (["--checkpoint", "first"], "--checkpoint"),
        (["--weights", "x.safetensors"], "--weights go with --model"),
    ],
)
def test_flags_that_mean_nothing_end_with_one_sentence(trained, words, sentence, capsys):
    assert sentence in complaint(capsys, trained, *words)


def test_a_missing_foolbox_names_its_extra(trained, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "foolbox", None)
    assert "pip install 'auglabel[attack]'" in complaint(capsys, trained, "--on", "foolbox:pgd")


def test_a_place_that_cannot_be_written_is_named_before_anything_is_measured(trained, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    error = complaint(capsys, trained, "--out", tmp_path / "file" / "deeper")
    assert "file" in error
    assert "clean" not in capsys.readouterr().out


def test_a_broken_streamed_picture_is_one_sentence_with_workers_too(tmp_path, capsys):
    torch.manual_seed(0)
    for number in range(12):
        path = tmp_path / "set" / "ab"[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (28, 28, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    for number in range(1, 12):  # all but the first, whose size is looked at
        path = tmp_path / "set" / "ab"[number % 2] / f"{number:02d}.png"
        path.write_bytes(path.read_bytes()[:50])
    save_file(SmallNet(2).state_dict(), tmp_path / "w.safetensors")
    words = ["--model", "small", "--weights", tmp_path / "w.safetensors", "--data", "folder"]
    words += ["--data.root", tmp_path / "set", "--data.memory_gb", "0", "--out", tmp_path / "out"]
    for workers in (0, 1):
        assert ".png is broken" in complaint(capsys, *words, "--workers", workers, "--split.test", "4")
