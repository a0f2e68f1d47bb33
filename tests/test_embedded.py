"""The embedded data are what they claim to be, and can be made again."""

import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import torch

from auglabel.data.embedded import CLASSES, FILE, Embedded, embedded, load_embedded

SCRIPT = Path(__file__).parents[1] / "scripts" / "make_embedded.py"
FULL = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist puts it


@pytest.fixture(scope="module")
def data() -> Embedded:
    return load_embedded()


@pytest.mark.parametrize(("name", "per_class"), [("train", 300), ("validation", 100), ("test", 200)])
def test_each_split_has_as_many_images_of_every_class(data, name, per_class):
    images, labels = getattr(data, name)

    assert images.shape == (10 * per_class, 1, 28, 28)
    assert labels.bincount().tolist() == [per_class] * len(CLASSES)


def test_images_are_bytes_and_labels_are_class_indices(data):
    for images, labels in data:
        assert images.dtype == torch.uint8
        assert labels.dtype == torch.int64
        assert (images.amin().item(), images.amax().item()) == (0, 255)


def test_no_image_occurs_twice_within_or_across_splits(data):
    images = torch.cat([split.images for split in data])

    assert len({image.numpy().tobytes() for image in images}) == 6_000


def test_classes_come_in_random_order(data):
    for _, labels in data:
        repeats = (labels[1:] == labels[:-1]).double().mean()  # one in ten if random, nearly all if sorted

        assert 0.05 < repeats < 0.15


def test_trousers_are_taller_than_sneakers(data):
    images, labels = data.train
    height = (images.amax(dim=3) > 64).sum(dim=(1, 2)).double()  # rows with anything in them
    trousers, sneakers = (height[labels == CLASSES.index(name)] for name in ("Trouser", "Sneaker"))

    assert trousers.mean() > sneakers.mean() + 5


def test_one_flipped_bit_is_refused_with_the_way_out(tmp_path):
    content = bytearray(FILE.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "fashion.npz"
    damaged.write_bytes(content)

    with pytest.raises(ValueError, match=r"fashion\.npz is damaged: expected SHA-256 .*, found .* Reinstall"):
        load_embedded(damaged)


@pytest.mark.skipif(not FULL.is_dir(), reason="needs the full Fashion-MNIST")
@pytest.mark.skipif("ng" in zlib.ZLIB_RUNTIME_VERSION, reason="zlib-ng compresses to other bytes")
def test_the_script_makes_the_same_file_again(tmp_path):
    again = tmp_path / "fashion.npz"

    subprocess.run([sys.executable, SCRIPT, FULL, again], check=True, capture_output=True)

    assert again.read_bytes() == FILE.read_bytes()


def test_the_script_names_the_file_it_misses(tmp_path):
    output = tmp_path / "fashion.npz"

    command = [sys.executable, SCRIPT, tmp_path, output]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)

    assert ran.returncode == 1
    assert "train-images-idx3-ubyte.gz is missing" in ran.stderr
    assert not output.exists()


def test_as_a_data_set_train_and_validation_images_come_as_one(data):
    whole = embedded()

    assert (len(whole.train), len(whole.test), whole.classes) == (4_000, 2_000, CLASSES)
    assert whole.train.fetch(torch.tensor([0, 3_000])).equal(
        torch.stack([data.train.images[0], data.validation.images[0]])
    )
    assert whole.train.labels[3_000:].equal(data.validation.labels)
    assert whole.test.fetch(torch.tensor([7])).equal(data.test.images[7:8])
    pixels = whole.train.images.double() / 255  # its usual figures are those of the full set
    assert abs(pixels.mean() - whole.mean[0]) < 0.01
    assert abs(pixels.std() - whole.std[0]) < 0.01
