"""`auglabel eval --on corrupted`: pictures made on the fly or read from copies, and what is said of them."""

import json
import resource
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

from auglabel import cli
from auglabel.corrupt import SUITES, corrupt
from auglabel.corrupt.frost import PHOTOGRAPHS
from auglabel.data.decode import Streamed
from auglabel.data.embedded import embedded, load_embedded
from auglabel.data.folder import folder
from auglabel.data.source import InMemory, Subset, in_memory
from auglabel.lab.copies.copies import CopyOptions, write_copies
from auglabel.lab.evaluate.conditions import conditions
from auglabel.lab.evaluate.corrupted import CorruptedImages, Kept, Made, overlaps
from auglabel.lab.evaluate.evaluate import evaluate
from auglabel.lab.evaluate.options import Attack, Corruptions
from auglabel.lab.evaluate.predict import Predictor
from auglabel.lab.runs.run import Run
from auglabel.lab.train import feed
from auglabel.lab.train.feed import batches
from auglabel.models.small import SmallNet

SPLIT = ["--split.train", "100", "--split.validation", "60", "--split.test", "200"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of one epoch on 100 images."""
    out = tmp_path_factory.mktemp("runs") / "tiny"
    words = ["train", "embedded", "--epochs", "1", *SPLIT, "--tracker", "none", "--out", str(out)]
    assert cli.main([*words, "--regime", "randaug_autolabel"]) == 0
    return out


def measured(run, out, *words):
    assert cli.main(["eval", str(run), "--resamples", "0", "--out", str(out), *words]) == 0
    (file,) = out.glob("*.json")
    return json.loads(file.read_text())


def complaint(capsys, *words):
    capsys.readouterr()
    assert cli.main(["eval", *map(str, words)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def pictures(count=12, side=16, classes=3):
    generator = torch.Generator().manual_seed(0)
    colours = torch.rand(count, 3, 2, 2, generator=generator) * 255
    images = F.interpolate(colours, (side, side), mode="bilinear").to(torch.uint8)  # smooth, for JPEG's sake
    return InMemory(images, torch.arange(count) % classes)


def rows_of(corruptions, *names):
    return [(each.on, each.severity) for each in conditions(names, Attack(), CorruptedImages(corruptions))]


def test_corrupted_stands_for_a_suite_at_every_severity():
    assert len(rows_of(Corruptions(), "corrupted")) == 17 * 5
    asked = rows_of(Corruptions("extra", (1, 4)), "clean", "corrupted")
    assert asked == [("clean", None), *((name, severity) for name in SUITES["extra"] for severity in (1, 4))]


def test_a_corruption_may_be_named_alone_and_comes_once():
    assert rows_of(Corruptions(severities=(2,)), "fog") == [("fog", 2)]
    assert rows_of(Corruptions("fog,snow", (3,)), "snow", "corrupted") == [("snow", 3), ("fog", 3)]


def test_made_pictures_go_by_the_row_in_the_whole_test_set():
    source, rows = pictures(), torch.tensor([7, 2, 11])
    test = Subset(Subset(source, torch.arange(12).flip(0)), 11 - rows)  # a part of a part
    (condition,) = conditions(
        ["fog"], Attack(), CorruptedImages(Corruptions(severities=(3,), corruption_seed=5))
    )
    made = condition.source(test, None)
    wanted = corrupt(source.images[rows], "fog", 3, seed=5, index=rows)
    assert torch.equal(made.fetch(torch.arange(3)), wanted)
    assert torch.equal(made.fetch(torch.tensor([2])), wanted[2:])
    assert torch.equal(made.labels, source.labels[rows])


def test_a_run_on_corrupted_images_has_the_means_over_pairs(run, tmp_path, capsys):
    found = measured(
        run, tmp_path, "--on", "clean,corrupted", "--suite", "fog,contrast", "--severities", "1,5"
    )
    assert [(row["on"], row["severity"]) for row in found["rows"]] == [
        ("clean", None),
        *((name, severity) for name in ("fog", "contrast") for severity in (1, 5)),
    ]
    for row in found["rows"][1:]:
        assert row["figures"]["accuracy"]["value"] == accuracy_by_hand(run, row["on"], row["severity"])
    for metric in ("accuracy", "ece"):
        values = [row["figures"][metric]["value"] for row in found["rows"][1:]]
        assert found["means"][-1]["on"] == "corrupted"
        assert found["means"][-1]["figures"][metric] == pytest.approx(sum(values) / 4)
    told = found["corruptions"]
    assert (told["names"], told["severities"]) == (["fog", "contrast"], [1, 5])
    assert told["from"] == "made here, seed 0, cifar parameters"
    printed = " ".join(capsys.readouterr().out.split())
    assert "Corrupted images: made here, seed 0, cifar parameters." in printed
    assert "corrupted, mean" in printed
    assert (tmp_path / "clean-corrupted-suite_fog+contrast-severities_1+5.json").exists()


def accuracy_by_hand(run, name, severity):
    model = SmallNet(10, mean=(0.5,), std=(0.5,))
    tensors = load_file(Run(run).steps()[-1])
    model.load_state_dict({n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")})
    rows, data = load_file(Run(run).split_file)["test"], load_embedded().test
    seen = corrupt(data.images[rows], name, severity, index=rows).float() / 255
    with torch.no_grad():
        predicted = model.eval()(seen).argmax(dim=1)
    return float((predicted == data.labels[rows]).double().mean())


def test_workers_change_nothing(run, tmp_path):
    words = ["--on", "spatter", "--severities", "2", "--images", "60"]
    alone = measured(run, tmp_path / "a", *words)
    helped = measured(run, tmp_path / "b", *words, "--workers", "2")
    assert alone["rows"] == helped["rows"]


def test_what_the_frost_is_and_that_training_knew_a_corruption_is_said(run, tmp_path, capsys):
    found = measured(run, tmp_path, "--on", "frost,saturate", "--severities", "1")
    assert "procedural frost" in found["corruptions"]["from"]
    assert any("color, which is much like saturate" in note for note in found["notes"])
    assert "color, which is much like saturate" in " ".join(capsys.readouterr().out.split())
    assert overlaps(["rotate"], ["saturate"]) == overlaps(["color"], ["fog"]) == []


@pytest.fixture
def copies(tmp_path):
    """CopyOptions of fog and snow in CIFAR-C's layout: row r at severity s is all 5 (r mod 50) + s - 1."""

    def write(labels, shape=(28, 28, 1), folder="copies"):
        where = tmp_path / folder
        where.mkdir()
        levels = 5 * (np.arange(len(labels)) % 50).reshape(-1, 1, 1, 1)
        blocks = [np.broadcast_to(levels + s, (len(labels), *shape)).astype(np.uint8) for s in range(5)]
        for name in ("fog", "snow"):
            np.save(where / f"{name}.npy", np.concatenate(blocks))
        np.save(where / "labels.npy", np.tile(np.asarray(labels), 5))
        return where

    return write


def test_copies_in_the_order_of_the_data_are_matched_row_by_row(run, copies, tmp_path):
    where = copies(load_embedded().test.labels)
    found = measured(
        run, tmp_path / "out", "--on", "corrupted", "--suite", "fog,snow", "--copies", str(where)
    )
    assert [row["count"] for row in found["rows"]] == [200] * 10  # the run's own test images
    assert found["corruptions"]["from"] == "files in the layout of CIFAR-C whose checksums are unknown"
    test, rows = embedded().test, load_file(Run(run).split_file)["test"]
    (condition,) = conditions(
        ["fog"], Attack(), CorruptedImages(Corruptions(severities=(2,), copies=str(where)))
    )
    seen = condition.source(Subset(test, rows), None)
    assert torch.equal(seen.fetch(torch.arange(200))[:, 0, 0, 0].long(), 5 * (rows % 50) + 1)
    assert torch.equal(seen.labels, test.labels[rows])


def test_copies_in_another_order_serve_when_all_images_are_tested(copies):
    source = pictures()
    where = copies(source.labels.sort().values, (16, 16, 3))
    (condition,) = conditions(
        ["fog"], Attack(), CorruptedImages(Corruptions(severities=(2,), copies=str(where)))
    )
    seen = condition.source(Subset(source, torch.randperm(12)), None)
    assert torch.equal(seen.labels, source.labels.sort().values)
    assert seen.fetch(torch.tensor([3])).unique().tolist() == [16]
    logits = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 3))
    with pytest.raises(ValueError, match="--images takes the same images for every condition"):
        evaluate(logits, source, source, [condition], images=5, resamples=0)
    assert evaluate(logits, source, source, [condition], resamples=0).rows[0].count == 12
    with pytest.raises(ValueError, match=r"in another order .* only 5 of 12 are for testing"):
        condition.source(Subset(source, torch.arange(5)), None)


