"""`auglabel predict`: pictures in, classes and calibrated probabilities out, and what cannot be read said."""

import csv
import io
import json
import shutil

import pytest
import torch
from PIL import Image

from auglabel import cli
from auglabel.data.embedded import load_embedded
from auglabel.lab.evaluate.network import network_of_run
from auglabel.lab.runs.run import Run
from auglabel.lab.share.card import temperature_of

SPLIT = ["--split.train", "100", "--split.validation", "60", "--split.test", "100"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two epochs, evaluated, so that it has a temperature."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    assert (
        cli.main(["train", "embedded", "--epochs", "2", *SPLIT, "--tracker", "none", "--out", str(out)]) == 0
    )
    assert cli.main(["eval", str(out), "--resamples", "0"]) == 0
    return out


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Five test images as files: three in a folder and its sub-folder, two beside it."""
    monkeypatch.chdir(tmp_path)
    names = ["folder/0.png", "folder/1.png", "folder/deep/2.png", "3.png", "4.png"]
    for image, name in zip(load_embedded().test.images[:5], names, strict=True):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0].numpy()).save(tmp_path / name)
    return names


def predict(capsys, *words, code=0):
    capsys.readouterr()
    assert cli.main(["predict", *map(str, words)]) == code
    return capsys.readouterr()


def expected(trained, rows, temperature):
    """Straight from the network and the images in the package."""
    network = network_of_run(Run(trained), [])
    with torch.no_grad():
        logits = network.model.eval()(load_embedded().test.images[rows].float() / 255)
    return (logits.double() / temperature).softmax(dim=1), network.data.classes


def test_csv_has_the_class_and_probabilities_at_the_temperature_of_eval(trained, pictures, capsys):
    temperature = json.loads((trained / "eval/clean.json").read_text())["temperatures"]["T"]
    found = predict(capsys, trained, "folder", "3.png", "4.png", "--batch_size", 2)
    probs, classes = expected(trained, list(range(5)), temperature)
    rows = list(csv.reader(io.StringIO(found.out)))
    assert rows[0] == ["file", "class", "confidence", *(f"p_{name}" for name in classes)]
    assert [row[0] for row in rows[1:]] == pictures
    assert [row[1] for row in rows[1:]] == [classes[top] for top in probs.argmax(dim=1)]
    numbers = torch.tensor([[float(cell) for cell in row[2:]] for row in rows[1:]], dtype=torch.float64)
    torch.testing.assert_close(numbers[:, 1:], probs, atol=2e-6, rtol=2e-5)
    torch.testing.assert_close(numbers[:, 0], probs.amax(dim=1), atol=2e-6, rtol=2e-5)
    assert found.err == (
        f"auglabel: probabilities are at the temperature {temperature:.4g}, fitted on validation images.\n"
    )


def test_json_goes_to_a_file_and_says_which_weights(trained, pictures, capsys, tmp_path):
    assert predict(capsys, trained, "3.png", "--json", "--out", "found.json").out == ""
    found = json.loads((tmp_path / "found.json").read_text())
    probs, classes = expected(trained, [3], temperature_of(Run(trained)))
    (image,) = found["images"]
    assert image["file"] == "3.png"
    assert image["class"] == max(image["probabilities"], key=image["probabilities"].get)
    assert list(image["probabilities"].values()) == pytest.approx(probs[0].tolist(), abs=1e-6)
    assert list(image["probabilities"]) == list(classes)
    assert (found["checkpoint"], found["epoch"], found["unread"]) == ("last", 2, {})
    assert found["temperature"] == temperature_of(Run(trained))


def test_the_data_need_not_be_there(trained, pictures, capsys, monkeypatch):
    plain = predict(capsys, trained, "3.png").out
    monkeypatch.setattr("auglabel.lab.recipe.build.data_set_for", pytest.fail)
    assert predict(capsys, trained, "3.png").out == plain


def test_without_an_evaluation_probabilities_are_as_trained_and_that_is_said(
    trained, pictures, capsys, tmp_path
):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run/eval")
    found = predict(capsys, "run", "3.png", "--json")
    assert "as trained: no temperature was fitted, which auglabel eval run does." in found.err
    (image,), told = json.loads(found.out)["images"], json.loads(found.out)["temperature"]
    assert told is None
    probs, _ = expected(trained, [3], 1.0)
    assert list(image["probabilities"].values()) == pytest.approx(probs[0].tolist(), abs=1e-6)


def test_the_temperature_of_other_weights_is_not_used(trained, pictures, capsys):
    found = predict(capsys, trained, "3.png", "--checkpoint", "best")
    assert "as trained: no temperature was fitted" in found.err
    assert temperature_of(Run(trained), "last", epoch=1) is None


def test_what_cannot_be_read_is_said_and_the_others_are_predicted(trained, pictures, capsys, tmp_path):
    (tmp_path / "folder/broken.png").write_bytes(b"no picture")
    (tmp_path / "empty").mkdir()
    Image.new("L", (10, 12)).save(tmp_path / "small.png")
    found = predict(capsys, trained, "small.png", "folder", "empty", "nope.png", "3.png", code=1)
    assert [line.split(",")[0] for line in found.out.splitlines()[1:]] == [*pictures[:3], "3.png"]
    told = found.err.splitlines()[1:]
    assert len(told) == 4
    assert any(line.startswith("auglabel: folder/broken.png is broken and cannot be read") for line in told)
    assert any(
        "small.png: this network was trained on 1 x 28 x 28 images, got 1 x 12 x 10" in line for line in told
    )
    assert "auglabel: empty holds no pictures." in told
    assert "auglabel: nope.png does not exist." in told


def test_pictures_are_brought_to_the_size_of_training(tmp_path, capsys, monkeypatch):
    """Training on folders resizes the shorter side and cuts the centre: prediction must do the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))
    for number, image in enumerate(load_embedded().test.images[:40]):
        where = tmp_path / "pictures" / str(number % 2)
        where.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0].numpy()).resize((40, 52)).convert("RGB").save(where / f"{number:02}.png")
    small = ["--epochs=1", "--model.widths=[4,8,8]", "--data.size=24", "--data.resize=30", "--tracker=none"]
    assert cli.main(["train", "folder", "--data.root", "pictures", *small, "--out", "run"]) == 0
    found = json.loads(predict(capsys, "run", "pictures", "--json").out)["images"]
    network = network_of_run(Run(tmp_path / "run"), [])
    images = network.data.train.fetch(torch.arange(40))
    with torch.no_grad():
        probs = network.model.eval()(images.float() / 255).softmax(dim=1)
    assert [image["file"] for image in found[:2]] == ["pictures/0/00.png", "pictures/0/02.png"]
    for image, row in zip(found, probs.tolist(), strict=True):
        assert list(image["probabilities"].values()) == pytest.approx(row, abs=1e-5)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "which run, and which pictures?"),
        (["nowhere"], "which run, and which pictures?"),
        (["nowhere", "3.png"], "nowhere is not a run: it has no recipe.yaml."),
        (["RUN", "3.png", "--labels.alpha", "0.5"], "a run is used as it was trained, but"),
        (["RUN", "3.png", "--batch_size", "0"], "--batch_size must be at least 1, got 0"),
    ],
)
def test_words_that_do_not_fit_are_said_in_one_sentence(trained, pictures, words, told, capsys):
    found = predict(capsys, *(str(trained) if word == "RUN" else word for word in words), code=1)
    assert told in found.err
    assert found.err.count("\n") == 1
