"""CIFAR in all its official forms, and files that only look like it."""

import hashlib
import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from auglabel.data import cifar, cifar_files
from auglabel.data.cifar import cifar10, cifar100
from auglabel.data.cifar_files import CIFAR10, CIFAR100
from auglabel.data.pickles import unpickle

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10.tar"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def python2_pickle(images: np.ndarray, labels: list[int], key: bytes = b"labels") -> bytes:
    """The bytes Python 2 and numpy 1 wrote: protocol 2, strings that are neither str nor bytes."""

    def string(text: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(text)) + text

    def whole(number: int) -> bytes:
        return b"J" + struct.pack("<i", number)

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        + whole(0)
        + b"\x85"
        + string(b"b")
        + b"\x87R"
    )
    shape = b"(" + b"".join(map(whole, images.shape)) + b"t"
    kind = b"cnumpy\ndtype\n" + string(b"u1") + whole(0) + whole(1) + b"\x87R"
    kind += b"(" + whole(3) + string(b"|") + b"NNN" + whole(-1) + whole(-1) + whole(0) + b"tb"
    array += b"(" + whole(1) + shape + kind + b"\x89" + string(images.tobytes()) + b"tb"
    listed = b"](" + b"".join(map(whole, labels)) + b"e"
    return b"\x80\x02}(" + string(b"data") + array + string(key) + listed + b"u."


def python_files(count: int = 4) -> dict[str, bytes]:
    files = {
        f"data_batch_{n}": python2_pickle(rows(count, n), [(n + i) % 10 for i in range(count)])
        for n in range(1, 6)
    }
    return {**files, "test_batch": python2_pickle(rows(count, 6), list(range(count)))}


def binary_files(count: int = 4) -> dict[str, bytes]:
    files = {}
    for n in range(1, 7):
        labels = [(n + i) % 10 for i in range(count)] if n < 6 else range(count)
        name = f"data_batch_{n}.bin" if n < 6 else "test_batch.bin"
        records = zip(labels, rows(count, n), strict=True)
        files[name] = b"".join(bytes([label]) + row.tobytes() for label, row in records)
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def pack(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_python_and_binary_files_packed_or_not_are_the_same_data(tmp_path):
    write(tmp_path / "a" / "cifar-10-batches-py", python_files())
    write(tmp_path / "b" / "cifar-10-batches-bin", binary_files())
    (tmp_path / "c").mkdir()
    packed = {f"cifar-10-batches-py/{name}": content for name, content in python_files().items()}
    pack(tmp_path / "c" / "cifar-10-python.tar.gz", packed)
    packed = {f"cifar-10-batches-bin/{name}": content for name, content in binary_files().items()}
    pack(tmp_path / "cifar-10-binary.tar.gz", packed)
    places = ["a", "a/cifar-10-batches-py", "b", "b/cifar-10-batches-bin", "c", "cifar-10-binary.tar.gz"]

    found = [cifar10(tmp_path / place, verify=False) for place in places]

    assert len({data.checksum for data in found}) == 1
    data = found[0]
    assert data.train.shape == (3, 32, 32)
    assert (len(data.train), len(data.test)) == (20, 4)
    assert data.train.labels[:5].tolist() == [1, 2, 3, 4, 2]
    assert data.train.images[4].flatten().tolist() == rows(4, 2)[0].tolist()  # the second batch's first
    assert (data.mean[0], data.std[2]) == (0.4914, 0.2616)
    assert ["official python" in one.notes[0] for one in found] == [True, True, False, False, True, False]


def test_cifar100_takes_the_fine_label_in_both_forms(tmp_path):
    images, fine, coarse = rows(3, 0), [99, 0, 50], [1, 2, 3]
    content = python2_pickle(images, fine, b"fine_labels")
    write(tmp_path / "p" / "cifar-100-python", {"train": content, "test": content})
    records = zip(coarse, fine, images, strict=True)
    content = b"".join(bytes([above, label]) + row.tobytes() for above, label, row in records)
    write(tmp_path / "b" / "cifar-100-binary", {"train.bin": content, "test.bin": content})

    python, binary = (cifar100(tmp_path / form, verify=False) for form in ("p", "b"))

    assert python.train.labels.tolist() == fine
    assert python.checksum == binary.checksum
    assert python.classes[99] == "worm"


def test_the_official_class_order_is_alphabetical():
    assert list(CIFAR10.classes) == sorted(CIFAR10.classes)
    assert list(CIFAR100.classes) == sorted(set(CIFAR100.classes))
    assert len(CIFAR100.classes) == 100


def test_batches_pickled_by_python_3_are_read_as_well(tmp_path):
    files = {
        name: pickle.dumps({"data": rows(2, 0), "labels": [0, 1]}, protocol=4)
        for name in (*CIFAR10.python.train, *CIFAR10.python.test)
    }

    assert cifar10(write(tmp_path, files), verify=False).train.labels.tolist() == [0, 1] * 5


def test_checksums_of_unpacked_files_and_archives_are_compared(tmp_path):
    write(tmp_path / "cifar-10-batches-py", python_files())
    with pytest.raises(ValueError, match=r"data_batch_1 is not the official file: expected MD5 c99cafc15"):
        cifar10(tmp_path)

    archive = pack(tmp_path / "cifar-10-binary.tar.gz", {"data_batch_1.bin": b""})
    with pytest.raises(
        ValueError, match=r"cifar-10-binary.tar.gz is not the official file: expected MD5 c32a1d4ab5d"
    ):
        cifar10(archive)


class Shout:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("payload", "asked"),
    [
        (Shout(os.system, "touch {mark}"), r"posix\.system"),
        (Shout(eval, "open('{mark}', 'w')"), r"builtins\.eval"),
        (Shout(getattr, "x", "y"), r"builtins\.getattr"),
        (Shout(np.load, "{mark}"), r"numpy\.load"),
        (Shout(torch.load, "{mark}"), r"torch\.serialization\.load"),
    ],
)
def test_a_pickle_that_would_run_code_is_refused_and_runs_nothing(tmp_path, monkeypatch, payload, asked):
    mark = tmp_path / "mark"
    function, arguments = payload.call
    payload.call = function, tuple(argument.format(mark=mark) for argument in arguments)
    files = python_files() | {"data_batch_3": pickle.dumps({"data": payload})}
    write(tmp_path / "cifar-10-batches-py", files)

    with pytest.raises(
        ValueError, match=rf"data_batch_3 is refused: its pickle asks for {asked}, which could run"
    ):
        cifar10(tmp_path, verify=False)

    assert not mark.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_no_protocol_gets_past_the_allow_list(tmp_path, protocol):
    content = pickle.dumps(Shout(os.system, f"touch {tmp_path}/mark"), protocol)

    with pytest.raises(ValueError, match=r"refused: its pickle asks for \w+\.system"):
        unpickle(content, "batch")

    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\nload\n.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__call__\x93.",  # a dotted name
        b"Pid\n.",  # a persistent id
        b"\x80\x02\x82\x01.",  # the extension registry
        b"",
        b"\x80",
        b"garbage",
    ],
)
def test_other_ways_in_and_damage_end_in_a_sentence(content):
    with pytest.raises(ValueError, match=r"batch is (refused|damaged)"):
        unpickle(content, "batch")