@pytest.mark.parametrize(
    ("labels", "shape", "sentence"),
    [
        (np.arange(12) % 3, (16, 17, 3), r"images of \(3, 16, 17\).* run's have \(3, 16, 16\)"),
        (np.arange(13) % 3, (16, 16, 3), "copies of 13 images and the run 12"),
        (np.arange(12) % 4, (16, 16, 3), "with other classes"),
    ],
)
def test_copies_of_other_data_are_refused(copies, labels, shape, sentence):
    where = copies(labels, shape)
    (condition,) = conditions(
        ["fog"], Attack(), CorruptedImages(Corruptions(severities=(2,), copies=str(where)))
    )
    with pytest.raises(ValueError, match=sentence):
        condition.source(pictures(), None)


def test_a_type_that_the_copies_lack_is_an_error_before_anything_is_measured(run, copies, capsys):
    where = copies(load_embedded().test.labels)
    words = [run, "--on", "corrupted", "--suite", "fog,frost", "--copies", where]
    assert f'there is no corruption in {where} "frost". There are: fog, snow.' in complaint(capsys, *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--on", "fogg"], 'Did you mean "fog"?'),
        (["--on", "corrupted", "--suite", "standart"], 'Did you mean "standard"?'),
        (["--on", "corrupted", "--severities", "1,6"], "--severities must be in 1..5, got 6"),
        (["--on", "corrupted", "--severities", "1,1"], "some of 1..5 once each"),
        (["--on", "corrupted", "--parameters", "mnist"], "--parameters"),
        (["--on", "frost", "--frost", "nowhere"], "nowhere should be the directory of the frost photographs"),
        (["--on", "fog", "--copies", "nowhere"], "nowhere does not exist"),
        (["--on", "fog", "--copies", "x", "--frost", "y"], "--frost changes nothing"),
        (["--on", "fog", "--copies", "x", "--corruption_seed", "3"], "--corruption_seed changes nothing"),
        (["--on", "fog", "--corruption_seed", "-1"], "--corruption_seed must be at least 0"),
    ],
)
def test_a_mistake_is_one_sentence(run, words, sentence, capsys):
    assert sentence in complaint(capsys, run, *words)


