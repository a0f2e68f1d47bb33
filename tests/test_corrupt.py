"""The corruptions against slow ones on other libraries, and what must hold for every one of them."""

import hashlib
import struct
import sys

import corruption_reference as reference
import cv2
import numpy as np
import pytest
import scipy.stats
import skimage.data
import skimage.transform
import skimage.util
import torch
from corruption_figures import PUBLISHED, ZOOMS
from hypothesis import given, settings
from hypothesis import strategies as st

from auglabel.corrupt import SUITES, corrupt, parameters_for, suite
from auglabel.corrupt.blur import disk
from auglabel.corrupt.digital import _members
from auglabel.corrupt.draws import Draws
from auglabel.corrupt.figures import PARAMETERS
from auglabel.corrupt.filters import gaussian_matrix
from auglabel.corrupt.frost import textures
from auglabel.corrupt.noise import _poisson
from auglabel.data.embedded import embedded

ALL, SEVERITIES = SUITES["all"], (1, 2, 3, 4, 5)
BLURS = ("defocus_blur", "gaussian_blur", "zoom_blur")
DETERMINED = (*BLURS, "brightness", "contrast", "pixelate", "jpeg_compression", "saturate")
MIRRORED = [name for name in ALL if name not in ("shot_noise", "impulse_noise")]  # these have their own tests


def photograph(height, width, channels=3):
    """(H, W, C) bytes of a real photograph; one channel is its green one."""
    small = skimage.transform.resize(skimage.data.chelsea(), (height, width), anti_aliasing=True)
    pixels = np.round(small * 255).astype(np.uint8)
    return np.ascontiguousarray(pixels if channels == 3 else pixels[..., 1:2])


def batch(*pictures):
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()


def photographs(count, side=32):
    """Different parts of one photograph: (N, 3, side, side)."""
    whole = torch.from_numpy(skimage.data.chelsea().copy()).permute(2, 0, 1)
    corners = [(37 * i % (300 - side), 53 * i % (451 - side)) for i in range(count)]
    return torch.stack([whole[:, y : y + side, x : x + side] for y, x in corners])


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", [name for name in ALL if name != "zoom_blur"])
def test_the_figures_are_the_published_ones(parameters, name):
    side = {"cifar": 32, "imagenet": 224}[parameters] if name == "elastic_transform" else 1
    ours = [[side * number for number in np.atleast_1d(five)] for five in PARAMETERS[parameters][name]]
    assert ours == [pytest.approx(five) for five in PUBLISHED[parameters][name]]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_zooms_are_the_published_ones(parameters):
    for (count, step), zooms in zip(PARAMETERS[parameters]["zoom_blur"], ZOOMS[parameters], strict=True):
        np.testing.assert_allclose([1 + number * step for number in range(count)], zooms)


@pytest.mark.parametrize("channels", [3, 1])
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", MIRRORED)
def test_a_corruption_is_what_the_published_steps_give_on_other_libraries(name, parameters, channels):
    # The same random numbers go into both, so the pixels must agree. One level, in few of them: float32
    # where they have float64, next to a level's edge.
    picture = photograph(*{"cifar": (32, 37), "imagenet": (64, 64)}[parameters], channels)
    frost = {"textures": textures(None, {"cifar": 0.2, "imagenet": 1.0}[parameters])}
    for severity in SEVERITIES:
        ours = corrupt(batch(picture), name, severity, parameters=parameters, index=[5], seed=3)
        figures, draws = PARAMETERS[parameters][name][severity - 1], Draws(3, name, severity, [5])
        slow = getattr(reference, name)
        wanted = slow(picture.copy(), figures, draws, **(frost if name == "frost" else {}))
        apart = np.abs(ours[0].permute(1, 2, 0).numpy().astype(int) - wanted)
        assert apart.max() <= 1
        assert (apart > 0).mean() < 0.004


