"""Image folders and tars of them: the same pictures whichever way they come, and a sentence for bad ones."""

import io
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from auglabel.data import decode, picture
from auglabel.data.folder import IMAGENET, folder, imagenet
from auglabel.data.picture import Frame, random_box
from auglabel.data.source import Subset
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "images"


def noise(width: int, height: int, seed: int, mode: str = "RGB") -> Image.Image:
    shape = (height, width) if mode == "L" else (height, width, len(mode))
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


def save(image: Image.Image, path: Path, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)


@pytest.fixture
def tree(tmp_path) -> Path:
    """Three training and two test images of each of two classes, 6 wide and 5 high."""
    for half, count in (("train", 3), ("test", 2)):
        for place, name in enumerate(("dog", "cat")):
            for n in range(count):
                save(noise(6, 5, 10 * place + n + count), tmp_path / "tree" / half / name / f"{n}.png")
    return tmp_path / "tree"


def pack(source: Path, target: Path, prefix: str = "") -> Path:
    with tarfile.open(target, "w") as tar:
        for path in sorted(source.rglob("*"), reverse=True):
            tar.add(path, f"{prefix}{path.relative_to(source)}", recursive=False)
    return target


def all_images(data) -> torch.Tensor:
    parts = [part for part in (data.train, data.test) if part is not None]
    return torch.cat([part.fetch(torch.arange(len(part))) for part in parts])


def test_classes_are_the_sorted_folder_names_and_rows_the_sorted_files(tree):
    data = folder(tree)

    assert data.classes == ("cat", "dog")
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert data.train.shape == (3, 5, 6)
    expected = np.asarray(Image.open(tree / "train" / "dog" / "1.png")).transpose(2, 0, 1)
    assert (data.train.fetch(torch.tensor([4]))[0].numpy() == expected).all()
    assert data.notes == ("class folders in train/ and test/",)
    assert not data.train.streams


def test_data_are_named_after_their_folder_or_the_one_around_it_if_that_says_nothing(
    tree, tmp_path, monkeypatch
):
    assert folder(tree).name == "tree"
    assert folder(pack(tree, tmp_path / "v1.tar")).name == "v1"
    tree = tree.rename(tmp_path / "digits 1.5")
    monkeypatch.chdir(tree)
    assert folder(".").name == "digits 1.5"
    shutil.move(tree / "test", tmp_path / "gone")
    assert folder("train").name == "digits 1.5/train"


@pytest.mark.parametrize("prefix", ["", "./", "wrapper/"])
def test_a_tar_gives_the_same_data_as_its_folder(tree, tmp_path, prefix):
    plain, packed = folder(tree), folder(pack(tree, tmp_path / "tree.tar", prefix))

    assert packed.checksum == plain.checksum
    assert packed.classes == plain.classes
    assert all_images(packed).equal(all_images(plain))


@pytest.mark.parametrize("packed", [False, True])
def test_streamed_images_are_those_in_memory(tree, tmp_path, packed):
    root = pack(tree, tmp_path / "tree.tar") if packed else tree

    streamed = folder(root, size=4, resize=5, memory_gb=0)

    assert streamed.train.streams
    assert all_images(streamed).equal(all_images(folder(root, size=4, resize=5)))
    assert streamed.mean == IMAGENET[0]


def test_a_streamed_source_can_be_sent_to_a_worker(tree, tmp_path):
    source = folder(pack(tree, tmp_path / "tree.tar"), memory_gb=0).train

    sent = pickle.loads(pickle.dumps(source))

    assert sent.fetch(torch.tensor([2, 1])).equal(source.fetch(torch.tensor([2, 1])))


def test_the_cache_gives_what_decoding_gave_without_decoding(tree, tmp_path, monkeypatch):
    for root in (tree, pack(tree, tmp_path / "tree.tar")):
        fresh = folder(root)
        with monkeypatch.context() as patch:
            patch.setattr(decode, "opened", None)  # decoding would fail
            cached = folder(root)

        assert all_images(cached).equal(all_images(fresh))
        assert (cached.checksum, cached.mean, cached.std) == (fresh.checksum, fresh.mean, fresh.std)
        assert (cached.notes, cached.classes, cached.name) == (fresh.notes, fresh.classes, fresh.name)


