"""A run as a folder in Hugging Face's layout, and back."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import load_file

from auglabel import cli
from auglabel.augment.randaug import RandAug
from auglabel.data.embedded import load_embedded
from auglabel.data.folder import folder
from auglabel.lab.runs.records import DataFacts
from auglabel.lab.runs.run import Run
from auglabel.lab.share import card, sharing
from auglabel.lab.share.inputs import Input, input_of
from auglabel.lab.share.sharing import load_shared, share_run
from auglabel.table_file import load_table

INPUT = {"channels": 1, "height": 28, "width": 28, "resize": None}
SMALL = ["--epochs", "1", "--split.train", "100", "--split.validation", "60", "--tracker", "none"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "mine"
    assert cli.main(["train", "embedded", *SMALL, "--out", str(path)]) == 0
    return Run(path)


@pytest.fixture
def shared(run, tmp_path):
    return share_run(run, tmp_path / "shared")


def front_of(folder):
    return yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])


def test_a_shared_run_comes_back_with_its_weights_classes_and_labels(run, shared):
    found = load_shared(shared)
    assert not found.model.training
    for name, value in load_file(run.model_file).items():
        assert torch.equal(found.model.state_dict()[name], value)
    assert found.classes[1] == "Trouser"
    assert torch.equal(found.table, load_table(run.table_file, found.augment.grid))
    assert found.model(load_embedded().test.images[:2]).shape == (2, 10)


def test_the_folder_has_what_others_look_for(shared):
    names = {path.name for path in shared.iterdir()}
    assert names == {"model.safetensors", "config.json", "labels.json", "README.md"}
    config = json.loads((shared / "config.json").read_text())
    assert config["id2label"]["9"] == "Ankle boot"
    assert config["label2id"]["Ankle boot"] == 9


def test_the_card_is_read_by_hugging_faces_own_reader(run, shared):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    data = hub.ModelCard((shared / "README.md").read_text()).data
    assert data.library_name == "auglabel"
    found = {result.metric_name: result.metric_value for result in data.eval_results}
    validation = run.epochs()[-1].validation
    assert found["accuracy, 60 validation images"] == validation["accuracy"]
    assert found["NLL, 60 validation images"] == validation["nll"]


def test_the_card_says_how_confident_labels_became_and_how_to_use_it(shared):
    text = (shared / "README.md").read_text()
    table = load_shared(shared).table
    assert f"{table.mean():.3f} on average, {table.min():.3f} at the lowest" in text
    assert "| rotate | " in text
    code = text.split("```python\n")[1].split("```")[0].replace("this-folder", str(shared))
    there = {"images": load_embedded().test.images[:3]}
    exec(code, there)
    assert there["probabilities"].shape == (3, 10)


def test_names_on_the_card_are_neither_markdown_nor_html(run, tmp_path):
    readme = share_run(run, tmp_path / "<img src=x>_[a](b)*").joinpath("README.md").read_text()
    assert readme.splitlines()[readme.splitlines().index("---", 1) + 2 :][0] == (
        "# &lt;img src=x&gt;\\_\\[a\\](b)\\*"
    )
    config = json.loads((tmp_path / "<img src=x>_[a](b)*" / "config.json").read_text())
    config["data"]["name"], config["model"]["name"] = "a|b\n<script>", "mine:`x`"
    words = card.card("mine", config, RandAug(), None, [])
    assert "images of a\\|b &lt;script&gt; with" in words
    assert "`mine: x `" in words
    assert "<script>" not in words


def test_test_images_are_on_the_card_once_they_are_measured(run, tmp_path, capsys):
    for count in (50, 40):
        assert cli.main(["eval", str(run.path), "--images", str(count)]) == 0
    measured = front_of(share_run(run, tmp_path / "measured"))["model-index"][0]["results"][0]["metrics"]
    assert "accuracy, 50 test images" in {metric["name"] for metric in measured}
    shutil.rmtree(run.path / "eval")


def test_labels_that_do_not_learn_leave_no_table(tmp_path):
    plain = tmp_path / "plain"
    assert cli.main(["train", "embedded", *SMALL, "--regime", "vanilla", "--out", str(plain)]) == 0
    assert cli.main(["share", str(plain), str(tmp_path / "shared")]) == 0
    found = load_shared(tmp_path / "shared")
    assert found.table is None
    assert not (tmp_path / "shared" / "labels.json").exists()
    assert "How confident" not in (tmp_path / "shared" / "README.md").read_text()


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    """A run on a folder of pictures of many sizes, brought to 12 x 12, and one of its test pictures."""
    root = tmp_path_factory.mktemp("pictures")
    drawn = np.random.default_rng(0)
    for number in range(48):
        file = root / "all" / ("cat", "dog")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        high, wide = drawn.integers(14, 40, 2)
        Image.fromarray(drawn.integers(0, 256, (high, wide, 3), dtype=np.uint8)).save(file)
    words = [f"--data.root={root / 'all'}", "--data.size=12", "--data.resize=14", "--data.cache=false"]
    path = root / "run"
    words += ["--model.widths=[4,4,4]", "--epochs=1", "--tracker=none"]
    assert cli.main(["train", "folder", *words, f"--out={path}"]) == 0
    return Run(path), sorted((root / "all").glob("*/*.png"))


def test_a_shared_run_knows_which_images_it_takes_and_its_temperature(pictured, tmp_path, capsys):
    run, _ = pictured
    assert cli.main(["share", str(run.path), str(tmp_path / "before")]) == 0
    assert f"no fitted temperature: auglabel eval {run.path} fits one" in capsys.readouterr().out
    assert load_shared(tmp_path / "before").temperature == 1
    assert "No temperature was fitted" in (tmp_path / "before" / "README.md").read_text()
    assert cli.main(["eval", str(run.path)]) == 0
    assert cli.main(["share", str(run.path), str(tmp_path / "shared")]) == 0
    fitted = json.loads((run.path / "eval" / "clean.json").read_text())["temperatures"]["T"]
    config = json.loads((tmp_path / "shared" / "config.json").read_text())
    assert config["temperature"] == fitted == load_shared(tmp_path / "shared").temperature
    taken = {"channels": 3, "height": 12, "width": 12, "resize": 14, "filter": "bicubic"}
    assert config["input"] == taken
    card_text = (tmp_path / "shared" / "README.md").read_text()
    assert "trained on 3 x 12 x 12 images" in card_text
    assert "shorter side resized to 14 pixels by Pillow's bicubic filter" in card_text
    assert f"temperature {fitted:.4g}" in card_text


def test_the_temperature_of_augmented_images_is_not_taken(pictured, tmp_path):
    run, _ = pictured
    shutil.rmtree(run.path / "eval", ignore_errors=True)
    assert cli.main(["eval", str(run.path), "--temperature=augmented"]) == 0
    assert load_shared(share_run(run, tmp_path / "shared")).config["temperature"] is None
    shutil.rmtree(run.path / "eval")


def test_images_of_another_size_are_refused_and_pictures_prepared_as_in_training(pictured, tmp_path):
    run, files = pictured
    found = load_shared(share_run(run, tmp_path / "shared"))
    loaded = folder(files[0].parents[1], size=12, resize=14, cache=False).train
    for row, file in enumerate(files):
        expected = loaded.images[row]
        assert torch.equal(found.prepare(file), expected)
        with Image.open(file) as picture:
            native = torch.from_numpy(np.asarray(picture).transpose(2, 0, 1).copy())
            assert torch.equal(found.prepare(picture), expected)
        assert torch.equal(found.prepare(native), expected)
    sentence = "was trained on 3 x 12 x 12 images, got 3 x .*prepare.* resizes one as in training"
    for asked in (found.model, found.probabilities, lambda images: found.model(images=images)):
        with pytest.raises(ValueError, match=sentence):
            asked(native[None])
        with pytest.raises(ValueError, match=sentence):
            asked(native[None].float() / 255)
    for wrong, told in ((native.float(), "a float32 tensor"), (3, "int 3")):
        with pytest.raises(TypeError, match=rf"takes a file, a picture, or bytes \(C, H, W\), got {told}"):
            found.prepare(wrong)
    with pytest.raises(FileNotFoundError):
        found.prepare(tmp_path / "none.png")
    turned = tmp_path / "turned.png"
    exif = Image.Exif()
    exif[0x0112] = 6  # a camera that was held upright: turn by a quarter
    with Image.open(files[0]) as picture:
        picture.save(turned, exif=exif)
        picture.transpose(Image.Transpose.ROTATE_270).save(tmp_path / "upright.png")
    with Image.open(turned) as picture:
        for same in (turned, picture):
            assert torch.equal(found.prepare(same), found.prepare(tmp_path / "upright.png"))


def test_probabilities_are_at_the_fitted_temperature(shared):
    images = load_embedded().test.images[:4]
    found = load_shared(broken(shared, temperature=0.5))
    torch.testing.assert_close(found.probabilities(images), (2 * found.model(images)).softmax(dim=1))


def test_images_that_were_not_resized_have_no_rule_for_others(shared):
    found = load_shared(shared)
    images = load_embedded().test.images
    assert torch.equal(found.prepare(images[0]), images[0])
    for asked in (found.prepare, lambda image: found.model(image[None])):
        with pytest.raises(ValueError, match=r"1 x 28 x 28 images, got 1 x 27 x 28, and no rule to resize"):
            asked(images[0, :, 1:])


def test_a_folder_of_an_older_version_still_loads(shared):
    config = json.loads((shared / "config.json").read_text())
    for key in ("input", "temperature", "checksum"):
        del config[key]
    (shared / "config.json").write_text(json.dumps(config))
    found = load_shared(shared)
    assert (found.input, found.temperature) == (None, 1)
    assert found.probabilities(torch.zeros(2, 1, 20, 20)).shape == (2, 10)
    with pytest.raises(ValueError, match="does not say which images its network takes: share the run again"):
        found.prepare(torch.zeros(1, 28, 28, dtype=torch.uint8))


def test_a_run_of_an_older_version_takes_the_size_from_its_recipe():
    data = DataFacts("pictures", "abc", mean=[0.5, 0.5, 0.5])
    assert input_of({"data": {"name": "folder", "size": 64, "resize": None}}, data) == Input(3, 64, 64, 64)
    cropped = {"name": "folder", "size": 224, "resize": None, "train_crop": "random_resized"}
    assert input_of({"data": cropped}, data) == Input(3, 224, 224, 256)
    assert input_of({"data": {"name": "embedded"}}, data) is None


def test_what_goes_wrong_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(sharing, "write_text", full)
    with pytest.raises(OSError, match="no space left"):
        share_run(run, tmp_path / "shared")
    assert list(tmp_path.iterdir()) == []


def broken(shared, **changes):
    config = json.loads((shared / "config.json").read_text())
    del config["checksum"]
    (shared / "config.json").write_text(json.dumps(config | changes))
    return shared


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "another"}, 'format "auglabel model, version 1" was expected, got str'),
        ({"model": {"name": "os:system"}}, 'its network is "os:system", which is not one of ours'),
        ({"model": {"name": "small", "widths": [1]}}, "does not fit: not enough values"),
        ({"model": {"name": "small", "depth": 3}}, "does not fit: .*unexpected keyword argument 'depth'"),
        ({"model": {"name": "small", "widths": [8, 8, 8]}}, "are of another network"),
        ({"model": {}}, '"model" must have a "name"'),
        ({"augment": {"name": "augmix"}}, "is a table for other distances"),
        ({"augment": {"name": "magic"}}, 'there is no augmentation "magic"'),
        ({"mean": 3}, '"mean" must be a list, got int 3'),
        ({"id2label": {"1": "cat", "2": "dog"}}, "must number at least 2 classes from 0"),
        ({"input": {"channels": 1}}, 'it does not say "input".height'),
        ({"input": {**INPUT, "height": 2**20}}, '"input" does not fit: height must be in 1..16384'),
        ({"input": {**INPUT, "resize": 10}}, '"input" does not fit: resize must be in 28..16384, got 10'),
        ({"input": {**INPUT, "width": 20, "resize": 30}}, "a square of 1 or 3 channels, got 1 x 28 x 20"),
        ({"temperature": 0}, '"temperature" must be above 0, got 0'),
        ({"temperature": "hot"}, "temperature.* must be "),
    ],
)
def test_a_folder_that_does_not_fit_together_is_refused(shared, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_shared(broken(shared, **changes))


def test_damaged_files_are_refused(shared):
    (shared / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        load_shared(shared)
    text = (shared / "config.json").read_text()
    (shared / "config.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(ValueError, match="its checksum does not fit"):
        load_shared(shared)
    (shared / "config.json").write_text("{")
    with pytest.raises(ValueError, match="it is not JSON"):
        load_shared(shared)


def test_a_network_of_ones_own_can_be_shared_but_is_not_built(run, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(run.path, mine)
    recipe = (mine / "recipe.yaml").read_text().split("\n", 1)[1]  # without its checksum
    (mine / "recipe.yaml").write_text(recipe.replace("name: small", "name: 'auglabel.models.small:SmallNet'"))
    with pytest.raises(ValueError, match="--model"):
        share_run(Run(mine), tmp_path / "shared")
    folder = share_run(Run(mine), tmp_path / "shared", ["--model", "auglabel.models.small:SmallNet"])
    assert "build it from there" in (folder / "README.md").read_text()
    with pytest.raises(ValueError, match="which is not one of ours"):
        load_shared(folder)


def test_mistakes_get_a_sentence(run, tmp_path, capsys):
    assert cli.main(["share", str(run.path)]) == 1
    assert "which run, and where to?" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match="is not a run"):
        share_run(Run(tmp_path), tmp_path / "shared")
    with pytest.raises(ValueError, match="is there already"):
        share_run(run, tmp_path)
    with pytest.raises(ValueError, match="shared as it was trained"):
        share_run(run, Path(tmp_path / "shared"), ["--seed", "4"])
    unfinished = tmp_path / "unfinished"
    shutil.copytree(run.path, unfinished)
    (unfinished / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="is not finished: auglabel train --resume"):
        share_run(Run(unfinished), tmp_path / "shared")


@pytest.mark.parametrize("options", [{"depth": 10, "width": 10**6}, {"depth": 6 * 10**9 + 4}])
def test_a_network_is_built_only_once_its_weights_are_known_to_fit(shared, options):
    with pytest.raises(ValueError, match=r"of another network|does not fit: depth must be in 10..3000"):
        load_shared(broken(shared, model={"name": "wide_resnet", **options}))
