import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from auglabel import RandAug
from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.clean import Clean
from auglabel.augment.mixing import Mixup
from auglabel.distance import DistanceGrid
from auglabel.lab.pictures import contact_sheet as preview
from auglabel.lab.pictures.contact_sheet import contact_sheet
from auglabel.view import View

CLASSES = [f"class {k}" for k in range(10)]


@pytest.fixture
def some(colour_images):
    """Ten images of ten classes."""
    return colour_images[:10], torch.arange(10)


def places(sheet, picture):
    """Top left corners (row, column) of every exact occurrence of a picture (H, W, 3) in the sheet."""
    sheet = np.asarray(sheet)
    height, width, _ = picture.shape
    windows = np.lib.stride_tricks.sliding_window_view(sheet, (height, width), axis=(0, 1))
    first = np.argwhere((windows[..., 0, 0] == picture[0, 0]).all(axis=2))
    found = []
    for y, x in first:
        if (sheet[y : y + height, x : x + width] == picture).all():
            found.append((int(y), int(x)))
    return found


def enlarged(image, factor=2):
    """(C, H, W) bytes as a picture of larger pixels, three channels."""
    picture = image.expand(3, -1, -1).permute(1, 2, 0).numpy()
    return picture.repeat(factor, axis=0).repeat(factor, axis=1)


@pytest.mark.parametrize("augment", [RandAug(operations=("rotate", "equalize", "solarize")), AugMix()])
def test_every_tile_has_the_pixels_of_its_bucket_in_rows_of_kinds_and_columns_of_levels(augment, some):
    images, labels = (part[: len(augment.grid.levels)] for part in some)
    sheet = contact_sheet(augment, images, labels, CLASSES, seed=5)
    corners, bucket = [], 0
    for row, levels in enumerate(augment.grid.levels):
        corners.append([])
        for _ in range(levels):
            view = augment(
                images,
                labels,
                bucket=torch.full((len(images),), bucket),
                generator=torch.Generator().manual_seed(5),
            )
            found = places(sheet, enlarged(view.images[row]))
            assert found, f"bucket {bucket} is not on the sheet"
            corners[-1] += found
            bucket += 1
    tops = [sorted({y for y, _ in row}) for row in corners]
    assert all(len(top) == 1 for top in tops)  # a row is level,
    assert tops == sorted(tops)  # rows follow the kinds,
    for row, levels in zip(corners, augment.grid.levels, strict=True):
        assert len({x for _, x in row}) >= levels  # and each level has a column of its own


class Brighten(Augmentation):
    """Every pixel becomes the bucket's number times 20, whatever the image."""

    def __init__(self, levels, kinds=()):
        self.grid = DistanceGrid(levels, kinds)

    def apply(self, images, labels, distance, model, generator):
        value = (20 * (distance.bucket + 1)).to(torch.uint8)
        moved = value[:, None, None, None].expand_as(images)
        return View(moved, labels, distance.bucket, distance.strength)


def test_columns_go_from_weak_to_strong_and_kinds_from_top_to_bottom(some):
    sheet = contact_sheet(Brighten((3, 1), ("one", "other")), *some, CLASSES)
    corners = []
    for bucket in range(4):
        found = places(sheet, np.full((56, 56, 3), 20 * (bucket + 1), dtype=np.uint8))
        assert len(found) == 1
        corners += found
    (y0, x0), (y1, x1), (y2, x2), (y3, x3) = corners
    assert y0 == y1 == y2 < y3
    assert x0 == x3 < x1 < x2


def test_the_image_itself_stands_first_in_its_row(some):
    images, labels = some
    sheet = contact_sheet(Brighten((2, 2)), images, labels, CLASSES)
    for row in range(2):
        [(y, x)] = places(sheet, enlarged(images[row]))
        [(there, beside)] = places(sheet, np.full((56, 56, 3), 20 * (2 * row + 1), dtype=np.uint8))
        assert y == there
        assert x < beside


def test_rows_show_different_classes_also_when_images_come_sorted(some):
    images, _ = some
    labels = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    sheet = contact_sheet(Brighten((1, 1, 1, 1)), images, labels, CLASSES)
    assert [i for i in range(10) if places(sheet, enlarged(images[i]))] == [0, 1, 5, 8]


def test_the_confidence_is_written_and_tinted_under_its_bucket(some, monkeypatch):
    written = {}
    real = preview.write

    def note(draw, place, text, *rest, **more):
        written[text] = place
        real(draw, place, text, *rest, **more)

    monkeypatch.setattr(preview, "write", note)
    table = torch.tensor([1.0, 0.8765, 0.5])
    sheet = contact_sheet(Brighten((3,)), *some, CLASSES, table=table)
    for bucket, text in enumerate(["100.0 %", "87.7 %", "50.0 %"]):
        [(y, x)] = places(sheet, np.full((56, 56, 3), 20 * (bucket + 1), dtype=np.uint8))
        across, down = written[text]
        assert x < across < x + 56
        assert y + 56 < down < y + 56 + 20
        red = 255 if bucket == 0 else 95 if bucket == 2 else 215  # 95 + 160 (0.8765 - 0.5) / 0.5
        assert sheet.getpixel((int(across) - 25, int(down))) == (255, red, red)