def test_a_changed_image_or_option_is_not_answered_from_the_cache(tree):
    before = folder(tree)
    save(noise(6, 5, 99), tree / "train" / "cat" / "0.png")

    assert folder(tree).checksum != before.checksum
    assert folder(tree, channels=1).train.shape == (1, 5, 6)
    assert folder(tree, size=3).train.shape == (3, 3, 3)


@pytest.mark.parametrize("ending", ["npy", "json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_cache_file_is_made_again(tree, own_cache, ending, damage):
    fresh = folder(tree)
    (path,) = own_cache.glob(f"*.{ending}")
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[-9] ^= 1
    path.write_bytes({"cut": content[:-7], "flipped": bytes(flipped), "empty": b""}[damage])

    again = folder(tree)

    assert again.checksum == fresh.checksum
    assert all_images(again).equal(all_images(fresh))
    if ending == "npy":
        assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_changes_nothing(tree, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / "file"))

    assert len(folder(tree).train) == 6


def test_no_cache_leaves_no_files(tree, own_cache):
    folder(tree, cache=False)

    assert not own_cache.exists()


def test_without_train_and_test_folders_all_images_are_for_training(tree):
    data = folder(tree / "train")

    assert (data.classes, len(data.train), data.test) == (("cat", "dog"), 6, None)


def test_a_class_called_train_is_a_class(tmp_path):
    for name in ("train", "plane", "car"):
        save(noise(4, 4, 0), tmp_path / "d" / name / "a.png")

    assert folder(tmp_path / "d").classes == ("car", "plane", "train")


def test_val_is_the_test_part_if_there_is_no_test_and_joins_training_otherwise(tree):
    (tree / "test").rename(tree / "val")
    assert (len(folder(tree).train), len(folder(tree).test)) == (6, 4)

    for name in ("cat", "dog"):
        save(noise(6, 5, 3), tree / "test" / name / "x.png")
    data = folder(tree)

    assert (len(data.train), len(data.test)) == (10, 2)
    assert "the 4 images of val/ were added to those of train/" in data.notes


def test_hidden_files_other_files_and_links_that_go_in_circles_are_passed_by(tree):
    save(noise(9, 9, 0), tree / "train" / "cat" / ".hidden.png")
    (tree / "train" / "cat" / "notes.txt").write_text("hello")
    save(noise(6, 5, 1), tree / "train" / "cat" / "deeper" / "UPPER.PNG")
    os.symlink(tree, tree / "train" / "cat" / "circle")

    data = folder(tree)

    assert data.train.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("ending", ["png", "JPEG", "webp", "bmp", "gif", "tiff", "ppm"])
def test_usual_formats_are_read(tmp_path, ending):
    for name in ("a", "b"):
        save(Image.new("RGB", (16, 16), (200, 100, 50)), tmp_path / "d" / name / f"x.{ending}")

    image = folder(tmp_path / "d").train.fetch(torch.tensor([0]))[0, :, 8, 8]

    assert (image.int() - torch.tensor([200, 100, 50])).abs().max() <= 3


def photograph(path: Path, orientation: int, upright: Image.Image, **options) -> None:
    """`upright` as a camera held that way stores it: turned, with a note that says how to turn it back."""
    exif = Image.Exif()
    exif[274] = orientation
    turn = {1: 0, 3: 180, 6: 90, 8: 270}[orientation]  # degrees against the clock
    save(upright.rotate(turn, expand=True), path, exif=exif, **options)


@pytest.mark.parametrize("ending", ["png", "tiff", "webp"])
@pytest.mark.parametrize("memory_gb", [4, 0])
def test_photographs_are_turned_upright(tmp_path, ending, memory_gb):
    options = {"lossless": True} if ending == "webp" else {}
    for name, orientation in (("a", 1), ("b", 3), ("c", 6), ("d", 8)):
        photograph(tmp_path / "d" / name / f"x.{ending}", orientation, noise(7, 4, 0), **options)

    data = folder(tmp_path / "d", memory_gb=memory_gb)

    assert data.train.shape == (3, 4, 7)
    expected = torch.from_numpy(np.asarray(noise(7, 4, 0)).transpose(2, 0, 1).copy())
    for image in all_images(data):
        assert image.equal(expected)


def test_mirrored_jpegs_are_turned_and_random_crops_are_cut_from_what_is_upright(tmp_path):
    wide = Image.new("L", (64, 32), 0)
    wide.paste(255, (0, 0, 32, 32))  # bright on the left
    exif = Image.Exif()
    exif[274] = 5  # to be mirrored along the main diagonal
    for name in "ab":
        save(wide.transpose(Image.Transpose.TRANSPOSE), tmp_path / "d" / name / "x.jpg", exif=exif)
    data = folder(tmp_path / "d")

    assert data.train.shape == (1, 32, 64)
    assert data.train.images[0, 0, 16, 8] > 250
    assert data.train.images[0, 0, 16, 56] < 5
    crops = folder(tmp_path / "d", size=8, channels=1, train_crop="random_resized").train
    for draw in range(20):
        image = crops.fetch(torch.tensor([0]), draw=draw)[0, 0].float()
        assert image.std(dim=0).max() < 8  # columns are of one shade: the edge stands upright


def test_sizes_are_compared_after_turning(tmp_path):
    photograph(tmp_path / "d" / "a" / "x.png", 1, noise(7, 4, 0))
    photograph(tmp_path / "d" / "b" / "x.png", 6, noise(4, 7, 0))  # stored as 7 x 4, but upright

    with pytest.raises(ValueError, match=r"a/x\.png has 7 x 4 pixels and .*b/x\.png has 4 x 7"):
        folder(tmp_path / "d")


@pytest.mark.parametrize("note", [b"Exif\0\0nonsense", b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01", b"Exif\0\0"])
@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_a_damaged_note_of_the_camera_leaves_the_picture_as_it_is_stored(tmp_path, note):
    for name in "ab":
        save(noise(7, 4, 0), tmp_path / "d" / name / "x.jpg", exif=note)

    assert folder(tmp_path / "d").train.shape == (3, 4, 7)


def test_formats_that_pillow_loads_late_are_found_by_all_threads(tmp_path):
    for n in range(4 * decode.CHUNK):
        save(Image.new("L", (2, 2), 9), tmp_path / "d" / "ab"[n % 2] / f"{n}.tif")
    code = f"from auglabel.data.folder import folder; folder({str(tmp_path / 'd')!r}, size=2, cache=False)"

    subprocess.run([sys.executable, "-c", code], check=True)


def grey_and_colour(root: Path, colours: int, greys: int) -> Path:
    for n in range(colours + greys):
        mode = "RGB" if n < colours else "L"
        save(Image.new(mode, (4, 4), (n, n, n) if mode == "RGB" else n), root / "ab"[n % 2] / f"{n}.png")
    return root


def test_grey_sets_have_one_channel(tmp_path):
    data = folder(grey_and_colour(tmp_path / "d", 0, 4))

    assert data.train.shape == (1, 4, 4)
    assert data.train.images[:, 0, 0, 0].tolist() == [0, 2, 1, 3]
    assert len(data.mean) == 1


def test_grey_images_among_colours_become_colours_and_are_counted(tmp_path):
    data = folder(grey_and_colour(tmp_path / "d", 3, 1))

    assert data.train.shape == (3, 4, 4)
    assert data.train.images[3, :, 0, 0].tolist() == [3, 3, 3]
    assert "1 of 4 images are grey and were given three equal channels" in data.notes


def test_colours_can_be_turned_grey_and_greys_given_three_channels(tmp_path):
    mixed = folder(grey_and_colour(tmp_path / "d", 3, 1), channels=1)
    grey = folder(grey_and_colour(tmp_path / "e", 0, 4), channels=3)

    assert mixed.train.shape == (1, 4, 4)
    assert "3 of 4 images are in colour and were turned grey" in mixed.notes
    assert grey.train.shape == (3, 4, 4)
    assert "4 of 4 images are grey and were given three equal channels" in grey.notes


def test_sixteen_bits_palettes_cmyk_and_transparency_become_eight_bit_colours(tmp_path):
    root = tmp_path / "d"
    save(Image.fromarray(np.full((4, 4), 51 * 257, dtype=np.uint16)), root / "a" / "0_wide.png")
    save(
        Image.new("RGB", (4, 4), (10, 20, 30)).convert("P", palette=Image.Palette.ADAPTIVE),
        root / "a" / "1_p.png",
    )
    save(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), root / "a" / "2_cmyk.tif")
    save(Image.new("RGBA", (4, 4), (10, 20, 30, 40)), root / "b" / "3_alpha.png")
    save(Image.new("1", (4, 4), 1), root / "b" / "4_bit.png")

    data = folder(root)

    expected = [[51, 51, 51], [10, 20, 30], [255, 0, 0], [10, 20, 30], [255, 255, 255]]
    assert data.train.images[:, :, 2, 2].tolist() == expected
    assert "1 of 5 images are transparent in places, which was dropped" in data.notes
    assert "2 of 5 images are grey and were given three equal channels" in data.notes


def test_sixteen_bit_grey_keeps_its_shades(tmp_path):
    ramp = np.array([[0, 257, 32768, 65535]], dtype=np.uint16)
    for name in ("a", "b"):
        save(Image.fromarray(ramp), tmp_path / "d" / name / "x.png")

    assert folder(tmp_path / "d").train.images[0, 0, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(("width", "height"), [(60, 40), (40, 61), (33, 33), (20, 90), (32, 32), (64, 40)])
@pytest.mark.parametrize(("size", "resize"), [(32, 32), (28, 32), (24, 40)])
def test_evaluation_pictures_are_resized_by_the_shorter_side_and_cut_at_the_centre(
    width, height, size, resize
):
    image = noise(width, height, 0)
    scaled = (
        (resize, int(height * resize / width)) if width < height else (int(width * resize / height), resize)
    )
    slow = image.resize(scaled, Image.Resampling.BICUBIC)
    left, top = round((scaled[0] - size) / 2), round((scaled[1] - size) / 2)
    slow = np.asarray(slow.crop((left, top, left + size, top + size))).transpose(2, 0, 1)

    fast = Frame(3, size, resize).plain(image)

    assert (fast == slow).all()


def test_a_picture_of_one_row_does_not_become_a_huge_one():
    row = np.arange(60_000, dtype=np.uint16) // 235
    image = Image.fromarray(row.astype(np.uint8)[None])

    pixels = Frame(1, 224, 256).plain(image)  # resized as a whole: 15 million columns, 4 GB

    assert pixels.shape == (1, 224, 224)
    assert (pixels == 30_000 // 235).all()  # what is in the middle


def test_default_resize_is_the_size_or_8_7_of_it_for_random_crops(tmp_path):
    """One white column that only the wider view leaves out."""
    image = Image.new("L", (256, 256), 0)
    image.paste(255, (0, 0, 10, 256))
    for name in ("a", "b"):
        save(image, tmp_path / "d" / name / "x.png")

    whole = folder(tmp_path / "d", size=224)
    cut = folder(tmp_path / "d", size=224, train_crop="random_resized", channels=1)

    assert whole.train.fetch(torch.tensor([0]))[0, 0, 100, 0] == 255
    assert cut.train.fetch(torch.tensor([0])).max() == 0  # 16 columns are cut off on each side


@pytest.fixture
def crops(tmp_path):
    for n in range(4):
        save(noise(40, 30, n), tmp_path / "crops" / "ab"[n % 2] / f"{n}.png")
    return folder(tmp_path / "crops", size=8, train_crop="random_resized").train


def test_random_crops_depend_on_draw_and_row_alone(crops):
    together = crops.fetch(torch.tensor([0, 1, 2, 3]), draw=5)
    apart = torch.cat([crops.fetch(torch.tensor([row]), draw=5) for row in (0, 1, 2, 3)])
    subset = Subset(crops, torch.tensor([3, 1])).fetch(torch.tensor([0, 1]), draw=5)

    assert together.equal(apart)
    assert subset.equal(together[[3, 1]])


def test_other_draws_give_other_crops_and_none_the_plain_picture(crops):
    rows = torch.tensor([0, 0])
    first, second, plain = (crops.fetch(rows, draw) for draw in (1, 2, None))

    assert first[0].equal(first[1])
    assert not first[0].equal(second[0])
    assert not first[0].equal(plain[0])
    image = Image.open(crops.contents.path(0))
    assert (plain[0].numpy() == Frame(3, 8, 9).plain(image)).all()


def test_test_images_are_never_cropped_at_random(tree):
    test = folder(tree, size=4, train_crop="random_resized").test

    assert test.fetch(torch.tensor([0]), draw=3).equal(test.fetch(torch.tensor([0])))


def test_random_boxes_have_the_areas_and_ratios_of_the_definition():
    random = np.random.default_rng(0)
    boxes = np.array([random_box(200, 200, random) for _ in range(4000)])
    wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    area = wide * high / 200**2

    assert boxes.min() == 0
    assert boxes.max() == 200
    assert 0.07 < area.min() < 0.1
    assert area.max() > 0.95
    assert 0.73 < (wide / high).min() < 0.77
    assert 1.30 < (wide / high).max() < 1.36
    assert abs(np.log(wide / high).mean()) < 0.02
    # squares up to 3/4 of the whole always fit: there, areas are uniform
    small = area[area < 0.75]
    assert np.mean(small < (0.08 + 0.75) / 2) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("width", "height", "box"), [(1000, 3, (498, 0, 502, 3)), (3, 1000, (0, 498, 3, 502))]
)
def test_pictures_too_long_for_a_random_box_are_cut_at_their_centre(width, height, box):
    assert random_box(width, height, np.random.default_rng(0)) == box


def damaged_png(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def test_a_broken_image_is_named_and_can_be_skipped(tree):
    damaged_png(tree / "train" / "cat" / "1.png")
    (tree / "test" / "dog" / "0.png").write_text("not an image")

    with pytest.raises(
        ValueError, match=r"cat/1\.png is broken and cannot be read .*--data\.skip_broken true"
    ):
        folder(tree)
    data = folder(tree, skip_broken=True)

    assert data.train.labels.tolist() == [0, 0, 1, 1, 1]
    assert data.test.labels.tolist() == [0, 0, 1]
    assert data.notes[-1].startswith("2 broken images skipped: ")
    assert "cat/1.png" in data.notes[-1]
    expected = np.asarray(Image.open(tree / "train" / "cat" / "2.png")).transpose(2, 0, 1)
    assert (data.train.images[1].numpy() == expected).all()


def test_a_broken_image_met_while_streaming_is_named(tree, tmp_path):
    damaged_png(tree / "train" / "cat" / "1.png")
    for root in (tree, pack(tree, tmp_path / "t.tar")):
        data = folder(root, size=4, memory_gb=0, skip_broken=True)
        source = data.train

        assert source.fetch(torch.tensor([0])).shape == (1, 3, 4, 4)
        with pytest.raises(ValueError, match=r"cat/1\.png.* is broken and cannot be read"):
            source.fetch(torch.tensor([1]))
        assert "skip_broken changes nothing here" in data.notes[-1]


def test_an_image_that_vanished_while_streaming_is_named(tree):
    source = folder(tree, memory_gb=0).train
    (tree / "train" / "cat" / "1.png").unlink()

    with pytest.raises(OSError, match=r"cat/1\.png cannot be read: No such file"):
        source.fetch(torch.tensor([1]))


def test_a_class_of_broken_images_only_is_named(tree):
    for n in range(3):
        damaged_png(tree / "train" / "cat" / f"{n}.png")

    with pytest.raises(ValueError, match="every training image of class cat is broken"):
        folder(tree, skip_broken=True)


def bomb() -> bytes:
    """A PNG that claims 60,000 x 60,000 pixels in a few bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"0"))
        + chunk(b"IEND", b"")
    )


def test_a_decompression_bomb_is_named(tree):
    (tree / "train" / "cat" / "1.png").write_bytes(bomb())

    with pytest.raises(
        ValueError, match=r"cat/1\.png is larger than Pillow's limit against decompression bombs"
    ):
        folder(tree)


def test_pillows_lower_limit_counts(tree, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 29)

    with (
        pytest.warns(Image.DecompressionBombWarning),
        pytest.raises(ValueError, match=r"0\.png claims 6 x 5 pixels, more than Pillow's limit of 29"),
    ):
        folder(tree)


@pytest.mark.parametrize("memory_gb", [4, 0])
def test_images_of_two_sizes_are_named_with_the_way_out(tree, memory_gb):
    save(noise(7, 5, 0), tree / "train" / "dog" / "2.png")

    with pytest.raises(
        ValueError, match=r"cat/0\.png has 6 x 5 pixels and .*dog/2\.png has 7 x 5: --data\.size"
    ):
        all_images(folder(tree, memory_gb=memory_gb))
    assert folder(tree, size=5).train.shape == (3, 5, 5)


def test_folders_without_what_is_needed_say_what_is_missing(tree, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist: expected a folder of images"):
        folder(tmp_path / "nowhere")
    (tmp_path / "empty" / "a").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="empty holds no images"):
        folder(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="cat holds 3 images but no class folders"):
        folder(tree / "train" / "cat")
    save(noise(6, 5, 0), tree / "test" / "cow" / "0.png")
    with pytest.raises(ValueError, match="the test images have classes that train/ lacks: cow"):
        folder(tree)
    (tree / "train").rename(tree / "Train")
    (tree / "Train").rename(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match="has test/ but no train/"):
        folder(tree)


def test_images_outside_class_folders_are_counted(tree):
    save(noise(6, 5, 0), tree / "train" / "loose.png")

    data = folder(tree)

    assert len(data.train) == 6
    assert "images that lie in no class folder and are left out: 1" in data.notes


def test_two_folders_of_equal_names_sizes_and_times_are_not_confused(tmp_path):
    for place, value in (("one", 1), ("two", 2)):
        for name in "ab":
            save(Image.new("L", (4, 4), value), tmp_path / place / name / "x.bmp")
            os.utime(tmp_path / place / name / "x.bmp", (0, 0))

    assert [folder(tmp_path / place).train.images.unique().tolist() for place in ("one", "two")] == [[1], [2]]


def test_one_class_is_not_enough(tree):
    for path in (tree / "train" / "dog").iterdir():
        path.unlink()

    with pytest.raises(ValueError, match="has one class only, cat"):
        folder(tree)


def test_an_empty_class_folder_is_noted(tree):
    (tree / "train" / "cow").mkdir()

    assert "folders without images: train/cow" in folder(tree).notes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"channels": 2}, r"channels must be 1 \(grey\) or 3"),
        ({"train_crop": "random"}, 'train_crop must be "none" or "random_resized"'),
        ({"train_crop": "random_resized"}, r"needs a size to crop to: give --data\.size"),
        ({"resize": 8}, "resize needs a size to crop to"),
        ({"size": 0}, "size must be at least 1"),
        ({"size": 8, "resize": 7}, "resize must be at least 8, got 7"),
        ({"memory_gb": -1}, "memory_gb must be"),
    ],
)
def test_options_that_do_not_fit_are_refused(tree, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        folder(tree, **options)


@pytest.mark.parametrize("name", ["../x/a.png", "/x/a.png"])
def test_a_tar_that_points_outside_itself_is_refused(tmp_path, name):
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())

    with pytest.raises(ValueError, match=r"bad\.tar is refused: its .* points outside the tar"):
        folder(tmp_path / "bad.tar")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_tar_with_links_or_pipes_is_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        member = tarfile.TarInfo("a/x.png")
        member.type, member.linkname = kind, "/etc/passwd"
        tar.addfile(member)

    with pytest.raises(ValueError, match=r"bad\.tar is refused: its 'a/x.png' is a link or a special file"):
        folder(tmp_path / "bad.tar")


def test_damaged_compressed_and_foreign_tars_are_told_apart(tree, tmp_path):
    path = pack(tree, tmp_path / "tree.tar")
    content = path.read_bytes()
    for keep in (len(content) // 2, len(content) - 10_240):
        path.write_bytes(content[:keep])
        with pytest.raises(ValueError, match=r"tree\.tar is (cut short|not a tar that can be read)"):
            folder(path)
    path.write_text("hello" * 1000)
    with pytest.raises(ValueError, match=r"tree\.tar is not a tar that can be read"):
        folder(path)
    with tarfile.open(tmp_path / "tree.tar.gz", "w:gz") as tar:
        tar.add(tree, "tree")
    with pytest.raises(ValueError, match=r"tree\.tar\.gz is a compressed tar, .* unpack it first"):
        folder(tmp_path / "tree.tar.gz")


def test_nothing_is_unpacked(tree, tmp_path, monkeypatch):
    path = pack(tree, tmp_path / "tree.tar")
    before = sorted(tmp_path.rglob("*"))

    folder(path, cache=False)

    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def small_imagenet(tmp_path) -> Path:
    for half, count in (("train", 2), ("val", 1)):
        for wnid in ("n02", "n01"):
            for n in range(count):
                save(noise(50 + n, 40, n), tmp_path / "imagenet" / half / wnid / f"{wnid}_{n}.JPEG")
    return tmp_path / "imagenet"


def test_imagenet_streams_random_crops_to_train_on_and_centres_to_test_on(small_imagenet):
    data = imagenet(small_imagenet, size=16, resize=18)

    assert data.classes == ("n01", "n02")
    assert (data.train.shape, len(data.train), len(data.test)) == ((3, 16, 16), 4, 2)
    assert (data.mean, data.std) == IMAGENET
    row = torch.tensor([0])
    assert not data.train.fetch(row, draw=1).equal(data.train.fetch(row))
    assert data.test.fetch(row, draw=1).equal(data.test.fetch(row))


def test_imagenet_leaves_an_unlabelled_test_folder_alone(small_imagenet):
    save(noise(50, 40, 0), small_imagenet / "test" / "x.JPEG")

    data = imagenet(small_imagenet)

    assert len(data.test) == 2
    assert "not used: test" in data.notes


def test_imagenet_with_flat_validation_images_says_what_it_expects(small_imagenet):
    for path in (small_imagenet / "val").rglob("*.JPEG"):
        path.rename(small_imagenet / "val" / path.name)

    with pytest.raises(
        FileNotFoundError, match=r"images in val/<class>/.*but val/ has 2 images but no class folders"
    ):
        imagenet(small_imagenet)


def test_a_changed_file_changes_a_streamed_set_s_checksum(small_imagenet):
    before = imagenet(small_imagenet).checksum
    save(noise(51, 40, 5), small_imagenet / "val" / "n01" / "n01_0.JPEG")

    assert imagenet(small_imagenet).checksum != before


def test_a_missing_pillow_is_named_with_its_extra(tree, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(ImportError, match=r"needs Pillow.* pip install 'auglabel\[train\]'"):
        folder(tree)


def test_importing_the_data_modules_loads_neither_pillow_nor_datasets():
    names = [path.stem for path in Path(picture.__file__).parent.glob("*.py")]
    code = "; ".join(f"import auglabel.data.{name}" for name in names if name != "__init__")
    code += "; import sys; assert not {'PIL', 'datasets', 'safetensors'} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_only_image_formats_are_opened(tree):
    """PostScript is a program, which Pillow would hand to Ghostscript."""
    first = next((tree / "train").rglob("*.png"))
    first.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n")
    with pytest.raises(ValueError, match="none of the formats read: BMP, GIF, JPEG"):
        folder(tree)


@pytest.mark.parametrize("kind", picture.FORMATS)
def test_every_format_that_is_read_is_known_by_its_content(tree, kind):
    first = next((tree / "train").rglob("*.png"))
    Image.new("RGB", Image.open(first).size, "red").save(first, kind)
    assert folder(tree).train is not None


@pytest.mark.parametrize("kind", ["JPEG2000", "ICO"])
def test_other_formats_are_named_as_not_read(tree, kind):
    first = next((tree / "train").rglob("*.png"))
    try:
        Image.new("RGB", (16, 16), "red").save(first, kind)
    except (KeyError, OSError):
        pytest.skip(f"this Pillow writes no {kind}")
    with pytest.raises(ValueError, match="none of the formats read"):
        folder(tree)


@pytest.mark.parametrize("memory_gb", [4.0, 0.0])
def test_colours_that_a_palette_lacks_make_a_broken_image(tree, memory_gb, monkeypatch):
    """Pillow finds that out only when it looks them up."""

    def lacking(picture, channels):
        raise ValueError("palette index out of range")

    monkeypatch.setattr("auglabel.data.picture.coloured", lacking)
    with pytest.raises(ValueError, match=r"is broken and cannot be read as an image \(palette index"):
        folder(tree, memory_gb=memory_gb, cache=False).train.fetch(torch.tensor([0]))


def test_imagenet_s_halves_are_the_same_for_every_seed_and_older_runs_keep_their_own(
    small_imagenet, tmp_path
):
    def halves(name, seed):
        recipe = read_recipe(name, [f"--data.root={small_imagenet}", f"--seed={seed}"])
        _, parts = data_for(recipe)
        return parts.validation.rows.tolist(), parts.test.rows.tolist()

    assert halves("imagenet", 1) == halves("imagenet", 2)
    stored = tmp_path / "before.yaml"  # as runs of an earlier version have it
    stored.write_text("data: {name: imagenet}\nsplit: {validation: 0.5, validation_from: test}\n")
    assert len({str(halves(str(stored), seed)) for seed in range(5)}) > 1
