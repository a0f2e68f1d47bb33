"""Corrupted copies written to disk: the pictures `corrupt` makes, whole files only, and calls that go on."""

import errno
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from auglabel import __version__, cli
from auglabel.corrupt import suite
from auglabel.corrupt.frost import PHOTOGRAPHS
from auglabel.data.corrupted import corrupted
from auglabel.data.embedded import load_embedded
from auglabel.data.folder import folder
from auglabel.data.source import InMemory, in_memory
from auglabel.lab.copies import copies, layouts
from auglabel.lab.copies.copies import CopyOptions, write_copies
from auglabel.util.checksummed_json import with_checksum

COUNT = 12
ROWS = torch.arange(COUNT)


def data_set(channels: int = 3):
    """12 test images of 28 x 28 in three classes, one of which no path can hold."""
    images = load_embedded().test.images[: COUNT * channels].reshape(COUNT, channels, 28, 28)
    return in_memory(
        "mine", ["b", "a", "c/d"], InMemory(images[:4], ROWS[:4] % 3), InMemory(images, ROWS % 3)
    )


def darker(images, name, severity, *, seed, index, parameters, frost):
    """A stand-in whose pictures differ by all that they may depend on."""
    shift = torch.as_tensor(index)[:, None, None, None] + 10 * severity + len(name) + seed
    return (images.long() // 2 + shift).to(torch.uint8)


def deadly(images, name, severity, **rest):
    """Another, for a process that is killed at work."""
    if severity == 4 and len(images) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return darker(images, name, severity, **rest)


def failing(images, name, severity, **rest):
    if severity == 4 and len(images) > 1:
        raise OSError("there are no pictures today.")
    return darker(images, name, severity, **rest)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    monkeypatch.setattr(copies, "corrupt", darker)
    monkeypatch.setenv("COLUMNS", "200")


def write(out: Path, data=None, **options) -> str:
    """What was printed."""
    printed = io.StringIO()
    asked = CopyOptions(**{"suite": "fog,frost", "workers": 1, **options})
    write_copies(data or data_set(), out, asked, Console(file=printed, width=200))
    return printed.getvalue()


def expected(data, name: str, severity: int, seed: int = 0) -> torch.Tensor:
    return darker(data.test.images, name, severity, seed=seed, index=ROWS, parameters="", frost=None)


def files(out: Path) -> dict[str, float]:
    """When each was written, but for the lock."""
    found = (file for file in out.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(out)): file.stat().st_mtime_ns for file in found}


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_hold_what_corrupt_makes_of_the_test_images(tmp_path, channels):
    data = data_set(channels)
    printed = write(tmp_path, data, seed=5)

    found = corrupted(tmp_path)

    assert sorted(files(tmp_path)) == ["about.json", "fog.npy", "frost.npy", "labels.npy"]
    assert np.load(tmp_path / "fog.npy").shape == (5 * COUNT, 28, 28, channels)
    assert found.names == ("fog", "frost")
    for severity in range(1, 6):
        source = found.source("frost", severity)
        assert torch.equal(source.fetch(ROWS), expected(data, "frost", severity, seed=5))
        assert torch.equal(source.labels, data.test.labels)
        assert source.shape == (channels, 28, 28)
    made = f"made by auglabel {__version__}, seed 5, cifar parameters"
    assert found.origin(["fog"]) == made
    assert found.origin(["fog", "frost"]) == f"{made}, procedural frost"
    assert re.search(r"120 pictures in .*, 120 of them made now, .*: 2 x 5\. Frost: procedural\.", printed)


def test_folders_hold_the_same_pictures_as_jpeg_by_class_and_row(tmp_path):
    data = data_set()
    write(tmp_path, data, layout="folders", severities=(4, 2))

    found = corrupted(tmp_path)

    assert found.classes == ("b", "a", "c/d")
    assert (tmp_path / "fog" / "2" / "c_d" / "05.JPEG").is_file()
    assert not (tmp_path / "fog" / "1").exists()
    source = found.source("fog", 4)
    assert torch.equal(source.labels, data.test.labels)  # in the order of the data set, whatever the classes
    for image, picture in zip(source.fetch(ROWS), expected(data, "fog", 4), strict=True):
        content = io.BytesIO()
        Image.fromarray(picture.permute(1, 2, 0).numpy()).save(content, "JPEG", quality=85)
        assert np.array_equal(image.permute(1, 2, 0).numpy(), np.asarray(Image.open(content)))


