"""`.npz` files under their usual names; what is wrong with one is said in a sentence."""

import zipfile

import numpy as np
import pytest

from auglabel.data.npz import npz


def pictures(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8)


def save(path, **arrays):
    np.savez(path / "toy.npz", **arrays)
    return path / "toy.npz"


def test_keras_names_with_channels_last(tmp_path):
    train, test = pictures(4, 5, 6, 3), pictures(2, 5, 6, 3)
    path = save(tmp_path, x_train=train, y_train=np.array([[0], [1], [2], [1]]), x_test=test, y_test=[2, 0])

    data = npz(path)

    assert data.train.shape == (3, 5, 6)
    assert (data.train.images.numpy() == train.transpose(0, 3, 1, 2)).all()
    assert data.train.labels.tolist() == [0, 1, 2, 1]
    assert data.test.labels.tolist() == [2, 0]
    assert data.classes == ("0", "1", "2")


def test_channels_second_and_no_channels(tmp_path):
    second = npz(save(tmp_path, images=pictures(2, 3, 8, 8), labels=[0, 1]))
    grey = npz(save(tmp_path, images=pictures(2, 8, 7), labels=[0, 1]))

    assert (second.train.images.numpy() == pictures(2, 3, 8, 8)).all()
    assert second.test is None
    assert grey.train.shape == (1, 8, 7)


def test_medmnist_validation_images_join_the_training_images(tmp_path):
    arrays = {
        f"{part}_{what}": values
        for part, count in (("train", 3), ("val", 2), ("test", 1))
        for what, values in (("images", pictures(count, 4, 4)), ("labels", np.full((count, 1), count % 2)))
    }

    data = npz(save(tmp_path, **arrays))

    assert data.train.labels.tolist() == [1, 1, 1, 0, 0]
    assert data.test.labels.tolist() == [1]
    assert any("2 images of val_images were added" in note for note in data.notes)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"pixels": [1], "y": [2]}, "lacks train_images and train_labels or .* it holds pixels, y"),
        ({"x_train": pictures(2, 4, 4), "y_train": [0, 1], "x_test": pictures(2, 4, 4)}, "lacks y_test"),
        ({"images": pictures(2, 4, 4), "labels": [0, 1, 1]}, "images has 2 rows, but labels has 3"),
        ({"images": np.zeros((2, 4, 4)), "labels": [0, 1]}, r"uint8 in 0\.\.255, got float64.*\* 255"),
        ({"images": pictures(2, 4, 4, 4), "labels": [0, 1]}, r"1 or 3 channels.* got \(2, 4, 4, 4\)"),
        ({"images": pictures(2, 3, 4, 3), "labels": [0, 1]}, r"1 or 3 channels, either second or last"),
        ({"images": pictures(2, 4), "labels": [0, 1]}, r"must have shape .* got \(2, 4\)"),
        ({"images": pictures(2, 4, 4), "labels": [0.0, 1.0]}, "labels must be whole numbers"),
        (
            {"images": pictures(2, 4, 4), "labels": [[0, 1], [1, 0]]},
            r"labels must be whole numbers.*\(2, 2\)",
        ),
        ({"images": pictures(2, 4, 4), "labels": [0, -1]}, "labels must be 0 or more.* got -1"),
        ({"images": pictures(2, 4, 4), "labels": [0, 0]}, "one class only"),
        ({"images": pictures(0, 4, 4), "labels": np.zeros(0, int)}, "images is empty"),
        ({"images": np.array([{}, {}], dtype=object), "labels": [0, 1]}, "holds pickled objects"),
        (
            {"x_train": pictures(2, 4, 4), "y_train": [0, 1], "x_test": pictures(1, 5, 4), "y_test": [0]},
            r"x_train has images of \(1, 4, 4\), but x_test of \(1, 5, 4\)",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, arrays, sentence):
    path = save(tmp_path, **arrays)

    with pytest.raises(ValueError, match=sentence) as caught:
        npz(path)

    assert str(path) in str(caught.value)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_truncated_file_is_named(tmp_path, share):
    path = save(tmp_path, images=pictures(50, 4, 4), labels=np.arange(50))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])

    with pytest.raises(ValueError, match=r"toy\.npz is not an \.npz file that can be read"):
        npz(path)


def test_a_flipped_byte_is_found(tmp_path):
    path = save(tmp_path, images=pictures(50, 4, 4), labels=np.arange(50))
    content = bytearray(path.read_bytes())
    content[400] ^= 1  # inside the images
    path.write_bytes(content)

    with pytest.raises(ValueError, match=r"toy\.npz is not an \.npz file that can be read"):
        npz(path)


def test_a_single_array_and_a_missing_file_are_told_apart(tmp_path):
    np.save(tmp_path / "one.npy", pictures(2, 4, 4))

    with pytest.raises(ValueError, match="is a single array"):
        npz(tmp_path / "one.npy")
    with pytest.raises(FileNotFoundError, match=r"two\.npz does not exist"):
        npz(tmp_path / "two.npz")


def test_one_wrong_label_does_not_make_millions_of_classes(tmp_path):
    images, labels = np.zeros((2, 4, 4), np.uint8), np.array([0, 2**24])
    np.savez(tmp_path / "a.npz", images=images, labels=labels)
    with pytest.raises(ValueError, match=r"at most 1,048,576 of them, got 16777216\.$"):
        npz(tmp_path / "a.npz")


def test_a_bomb_is_named_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((2**22, 8, 10), np.uint8), labels=np.zeros(2))
    with pytest.raises(ValueError, match=r"it unpacks to 335,5.* bytes, 100 times its own size or more"):
        npz(tmp_path / "a.npz")


def test_what_is_no_array_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("images.npy", b"none")
        file.writestr("labels.npy", b"none")
    with pytest.raises(ValueError, match="it holds something else than arrays"):
        npz(tmp_path / "a.npz")