@pytest.mark.parametrize(
    "name", ["pixelate", "jpeg_compression", "defocus_blur", "gaussian_blur", "contrast"]
)
def test_what_has_no_randomness_agrees_to_the_byte(name):
    for severity in SEVERITIES:
        for parameters in PARAMETERS:
            picture = photograph(48, 41)
            ours = corrupt(batch(picture), name, severity, parameters=parameters)
            slow = getattr(reference, name)(picture, PARAMETERS[parameters][name][severity - 1], None)
            np.testing.assert_array_equal(ours[0].permute(1, 2, 0).numpy(), slow)


def test_the_affine_part_of_the_elastic_transform_is_opencvs():
    # OpenCV interpolates between 32 places of a pixel, so a steep edge may be off by some levels.
    picture = photograph(64, 64)
    ours = corrupt(batch(picture), "elastic_transform", 1, parameters="cifar")
    shift = 0.08 * 64
    points = np.float32([[53, 53], [53, 11], [11, 11]])
    moved = points + (Draws(0, "elastic_transform", 1, [0]).uniform(3, 2)[0].numpy() * 2 - 1) * shift
    warped = reference.warped_by_opencv(picture, cv2.getAffineTransform(points, np.float32(moved)))
    apart = np.abs(ours[0].permute(1, 2, 0).numpy().astype(int) - warped)
    assert apart.mean() < 1
    assert np.quantile(apart, 0.99) <= 5


@pytest.mark.parametrize("photons", [3, 50, 500])
def test_shot_noise_has_poissons_chances(photons):
    keep, other = (table.view(256, 256).double().numpy() for table in _poisson(photons))
    counts = np.arange(photons)
    for byte in (0, 1, 77, 200, 255):
        chances = keep[byte] + np.bincount(other[byte].astype(int), 1 - keep[byte], minlength=256)
        poisson = scipy.stats.poisson.pmf(counts, byte / 255 * photons)
        wanted = np.bincount(np.floor(counts * 255 / photons + 1e-9).astype(int), poisson, minlength=256)
        wanted[255] += scipy.stats.poisson.sf(photons - 1, byte / 255 * photons)
        np.testing.assert_allclose(chances / 256, wanted, atol=2e-6)


def test_shot_noise_draws_from_those_chances():
    grey = torch.full((40, 1, 64, 64), 100, dtype=torch.uint8)
    noisy = corrupt(grey, "shot_noise", 5, parameters="cifar").double() / 255
    rate = 50 * 100 / 255
    counts = torch.round(noisy * 50)  # cutting off a fraction of a level loses less than half a count
    assert torch.equal(torch.floor(counts * 255 / 50 + 1e-9), (noisy * 255).round())
    few = 4 * (rate / noisy.numel()) ** 0.5
    assert float(counts.mean()) == pytest.approx(rate, abs=few)
    assert float(counts.var()) == pytest.approx(rate, rel=0.03)


def test_impulse_noise_is_as_frequent_as_skimages():
    pictures = photographs(50)
    for severity, share in zip(SEVERITIES, (0.01, 0.02, 0.03, 0.05, 0.07), strict=True):
        ours = corrupt(pictures, "impulse_noise", severity).double() - pictures
        theirs = skimage.util.random_noise(pictures.numpy() / 255, "s&p", rng=0, amount=share) * 255
        theirs = torch.from_numpy(theirs) - pictures
        off = 4 * (share / pictures.numel()) ** 0.5
        assert float((ours != 0).double().mean()) == pytest.approx(share, abs=off)
        assert float(ours.mean()) == pytest.approx(float(theirs.mean()), abs=0.4)
        assert float(ours.var()) == pytest.approx(float(theirs.var()), rel=0.1)


def test_impulses_hit_single_channels_black_as_often_as_white():
    pictures = torch.full((200, 3, 32, 32), 128, dtype=torch.uint8)
    noisy = corrupt(pictures, "impulse_noise", 5)
    black, white = (int((noisy == value).sum()) for value in (0, 255))
    assert black + white == int((noisy != 128).sum())
    assert abs(black - white) < 4 * (black + white) ** 0.5
    hit = (noisy != 128).sum(dim=1)
    assert (hit == 1).sum() > 10 * (hit == 3).sum()