def test_folders_keep_the_names_of_image_files(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))
    for name in ("cat/tom.png", "cat/kit.png", "dog/rex.png"):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((28, 28, 3), 99, np.uint8)).save(path)
    write(tmp_path / "a", folder(tmp_path / "pictures", memory_gb=0), layout="folders", suite="fog")
    write(tmp_path / "b", folder(tmp_path / "pictures"), layout="folders", suite="fog")
    Image.new("RGB", (28, 28)).save(tmp_path / "pictures" / "cat" / "tom.jpg")
    write(tmp_path / "c", folder(tmp_path / "pictures", memory_gb=0), layout="folders", suite="fog")

    names = [
        [str(p.relative_to(tmp_path / out / "fog" / "1")) for p in corrupt_files(tmp_path / out)]
        for out in "abc"
    ]

    assert names[0] == ["cat/kit.JPEG", "cat/tom.JPEG", "dog/rex.JPEG"]
    assert names[1] == ["cat/0.JPEG", "cat/1.JPEG", "dog/2.JPEG"]  # decoded at once: names are forgotten
    assert names[2] == ["cat/0.JPEG", "cat/1.JPEG", "cat/2.JPEG", "dog/3.JPEG"]  # two have one name
    assert json.loads((tmp_path / "a" / "about.json").read_text())["part"] == "all"


def corrupt_files(out: Path) -> list[Path]:
    return sorted((out / "fog" / "1").rglob("*.JPEG"))


def test_only_the_first_images_where_fewer_are_asked_for(tmp_path):
    data = data_set()
    write(tmp_path, data, images=5)
    source = corrupted(tmp_path).source("fog", 3)
    assert torch.equal(source.fetch(ROWS[:5]), expected(data, "fog", 3)[:5])
    write(tmp_path / "all", data, images=500)
    assert len(corrupted(tmp_path / "all").source("fog", 3)) == COUNT


def test_several_processes_write_the_pictures_that_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr(layouts, "MOST", 5)
    data = data_set()
    write(tmp_path / "one", data, layout="folders")
    write(tmp_path / "two", data, layout="folders", workers=2)

    one, two = files(tmp_path / "one"), files(tmp_path / "two")

    assert one.keys() == two.keys()
    assert all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in one
    )


def test_a_second_call_makes_only_what_is_missing(tmp_path):
    data = data_set()
    write(tmp_path, data)
    before = files(tmp_path)
    assert ", 0 of them made now" in write(tmp_path, data)
    (tmp_path / "fog.npy").unlink()
    assert ", 60 of them made now" in write(tmp_path, data)
    after = files(tmp_path)
    assert after.keys() == before.keys()
    assert [name for name in ("frost.npy", "labels.npy") if before[name] != after[name]] == []
    assert torch.equal(corrupted(tmp_path).source("fog", 5).fetch(ROWS), expected(data, "fog", 5))


def test_more_types_may_join(tmp_path):
    write(tmp_path)
    write(tmp_path, suite="contrast")
    assert corrupted(tmp_path).names == ("contrast", "fog", "frost")
    assert corrupted(tmp_path).origin(["contrast", "fog"]).endswith("cifar parameters")


def test_folders_go_on_with_the_pictures_that_are_missing(tmp_path):
    data = data_set()
    write(tmp_path, data, layout="folders")
    gone = corrupt_files(tmp_path)[3:5]
    content = [path.read_bytes() for path in gone]
    for path in gone:
        path.unlink()
    with pytest.raises(ValueError, match="1 holds 10 images, not 12: auglabel corrupt, called as before"):
        corrupted(tmp_path).source("fog", 1)
    assert ", 2 of them made now" in write(tmp_path, data, layout="folders")
    assert [path.read_bytes() for path in gone] == content


def test_an_empty_picture_is_made_again(tmp_path):
    write(tmp_path, layout="folders")
    path = corrupt_files(tmp_path)[3]
    content = path.read_bytes()
    path.write_bytes(b"")  # as a power loss may leave it
    assert ", 1 of them made now" in write(tmp_path, layout="folders")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"!"),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no array"),
        lambda path: np.save(path, np.load(path).astype(np.int8)),
        lambda path: np.save(path, np.load(path)[:-5]),
        lambda path: np.save(path, np.asfortranarray(np.load(path))),
    ],
)
def test_a_damaged_array_is_made_again(tmp_path, damage):
    data = data_set()
    write(tmp_path, data)
    content = (tmp_path / "fog.npy").read_bytes()
    damage(tmp_path / "fog.npy")
    assert ", 60 of them made now" in write(tmp_path, data)
    assert (tmp_path / "fog.npy").read_bytes() == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: np.save(path, np.load(path)[::-1]),
        lambda path: np.save(path, np.load(path).astype(np.int32)),
    ],
)
def test_labels_that_are_not_those_of_the_images_are_written_again(tmp_path, damage):
    write(tmp_path)
    content = (tmp_path / "labels.npy").read_bytes()
    damage(tmp_path / "labels.npy")
    assert ", 0 of them made now" in write(tmp_path)
    assert (tmp_path / "labels.npy").read_bytes() == content


