"""Files that mean harm, or were damaged: each is read or refused in one sentence, and nothing in it runs."""

import importlib
import json
import os
import signal
import time
from pathlib import Path

import pytest
import yaml
from made_runs import evaluation, make_run

from auglabel import cli
from auglabel.data.folder import folder
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.share.sharing import load_shared

os.environ.setdefault("OMP_NUM_THREADS", "1")
pytestmark = pytest.mark.filterwarnings("ignore:::PIL")  # what it says of damaged metadata
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SEED, INPUTS, SECONDS = 9, 250, 5.0


@pytest.fixture(scope="module")
def fuzz():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("fuzz")


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "work" / "input"


def names():
    return [
        *("CIFAR, python", "CIFAR, binary", "CIFAR, packed", "npz", "image folder", "image tar", "recipe"),
        *("checkpoint", "weights", "corrupted copies", "label table", "audit", "run, report", "run, resume"),
        *("run, inspect", "result", "shared model"),
    ]


def test_every_reader_is_here(fuzz):
    assert [reader.name for reader in fuzz.READERS] == names()


@pytest.mark.parametrize("name", names())
def test_what_is_valid_is_read(fuzz, place, name):
    reader = next(reader for reader in fuzz.READERS if reader.name == name)
    for files in reader.valid():
        assert fuzz.once(reader, files, place) == "read"


SLOW = (  # left to the benchmark, or read by another reader already
    *("many numbers", "many empty lists", "empty lists", "more than fits", "megapixels", "recipe: "),
    *("many kinds", "a line without an end", "weights: ", "a thousand lines"),
)


@pytest.mark.parametrize("name", names())
def test_hostile_files_are_refused_in_a_sentence_and_run_nothing(fuzz, place, name):
    reader = next(reader for reader in fuzz.READERS if reader.name == name)
    for case, make in reader.hostile().items():
        if any(word in case for word in SLOW):
            continue
        files = make()
        start = time.process_time()
        found = fuzz.once(reader, files, place)
        assert found in ("read", "refused"), f"{case}: {found}"
        assert time.process_time() - start < SECONDS, case


@pytest.mark.parametrize("name", names())
def test_damaged_files_are_read_or_refused_in_a_sentence(fuzz, place, name):
    reader = next(reader for reader in fuzz.READERS if reader.name == name)
    count = min(INPUTS, int(20 * reader.share))
    first = len(reader.hostile())
    for number in range(first, first + count):
        found = fuzz.once(reader, reader.input(SEED, number), place)
        assert found in ("read", "refused"), f"{number}: {found}"


def test_the_same_seed_gives_the_same_inputs(fuzz):
    for reader in fuzz.READERS:
        assert reader.input(1, 500) == reader.input(1, 500)
    assert any(reader.input(1, 500) != reader.input(2, 500) for reader in fuzz.READERS)


def test_a_payload_would_be_noticed(fuzz, place):
    """The fuzzer's own alarm: a reader that runs what it reads is caught."""
    reader = fuzz.Reader("careless", 1, list, lambda draw, files: files, lambda path: os.system("true"))
    assert fuzz.once(reader, {"a": b""}, place) == "it did something: os.system"
    careless = fuzz.Reader("writes", 1, list, lambda draw, files: files, lambda path: open("x", "w").close())
    assert fuzz.once(careless, {"a": b""}, place).startswith("it did something: open")


def test_crashes_and_hangs_are_defects_with_the_number_to_repeat_them_by(fuzz, monkeypatch):
    monkeypatch.setattr(fuzz, "SECONDS", 1.0)
    monkeypatch.setattr(fuzz, "PATIENCE", 2.0)

    def read(path):
        number = int((path / "number").read_text())
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 5:
            time.sleep(60)
        if number == 7:
            raise KeyError("oops")

    class Counted(fuzz.Reader):
        def input(self, seed, number):
            return {"number": str(number).encode()}

    lines = []
    tally = fuzz.run(Counted("odd", 1, list, lambda draw, files: files, read), 0, 0, 9, lines.append)
    assert tally.read == 6
    assert tally.defects[:2] == ["3: the process ended with -9", "5: it took more than 1 seconds"]
    assert tally.defects[2].startswith("7: not caught: KeyError")
    assert [json.loads(line)["defect"] for line in lines] == tally.defects


