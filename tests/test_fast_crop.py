"""Fast crops: where the exact ones are, near to them, and the same whichever decoder is installed."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw
from skimage import data as photographs

from auglabel.data import fast_crop as module
from auglabel.data.fast_crop import fast_crop, scale_for
from auglabel.data.folder import folder
from auglabel.data.picture import BrokenImage, Frame, opened

FRAME = Frame(3, 64, 73)
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket")


def jpeg(picture, **options):
    content = io.BytesIO()
    picture.save(content, "JPEG", **{"quality": 90, **options})
    return content.getvalue()


def photograph(name, width=500, height=375):
    return Image.fromarray(getattr(photographs, name)()).resize((width, height), Image.Resampling.LANCZOS)


def exact(content, frame, draw, row):
    return frame.random(opened(content, "x"), draw, row).astype(int)


def apart(content, frame, row, draw=5):
    return np.abs(fast_crop(content, "x", frame, draw, row) - exact(content, frame, draw, row))


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_crops_that_the_codec_does_not_shrink_are_within_a_level_of_the_exact_ones(name):
    found = np.stack([apart(jpeg(photograph(name)), Frame(3, 224, 256), row) for row in range(12)])
    assert found.mean() < 0.1
    assert (found <= 1).mean() > 0.99
    assert found.max() <= 12


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_crops_of_large_photographs_shrunk_by_the_codec_are_near_the_exact_ones(name):
    content = jpeg(photograph(name, 1500, 1125))
    found = np.stack([apart(content, Frame(3, 224, 256), row) for row in range(6)])
    assert found.mean() < 1.5
    assert (found <= 8).mean() > 0.95


def test_a_small_mark_is_where_the_exact_crop_has_it():
    picture = Image.new("RGB", (1600, 1200), "black")
    ImageDraw.Draw(picture).rectangle((780, 580, 820, 620), fill="white")
    content, compared = jpeg(picture), 0
    for row in range(30):
        fast, slow = fast_crop(content, "x", FRAME, 5, row), exact(content, FRAME, 5, row)
        if slow.sum() > 255 * 30:
            compared += 1
            for axis in (1, 2):
                weights = [each.sum(axis=(0, 3 - axis)) for each in (fast.astype(int), slow)]
                middles = [(each * np.arange(64)).sum() / each.sum() for each in weights]
                assert abs(middles[0] - middles[1]) < 0.6
    assert compared > 5


VARIANTS = [
    *(({"subsampling": 0}, "RGB"), ({"subsampling": 1}, "RGB"), ({"progressive": True}, "RGB")),
    *(({"quality": 30}, "RGB"), ({}, "L"), ({}, "CMYK")),
]


@pytest.mark.parametrize(("options", "mode"), VARIANTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_opencv_and_pillow_give_the_same_bits(options, mode, channels, monkeypatch):
    pytest.importorskip("cv2")
    for width, height in ((501, 377), (1023, 767), (70, 90)):
        content = jpeg(photograph("coffee", width, height).convert(mode), **options)
        frame = Frame(channels, 32, 36)
        with monkeypatch.context() as without:
            without.setattr(module, "_opencv", lambda: None)
            slow = [fast_crop(content, "x", frame, 3, row) for row in range(8)]
        assert all(
            np.array_equal(each, fast_crop(content, "x", frame, 3, row)) for row, each in enumerate(slow)
        )


def test_sides_are_divided_by_no_more_than_the_crop_allows():
    assert scale_for((10, 10, 458, 458), 224) == 2
    assert scale_for((0, 0, 447, 900), 224) == 1
    assert scale_for((0, 0, 900, 896), 224) == 4
    assert scale_for((0, 0, 1792, 1792), 224) == 8
    assert scale_for((0, 0, 9999, 9999), 224) == 8


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_their_camera_says(orientation):
    note = Image.Exif()
    note[0x0112] = orientation
    content = jpeg(photograph("rocket", 160, 120), exif=note.tobytes())
    assert np.mean([apart(content, FRAME, row).mean() for row in range(4)]) < 0.2


@pytest.mark.parametrize("width", [160, 1600])
def test_pictures_are_turned_as_their_xmp_says(width):
    note = '<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    segment = b"http://ns.adobe.com/xap/1.0/\0" + note.encode()
    plain = jpeg(photograph("rocket", width, width * 3 // 4))
    content = plain[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment + plain[2:]
    assert opened(content, "x").size == (width * 3 // 4, width)
    assert np.mean([apart(content, FRAME, row).mean() for row in range(8)]) < 0.2


def test_other_formats_and_colours_are_cropped_too(tmp_path):
    for mode in ("RGB", "L", "P", "RGBA"):
        content = io.BytesIO()
        photograph("chelsea", 90, 80).convert(mode).save(content, "PNG")
        for channels in (1, 3):
            found = fast_crop(content.getvalue(), "x", Frame(channels, 32, 36), 1, 2)
            assert found.shape == (channels, 32, 32)
            assert apart(content.getvalue(), Frame(channels, 32, 36), 2).mean() < 1


def test_a_file_that_is_cut_short_is_named():
    content = jpeg(photograph("chelsea"))
    for frame in (FRAME, Frame(1, 300, 320)):  # shrunk by the codec, and not
        with pytest.raises(BrokenImage, match=r"^mine\.jpg is broken and cannot be read") as caught:
            fast_crop(content[: len(content) // 2], "mine.jpg", frame, 0, 0)
        assert str(caught.value).count("mine.jpg") == 1


def test_only_random_crops_are_fast(tmp_path):
    for name in PHOTOGRAPHS[:2]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(jpeg(photograph(name)))
    fast, slow = (
        folder(tmp_path, size=64, train_crop="random_resized", decode=decode).train
        for decode in ("fast", "exact")
    )
    rows = slow.labels
    assert fast.fetch(rows).equal(slow.fetch(rows))
    assert not fast.fetch(rows, draw=1).equal(slow.fetch(rows, draw=1))
    with pytest.raises(ValueError, match='decode must be "exact" or "fast", got str \'quick\''):
        folder(tmp_path, size=64, decode="quick", train_crop="random_resized")
