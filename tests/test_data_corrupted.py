"""Corrupted copies in both official layouts, and files that only look like them."""

import hashlib
import json
import os
import pickle
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from auglabel.data import corrupted_files
from auglabel.data.corrupted import FORMAT, corrupted, folder_name

COUNT = 6
NAMES = ("fog", "gaussian_noise")
CLASSES = ("n01", "n02")


def pixels(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def arrays(where: Path, channels: int | None = 3) -> dict[str, np.ndarray]:
    """CIFAR-C's layout: two types, six images of 16 x 16 at five severities."""
    where.mkdir(parents=True, exist_ok=True)
    shape = (5 * COUNT, 16, 16) if channels is None else (5 * COUNT, 16, 16, channels)
    found = {name: pixels(shape, seed) for seed, name in enumerate(NAMES)}
    found["labels"] = np.tile(np.arange(COUNT) % 3, 5)
    for name, array in found.items():
        np.save(where / f"{name}.npy", array)
    return found


def folders(
    where: Path, size: tuple[int, int] = (16, 16), severities: str = "12345"
) -> dict[str, np.ndarray]:
    """ImageNet-C's layout, three images in each of two classes; PNG, so that pixels stay."""
    found = {}
    for name in NAMES:
        for severity in severities:
            for place, label in enumerate(CLASSES):
                for row in range(3):
                    path = where / name / severity / label / f"{row}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    image = pixels((*size, 3), zlib.crc32(f"{name}{severity}{place}{row}".encode()))
                    Image.fromarray(image).save(path)
                    found[f"{name}/{severity}/{label}/{row}"] = image
    return found


def about(where: Path, **changed) -> None:
    facts = {"format": FORMAT, "auglabel": "9.9", "seed": 3, "parameters": "cifar", "frost": "procedural"}
    facts |= {"types": list(NAMES), "classes": list(CLASSES), "shape": [3, 16, 16], "images": COUNT}
    (where / "about.json").write_text(json.dumps(facts | changed))


def md5_of(where: Path) -> dict[str, str]:
    return {file.stem: hashlib.md5(file.read_bytes()).hexdigest() for file in where.glob("*.npy")}


@pytest.mark.parametrize("channels", [3, 1, None])
def test_rows_of_a_severity_come_from_its_block(tmp_path, channels):
    found = arrays(tmp_path, channels)

    copies = corrupted(tmp_path)
    source = copies.source("fog", 4)

    assert (copies.names, copies.classes, copies.where) == (NAMES, None, tmp_path)
    assert (len(source), source.shape) == (COUNT, (channels or 1, 16, 16))
    assert source.labels.tolist() == [0, 1, 2, 0, 1, 2]
    rows = torch.tensor([5, 0, 0])
    expected = found["fog"].reshape(5, COUNT, 16, 16, channels or 1)[3][rows.numpy()]
    fetched = source.fetch(rows)
    assert fetched.dtype == torch.uint8
    assert torch.equal(fetched, torch.from_numpy(expected).permute(0, 3, 1, 2))
    fetched.zero_()  # a copy: the file stays
    assert torch.equal(source.fetch(rows), torch.from_numpy(expected).permute(0, 3, 1, 2))


def test_labels_may_stand_once(tmp_path):
    arrays(tmp_path)
    np.save(tmp_path / "labels.npy", np.arange(COUNT, dtype=np.uint8))
    assert corrupted(tmp_path).source("fog", 5).labels.tolist() == list(range(COUNT))


def test_a_source_goes_to_another_process_as_the_name_of_its_file(tmp_path):
    arrays(tmp_path)
    source = corrupted(tmp_path).source("fog", 2)
    packed = pickle.dumps(source)
    rows = torch.arange(COUNT)
    assert len(packed) < 2000
    assert torch.equal(pickle.loads(packed).fetch(rows), source.fetch(rows))


@pytest.mark.parametrize("group", ["", "weather"])
def test_folders_give_each_class_folder_its_label(tmp_path, group):
    found = folders(tmp_path / group)

    copies = corrupted(tmp_path)
    source = copies.source("gaussian_noise", 2)

    assert (copies.names, copies.classes) == (NAMES, CLASSES)
    assert source.labels.tolist() == [0, 0, 0, 1, 1, 1]
    image = source.fetch(torch.tensor([4]))[0].permute(1, 2, 0).numpy()
    assert np.array_equal(image, found["gaussian_noise/2/n02/1"])


def test_folders_tell_their_size_and_those_made_here_their_channels(tmp_path):
    folders(tmp_path, (16, 20))
    assert corrupted(tmp_path).source("fog", 1).shape == (3, 16, 20)
    about(tmp_path, shape=[1, 16, 20])
    assert corrupted(tmp_path).source("fog", 1).fetch(torch.tensor([0])).shape == (1, 1, 16, 20)


def test_copies_made_here_keep_the_order_of_the_data_sets_classes(tmp_path):
    folders(tmp_path)
    for place in tmp_path.glob("*/*/n01"):
        place.rename(place.with_name("a_b"))
    about(tmp_path, classes=["n02", "empty", "a/b"])

    copies = corrupted(tmp_path)

    assert copies.classes == ("n02", "empty", "a/b")
    assert copies.source("fog", 1).labels.tolist() == [2, 2, 2, 0, 0, 0]
    assert [folder_name(name) for name in ("a/b", "..", "Ankle boot")] == ["a_b", "_.", "Ankle boot"]


def test_origin_of_copies_made_here(tmp_path):
    arrays(tmp_path)
    about(tmp_path)
    made = "made by auglabel 9.9, seed 3, cifar parameters"
    assert corrupted(tmp_path).origin(NAMES) == made
    about(tmp_path, types=["fog"])
    assert corrupted(tmp_path).origin(NAMES) == f"{made}; not made so: gaussian_noise"


@pytest.mark.parametrize(
    ("frost", "words"), [("procedural", "procedural frost"), ("photographs 1a2b3c4d", "frost photographs")]
)
def test_origin_tells_of_frost_only_where_there_is_some(tmp_path, frost, words):
    arrays(tmp_path)
    (tmp_path / "gaussian_noise.npy").rename(tmp_path / "frost.npy")
    about(tmp_path, types=["fog", "frost"], frost=frost)
    assert corrupted(tmp_path).origin(["fog"]).endswith("cifar parameters")
    assert corrupted(tmp_path).origin(["fog", "frost"]).endswith(f"cifar parameters, {words}")


def test_origin_of_official_files_and_of_unknown_ones(tmp_path, monkeypatch):
    arrays(tmp_path)
    unknown = "files in the layout of CIFAR-C whose checksums are unknown"
    assert corrupted(tmp_path).origin(NAMES) == unknown
    monkeypatch.setitem(corrupted_files.CHECKSUMS, "CIFAR-100-C", md5_of(tmp_path))
    official = "official CIFAR-100-C files (checksums match)"
    assert corrupted(tmp_path).origin(NAMES) == official
    (tmp_path / "fog.npy").write_bytes((tmp_path / "fog.npy").read_bytes()[:-1] + b"!")
    assert corrupted(tmp_path).origin(["gaussian_noise"]) == official
    assert corrupted(tmp_path).origin(NAMES) == f"{official}, except fog.npy, whose checksums are unknown"
    folders(tmp_path / "pictures")
    assert corrupted(tmp_path / "pictures").origin(["fog"]) == unknown.replace("CIFAR-C", "ImageNet-C")


def test_an_official_folder_with_a_damaged_file_is_an_error(tmp_path, monkeypatch):
    where = tmp_path / "CIFAR-10-C"
    arrays(where)
    sums = md5_of(where)
    monkeypatch.setitem(corrupted_files.CHECKSUMS, "CIFAR-10-C", sums)
    assert corrupted(where).origin(NAMES) == "official CIFAR-10-C files (checksums match)"
    damaged = (where / "fog.npy").read_bytes()[:-1] + b"!"
    (where / "fog.npy").write_bytes(damaged)
    copies = corrupted(where)
    assert len(copies.source("gaussian_noise", 1)) == COUNT
    expected = (
        f"MD5 {sums['fog']}, found {hashlib.md5(damaged).hexdigest()}. Fetch it again, or give the folder"
    )
    with pytest.raises(
        ValueError, match=f"fog.npy is not the official file of CIFAR-10-C: expected {expected}"
    ):
        copies.source("fog", 1)
    with pytest.raises(ValueError, match="is not the official file"):
        copies.origin(["fog"])
    np.save(where / "labels.npy", np.tile(np.arange(COUNT), 5))
    with pytest.raises(ValueError, match=r"labels\.npy is not the official file"):
        corrupted(where).source("gaussian_noise", 1)
    about(where)  # ours may have that name
    assert corrupted(where).origin(["fog"]).startswith("made by auglabel 9.9")


def test_checksums_are_those_of_nineteen_types_and_labels():
    for sums in corrupted_files.CHECKSUMS.values():
        assert len(sums) == len(set(sums.values())) == 20
        assert all(len(each) == 32 and int(each, 16) for each in sums.values())


def test_folders_without_copies_are_refused(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nowhere does not exist: expected a folder with <type>\.npy"
    ):
        corrupted(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds no corrupted copies: expected <type>"):
        corrupted(tmp_path)
    (tmp_path / "CIFAR-10-C").mkdir()
    with pytest.raises(FileNotFoundError, match="It holds CIFAR-10-C/: give that"):
        corrupted(tmp_path)
    (tmp_path / "CIFAR-10-C.tar").write_bytes(b"")
    with pytest.raises(ValueError, match="is a file, but a folder was expected: unpack it"):
        corrupted(tmp_path / "CIFAR-10-C.tar")


@pytest.mark.parametrize("make", [arrays, folders])
def test_a_type_or_severity_that_is_not_there_is_named(tmp_path, make):
    make(tmp_path)
    copies = corrupted(tmp_path)
    known = (
        f'there is no corruption in {tmp_path} "fogg". There are: fog, gaussian_noise. Did you mean "fog"?'
    )
    known = f"^{re.escape(known)}$"
    copies.require("fog")
    with pytest.raises(ValueError, match=known):
        copies.require("fogg")
    with pytest.raises(ValueError, match=known):
        copies.source("fogg", 1)
    with pytest.raises(ValueError, match=known):
        copies.origin(["fog", "fogg"])
    with pytest.raises(ValueError, match=r"severity must be in 1\.\.5, got 6"):
        copies.source("fog", 6)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def truncated(array: np.ndarray, cut: int):
    def write(path: Path) -> None:
        np.save(path, array)
        path.write_bytes(path.read_bytes()[:cut])

    return write


def saved(array: np.ndarray):
    return lambda path: np.save(path, array)


@pytest.mark.parametrize(
    ("name", "write", "complaint"),
    [
        (
            "fog",
            saved(np.zeros((30, 16, 16, 3))),
            r"must hold uint8 images .* float64 of \(30, 16, 16, 3\)",
        ),
        (
            "fog",
            saved(pixels((30, 3, 16, 16), 0)),
            r"with 1 or 3 channels, .* uint8 of \(30, 3, 16, 16\)",
        ),
        ("fog", saved(pixels((30, 768), 0)), r"or \(N, H, W\), got uint8 of \(30, 768\)"),
        ("fog", saved(pixels((0, 16, 16, 3), 0)), r"got uint8 of \(0, 16, 16, 3\)"),
        ("fog", saved(pixels((29, 16, 16, 3), 0)), "got 29 images, which is no multiple of 5"),
        ("fog", saved(pixels((35, 16, 16, 3), 0)), "must have 7 labels, or that five times, .* got 30"),
        ("fog", saved(np.array([Harmful()])), "pickles could run code and are not read"),
        ("fog", lambda path: path.write_bytes(pickle.dumps(Harmful())), "could run code and are not read"),
        ("fog", lambda path: path.write_bytes(b""), "is cut short or damaged and cannot be read"),
        (
            "fog",
            truncated(pixels((30, 16, 16, 3), 0), -1),
            "is cut short or damaged .*write or fetch it again",
        ),
        ("fog", truncated(pixels((30, 16, 16, 3), 0), 40), "is cut short or damaged"),
        ("fog", lambda path: np.savez(path.open("wb"), a=np.zeros(3)), "it is an archive of arrays"),
        (
            "labels",
            saved(np.zeros(30)),
            r"must hold whole numbers of shape \(N,\), got float64 of \(30,\)",
        ),
        ("labels", saved(np.zeros((30, 1), int)), r"int64 of \(30, 1\)"),
        ("labels", saved(np.full(30, -1)), "must hold classes, 0 or more, got -1"),
        ("labels", saved(np.arange(30)), "must be the same for every severity, but they differ"),
        ("labels", saved(np.arange(5)), "must have 6 labels, or that five times, .* got 5"),
        ("labels", saved(np.array([Harmful()])), "pickles could run code"),
        ("labels", os.remove, r"lacks labels\.npy"),
    ],
)
def test_bad_arrays_end_with_a_sentence(tmp_path, monkeypatch, name, write, complaint):
    monkeypatch.chdir(tmp_path)
    arrays(tmp_path)
    write(tmp_path / f"{name}.npy")
    with pytest.raises((ValueError, FileNotFoundError), match=complaint):
        corrupted(tmp_path).source("fog", 1)
    assert not (tmp_path / "harm").exists()


def test_bad_folders_end_with_a_sentence(tmp_path):
    folders(tmp_path / "a", severities="1245")
    with pytest.raises(FileNotFoundError, match=r"3 does not exist: fog has severity 1, 2, 4, 5 only"):
        corrupted(tmp_path / "a").source("fog", 3)
    (tmp_path / "a" / "fog" / "2" / "n03").mkdir()
    with pytest.raises(
        ValueError, match=r"2 must have the class folders that the others have, but differs in n03"
    ):
        corrupted(tmp_path / "a").source("fog", 2)
    copies = corrupted(tmp_path / "a")
    copies.source("fog", 1)
    (tmp_path / "a" / "fog" / "4" / "n02" / "1.png").unlink()
    with pytest.raises(ValueError, match=r"4 \(5 images\) and .*1 \(6\) must hold the same images"):
        copies.source("fog", 4)
    for file in (tmp_path / "a" / "fog" / "5").rglob("*.png"):
        file.unlink()
    with pytest.raises(ValueError, match="5 holds 0 images, not any: unpack it again"):
        copies.source("fog", 5)
    about(tmp_path / "a", shape=[3, 32, 32])
    with pytest.raises(ValueError, match=r"n01.0\.png has 16 x 16 pixels, but 32 x 32 were expected"):
        corrupted(tmp_path / "a").source("fog", 1)


def test_one_picture_of_another_size_or_broken_is_named_when_it_comes(tmp_path):
    folders(tmp_path)
    Image.new("RGB", (8, 16)).save(tmp_path / "fog" / "1" / "n02" / "0.png")
    (tmp_path / "fog" / "1" / "n02" / "1.png").write_bytes(b"no picture")
    source = corrupted(tmp_path).source("fog", 1)
    with pytest.raises(ValueError, match=r"n02.0\.png has 8 x 16 pixels, but 16 x 16 were expected"):
        source.fetch(torch.tensor([3]))
    with pytest.raises(ValueError, match=r"n02.1\.png is broken"):
        source.fetch(torch.tensor([4]))


def test_unfinished_copies_made_here_are_named(tmp_path):
    folders(tmp_path)
    about(tmp_path, images=7)
    with pytest.raises(
        ValueError, match="1 holds 6 images, not 7: auglabel corrupt, called as before, completes"
    ):
        corrupted(tmp_path).source("fog", 1)
    about(tmp_path, shape=[16, 16])
    with pytest.raises(ValueError, match=r"about\.json is damaged: it does not say the shape"):
        corrupted(tmp_path)
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(ValueError, match=r"about\.json is damaged, or not .*: it is not JSON"):
        corrupted(tmp_path)
    (tmp_path / "about.json").write_text('{"format": "of someone else"}')
    assert (
        corrupted(tmp_path).origin(["fog"]) == "files in the layout of ImageNet-C whose checksums are unknown"
    )


def test_sizes_that_cannot_be_mapped_are_named(tmp_path):
    """Entries of no bytes, fewer than none of them: numpy would divide by zero."""
    words = b"{'descr': '|V0', 'fortran_order': False, 'shape': (-1,), }\n"
    (tmp_path / "fog.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + len(words).to_bytes(2, "little") + words + b"abc"
    )
    np.save(tmp_path / "labels.npy", np.zeros(5, np.int64))
    with pytest.raises(ValueError, match=r"fog\.npy is cut short or damaged"):
        corrupted(tmp_path).source("fog", 1)