@pytest.mark.parametrize("form", ["python", "binary"])
def test_a_truncated_file_is_named(tmp_path, form):
    files = python_files() if form == "python" else binary_files()
    layout = getattr(CIFAR10, form)
    name = list(layout.train)[2]
    write(tmp_path / layout.folder, files | {name: files[name][:5000]})

    with pytest.raises(ValueError, match=rf"{name} is (damaged|cut short)"):
        cifar10(tmp_path, verify=False)


def test_a_truncated_archive_is_named(tmp_path):
    path = pack(tmp_path / "cifar-10-python.tar.gz", python_files())
    path.write_bytes(path.read_bytes()[:-2000])

    with pytest.raises(ValueError, match=r"cifar-10-python\.tar\.gz is not a tar that can be read"):
        cifar10(tmp_path, verify=False)


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ({"data": rows(2, 0), "labels": [0, 10]}, r"labels must be in 0\.\.9, got 10"),
        ({"data": rows(2, 0), "labels": [0, -1]}, r"labels must be in 0\.\.9, got -1"),
        ({"data": rows(2, 0), "labels": [0]}, "it has 2 images but 1 labels"),
        ({"data": rows(2, 0), "labels": "ab"}, "the labels must be a list of whole numbers"),
        (
            {"data": rows(2, 0)[:, :100], "labels": [0, 1]},
            r"expected uint8 images of shape \(N, 3072\), got uint8 \(2, 100",
        ),
        ({"data": [1, 2], "labels": [0, 1]}, r"expected uint8 images of shape \(N, 3072\), got list"),
        ({"data": rows(2, 0)}, 'it lacks "data" or "labels"'),
        ({"data": rows(0, 0), "labels": []}, "it holds no images"),
        ({"data": rows(1, 0), "labels": [2**70]}, "the labels must be a list of whole numbers"),
        ([1, 2], "expected a dict, got list"),
    ],
)
def test_a_batch_of_another_shape_is_named(tmp_path, batch, sentence):
    write(tmp_path / "cifar-10-batches-py", python_files() | {"test_batch": pickle.dumps(batch)})

    with pytest.raises(ValueError, match=sentence) as caught:
        cifar10(tmp_path, verify=False)

    assert "test_batch" in str(caught.value)


def test_a_missing_batch_is_named(tmp_path):
    files = python_files()
    del files["data_batch_4"]
    write(tmp_path / "cifar-10-batches-py", files)

    with pytest.raises(
        FileNotFoundError, match=r"cifar-10-batches-py lacks data_batch_4: fetch cifar-10-python"
    ):
        cifar10(tmp_path)


def png(value: int, size: int = 32) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), (value, 2 * value, 0)).save(buffer, "png")
    return buffer.getvalue()


