"""Hugging Face data sets, saved to disk and read back; skipped where `datasets` is not installed."""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from auglabel.data.huggingface import Rows, _roots, huggingface


def test_a_missing_datasets_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)

    with pytest.raises(
        ImportError, match=r"need the datasets package.* pip install 'auglabel\[huggingface\]'"
    ):
        huggingface("cifar10")


def table(labels, features=None, size=(5, 4), mode="RGB", column="image"):
    datasets = pytest.importorskip("datasets")
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    images = [
        Image.fromarray(np.random.default_rng(n).integers(0, 256, shape, dtype=np.uint8))
        for n in range(len(labels))
    ]
    kinds = datasets.Features({column: datasets.Image(), "label": features or datasets.Value("int64")})
    return datasets.Dataset.from_dict({column: images, "label": labels}, features=kinds)


def saved(path, **tables) -> str:
    datasets = pytest.importorskip("datasets")
    (datasets.DatasetDict(tables) if len(tables) > 1 else tables["train"]).save_to_disk(str(path))
    return str(path)


def test_images_labels_and_class_names_come_back(tmp_path):
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["cat", "dog"])
    path = saved(tmp_path / "d", train=table([1, 0, 1], names), test=table([0, 1], names))

    data = huggingface(path)

    assert data.classes == ("cat", "dog")
    assert data.train.labels.tolist() == [1, 0, 1]
    assert (len(data.test), data.train.shape) == (2, (3, 4, 5))
    expected = np.random.default_rng(2).integers(0, 256, (4, 5, 3), dtype=np.uint8).transpose(2, 0, 1)
    assert (data.train.fetch(torch.tensor([2]))[0].numpy() == expected).all()


def test_streamed_rows_are_those_in_memory(tmp_path):
    path = saved(tmp_path / "d", train=table([1, 0, 1]), validation=table([0, 1]))
    rows = torch.tensor([2, 0])

    streamed, whole = (huggingface(path, size=4, memory_gb=limit) for limit in (0, 4))

    assert streamed.train.streams
    assert streamed.train.fetch(rows).equal(whole.train.fetch(rows))
    assert streamed.test.fetch(rows[1:]).equal(whole.test.fetch(rows[1:]))
    assert huggingface(path, size=4, memory_gb=0).checksum == streamed.checksum


def test_a_single_split_is_for_training_and_words_are_sorted_into_classes(tmp_path):
    datasets = pytest.importorskip("datasets")
    path = saved(tmp_path / "d", train=table(["b", "a", "b"], datasets.Value("string"), mode="L"))

    data = huggingface(path)

    assert (data.classes, data.train.labels.tolist(), data.test) == (("a", "b"), [1, 0, 1], None)
    assert data.train.shape == (1, 4, 5)


def test_what_does_not_fit_is_named(tmp_path):
    path = saved(tmp_path / "d", train=table([1, 0, 1]), test=table([-1, -1]))
    with pytest.raises(ValueError, match=r"must hold a class for every image, got -1"):
        huggingface(path)
    with pytest.raises(ValueError, match=r"has no split dev: it has train, test"):
        huggingface(path, test_split="dev")
    with pytest.raises(ValueError, match=r"has no column img, but image, label: name it with --data\.image"):
        huggingface(path, image="img", test_split="train")
    with pytest.raises(ValueError, match=r"the column label must hold images, but it holds"):
        huggingface(path, image="label", test_split="train")
    with pytest.raises(ValueError, match=r"one class only"):
        huggingface(saved(tmp_path / "e", train=table([0, 0])))
    mixed = pytest.importorskip("datasets").concatenate_datasets([table([0, 1]), table([0], size=(6, 4))])
    with pytest.raises(ValueError, match=r"image 0 of .* has 5 x 4 pixels and image 2 of .* has 6 x 4"):
        huggingface(saved(tmp_path / "f", train=mixed))


def test_a_data_set_that_cannot_be_loaded_is_one_sentence(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()

    with pytest.raises(OSError, match=r"the data set .*empty could not be loaded") as caught:
        huggingface(str(tmp_path / "empty"))

    assert "\n" not in str(caught.value)


def test_a_loading_script_is_never_run(tmp_path):
    pytest.importorskip("datasets")
    mark = tmp_path / "mark"
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "script.py").write_text(f"open({str(mark)!r}, 'w')")

    with pytest.raises(OSError, match="could not be loaded"):
        huggingface(str(tmp_path / "script"))
    with pytest.raises(OSError, match="could not be loaded"):
        huggingface(str(tmp_path / "script" / "script.py"))

    assert not mark.exists()


def rows_naming(file, root):
    return Rows([{"image": {"bytes": None, "path": str(file)}}], "image", "cats/train", [root])


def test_a_file_of_the_data_set_is_read(tmp_path):
    (tmp_path / "cat.png").write_bytes(b"picture")
    assert rows_naming(tmp_path / "cat.png", tmp_path).read(0) == b"picture"


@pytest.mark.parametrize("outside", ["/dev/zero", "/etc/passwd", "{root}/../secret", "{root}/link"])
def test_a_file_outside_the_data_set_is_not_read(outside, tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ValueError, match=r"image 0 of cats.train is the file .*, which lies outside"):
        rows_naming(outside.format(root=root), root).read(0)


def test_what_is_no_regular_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    with pytest.raises(ValueError, match=r"image 0 of cats/train must be a regular file, got .*pipe"):
        rows_naming(tmp_path / "pipe", tmp_path).read(0)


def test_files_of_the_hub_lie_in_its_caches_wherever_these_are(tmp_path):
    config = SimpleNamespace(HF_CACHE_HOME=tmp_path / "hf", HF_DATASETS_CACHE=str(tmp_path / "elsewhere"))
    assert _roots("cifar10", config) == [tmp_path / "hf", tmp_path / "elsewhere"]
    assert _roots(str(tmp_path), config) == [tmp_path]
