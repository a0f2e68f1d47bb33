"""Mistakes on the command line, each with the one sentence that it ends with."""

import fcntl
import io
import json
import math
import os
import pickle
import re
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from made_results import make_result
from made_runs import evaluation, write_evaluation
from PIL import Image

from auglabel import cli
from auglabel.corrupt.digital import _pillow
from auglabel.data.cifar_files import CIFAR10
from auglabel.data.corrupted import corrupted
from auglabel.data.files import find_images
from auglabel.data.huggingface import Rows, _several
from auglabel.lab.paper.claim_verdicts import _student
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.process.launch import launch
from auglabel.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from auglabel.lab.runs.evaluations import EVALUATION_FORMAT
from auglabel.lab.runs.records import RUN_FORMAT
from auglabel.lab.study.rows_cpu import CPU
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.executor import Executor
from auglabel.lab.sweep.job import Results
from auglabel.lab.train.feed import shuffled

ROOT = Path(__file__).parents[1]


SMALL = ["--split.train=40", "--split.validation=20", "--split.test=20", "--batch_size=20", "--epochs=1"]
TINY = ["embedded", *SMALL, "--model.widths=[4,8,8]"]
NOWHERE = ["--tracker=none", "--out=out"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of one epoch."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert cli.main(["train", *TINY, "--tracker=none", f"--out={out}"]) == 0
    return out


@pytest.fixture
def room(tmp_path, monkeypatch, trained):
    """An empty directory with a run in it, and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / ".cache"))
    monkeypatch.syspath_prepend(str(ROOT))
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path


def text(name, content):
    def write(monkeypatch):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)

    return write


def replaced(name, old, new):
    def write(monkeypatch):
        content = Path(name).read_text()
        assert old in content
        Path(name).write_text(content.replace(old, new, 1))

    return write


def gone(name):
    return lambda monkeypatch: Path(name).unlink()


def pictures(**classes):
    """pictures/CLASS/0.png and so on, as many as it says."""

    def write(monkeypatch):
        for name, count in classes.items():
            for number in range(count):
                place = Path("pictures") / name / f"{number}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(np.full((20, 20), 10 * number, np.uint8)).save(place)

    return write


def broken_pictures(monkeypatch):
    pictures(a=2, b=2)(monkeypatch)
    for path in Path("pictures").rglob("*.png"):
        path.write_bytes(b"no picture")


def deep_picture(monkeypatch):
    pictures(a=2, b=2)(monkeypatch)
    Image.fromarray(np.zeros((20, 20), np.float32)).save("pictures/a/deep.tif")


def no_pillow(monkeypatch):
    pictures(a=2, b=2)(monkeypatch)
    monkeypatch.setitem(sys.modules, "PIL", None)


def cannot_be_listed(monkeypatch):
    """Root may list anything, so the system is made to say no."""
    pictures(a=2, b=2)(monkeypatch)
    real = os.scandir

    def refuse(place="."):
        if str(place).endswith("pictures"):
            raise PermissionError(13, "Permission denied", str(place))
        return real(place)

    monkeypatch.setattr(os, "scandir", refuse)


def picture_that_vanishes(monkeypatch):
    """Between looking for images and reading them."""
    pictures(a=2, b=2)(monkeypatch)
    found = find_images(Path("pictures"))
    Path("pictures/b/1.png").unlink()
    monkeypatch.setattr("auglabel.data.folder.find_images", lambda where: found)


def tar_that_shrinks(monkeypatch):
    """Likewise."""
    pictures(a=2, b=2)(monkeypatch)
    with tarfile.open("pictures.tar", "w") as tar:
        tar.add("pictures")
    found = find_images(Path("pictures.tar"))
    os.truncate("pictures.tar", found.offsets[-1] + 1)
    monkeypatch.setattr("auglabel.data.folder.find_images", lambda where: found)


def long_name(monkeypatch):
    with tarfile.open("pictures.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(f"{'a' * 2**20}.png"))


def large_tar(monkeypatch):
    """Of a megabyte, which is made to be too much."""
    Path("large").write_bytes(bytes(2**20))
    with tarfile.open("cifar-10-python.tar.gz", "w:gz") as tar:
        tar.add("large", "cifar-10-batches-py/data_batch_1")
    monkeypatch.setattr("auglabel.data.files.MOST_UNPACKED", 2**19)


def large_lines(monkeypatch):
    """As all are, for the moment."""
    monkeypatch.setattr("auglabel.lab.runs.files.LARGEST", 10)


def checkpoint_without_facts(monkeypatch):
    save_checkpoint(Path(LAST), {"model.weight": torch.zeros(1)}, {})


def two_sizes(monkeypatch):
    pictures(a=2, b=2)(monkeypatch)
    Image.new("L", (24, 20)).save("pictures/b/9.png")


def ten_classes(monkeypatch):
    """CIFAR-10's, but smaller."""
    places = [f"{part}/{name}" for part in ("train", "test") for name in CIFAR10.classes]
    pictures(**dict.fromkeys(places, 1))(monkeypatch)


def tar_without_end(monkeypatch):
    pictures(a=2, b=2)(monkeypatch)
    with tarfile.open("pictures.tar", "w") as tar:
        tar.add("pictures")
        end = tar.offset
    os.truncate("pictures.tar", end)


def small_copies(monkeypatch):
    Path("copies").mkdir()
    np.save("copies/fog.npy", np.zeros((100, 16, 16, 3), np.uint8))
    np.save("copies/labels.npy", np.zeros(100, np.int64))


def copies_of_two_sizes(monkeypatch):
    for severity in "12345":
        for name, side in (("a", 20), ("b", 24)):
            Path(f"copies/fog/{severity}/{name}").mkdir(parents=True)
            Image.new("RGB", (side, side)).save(f"copies/fog/{severity}/{name}/0.png")
    comes_upon(lambda: corrupted(Path("copies")).source("fog", 1).fetch(torch.arange(2)))(monkeypatch)


def saved_by_two(monkeypatch):
    tensors, facts = load_checkpoint(Path(LAST))
    save_checkpoint(Path(LAST), tensors, {**facts, "processes": 2, "batch": 1, "epoch": 0})


def split_of_others(monkeypatch):
    save_checkpoint(Path("run/split.safetensors"), {"__class__": torch.zeros(1)}, {})


def facts_that_are_none(monkeypatch):
    save_checkpoint(Path(LAST), {"model.weight": torch.zeros(1)}, [])


def weights_that_burst(monkeypatch):
    def step(trainer, images, labels, whole):
        next(trainer.plain.parameters()).data.fill_(math.nan)
        trainer.recent.append(torch.tensor(1.0))

    monkeypatch.setattr("auglabel.lab.train.trainer.Trainer._step", step)


def empty_row(monkeypatch):
    found = {**evaluation(0.5, 0.1), "epoch": 1}
    found["rows"][0]["count"] = 0
    write_evaluation(Path("run"), found)


def result_of(change):
    """`auglabel reproduce` finds a result that lacks something."""

    def write(monkeypatch):
        study = Study("cpu", Results(Path("results/cpu/runs"), Path("runs/cpu")))
        job = study.jobs(study.rows(CPU)[0])[0]
        make_result(study, job)
        file = study.results.file(job)
        found = json.loads(file.read_text())
        change(found["evaluations"])
        del found["checksum"]
        file.write_text(json.dumps(found))
        comes_upon(lambda: study.results.read(job))(monkeypatch)

    return write


def other_download(monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda address, timeout: io.BytesIO(b"something else"))


def arrays(**content):
    def write(monkeypatch):
        usual = {"images": np.zeros((60, 20, 20), np.uint8), "labels": np.arange(60) % 3}
        np.savez("set.npz", **{k: v for k, v in (usual | content).items() if v is not None})

    return write


def cifar(content, *left_out):
    """cifar-10-batches-py with this in every file."""

    def write(monkeypatch):
        place = Path("cifar-10-batches-py")
        place.mkdir()
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"):
            if name not in left_out:
                (place / name).write_bytes(content)

    return write


def binary_cifar(monkeypatch):
    place = Path("cifar-10-batches-bin")
    place.mkdir()
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (place / name).write_bytes(bytes(100))


def comes_upon(what, *blocked):
    """`auglabel demo` calls it, or raises it; modules that are blocked cannot be imported."""

    def fail(words):
        if isinstance(what, Exception):
            raise what
        what()

    def prepare(monkeypatch):
        monkeypatch.setattr("auglabel.lab.commands.demo.run", fail)
        for module in blocked:
            monkeypatch.setitem(sys.modules, module, None)

    return prepare


def held(name):
    """By another process, as far as the lock knows."""

    def hold(monkeypatch):
        Path(name).mkdir(parents=True)
        file = (Path(name) / ".lock").open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        monkeypatch.setattr(sys.modules[__name__], "HELD", file)

    return hold


def wrong_table(monkeypatch):
    found = json.loads(Path("run/table.json").read_text())
    del found["checksum"]  # as one who writes it by hand
    found["confidence"]["rotate"][0] = 7
    Path("table.json").write_text(json.dumps(found))


def weights_with_a_bit_changed(monkeypatch):
    content = bytearray(Path("run/model.safetensors").read_bytes())
    content[-100] ^= 1
    Path("run/model.safetensors").write_bytes(content)


def killed_rank(monkeypatch):
    code = "import os, time; os.kill(os.getpid(), 9) if os.environ['RANK'] == '1' else time.sleep(60)"

    def begun(command, processes, port):
        return launch([sys.executable, "-c", code], processes, port)

    monkeypatch.setattr("auglabel.lab.commands.train.launch", begun)


def damaged_journal(monkeypatch):
    Path("sweeps").mkdir()
    Path("sweeps/search.journal").write_text('{"op_code": 77}\n')


NPZ = ["train", *TINY, "--data=npz", "--data.path=set.npz", *NOWHERE]
FOLDER = ["train", "folder", "--data.root=pictures", *NOWHERE]
CIFAR = ["train", "cpu-cifar10", "--data.root=.", "--data.verify=false", *NOWHERE]
RESUME = ["train", "--resume", "--out=run", "--tracker=none"]
SEARCH = ["sweep", *TINY, "--search=labels.alpha=0.005..0.5", "--trials=2", "--out=sweeps", "--workers=1"]
UNEQUAL = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}
LAST = "run/checkpoints/step-00000002.safetensors"