def test_numbers_come_from_the_mersenne_twister_that_the_words_seed():
    digest = hashlib.blake2b(b"7/fog/3/41", digest_size=32).digest()
    draws = Draws(7, "fog", 3, [40, 41])
    for seed in struct.unpack("<8I", digest)[:2]:
        words = np.random.RandomState(seed).randint(0, 2**32, size=5, dtype=np.uint64)
        np.testing.assert_array_equal(draws.uniform(5)[1].numpy(), (words & (2**24 - 1)) / 2**24)


@pytest.mark.parametrize("name", ALL)
def test_a_picture_depends_on_its_index_and_not_on_the_batch(name):
    pictures, index = photographs(9, 33), torch.tensor([7, 3, 100, 5, 0, 44, 9, 12, 2])
    for severity in (2, 5):
        whole = corrupt(pictures, name, severity, index=index, seed=1)
        for rows in ([4], [8, 0], [2, 3, 4, 5, 6]):
            some = corrupt(pictures[rows], name, severity, index=index[rows], seed=1)
            assert torch.equal(some, whole[rows])


@pytest.mark.parametrize("name", ALL)
def test_threads_and_chunks_change_no_pixel(name, monkeypatch):
    pictures = photographs(4, 96)
    before = corrupt(pictures, name, 3)
    for kept in (_poisson, _members, disk, gaussian_matrix):  # tables made with one number of threads
        kept.cache_clear()
    threads = torch.get_num_threads()
    monkeypatch.setattr("auglabel.corrupt.corruption.TOGETHER", 3 * 96 * 96 * 3)
    try:
        torch.set_num_threads(3 - min(threads, 2))
        assert torch.equal(corrupt(pictures, name, 3), before)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ALL)
def test_the_global_random_stream_is_left_alone(name):
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    corrupt(photographs(2), name, 3)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


@pytest.mark.parametrize("name", ALL)
def test_seed_and_index_matter_to_what_is_random_alone(name):
    picture = photographs(1)
    plain = corrupt(picture, name, 5)
    others = [corrupt(picture, name, 5, seed=1), corrupt(picture, name, 5, index=[1])]
    assert [torch.equal(plain, other) for other in others] == [name in DETERMINED] * 2
    assert not torch.equal(plain, picture)
    assert not torch.equal(plain, corrupt(picture, name, 1))


@pytest.mark.parametrize("name", ALL)
def test_floating_point_pictures_are_the_bytes_over_255(name):
    picture = photographs(2)
    expected = corrupt(picture, name, 4).float() / 255
    assert torch.equal(corrupt(picture.float() / 255, name, 4), expected)
    assert corrupt(picture.double() / 255, name, 4).dtype == torch.float64


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(3, 16, 16), (1, 17, 40), (3, 130, 24)])
def test_every_size_works(name, parameters, shape):
    channels, height, width = shape
    picture = batch(photograph(height, width, channels))
    for severity in SEVERITIES:
        done = corrupt(picture, name, severity, parameters=parameters)
        assert done.shape == picture.shape
        assert done.dtype == torch.uint8


@pytest.mark.parametrize("name", ALL)
def test_a_large_picture_works(name):
    done = corrupt(batch(photograph(512, 512)), name, 5)
    assert done.shape == (1, 3, 512, 512)
    assert done.float().std() > 1


@pytest.mark.parametrize("name", ALL)
def test_black_white_and_flat_pictures_stay_pictures(name):
    flat = torch.stack([torch.full((3, 32, 32), level, dtype=torch.uint8) for level in (0, 77, 255)])
    for severity in SEVERITIES:
        done = corrupt(flat, name, severity)
        if name in ("defocus_blur", "gaussian_blur", "glass_blur", "motion_blur", "zoom_blur", "pixelate"):
            assert torch.equal(done, flat)  # weights that sum to one change nothing flat
        if name in ("contrast", "elastic_transform"):
            assert torch.equal(done, flat)


def test_grey_pixels_take_the_hue_of_red_when_saturation_is_added():
    grey = torch.full((1, 3, 16, 16), 100, dtype=torch.uint8)
    assert corrupt(grey, "saturate", 4)[0, :, 0, 0].tolist() == [100, 90, 90]  # S = 0 * 2 + 0.1
    assert torch.equal(corrupt(grey[:, :1], "saturate", 4), grey[:, :1])


