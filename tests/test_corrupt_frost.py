"""Frost: crops at hand-worked places, photographs from a directory, and panes drawn to look like them."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from auglabel.corrupt.frost import PHOTOGRAPHS, frost_crops, textures
from auglabel.corrupt.panes import drawn


def directory(path, height=13, width=17):
    """Five photographs of random pixels; returns those of the first, as written."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, height, width, 3), dtype=np.uint8)
    for name, picture in zip(PHOTOGRAPHS, pixels, strict=True):
        Image.fromarray(picture).save(path / name)
    return pixels[0]


def counting(height, width, start=0):
    """Pixels that tell where they are: start + 20 * row + column."""
    levels = start + 20 * torch.arange(height)[:, None] + torch.arange(width)
    return levels.to(torch.uint8).expand(3, -1, -1)


def test_a_crop_starts_at_its_part_of_the_free_rows_and_columns():
    place = torch.tensor([[0.0, 0.0], [0.5, 0.7], [0.99, 0.99]])

    crops = frost_crops([counting(6, 8)], 2, 3, torch.tensor([0, 0, 0]), place)

    # 6 - 2 = 4 tops and 8 - 3 = 5 lefts, so corners (0, 0), (2, 3.5 -> 3) and (3, 4)
    assert crops.shape == (3, 3, 2, 3)
    assert crops[0, 0].tolist() == [[0, 1, 2], [20, 21, 22]]
    assert crops[1, 1].tolist() == [[43, 44, 45], [63, 64, 65]]
    assert crops[2, 2].tolist() == [[64, 65, 66], [84, 85, 86]]


def test_each_crop_comes_from_its_own_texture_whatever_their_sizes():
    several = [counting(4, 5), counting(6, 3, start=100)]

    crops = frost_crops(several, 1, 1, torch.tensor([1, 0, 1]), torch.full((3, 2), 0.5))

    # tops int(.5 * 5) = 2, int(.5 * 3) = 1; lefts int(.5 * 2) = 1, int(.5 * 4) = 2
    assert crops[:, 0, 0, 0].tolist() == [141, 22, 141]


def test_crops_equal_slices_of_the_textures():
    several, draw = textures(None, 0.2), torch.Generator().manual_seed(0)
    which, place = torch.randint(5, (40,), generator=draw), torch.rand(40, 2, generator=draw)

    crops = frost_crops(several, 32, 24, which, place)

    for crop, number, (y, x) in zip(crops, which.tolist(), place.tolist(), strict=True):
        _, height, width = several[number].shape
        top, left = int(y * (height - 32)), int(x * (width - 24))
        assert crop.equal(several[number][:, top : top + 32, left : left + 24])


def test_the_largest_place_stays_inside():
    below_one = torch.full((1, 2), 1 - 2**-24)

    assert frost_crops([counting(4, 10)], 1, 1, torch.tensor([0]), below_one)[0, 0].item() == 48  # (2, 8)


def test_a_texture_as_large_as_the_picture_is_taken_whole():
    crops = frost_crops([counting(3, 4)], 3, 4, torch.tensor([0]), torch.tensor([[0.9, 0.9]]))

    assert crops[0].equal(counting(3, 4))


def test_a_smaller_texture_is_enlarged_until_it_covers_the_picture():
    rows = torch.tensor([0, 100], dtype=torch.uint8)[None, :, None].expand(3, 2, 4)

    crops = frost_crops([rows], 4, 4, torch.tensor([0]), torch.tensor([[0.5, 0.9]]))

    # twice as large, 4 x 8: rows at -1/4, 1/4, 3/4 and 5/4 of the way from 0 to 100
    assert crops[0, 0].tolist() == [[0] * 4, [25] * 4, [75] * 4, [100] * 4]


@pytest.mark.parametrize("size", [(32, 32), (224, 224), (512, 100), (100, 512), (512, 512)])
def test_shrunken_textures_serve_pictures_of_any_size(size):
    crops = frost_crops(textures(None, 0.2), *size, torch.arange(5), torch.rand(5, 2))

    assert crops.shape == (5, 3, *size)
    assert crops.dtype == torch.uint8


def test_no_pictures_give_no_crops():
    none = torch.zeros(0, dtype=torch.int64)

    assert frost_crops([counting(4, 4)], 2, 2, none, torch.zeros(0, 2)).shape == (0, 3, 2, 2)


def test_drawn_textures_are_the_same_each_time_and_leave_the_random_state_alone():
    state = torch.get_rng_state()

    first, second = drawn(), drawn.__wrapped__()  # the second past the cache

    assert all(a.equal(b) for a, b in zip(first, second, strict=True))
    assert torch.get_rng_state().equal(state)


def test_textures_are_drawn_once_for_all_sizes():
    assert textures(None, 0.2) is textures(None, 0.2)
    assert drawn() is drawn()


@pytest.mark.parametrize(
    ("number", "colour", "contrast", "within"),
    [  # of the published photographs: mean red, green, blue; deviation of brightness, in all and in crops
        (0, (78, 149, 166), 18, 16),
        (1, (201, 205, 214), 22, 20),
        (2, (201, 205, 214), 22, 20),
        (3, (138, 153, 165), 29, 26),
        (4, (112, 123, 135), 43, 36),
    ],
)
def test_drawn_textures_are_as_bright_and_as_rich_in_contrast_as_the_photographs(
    number, colour, contrast, within
):
    texture = textures(None, 1.0)[number].float()
    place = torch.rand(50, 2, generator=torch.Generator().manual_seed(0))
    crops = frost_crops(textures(None, 1.0), 224, 224, torch.full((50,), number), place).float().mean(dim=1)

    torch.testing.assert_close(texture.mean(dim=(1, 2)), torch.tensor(colour).float(), atol=1.0, rtol=0)
    assert texture.mean(dim=0).std().item() == pytest.approx(contrast, abs=1.5)
    assert crops.std(dim=(1, 2)).mean().item() == pytest.approx(within, abs=3)