def test_image_folders_and_tars_get_the_official_labels(tmp_path):
    pictures = {
        f"{part}/{name}/x.png": png(i)
        for part in ("train", "test")
        for i, name in enumerate(("truck", "cat"))
    }
    for name, content in pictures.items():
        write((tmp_path / "f" / name).parent, {"x.png": content})
    pack(tmp_path / "c.tar", pictures, "w")

    found = [cifar10(tmp_path / place) for place in ("f", "c.tar")]

    for data in found:
        assert data.train.labels.tolist() == [3, 9]
        assert data.train.images[:, 1, 0, 0].tolist() == [2, 0]
        assert (data.classes, data.mean) == (CIFAR10.classes, cifar.MEAN)
        assert "image folder" in data.notes[0]


@pytest.mark.parametrize(
    ("pictures", "sentence"),
    [
        ({"train/cow/x.png": png(1), "train/cat/x.png": png(2)}, "is not CIFAR-10, which has no class cow"),
        ({"train/dog/x.png": png(1, 8), "train/cat/x.png": png(2, 8)}, "32 x 32, got 3 of 8 x 8"),
    ],
)
def test_other_images_are_not_taken_for_cifar(tmp_path, pictures, sentence):
    with pytest.raises(ValueError, match=sentence):
        cifar10(pack(tmp_path / "c.tar", pictures, "w"))


@pytest.mark.skipif(not SHARED.is_file(), reason="needs the shared images")
def test_the_shared_images_load(tmp_path):
    data = cifar10(SHARED)

    assert (len(data.train), len(data.test)) == (10_000, 10_000)
    assert data.test.labels.bincount().tolist() == [1000] * 10


def served(monkeypatch, folder: Path, md5: str) -> None:
    """Let the official address be a directory, and the official checksum that of what lies there."""
    monkeypatch.setattr(cifar, "ADDRESS", folder.as_uri() + "/")
    patched = replace(CIFAR10.python, md5=md5)
    whole = cifar_files.Cifar("CIFAR-10", CIFAR10.classes, patched, CIFAR10.binary, b"labels", 1)
    monkeypatch.setattr(cifar, "CIFAR10", whole)


def test_download_fetches_the_archive_once(tmp_path, monkeypatch):
    (tmp_path / "net").mkdir()
    archive = pack(tmp_path / "net" / "cifar-10-python.tar.gz", python_files())
    served(monkeypatch, archive.parent, hashlib.md5(archive.read_bytes()).hexdigest())

    first = cifar10(tmp_path / "data", download=True)
    archive.unlink()
    again = cifar10(tmp_path / "data", download=True)

    assert first.checksum == again.checksum
    assert os.listdir(tmp_path / "data") == ["cifar-10-python.tar.gz"]


def test_a_damaged_download_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "net").mkdir()
    archive = pack(tmp_path / "net" / "cifar-10-python.tar.gz", python_files())
    served(monkeypatch, archive.parent, "0" * 32)

    with pytest.raises(OSError, match=r"could not be fetched \(expected MD5 0000.*put it into .*data"):
        cifar10(tmp_path / "data", download=True)

    assert os.listdir(tmp_path / "data") == []


def test_offline_says_what_to_fetch_and_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, "ADDRESS", "http://127.0.0.1:9/")  # nobody listens there

    with pytest.raises(
        OSError, match=r"http://127.0.0.1:9/cifar-100-python.tar.gz could not be fetched .*put it into"
    ):
        cifar100(tmp_path, download=True)


def test_nothing_there_names_both_ways_out(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"put cifar-10-python.tar.gz from https://.* there, or let --data.download"
    ):
        cifar10(tmp_path)


@pytest.mark.parametrize("name", ["../data_batch_1", "/data_batch_1"])
def test_a_tar_that_points_outside_itself_is_refused(tmp_path, name):
    path = pack(tmp_path / "cifar-10-python.tar.gz", {name: b"x"})

    with pytest.raises(ValueError, match="points outside the tar"):
        cifar10(path, verify=False)


def test_a_tar_with_a_link_is_refused(tmp_path):
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo("data_batch_1")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)

    with pytest.raises(ValueError, match="'data_batch_1' is a link or a special file"):
        cifar10(path, verify=False)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a place in memory that would need 16 GB
        b"\x80\x02}K\x01" + b"2\x86" * 60 + b"K\x01s.",  # a key that takes for ever to hash
        b"\x80\x02}K\x01" + b"\x85" * 200_000 + b"K\x01s.",  # one so deep that hashing it crashes
        b"cnumpy\nndarray\n(J\xff\xff\xff\x7f\x85U\x02u1tR.",  # an array of 2 GB, of which no byte is there
        b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R.",  # pointers
    ],
)
def test_a_pickle_gets_no_memory_and_no_time_for_what_it_only_asks_for(content):
    with pytest.raises(ValueError, match=r"^x is (damaged|refused|not a batch).*\.$"):
        cifar._from_python(CIFAR10, content, "x")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    archive = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        about = tarfile.TarInfo("data_batch_1.bin")
        about.size = 2**21
        tar.addfile(about, io.BytesIO(bytes(2**21)))
    monkeypatch.setattr("auglabel.data.files.MOST_UNPACKED", 2**20)
    with pytest.raises(ValueError, match=r"is refused: it unpacks to more than 1,048,576 bytes\.$"):
        cifar10(archive, verify=False)