def written(tmp_path, data, *options):
    out = tmp_path / "written"
    how = CopyOptions("fog,frost", workers=1, **dict(options))
    write_copies(data, out, how, Console(quiet=True))
    return str(out)


def data_of(source, classes=("a", "b", "c")):
    return in_memory("mine", classes, source, source, mean=(0.5,) * 3, std=(0.5,) * 3)


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_copies_made_here_are_those_made_on_the_fly(tmp_path, layout):
    source = pictures()
    data = data_of(source)
    read = Corruptions(severities=(3,), copies=written(tmp_path, data, ("layout", layout)))
    (on_disk,), (made,) = (
        conditions(["fog"], Attack(), CorruptedImages(c)) for c in (read, Corruptions(severities=(3,)))
    )
    test, every = Subset(source, torch.tensor([8, 1, 4])), torch.arange(3)
    if layout == "folders":  # in the order of classes
        test, every = source, torch.arange(12)
    seen, wanted = on_disk.source(test, data), made.source(test, data)
    apart = (seen.fetch(every).float() - wanted.fetch(every).float()).abs()
    assert (apart.max() == 0) if layout == "npy" else (apart.mean() < 4)  # JPEG
    assert "procedural frost" in CorruptedImages(read).about(["fog", "frost"], source.shape)["from"]


def test_copies_made_of_other_images_or_classes_are_refused(tmp_path):
    data = data_of(pictures())
    read = Corruptions(severities=(3,), copies=written(tmp_path, data, ("layout", "folders")))
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(read))
    other = InMemory(255 - data.test.images, data.test.labels)
    with pytest.raises(ValueError, match="was made of other images: their checksum is"):
        condition.source(other, data_of(other))
    with pytest.raises(ValueError, match="3 classes and mine 3, which must be the same, but differ in c"):
        condition.source(data.test, data_of(data.test, ("a", "b", "d")))
    with pytest.raises(ValueError, match="differ in their order"):
        condition.source(data.test, data_of(data.test, ("b", "a", "c")))