def test_a_damaged_part_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "corrupt", failing)
    with pytest.raises(OSError, match="no pictures today"):
        write(tmp_path)
    (tmp_path / ".parts" / "fog-2-0-12.npy").write_bytes(b"half")
    monkeypatch.setattr(copies, "corrupt", darker)
    assert ", 96 of them made now" in write(tmp_path)  # of 120, fog's first and third severity were there


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_images_are_not_copied_for_processes_that_have_nothing_to_do(tmp_path, monkeypatch, layout):
    write(tmp_path, layout=layout)
    before = files(tmp_path)
    monkeypatch.setattr(layouts, "_save", None)  # what writes arrays
    write(tmp_path, layout=layout)
    assert {**files(tmp_path), "about.json": 0} == {**before, "about.json": 0}


@pytest.mark.parametrize(
    ("layout", "broken", "workers", "complaint"),
    [
        ("npy", failing, 1, r"there are no pictures today\."),
        ("folders", failing, 1, r"there are no pictures today\."),
        ("folders", failing, 2, r"there are no pictures today\."),
        ("npy", deadly, 2, "a process was killed from outside, .* the same command again goes on from here"),
    ],
)
def test_what_fails_half_way_leaves_whole_files_and_goes_on(
    tmp_path, monkeypatch, layout, broken, workers, complaint
):
    data = data_set()
    monkeypatch.setattr(copies, "corrupt", broken)
    with pytest.raises(OSError, match=complaint):
        write(tmp_path, data, layout=layout, workers=workers)
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.glob("f*.npy"))  # neither type has all severities
    for path in tmp_path.rglob("*.JPEG"):
        Image.open(path).load()

    torn = tmp_path / ".parts" / ".fog-4-0-12.npy.1.partial"  # of a process that died
    torn.write_bytes(b"half")
    monkeypatch.setattr(copies, "corrupt", darker)
    write(tmp_path, data, layout=layout)
    assert not (tmp_path / ".parts").exists()
    write(tmp_path / "at once", data, layout=layout)
    for name in files(tmp_path / "at once"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "at once" / name).read_bytes()


def test_a_full_disk_ends_with_one_sentence(tmp_path, monkeypatch):
    def full(path, *rest):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    write(tmp_path / "begun", suite="frost")
    monkeypatch.setattr(layouts, "_save", full)
    with pytest.raises(
        OSError, match=r"\.npy cannot be written \(No space left on device\): the same command"
    ):
        write(tmp_path / "begun", suite="fog")
    there = sorted(name for name in files(tmp_path / "begun") if not name.startswith(".parts"))
    assert there == ["about.json", "frost.npy", "labels.npy"]
    assert not list(tmp_path.rglob("*.partial"))


def test_a_changed_value_is_named_and_made_again(tmp_path):
    write(tmp_path, suite="fog,frost")
    whole = (tmp_path / "fog.npy").read_bytes()
    spoilt = bytearray(whole)
    spoilt[-5] ^= 1  # a pixel
    (tmp_path / "fog.npy").write_bytes(spoilt)
    with pytest.raises(
        ValueError, match=r"fog.npy is damaged: expected MD5 \w{32}, .* called as before, makes it"
    ):
        corrupted(tmp_path).source("fog", 1)
    corrupted(tmp_path).source("frost", 1)
    write(tmp_path, suite="fog,frost")
    assert (tmp_path / "fog.npy").read_bytes() == whole
    corrupted(tmp_path).source("fog", 1)


def test_copies_of_a_version_without_checksums_are_taken_and_get_them(tmp_path):
    write(tmp_path, suite="fog")
    about = json.loads((tmp_path / "about.json").read_text())
    assert set(about.pop("md5")) == {"fog", "labels"}
    (tmp_path / "about.json").write_text(json.dumps(with_checksum(about)))
    corrupted(tmp_path).source("fog", 1)
    write(tmp_path, suite="fog")
    assert set(json.loads((tmp_path / "about.json").read_text())["md5"]) == {"fog", "labels"}