HELD = None
TRAIN = ["train", *TINY, *NOWHERE]
AUDIT = ["audit", "--model=small", "--model.widths=[4,8,8]", "--weights=run/model.safetensors"]
TABLES = "run/tables.jsonl"

# What is done first, what is called, and the whole sentence; `...` stands for more of it.
TABLE = [
    (None, ["demo", "--seeds=0"], "--seeds must be at least 1, got 0."),
    (None, ["list", "recipe"], 'there is no list "recipe". There are: recipes, data, ... "recipes"?'),
    (None, ["inspect", "run", "--size=3"], 'there is no option "--size"; --help lists them.'),
    (
        comes_upon(ModuleNotFoundError(name="rich")),
        ["demo"],
        "demo needs rich, which is not installed. Install the extra that brings it: "
        "pip install 'auglabel[train]'.",
    ),
    (
        comes_upon(MemoryError()),
        ["demo"],
        "demo ran out of memory. Fewer images at a time need less: a smaller --batch_size. Images that do "
        "not fit are streamed with a smaller --data.memory_gb.",
    ),
    (comes_upon(lambda: torch.empty(2**55)), ["demo"], "demo ran out of memory. Fewer images at a time ..."),
    (None, ["dmo"], 'there is no command "dmo". There are: demo, train, ... Did you mean "demo"?'),
    (
        None,
        ["train"],
        "which recipe? Give a .yaml file or a name: auglabel train cpu-cifar10. auglabel list recipes.",
    ),
    (None, ["inspect"], "which run? auglabel inspect runs/NAME."),
    (
        None,
        ["eval"],
        "what to measure? Give a run, or --model NAME --weights FILE.safetensors and --data.",
    ),
    (
        None,
        ["eval", "run", "--alpha=0.3"],
        "a run is measured as it was trained, but labels.alpha: 0.3, not auto was asked for.",
    ),
    (comes_upon(load_altair, "altair"), ["demo"], "charts need altair: pip install 'auglabel[report]'."),
    # recipes
    (None, [*TRAIN, "--epochs=many"], "--epochs: epochs must be a whole number, got many."),
    (None, [*TRAIN, "--data=npz"], "--data: data needs path: --data.path VALUE."),
    (None, [*TRAIN, "--epoch=1"], '--epoch: there is no option "epoch". Did you mean "epochs"?'),
    (
        None,
        [*TRAIN, "--labels.beta=1"],
        '--labels.beta: labels has no option "beta" for autolabel. It takes: alpha, replay, start_table. '
        'Did you mean "replay"?',
    ),
    (
        None,
        [*TRAIN, "--name=x"],
        "--name: this could be augment.name or data.name or labels.name or model.name or optimizer.name or "
        "schedule.name; say which.",
    ),
    (
        text("mine.yaml", "base: other.yaml"),
        ["train", "mine.yaml"],
        "mine.yaml, line 1: there is no file other.yaml.",
    ),
    (
        text("large.yaml", "#" * (2**17 + 1)),
        ["train", "large.yaml"],
        "large.yaml has more than 131,072 bytes, which no recipe has.",
    ),
    (
        text("many.yaml", f"epochs: [{'1,' * 20_000}]"),
        ["train", "many.yaml"],
        "many.yaml holds more than 20,000 values, which no recipe has.",
    ),
    (
        text("deep.yaml", "[" * 5000),
        ["train", "deep.yaml"],
        "deep.yaml: this is nested too deeply for a recipe.",
    ),
    (
        replaced("run/recipe.yaml", "epochs: 1", "epochs: 2"),
        RESUME,
        "run/recipe.yaml is damaged: its checksum does not fit its content; remove that line if you changed "
        "it yourself.",
    ),
    (None, [*TRAIN, "--labels=table", "--labels.path=table.json"], "there is no table.json."),
    (
        wrong_table,
        [*TRAIN, "--labels=table", "--labels.path=table.json"],
        "table.json: every confidence must be a number in [0, 1], got int 7.",
    ),
    (
        lambda monkeypatch: Path("mine.yaml").write_bytes(b"\xff"),
        ["train", "mine.yaml"],
        "mine.yaml is not a text file: invalid start byte at byte 0.",
    ),
    # data
    (
        cifar(b"", "data_batch_2"),
        CIFAR,
        "cifar-10-batches-py lacks data_batch_2: fetch cifar-10-python.tar.gz from "
        "https://www.cs.toronto.edu/~kriz/ again.",
    ),
    (
        cifar(pickle.dumps(UNEQUAL)),
        CIFAR,
        "cifar-10-batches-py/data_batch_1 is damaged: it has 2 images but 1 labels.",
    ),
    (
        cifar(pickle.dumps(UNEQUAL)[:50]),
        CIFAR,
        "cifar-10-batches-py/data_batch_1 is damaged: its pickle cannot be read (...). Fetch it again.",
    ),
    (
        cifar(b"no"),
        CIFAR,
        "cifar-10-batches-py/data_batch_1 is refused: its pickle has the operation 110, which the official "
        "file never has. Fetch that one.",
    ),
    (large_tar, CIFAR, "cifar-10-python.tar.gz is refused: it unpacks to more than 524,288 bytes."),
    (
        long_name,
        [*FOLDER, "--data.root=pictures.tar"],
        "pictures.tar is refused: it has a header of more than 1,048,576 bytes.",
    ),
    (
        binary_cifar,
        CIFAR,
        "cifar-10-batches-bin/data_batch_1.bin is cut short or not CIFAR-10: expected a multiple of 3073 "
        "bytes, got 100.",
    ),
    (
        other_download,
        [*CIFAR, "--data.download=true"],
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz could not be fetched (expected MD5 ..., "
        "found ...): fetch it where there is a network and put it into ...",
    ),
    (cannot_be_listed, FOLDER, "pictures cannot be listed: Permission denied."),
    (picture_that_vanishes, FOLDER, "pictures/b/1.png cannot be read: No such file or directory."),
    (
        tar_that_shrinks,
        [*FOLDER, "--data.root=pictures.tar"],
        "pictures/b/1.png in pictures.tar cannot be read: the tar ends before it does.",
    ),
    (
        broken_pictures,
        [*FOLDER, "--data.skip_broken=true", "--data.size=null", "--data.resize=null"],
        "none of the 4 images can be read: pictures/a/0.png is broken and cannot be read as an image ...",
    ),
    (pictures(a=3), FOLDER, "pictures has one class only, a: telling classes apart takes two folders."),
    (
        pictures(a=2, b=2),
        ["train", "imagenet", "--data.root=pictures", *NOWHERE],
        "pictures is not in ImageNet's layout: expected images in train/<class>/, such as "
        "train/n01440764/, but train/ has no images.",
    ),
    (
        no_pillow,
        FOLDER,
        "reading image files needs Pillow, which could not be imported (...). Install it: "
        "pip install 'auglabel[train]'.",
    ),
    (
        deep_picture,
        FOLDER,
        "pictures/a/deep.tif has pixels beyond 16 bits (mode F): save it with 8 or 16 bits; ...",
    ),
    (None, NPZ, "set.npz does not exist: expected an .npz file."),
    (
        text("set.npz", "no"),
        NPZ,
        "set.npz is not an .npz file that can be read (it is not a zip archive, or cut short): write or "
        "fetch it again.",
    ),
    (arrays(labels=None), NPZ, "set.npz lacks ... images and labels: it holds images."),
    (arrays(images=np.zeros((0, 20, 20), np.uint8), labels=np.arange(0)), NPZ, "set.npz: images is empty."),
    (arrays(labels=np.zeros(60, int)), NPZ, "set.npz has one class only: telling classes apart takes two."),
    (
        arrays(
            images=None,
            labels=None,
            x_train=np.zeros((60, 20, 20), np.uint8),
            y_train=np.arange(60) % 3,
            x_test=np.zeros((60, 24, 20), np.uint8),
            y_test=np.arange(60) % 3,
        ),
        NPZ,
        "set.npz: x_train has images of (1, 20, 20), but x_test of (1, 24, 20).",
    ),
    (
        comes_upon(lambda: Rows([{"image": {"path": "gone.png"}}], "image", "cats", [Path()]).read(0)),
        ["demo"],
        "image 0 of cats cannot be read: No such file or directory: gone.png.",
    ),
    (
        comes_upon(lambda: _several("cats", ("cat",))),
        ["demo"],
        "cats has one class only, cat: telling classes apart takes two.",
    ),
    (
        lambda monkeypatch: Path("pictures").mkdir(),
        FOLDER,
        "pictures holds no images: expected class folders with png, jpg, ... in them.",
    ),
    (
        two_sizes,
        [*FOLDER, "--data.size=null", "--data.resize=null"],
        "images must be of one size, but pictures/a/0.png has 20 x 20 pixels and pictures/b/9.png has "
        "24 x 20: --data.size 32, for example, brings all to 32 x 32.",
    ),
    (
        tar_without_end,
        [*FOLDER, "--data.root=pictures.tar"],
        "pictures.tar is cut short: a tar ends in a block of zeros.",
    ),
    (
        ten_classes,
        [*CIFAR, "--data.root=pictures"],
        "pictures is not CIFAR-10, whose images have 3 channels of 32 x 32, got 1 of 20 x 20.",
    ),
    # corruptions
    (
        arrays(images=np.zeros((60, 8, 8), np.uint8)),
        ["corrupt", "npz", "copies", "--data.path=set.npz", "--workers=1"],
        "corrupt needs pictures of at least 16 x 16 pixels, got 8 x 8.",
    ),
    (
        lambda monkeypatch: Path("ice").mkdir(),
        ["corrupt", "embedded", "copies", "--suite=frost", "--frost=ice"],
        "ice should be the directory of the frost photographs (...), but it lacks frost1.png, ... Copy the "
        "missing, or name no directory: frost drawn here serves then.",
    ),
    (
        small_copies,
        ["eval", "run", "--on=fog", "--copies=copies"],
        "copies has images of (3, 16, 16) (channels, height, width), but the run's have (1, 28, 28): give "
        "the copies of its own data set.",
    ),
    (
        copies_of_two_sizes,
        ["demo"],
        "copies/fog/1/b/0.png has ... pixels, but ... were expected: copies of a data set have one size.",
    ),
    (
        comes_upon(_pillow, "PIL"),
        ["demo"],
        "jpeg_compression needs Pillow, which could not be imported (...). Install it: pip install "
        "'auglabel[corrupt]'.",
    ),
    # networks
    (
        None,
        ["train", "embedded", *SMALL, "--model=wide_resnet", "--model.depth=11", *NOWHERE],
        "wide_resnet could not be built: depth must be 6n + 4, such as 10, 16, 22, 28 or 40, got 11.",
    ),
    (
        None,
        ["train", "embedded", "--model=tests.networks:of_size", *NOWHERE],
        "tests.networks:of_size does not take the 1 x 28 x 28 images of embedded Fashion-MNIST: Input height "
        "(28) doesn't match model (8). Set a size that fits with --model.img_size.",
    ),
    (
        pictures(a=10, b=10),
        [*FOLDER, "--model=tests.networks:of_size", "--data.size=12"],
        "tests.networks:of_size does not take the 1 x 12 x 12 images of .../pictures: Input height (12) "
        "doesn't match model (8). Set a size that fits with --data.size or --model.img_size.",
    ),
    (
        None,
        ["train", "embedded", "--model=tests.networks:of_size", "--model.memory_at=called", *NOWHERE],
        "train ran out of memory. Fewer images at a time ...",
    ),
    (
        None,
        ["train", "embedded", "--model=tests.networks:of_size", "--model.memory_at=built", *NOWHERE],
        "train ran out of memory. Fewer images at a time ...",
    ),
    (
        None,
        ["train", "embedded", "--model=tests.networks:nothing"],
        '--model: the module "tests.networks" (...tests/networks.py) has no "nothing".',
    ),
    (
        lambda monkeypatch: monkeypatch.setitem(sys.modules, "timm", None),
        ["train", "embedded", "--model=timm:resnet18"],
        "--model: timm is not installed, so its models cannot be built: pip install timm.",
    ),
    (
        None,
        ["train", "embedded", "--model=smal"],
        '--model: there is no model "smal". There are: small, wide_resnet, resnet, fast, and timm:NAME, '
        'torchvision:NAME and module:function. Did you mean "small"?',
    ),
    # files of a run
    (
        text(LAST, "no"),
        RESUME,
        "run has no checkpoint that can be read: run/checkpoints/step-00000002.safetensors is damaged or not "
        "a checkpoint: ...",
    ),
    (
        weights_with_a_bit_changed,
        AUDIT,
        "run/model.safetensors is damaged: its checksum does not fit its content.",
    ),
    (
        replaced("run/run.json", '"seed": 0', '"seed": 1'),
        RESUME,
        "run/run.json is damaged: its checksum does not fit its content; remove that if you changed the file "
        "yourself.",
    ),
    (
        replaced("run/metrics.jsonl", '"epoch": 1', '"epoch": 2'),
        RESUME,
        "run/metrics.jsonl, line 1 is damaged: its checksum does not fit its content.",
    ),
    (large_lines, RESUME, "run/metrics.jsonl has more than 10 bytes, which no run of ours writes."),
    (
        text("run/metrics.jsonl", '{"epoch": "one"}\n'),
        ["report", "run"],
        "run/metrics.jsonl, line 1 is damaged or of another version: ...",
    ),
    (
        text("run/eval/clean.json", json.dumps({"format": EVALUATION_FORMAT})),
        ["report", "run"],
        "run/eval/clean.json is damaged or of another version: ...",
    ),
    (checkpoint_without_facts, ["eval", "run"], "run has a checkpoint of another version: ..."),
    (
        facts_that_are_none,
        RESUME,
        "run has no checkpoint that can be read: run/checkpoints/step-00000002.safetensors is not a "
        "checkpoint: its facts must be an object, got list [].",
    ),
    (
        split_of_others,
        RESUME,
        "run/split.safetensors is not a run's split: it must hold train, validation, test.",
    ),
    (text("run/run.json", "[]"), RESUME, "run/run.json is not what a run was begun with: got list []."),
    (
        empty_row,
        ["report", "run"],
        "run/eval/clean.json is damaged: the images or bins of a row of it are wrong. Measure it again.",
    ),
    (
        None,
        [*RESUME, "--alpha=0.3"],
        "run was begun with another recipe and cannot go on with this one. This one has labels.alpha: 0.3, "
        "not auto.",
    ),
    # train
    (
        None,
        ["train", *TINY, "--tracker=mlflow"],
        "--tracker mlflow needs mlflow, which is not installed: pip install mlflow.",
    ),
    (killed_rank, [*TRAIN, "--processes=2"], "process 1 of 2 was killed (SIGKILL)."),
    (
        None,
        [*TRAIN, "--learning_rate=1e30", "--regime=randaug"],
        "the loss is nan at step 2. Try a lower --optimizer.learning_rate or --optimizer.clip 1. The last "
        "good checkpoint stays in out/checkpoints.",
    ),
    (
        weights_that_burst,
        TRAIN,
        "a weight is no longer a number after step 2. Try a lower --optimizer.learning_rate or "
        "--optimizer.clip 1. The last good checkpoint stays in out/checkpoints.",
    ),
    (
        saved_by_two,
        RESUME,
        "run/checkpoints: the last checkpoint was saved inside an epoch by 2 processes, and only as many can "
        "go on from it, but there are 1.",
    ),
    (
        comes_upon(lambda: shuffled(1, 4, torch.Generator(), 2)),
        ["demo"],
        "1 training images leave some of 2 processes without one.",
    ),
    (
        None,
        [*TRAIN, "--processes=2", "--port=99999"],
        "--port 99999 cannot be used (...); without it a free one is taken.",
    ),
    # eval, sweep, reproduce
    (
        None,
        ["eval", "run", "--on=cleen"],
        '--on: there is no condition "cleen". There are: clean, ... Did you mean "clean"? It also takes '
        "foolbox:NAME and module:function.",
    ),
    (
        None,
        ["sweep", *TINY, "--over=alpha=0.1;alpha=0.2"],
        "--over has alpha twice: give all its values at once.",
    ),
    (
        damaged_journal,
        SEARCH,
        "sweeps/search.journal is damaged (...): remove it to search anew; results stay.",
    ),
    (
        held("runs/cpu"),
        ["reproduce", "table1", "--out=results"],
        "another process is at work in runs/cpu.",
    ),
    (
        comes_upon(lambda: _student(), "scipy", "scipy.stats"),
        ["demo"],
        "intervals need scipy: pip install 'auglabel[report]'.",
    ),
    (
        None,
        ["reproduce", "table5"],
        "no row has its images. Give --cifar10 DIR, the official files or folders of images; ...",
    ),
    (
        None,
        ["reproduce", "table5", "--cifar10=nowhere"],
        "--cifar10: there is no nowhere. It takes the official files or folders of images; ...",
    ),
    (
        result_of(lambda found: found.clear()),
        ["demo"],
        "results/cpu/runs/...json is damaged: not all that was measured is there. Remove it.",
    ),
    (
        result_of(lambda found: found[0]["rows"].clear()),
        ["demo"],
        "results/cpu/runs/...json is damaged: a measurement in it lacks rows or columns. Remove it, and it "
        "is made again.",
    ),
    (comes_upon(lambda: Executor(engine="steam")), ["demo"], "engine must be local or ray, got 'steam'."),
    (
        None,
        ["sweep", *TINY, "--search=labels.start_table=1..2", "--trials=2"],
        "--search: labels.start_table does not take numbers; --over takes words.",
    ),
    # those that look at a run
    (
        text("run/run.json", json.dumps({"format": RUN_FORMAT})),
        ["report", "run"],
        "run/run.json is damaged or of another version: it does not say versions.",
    ),
    (
        text(TABLES, '{"epoch": 1, "confidence": 3}\n\n'),
        ["inspect", "run"],
        'run/tables.jsonl, line 1: "confidence" must hold a list of numbers per kind, got int 3.',
    ),
    (
        text(TABLES, '{"epoch": 1, "confidence": {"a": [2]}}\n\n'),
        ["inspect", "run"],
        "run/tables.jsonl, line 1: every confidence must be a number in [0, 1], got int 2.",
    ),
    (
        gone(TABLES),
        ["inspect", "run"],
        "run has no table yet: its labels do not learn, or no epoch is done.",
    ),
    (
        text(TABLES, '{"epoch": 1, "confidence": {"a": [1]}}\n{"epoch": 2, "confidence": {"b": [1]}}\n'),
        ["inspect", "run"],
        "run/tables.jsonl, line 2: it is a table for other distances than the lines before: {'b': 1} after "
        "{'a': 1}.",
    ),
    (
        text(TABLES, json.dumps({"epoch": 1, "confidence": {str(n): [1] for n in range(1001)}}) + "\n"),
        ["inspect", "run"],
        "run/tables.jsonl, line 1: a table has at most 1,000 kinds and 20,000 buckets, got more.",
    ),
    (
        None,
        ["audit", "--data=embedded"],
        "which network? Give a run, or --model NAME with --weights FILE.safetensors or with "
        "--model.pretrained true, or --program FILE; and --data.",
    ),
    (
        None,
        ["audit", "--program=a.pt", "--weights=b"],
        "--weights go with --model; a --program has its own.",
    ),
    (None, ["audit", "--program=a.pt", "--data=embedded"], "there is no file a.pt."),
    (
        None,
        [*AUDIT, "--data=embedded", "--split.validation=0", "--part=validation"],
        "there are no validation images to audit on: see --part.",
    ),
]


@pytest.mark.parametrize(("prepare", "words", "sentence"), TABLE, ids=[case[2][:60] for case in TABLE])
def test_a_mistake_ends_with_its_sentence(prepare, words, sentence, room, monkeypatch, capsys):
    if prepare is not None:
        prepare(monkeypatch)
    said = ended(words, capsys, 2 if words == ["dmo"] else 1)
    assert re.fullmatch(".*".join(map(re.escape, sentence.split("..."))), said), said


def ended(words, capsys, code=1):
    """The one sentence that a command ends with, less the directory."""
    capsys.readouterr()
    assert cli.main(words) == code
    error = capsys.readouterr().err
    assert error.startswith("auglabel: ")
    assert error.count("\n") == 1
    return error.removeprefix("auglabel: ").removesuffix("\n").replace(os.getcwd(), "HERE")