def module_that_tells(tmp_path, monkeypatch):
    """A module in the current directory that leaves a trace when it is imported."""
    (tmp_path / "telltale.py").write_text(
        "from pathlib import Path\nfrom auglabel.models.small import SmallNet\nPath('imported').touch()\n"
        "def build(num_classes, mean, std):\n    return SmallNet(num_classes, (2, 2, 2), mean, std)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "telltale:build"


def asking_for(run, name):
    """A run whose recipe asks for that network."""
    file = run / "recipe.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"model": {"name": name}}))
    return run


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "RUN"],
        ["audit", "RUN"],
        ["share", "RUN", "shared"],
        ["preview", "RUN"],
        ["train", "--resume", "--out", "RUN"],
        ["train", "RUN/recipe.yaml", "--out", "elsewhere"],
        ["sweep", "RUN/recipe.yaml", "--over", "augment.m_max=1,2", "--out", "sweep"],
        ["corrupt", "RUN/recipe.yaml", "copies"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_module_is_imported_only_if_the_user_typed_it(tmp_path, monkeypatch, capsys, words):
    name = module_that_tells(tmp_path, monkeypatch)
    asking_for(make_run(tmp_path / "run", "randaug_autolabel"), name)
    assert cli.main([word.replace("RUN", "run") for word in words]) == 1
    said = capsys.readouterr().err
    assert f'"{name}" would be imported and run, and no file may ask for that.' in said
    assert said.count("\n") == 1
    assert not (tmp_path / "imported").exists()


def test_a_report_imports_no_module_that_a_recipe_names(tmp_path, monkeypatch, capsys):
    name = module_that_tells(tmp_path, monkeypatch)
    run = make_run(tmp_path / "run", "randaug_autolabel", evaluation=evaluation(0.5, 0.1))
    asking_for(run, name)
    assert cli.main(["report", "run", "--out", "page.html"]) == 0
    assert "would be imported and run" in capsys.readouterr().out  # so there are no pictures
    assert not (tmp_path / "imported").exists()


def test_a_shared_folder_imports_no_module_that_it_names(tmp_path, monkeypatch, fuzz):
    name = module_that_tells(tmp_path, monkeypatch)
    reader = next(reader for reader in fuzz.READERS if reader.name == "shared model")
    files = reader.valid()[0]
    config = json.loads(files["config.json"]) | {"model": {"name": name}}
    importlib.import_module("hostile.spoil").write(
        files | {"config.json": json.dumps(config).encode()}, tmp_path / "s"
    )
    with pytest.raises(ValueError, match="which is not one of ours"):
        load_shared(tmp_path / "s")
    assert not (tmp_path / "imported").exists()


def test_names_with_html_in_them_stay_text_in_the_page_and_on_the_card(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script = "</script><script>alert(1)</script>"
    told = evaluation(0.5, 0.1)
    told["rows"][0]["on"] = script
    run = make_run(tmp_path / "run", "randaug", name=f"<b>{script}", evaluation=told)
    assert cli.main(["report", str(run), "--title", script, "--out", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert(1)" not in page


def test_folders_may_hold_links_pipes_and_devices_without_harm(tmp_path, fuzz):
    picture = importlib.import_module("hostile.images").pictures()[0][1]
    for name in "ab":
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "1.png").write_bytes(picture)
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "a" / "nowhere.png").symlink_to(tmp_path / "gone")
    (tmp_path / "set" / "a" / "endless.png").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "set" / "b" / "pipe.png")
    assert len(folder(tmp_path / "set", cache=False).train) == 2


def test_an_image_file_of_a_terabyte_is_not_read(tmp_path, fuzz):
    picture = importlib.import_module("hostile.images").pictures()[0][1]
    for name in "ab":
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "1.png").write_bytes(picture)
    with (tmp_path / "set" / "a" / "1.png").open("r+b") as file:
        file.truncate(2**40)  # with a hole in it
    with pytest.raises(OSError, match=r"1\.png is not read: it has more than 268,435,456 bytes\.$"):
        folder(tmp_path / "set", cache=False)


def test_recipes_may_still_name_a_value_and_use_it_again(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("seed: &n 3\nepochs: *n\n")
    assert read_recipe(str(path)).training.epochs == 3