def test_brightness_moves_the_largest_channel_and_keeps_the_ratios():
    pixel = torch.tensor([100, 50, 0], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 16, 16)
    # V = 100 + 0.3 * 255 = 176.5
    assert corrupt(pixel, "brightness", 5, parameters="cifar")[0, :, 0, 0].tolist() == [176, 88, 0]
    black = torch.zeros(1, 3, 16, 16, dtype=torch.uint8)
    assert corrupt(black, "brightness", 5, parameters="cifar")[0, :, 0, 0].tolist() == [76, 76, 76]


def test_severity_ranks_the_noise_and_the_blur():
    pictures = photographs(20)
    for name in (
        "gaussian_noise",
        "shot_noise",
        "impulse_noise",
        "speckle_noise",
        "gaussian_blur",
        "zoom_blur",
    ):
        moved = [float((corrupt(pictures, name, s).double() - pictures).square().mean()) for s in SEVERITIES]
        assert moved == sorted(moved)


def test_grey_pictures_of_the_embedded_set_work():
    pictures = embedded().test.fetch(torch.arange(3))
    for name in ALL:
        assert corrupt(pictures, name, 5).shape == pictures.shape


@given(
    st.integers(16, 90), st.integers(16, 90), st.sampled_from(ALL), st.integers(1, 5), st.integers(0, 2**40)
)
@settings(max_examples=40, deadline=None)
def test_any_size_and_seed_gives_the_same_picture_alone_and_in_a_batch(height, width, name, severity, seed):
    pictures = torch.randint(0, 256, (3, 3, height, width), generator=torch.Generator().manual_seed(seed))
    pictures = pictures.to(torch.uint8)
    whole = corrupt(pictures, name, severity, seed=seed)
    assert torch.equal(corrupt(pictures[1:2], name, severity, seed=seed, index=[1]), whole[1:2])


def test_the_suites():
    assert [len(SUITES[name]) for name in ("standard", "paper", "extra", "all")] == [15, 17, 4, 19]
    assert set(SUITES["all"]) - set(SUITES["paper"]) == {"motion_blur", "snow"}
    assert set(SUITES["extra"]) == {"gaussian_blur", "saturate", "spatter", "speckle_noise"}
    assert set(SUITES["standard"]) == set(SUITES["all"]) - set(SUITES["extra"])


def test_a_list_of_ones_own_may_mix_suites_and_names():
    assert suite("fog, snow") == ("fog", "snow")
    assert suite(["extra", "fog", "spatter"]) == (*SUITES["extra"], "fog")
    assert suite("paper") == SUITES["paper"]


@pytest.mark.parametrize("names", ["fogg", ["fog", "fogg"], "standard,fogg"])
def test_an_unknown_corruption_is_an_error_with_the_nearest(names):
    with pytest.raises(ValueError, match=r'there is no corruption "fogg".* Did you mean "fog"\?'):
        suite(names)


def test_no_corruption_at_all_is_an_error():
    with pytest.raises(ValueError, match="at least one corruption"):
        suite([])


def test_the_numbers_drawn_have_the_laws_they_should():
    draws = Draws(0, "fog", 1, range(40))
    normal, uniform, whole = draws.normal(50, 50), draws.uniform(50, 50), draws.whole(0, 5, 50)
    assert scipy.stats.kstest(normal.double().flatten(), "norm").pvalue > 1e-3
    assert scipy.stats.kstest(uniform.double().flatten(), "uniform").pvalue > 1e-3
    assert scipy.stats.chisquare(torch.bincount(whole.flatten(), minlength=5)).pvalue > 1e-3
    assert len(normal.flatten(1).unique(dim=0)) == 40  # every image its own


def test_floating_point_pictures_are_rounded_to_bytes_and_keep_no_gradient():
    half = torch.full((1, 3, 16, 16), 0.5, requires_grad=True)  # 127.5, rounded to 128
    done = corrupt(half, "gaussian_blur", 1)
    assert not done.requires_grad
    assert torch.equal(done, torch.full((1, 3, 16, 16), 128 / 255))