def test_folders_match_a_streamed_set_by_the_names_of_its_files(tmp_path):
    for row, picture in enumerate(pictures().images):
        place = tmp_path / "pictures" / "abc"[row % 3]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.permute(1, 2, 0).numpy()).save(place / f"{row:02}.png")
    data = folder(tmp_path / "pictures", memory_gb=0)
    where = written(tmp_path, data, ("layout", "folders"))
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(Corruptions(severities=(3,), copies=where)))
    part = Subset(data.train, torch.tensor([5, 0]))
    assert torch.equal(condition.source(part, data).labels, part.labels)
    for place in (tmp_path / "written").rglob("03.JPEG"):
        place.rename(place.with_name("99.JPEG"))
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(Corruptions(severities=(3,), copies=where)))
    with pytest.raises(ValueError, match="in another order"):
        condition.source(part, data)


def test_options_reach_the_corruptions(tmp_path):
    for name in PHOTOGRAPHS:
        Image.new("RGB", (200, 200), (200, 10, 10)).save(tmp_path / name)
    source, index = pictures(), torch.arange(12)
    options = {"parameters": "imagenet", "frost": str(tmp_path)}
    asked = Corruptions(severities=(2,), corruption_seed=4, **options)
    (condition,) = conditions(["frost"], Attack(), CorruptedImages(asked))
    made = condition.source(source, None)
    assert made.streams  # so that --workers help
    assert torch.equal(made.fetch(index), corrupt(source.images, "frost", 2, seed=4, **options))
    assert CorruptedImages(asked).about(["frost"], source.shape)["from"] == (
        "made here, seed 4, imagenet parameters, frost photographs"
    )


def test_pictures_that_are_too_small_are_told_before_any_is_made():
    small = InMemory(torch.zeros(4, 3, 15, 16, dtype=torch.uint8), torch.zeros(4, dtype=torch.int64))
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(Corruptions(severities=(2,))))
    with pytest.raises(ValueError, match="at least 16 x 16 pixels, got 16 x 15"):
        condition.source(small, None)


def test_a_missing_opencv_is_said_before_anything_is_measured(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert "spatter needs OpenCV" in complaint(capsys, run, "--on", "corrupted")


def kept_in(folder, **options):
    asked = Corruptions(severities=(3,), **options)
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(asked, folder))
    return condition


def test_images_are_made_once_and_then_come_from_disk(tmp_path, monkeypatch):
    source = pictures()
    data = data_of(source)
    part = Subset(source, torch.tensor([9, 2, 5]))
    wanted = corrupt(source.images, "fog", 3, index=torch.arange(12))
    assert torch.equal(kept_in(tmp_path).source(part, data).fetch(torch.tensor([0, 1])), wanted[[9, 2]])
    asked = []
    make = Made.fetch
    monkeypatch.setattr(
        Made, "fetch", lambda self, rows, draw=None: asked.append(rows.tolist()) or make(self, rows, draw)
    )
    assert torch.equal(kept_in(tmp_path).source(part, data).fetch(torch.arange(3)), wanted[[9, 2, 5]])
    assert asked == [[2]]  # the other two were there
    whole = kept_in(tmp_path).source(source, data)
    assert torch.equal(whole.fetch(torch.arange(12)), wanted)
    assert asked == [[2], [0, 1, 3, 4, 6, 7, 8, 10, 11]]
    assert torch.equal(whole.fetch(torch.arange(12).flip(0)), wanted.flip(0))
    assert len(asked) == 2


def test_a_torn_or_damaged_image_on_disk_is_made_again(tmp_path):
    source = pictures()
    seen = kept_in(tmp_path).source(source, data_of(source))
    wanted = seen.fetch(torch.arange(12)).clone()
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[2 * seen.size + 100] ^= 1
    file.write_bytes(content[: 11 * seen.size + 50])
    assert torch.equal(seen.fetch(torch.arange(12)), wanted)
    assert file.read_bytes()[2 * seen.size : 3 * seen.size] != content[2 * seen.size : 3 * seen.size]
    assert len(file.read_bytes()) == 12 * seen.size


def test_other_options_and_other_data_have_files_of_their_own(tmp_path):
    source = pictures()
    turned = InMemory(255 - source.images, source.labels)
    for options, images in (({}, source), ({"corruption_seed": 1}, source), ({}, turned)):
        seen = kept_in(tmp_path, **options).source(images, data_of(images)).fetch(torch.arange(12))
        seed = options.get("corruption_seed", 0)
        assert torch.equal(seen, corrupt(images.images, "fog", 3, seed=seed, index=torch.arange(12)))
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path):
    (tmp_path / "file").write_text("")
    source = pictures()
    seen = kept_in(tmp_path / "file").source(source, data_of(source)).fetch(torch.arange(12))
    assert torch.equal(seen, corrupt(source.images, "fog", 3, index=torch.arange(12)))