def test_mixed_pictures_name_both_classes(some, monkeypatch):
    written = []
    real = preview.write

    def note(draw, place, text, *rest, **more):
        written.append(text)
        real(draw, place, text, *rest, **more)

    monkeypatch.setattr(preview, "write", note)
    images, labels = some[0][:2], some[1][:2]
    for seed in range(6):  # of two images, either order: alone with itself, or with the other
        written.clear()
        contact_sheet(Mixup(levels=1), images, labels, CLASSES, seed=seed)
        source = torch.Generator().manual_seed(seed)
        view = Mixup(levels=1)(images, labels, bucket=torch.zeros(2).long(), generator=source)
        share = 100 * view.share[0].item()
        assert f"{100 - share:.0f} % class 0" in written
        assert f"{share:.0f} % class {view.partner[0]}" in written


def test_an_image_is_shown_whose_partner_is_of_another_class(some):
    partner = torch.tensor([0, 2, 1])
    assert preview._mixed_with_another(0, torch.arange(3), partner) == 1
    assert preview._mixed_with_another(2, torch.arange(3), partner) == 2
    assert preview._mixed_with_another(1, torch.zeros(3), torch.zeros(3)) == 1


def test_attacks_are_shown_where_there_is_a_model(some):
    images, labels = some
    with pytest.raises(
        ValueError, match=r"^pictures of attacks need the model that is attacked: pass model="
    ):
        contact_sheet(Adversarial(), images, labels, CLASSES)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 10))
    augment = Adversarial(epsilon_max=0.5, levels=2)
    sheet = contact_sheet(augment, images, labels, CLASSES, model=model)
    view = augment(
        images[:2], labels[:2], model, bucket=torch.tensor([1, 1]), generator=torch.Generator().manual_seed(0)
    )
    shown = (255 * view.images[0]).round().to(torch.uint8)
    assert len(places(sheet, enlarged(shown))) == 1


@pytest.mark.parametrize(
    ("channels", "size"), [(1, (28, 28)), (3, (40, 32)), (3, (224, 224)), (1, (96, 180))]
)
def test_images_of_any_kind_fit_their_tiles(channels, size):
    images = torch.randint(256, (3, channels, *size), dtype=torch.uint8)
    picture = preview._picture(images[0], 64)
    factor = 64 / max(size)
    expected = (
        [round(edge * factor) for edge in size] if factor < 1 else [edge * int(factor) for edge in size]
    )
    assert [picture.height, picture.width] == expected
    for augment in (RandAug(), AugMix(), Clean(), Mixup()):
        sheet = contact_sheet(augment, images, torch.tensor([0, 1, 2]), CLASSES)
        assert sheet.mode == "RGB"
        assert sheet.width < 1200


def test_floating_point_images_look_like_their_bytes(some):
    images, labels = some
    augment = RandAug(operations=("translate_x", "translate_y"))
    one, other = (contact_sheet(augment, given, labels, CLASSES) for given in (images, images / 255))
    apart = np.asarray(one).astype(int) - np.asarray(other).astype(int)
    assert abs(apart).max() <= 1


def test_long_names_are_cut_and_pictures_do_not_touch(some):
    images, labels = some
    sheet = contact_sheet(
        Brighten((2,), ("a kind with a very long name indeed",)), images, labels, ["x" * 80] * 10
    )
    assert sheet.width < 16 + 130 + 3 * (130 + 8) + 32
    (_, x0), (_, x1) = (places(sheet, np.full((56, 56, 3), 20 * n, dtype=np.uint8))[0] for n in (1, 2))
    assert x1 - x0 > 56


def test_the_same_seed_gives_the_same_sheet_and_another_another(some):
    first, again, other = (
        contact_sheet(RandAug(), *some, CLASSES, seed=seed).tobytes() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"table": torch.ones(3)}, r"the grid has 82 buckets, but the table has 3\."),
        ({"table": torch.full((82,), 1.5)}, r"table must be in \[0, 1\], got 1\.5\."),
        ({"images": torch.zeros(10, 2, 28, 28)}, r"takes images of 1 or 3 channels"),
        ({"images": torch.zeros(0, 3, 28, 28), "labels": torch.zeros(0).long()}, r"takes images of 1 or 3"),
        ({"classes": CLASSES[:9]}, r"labels must be in 0\.\.8 for 9 classes, got 9\."),
        ({"labels": torch.arange(9)}, r"equal length"),
        ({"tile": 4}, r"tile must be at least 16"),
    ],
)
def test_mistakes_are_told_in_one_sentence(some, change, sentence):
    options = {"images": some[0], "labels": some[1], "classes": CLASSES, **change}
    with pytest.raises(ValueError, match=sentence):
        contact_sheet(RandAug(), **options)


def test_the_sheet_is_a_picture_with_a_white_border(some):
    sheet = contact_sheet(RandAug(), *some, CLASSES, table=torch.linspace(0.5, 1, 82))
    assert isinstance(sheet, Image.Image)
    border = np.asarray(sheet)
    for edge in (border[:10], border[-8:], border[:, :10], border[:, -10:]):
        assert (edge == 255).all()