def test_how_a_tensor_lies_in_memory_does_not_matter():
    pictures = photographs(3)
    for other in (pictures.to(memory_format=torch.channels_last), pictures.transpose(2, 3).contiguous().mT):
        assert torch.equal(corrupt(other, "motion_blur", 2), corrupt(pictures, "motion_blur", 2))


def test_spatter_on_a_large_picture_reaches_past_the_edge_of_its_drops():
    picture = photograph(224, 224)
    for severity in (1, 2, 3):
        ours = corrupt(batch(picture), "spatter", severity)
        figures = PARAMETERS["imagenet"]["spatter"][severity - 1]
        wanted = reference.spatter(picture, figures, Draws(0, "spatter", severity, [0]))
        assert np.abs(ours[0].permute(1, 2, 0).numpy().astype(int) - wanted).max() <= 1


def test_parameters_go_by_the_smaller_side():
    assert [parameters_for(*size) for size in ((32, 32), (63, 200), (64, 64), (224, 224))] == [
        *["cifar"] * 2,
        *["imagenet"] * 2,
    ]


PICTURE = torch.zeros(2, 3, 16, 16, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: corrupt(PICTURE, "fox", 1), ValueError, 'no corruption "fox".*Did you mean "fog"'),
        (lambda: corrupt(PICTURE, "extra", 1), ValueError, '"extra" is a suite of 4 corruptions'),
        (lambda: corrupt(PICTURE, "fog", 6), ValueError, r"severity must be in 1\.\.5, got 6"),
        (lambda: corrupt(PICTURE, "fog", 2.0), TypeError, "severity must be a whole number"),
        (lambda: corrupt(PICTURE[:, :2], "fog", 1), ValueError, "1 or 3 channels"),
        (lambda: corrupt(PICTURE[..., :15], "fog", 1), ValueError, "at least 16 x 16 pixels, got 15 x 16"),
        (lambda: corrupt(PICTURE, "fog", 1, index=[1]), ValueError, "per picture, 2, got"),
        (lambda: corrupt(PICTURE, "fog", 1, index=[0, -1]), ValueError, "got -1"),
        (lambda: corrupt(PICTURE, "fog", 1, index=[0.5, 1.7]), TypeError, "index must hold whole numbers"),
        (lambda: corrupt(PICTURE, "fog", 1, index=3), ValueError, "per picture, 2, got"),
        (lambda: corrupt(PICTURE, "fog", 1, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: corrupt(PICTURE, "fog", 1, seed=True), TypeError, "seed must be a whole number"),
        (lambda: corrupt(PICTURE, ["fog"], 1), TypeError, "names of corruptions or suites"),
        (lambda: corrupt(PICTURE, None, 1), TypeError, "names of corruptions or suites"),
        (lambda: corrupt(PICTURE.numpy(), "fog", 1), TypeError, "images must be a tensor"),
        (lambda: suite(5), TypeError, "names of corruptions or suites were expected, got int 5"),
        (lambda: suite("fog,"), ValueError, "no empty name, got str 'fog,'"),
        (lambda: corrupt(PICTURE, "fog", 1, parameters="cifra"), ValueError, 'mean "cifar"'),
        (lambda: corrupt(PICTURE.float() + 2, "fog", 1), ValueError, r"\[0, 1\]"),
        (lambda: corrupt(PICTURE[0], "fog", 1), ValueError, r"\(B, C, H, W\)"),
    ],
)
def test_bad_input_gets_one_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("module", "name", "package"), [("cv2", "spatter", "OpenCV"), ("PIL", "jpeg_compression", "Pillow")]
)
def test_a_missing_library_is_named_with_its_extra(module, name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"{name} needs {package}.*auglabel\[corrupt\]"):
        corrupt(PICTURE, name, 1)


def test_an_empty_batch_stays_empty():
    assert corrupt(PICTURE[:0], "fog", 1).shape == (0, 3, 16, 16)