def test_large_images_are_not_kept(tmp_path):
    source = pictures(count=3, side=65)
    kept_in(tmp_path).source(source, data_of(source)).fetch(torch.arange(3))
    assert list(tmp_path.iterdir()) == []


def test_streamed_images_are_not_kept_whose_checksum_says_nothing_of_their_pixels(tmp_path):
    source = pictures()
    source.streams = True
    kept_in(tmp_path).source(source, data_of(source)).fetch(torch.arange(3))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def streamed(tmp_path):
    """Eight pictures of two classes as files, which are decoded when they are fetched."""
    for row in range(8):
        pixels = np.random.default_rng(row).integers(0, 256, (20, 24, 3), dtype=np.uint8)
        path = tmp_path / "files" / "ab"[row % 2] / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder(tmp_path / "files", size=18, memory_gb=0, cache=False).train


def test_files_are_decoded_once_for_all_corruptions_and_severities(streamed, monkeypatch):
    plain = streamed.fetch(torch.arange(8))
    decoded, fetch = [], Streamed.fetch
    monkeypatch.setattr(
        Streamed,
        "fetch",
        lambda self, rows, draw=None: decoded.extend(rows.tolist()) or fetch(self, rows, draw),
    )
    images, part = CorruptedImages(Corruptions(severities=(1, 4))), Subset(streamed, torch.tensor([6, 1, 3]))
    for condition in conditions(["fog", "contrast"], Attack(), images):
        found = condition.source(part, None).fetch(torch.tensor([0, 2, 1]))
        wanted = corrupt(plain, condition.on, condition.severity, index=torch.arange(8))[[6, 3, 1]]
        assert torch.equal(found, wanted)
    assert sorted(decoded) == [1, 3, 6]


@pytest.mark.parametrize("checksums", [True, False])
def test_an_image_whose_pixels_did_not_fit_the_disk_is_made_again(checksums, streamed, tmp_path):
    kept, rows = Kept(streamed, tmp_path / "kept", checksums), torch.arange(2)
    kept.fetch(rows[1:])  # its record, the second, gives the file its length
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kept.size // 2, hard))  # of the first, half is written
    try:
        kept.fetch(rows[:1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert torch.equal(kept.fetch(rows), streamed.fetch(rows))


def test_without_room_on_the_disk_files_are_decoded_each_time(streamed, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    (condition,) = conditions(["fog"], Attack(), CorruptedImages(Corruptions(severities=(2,))))
    source = condition.source(streamed, None)
    assert source.source is streamed
    assert len(source.fetch(torch.arange(2))) == 2


@pytest.mark.parametrize("as_arrays", [False, True])
def test_workers_stay_from_one_corruption_to_the_next(as_arrays, streamed, tmp_path, monkeypatch):
    if as_arrays:
        streamed = InMemory(streamed.fetch(torch.arange(8)), streamed.labels)
    begun, begin = tmp_path / "begun", feed._begin
    monkeypatch.setattr(feed, "_begin", lambda worker: begun.open("a").write("x") and begin(worker))
    names, rows = ["clean", "fog", "frost", "contrast"], torch.arange(8)
    images, seen = CorruptedImages(Corruptions(severities=(1, 4))), {}
    for workers in (0, 2):
        predictor = Predictor(Means(), workers=workers)
        seen[workers] = [
            predictor.logits(each.source(streamed, None) if each.source else streamed, rows, each)
            for each in conditions(names, Attack(), images)
        ]
    assert begun.read_text() == "xx" * (1 if as_arrays else 2)  # those of clean files, and of all corruptions
    assert all(map(torch.equal, seen[0], seen[2]))
    assert len({tuple(logits.flatten().tolist()) for logits in seen[0]}) == 7


class Means(nn.Module):
    def forward(self, images):
        return images.mean(dim=(2, 3))


def test_workers_corrupt_files_to_the_same_bits(streamed):
    rows = [torch.arange(0, 4), torch.arange(4, 8)]
    for condition in conditions(
        ["frost", "glass_blur"], Attack(), CorruptedImages(Corruptions(severities=(3,)))
    ):
        alone, helped = (
            [images for images, _ in batches(condition.source(streamed, None), rows, workers=workers)]
            for workers in (0, 2)
        )
        assert all(map(torch.equal, alone, helped))