@pytest.mark.parametrize("number", range(5))
def test_drawn_textures_have_forms_of_all_sizes(number):
    light = textures(None, 1.0)[number].double().mean(dim=0)[:300, :300]
    window = torch.hann_window(300, dtype=torch.float64)
    power = torch.fft.fft2((light - light.mean()) * window * window[:, None]).abs().square()
    cycles = torch.fft.fftfreq(300) * 300
    radius = torch.hypot(cycles[:, None], cycles).round().long()
    ring = torch.zeros(300).double().index_add_(0, radius.flatten(), power.flatten())
    ring = ring / radius.flatten().bincount(minlength=300)
    x, y = torch.arange(4.0, 60).double().log(), ring[4:60].log()

    slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()

    assert -3 < slope < -1  # white noise has 0, smooth shading below -3


def test_drawn_textures_shrink_to_a_fifth():
    shapes = [tuple(texture.shape) for texture in textures(None, 0.2)]

    assert shapes == [(3, 120, 180), (3, 63, 112), (3, 63, 112), (3, 70, 105), (3, 99, 132)]


def test_photographs_are_read_as_they_are_in_red_green_blue(tmp_path):
    pixels = directory(tmp_path)
    Image.new("RGBA", (4, 3), (200, 100, 50, 0)).save(tmp_path / "frost2.png")  # transparency does not count

    photographs = textures(tmp_path, 1.0)

    assert [tuple(each.shape) for each in photographs] == [(3, 13, 17), (3, 3, 4)] + [(3, 13, 17)] * 3
    assert photographs[0].dtype == torch.uint8
    assert photographs[0].permute(1, 2, 0).numpy().tolist() == pixels.tolist()
    assert photographs[1][:, 2, 3].tolist() == [200, 100, 50]


@pytest.mark.parametrize(("height", "width"), [(13, 17), (15, 20), (14, 16)])
def test_photographs_shrink_bilinearly_without_smoothing(tmp_path, height, width):
    pixels = directory(tmp_path, height, width).astype(float)
    rows = (np.arange(round(height * 0.2)) + 0.5) / 0.2 - 0.5
    columns = (np.arange(round(width * 0.2)) + 0.5) / 0.2 - 0.5
    wide = np.apply_along_axis(lambda line: np.interp(rows, np.arange(height), line), 0, pixels)
    expected = np.apply_along_axis(lambda line: np.interp(columns, np.arange(width), line), 1, wide)

    shrunk = textures(tmp_path, 0.2)[0].permute(1, 2, 0).numpy()

    np.testing.assert_array_equal(shrunk, expected.round())


def test_a_directory_that_does_not_exist_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        textures(tmp_path / "ice", 1.0)

    assert str(error.value) == (
        f"{tmp_path / 'ice'} should be the directory of the frost photographs (frost1.png, frost2.png, "
        "frost3.png, frost4.jpg, frost5.jpg), but it does not exist. Correct the path, or name no directory: "
        "frost drawn here serves then."
    )


def test_a_file_in_place_of_the_directory_is_said_so(tmp_path):
    (tmp_path / "ice").touch()

    with pytest.raises(FileNotFoundError, match=r"but it is a file\. Correct the path"):
        textures(tmp_path / "ice", 1.0)


def test_missing_photographs_are_named(tmp_path):
    directory(tmp_path)
    (tmp_path / "frost3.png").unlink()
    (tmp_path / "frost5.jpg").unlink()

    with pytest.raises(FileNotFoundError, match=r"but it lacks frost3\.png, frost5\.jpg\. Copy"):
        textures(tmp_path, 1.0)


@pytest.mark.parametrize("content", [b"", b"no picture", "half"])
def test_a_broken_photograph_is_named(tmp_path, content):
    directory(tmp_path)
    file = tmp_path / "frost2.png"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content == "half" else content)

    with pytest.raises(ValueError, match=r"a frost photograph was expected, but .*frost2\.png is") as error:
        textures(tmp_path, 1.0)

    assert str(error.value).endswith("Copy it again, or name no directory: frost drawn here serves then.")


@pytest.mark.parametrize("shrink", [0.5, 0.0, -1.0, 3.0, 0.3])
def test_textures_shrink_by_odd_numbers_only(shrink):
    with pytest.raises(ValueError, match=f"such as 1 or 0.2, but it is {shrink}"):
        textures(None, shrink)


def test_another_process_draws_the_same_without_pillow_and_with_other_defaults():
    code = (
        "import sys; sys.modules['PIL'] = None; import torch; from auglabel.corrupt import panes;"
        "torch.set_default_dtype(torch.float64); torch.set_num_threads(1); torch.manual_seed(7);"
        "sys.stdout.buffer.write(panes._draw(panes.PANES[1]).numpy().tobytes())"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ran.stdout == textures(None, 1.0)[1].numpy().tobytes()