def test_a_call_that_finds_all_done_reads_each_file_once(tmp_path, monkeypatch):
    write(tmp_path, suite="fog,frost")
    read, real = [], layouts.blocks_of
    monkeypatch.setattr(layouts, "blocks_of", lambda path: read.append(path.name) or real(path))
    write(tmp_path, suite="fog,frost")
    assert sorted(read) == ["fog.npy", "frost.npy", "labels.npy"]


def test_copies_of_a_later_version_are_not_taken_for_files_from_elsewhere(tmp_path):
    write(tmp_path, suite="fog")
    (tmp_path / "about.json").write_text('{"format": "auglabel corrupted copies, version 9"}')
    with pytest.raises(
        ValueError, match=r"or of another version: .*version 1. was expected, got .*version 9"
    ):
        corrupted(tmp_path)


def test_other_facts_are_refused(tmp_path):
    write(tmp_path)
    with pytest.raises(
        ValueError, match=r"was begun otherwise and cannot go on with seed 1, not 0: name another"
    ):
        write(tmp_path, seed=1)
    with pytest.raises(ValueError, match="parameters imagenet, not cifar; layout folders, not npy"):
        write(tmp_path, parameters="imagenet")
    with pytest.raises(ValueError, match="images 3, not 12"):
        write(tmp_path, images=3)
    with pytest.raises(ValueError, match=r"data.checksum \w{20}\.\.\., not \w{20}\.\.\."):
        write(tmp_path, data_set(1))
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "thesis.txt").touch()
    with pytest.raises(ValueError, match="else is no empty folder, nor one of copies made here"):
        write(tmp_path / "else")
    assert list(files(tmp_path / "else")) == ["thesis.txt"]


def photographs(where: Path, brightness: int) -> str:
    where.mkdir()
    for name in PHOTOGRAPHS:
        Image.new("RGB", (40, 30), (brightness, 200, 250)).save(where / name)
    return str(where)


def test_other_photographs_of_frost_are_refused(tmp_path):
    bright, dark = photographs(tmp_path / "bright", 200), photographs(tmp_path / "dark", 100)
    out = tmp_path / "out"
    assert re.search(r"Frost: photographs [0-9a-f]{8}\.", write(out, frost=bright))
    assert ", 0 of them made now" in write(out, frost=bright)
    with pytest.raises(
        ValueError, match=r"with frost photographs (\w{8}), not photographs (?!\1)\w{8}: name"
    ):
        write(out, frost=dark)
    with pytest.raises(ValueError, match=r"with frost procedural, not photographs \w{8}: name another"):
        write(out)
    assert corrupted(out).origin(["frost"]).endswith("frost photographs")
    few = photographs(tmp_path / "few", 100)
    Path(few, "frost3.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"few should be .* but it lacks frost3\.png"):
        write(tmp_path / "none", suite="fog", frost=few)  # would be told in about.json


def test_two_processes_do_not_write_into_one_folder(tmp_path):
    with copies._at_work(tmp_path), pytest.raises(OSError, match="another process is writing copies into"):
        write(tmp_path)
    write(tmp_path)


def test_a_lock_that_was_opened_while_another_process_ended_holds(tmp_path):
    with copies._at_work(tmp_path):
        late = next(tmp_path.rglob(".lock")).open("w")
    with late:
        fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(OSError, match="another process is writing copies into"):
            write(tmp_path)
    write(tmp_path)  # a lock that nobody holds is no content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match=r"cannot be written \(Permission denied\): name a folder that can be"):
        write(tmp_path)


def test_classes_that_would_share_a_folder_are_refused(tmp_path):
    data = data_set()
    same = in_memory("mine", ["a/b", "a_b", "c"], data.train, data.test)
    with pytest.raises(ValueError, match="two classes would have one folder"):
        write(tmp_path, same, layout="folders")
    write(tmp_path, same)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["embedded"], "which images, and where to"),
        (["--suite", "fog", "embedded", "out"], r"DATA .* and OUT come first, options after them"),
        (["embeded", "out"], 'no data set, recipe or path "embeded".*Did you mean "embedded"'),
        (["cifar10", "out"], r"data needs root: --data\.root VALUE"),
        (["cifar10", "out", "--data.root", "nowhere"], "nowhere does not hold CIFAR-10"),
        (["embedded", "out", "--suite", "fogg"], 'no corruption "fogg".*Did you mean "fog"'),
        (["embedded", "out", "--severities", "1,6"], r"--severities must be in 1\.\.5, got 6"),
        (["embedded", "out", "--severities", "1,1"], "--severities must name some of 1..5 once each"),
        (["embedded", "out", "--severities", "1,2"], "a file of the npy layout holds all five"),
        (["embedded", "out", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["embedded", "out", "--images", "x"], "images must be a whole number or null, got x"),
        (["embedded", "out", "--layout", "zip"], "--layout: layout must be one of 'npy', 'folders'"),
        (["embedded", "out", "--sed", "1"], 'no option "sed"'),
        (["embedded", "file"], "file is no empty folder, nor one of copies"),
    ],
)
def test_words_it_cannot_use_end_with_one_sentence(tmp_path, monkeypatch, capsys, words, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert cli.main(["corrupt", *words]) == 1
    error = capsys.readouterr().err
    assert re.search(complaint, error)
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_takes_data_sets_recipes_and_paths(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))
    data = data_set()
    np.savez("mine.npz", images=data.test.images.numpy(), labels=data.test.labels.numpy())
    for row, image in enumerate(data.test.images.permute(0, 2, 3, 1).numpy()):
        path = Path("pictures", "cat" if row % 2 else "dog", f"{row}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    Path("mine.yaml").write_text("data: {name: folder, size: 20}\n")
    rest = ["--suite", "contrast", "--workers", "1", "--images", "3"]
    shapes = {}
    for place, words in enumerate(
        [
            ["embedded"],
            ["mine.npz"],
            ["pictures"],
            ["mine.yaml", "--data.root=pictures"],
            ["folder", "--root=pictures"],
        ]
    ):
        out, *options = f"out{place}", *words[1:]
        assert cli.main(["corrupt", words[0], out, *options, *rest]) == 0, capsys.readouterr().err
        shapes[words[0]] = corrupted(out).source("contrast", 2).shape

    assert shapes == {
        "embedded": (1, 28, 28),
        "mine.npz": (3, 28, 28),
        "pictures": (3, 28, 28),
        "mine.yaml": (3, 20, 20),
        "folder": (3, 28, 28),
    }
    assert capsys.readouterr().out.count("15 pictures in out") == 5


def test_the_real_corruptions_of_a_row_are_the_same_on_the_fly(tmp_path, monkeypatch):
    from auglabel.corrupt import corrupt

    monkeypatch.setattr(copies, "corrupt", corrupt)
    monkeypatch.setattr(layouts, "MOST", 5)
    data = data_set()
    write(tmp_path, data, suite="gaussian_noise,contrast", seed=3, workers=2)
    found = corrupted(tmp_path)
    rows = torch.tensor([7, 2])
    for name in found.names:
        on_the_fly = corrupt(data.test.fetch(rows), name, 3, seed=3, index=rows)
        assert torch.equal(found.source(name, 3).fetch(rows), on_the_fly)


def stopped(out, number, types):
    """The command, and the words it had, sent a signal once its first picture is there."""
    words = ["corrupt", "embedded", str(out), f"--suite={types}", "--layout=folders", "--images=600"]
    command = subprocess.Popen(
        [sys.executable, "-m", "auglabel.cli", *words, "--workers=2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell's background has it ignored
    )
    deadline, first = time.monotonic() + 60, out / types.partition(",")[0] / "1"
    while not next(first.rglob("*.JPEG"), None) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(command.pid, number) if number == signal.SIGINT else command.send_signal(number)
    return command, words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_stopped_leaves_no_process_and_goes_on(tmp_path, number):
    for types in ("contrast", "contrast,fog,pixelate", "all"):  # more work if it was done before the signal
        out = tmp_path / types
        command, words = stopped(out, number, types)
        said, complained = command.communicate(timeout=60)  # once every process has let go of its output
        if command.returncode != 0:
            break
    assert command.returncode == (130 if number == signal.SIGINT else -number)
    assert said == ""
    if number == signal.SIGINT:
        assert complained == "auglabel: stopped.\n"
    every = 5 * 600 * len(suite(types))
    assert 0 < len(list(out.rglob("*.JPEG"))) < every
    assert cli.main([*words, "--workers=1"]) == 0
    assert len(list(out.rglob("*.JPEG"))) == every
    assert not list(out.rglob("*.partial"))
