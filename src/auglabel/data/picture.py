"""From the bytes of an image file to pixels of one shape, with Pillow."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auglabel.errors import UserError
from auglabel.util.checks import shown
from auglabel.util.extras import extra_module

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]  # (C, H, W)

WIDE_MODES = ("I", "I;16", "I;16L", "I;16B", "I;16N")  # up to 16 bits are taken
GREY_MODES = ("1", "L", "LA", *WIDE_MODES)

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # PostScript, for one, is a program
HUGE = 2**26  # pixels that no picture is enlarged to
SCALE = (0.08, 1.0)  # of a random crop: its share of the picture
RATIO = (3 / 4, 4 / 3)  # and its width by its height


class BrokenImage(UserError):
    """Names an image that cannot be read."""


@dataclass(frozen=True)
class Frame:
    """The shape pictures are brought to: shorter side to `resize`, then the centre of `size` by `size`.

    `size` None leaves them as large as they are.
    """

    channels: int  # 1: grey, 3: red, green, blue
    size: int | None = None
    resize: int | None = None

    def plain(self, picture: Image) -> Pixels:
        """The picture as it is evaluated on."""
        picture = coloured(picture, self.channels)
        if self.size is not None:
            picture = centred(picture, self.size, self.resize or self.size)
        return pixels_of(picture)

    def random(self, picture: Image, draw: int, row: int) -> Pixels:
        """A random resized crop, which depends on (draw, row) alone."""
        assert self.size is not None
        box = random_box(*picture.size, stream_of(draw, row))
        picture = coloured(picture.crop(box), self.channels)
        return pixels_of(resized(picture, self.size, self.size))


def pillow() -> Any:
    """Pillow's Image module, when it is first needed."""
    return extra_module("PIL.Image", "reading image files needs Pillow", "train")


def opened(content: bytes, path: str) -> Image:
    """The decoded picture, upright; every way of being broken ends in a `BrokenImage` that names `path`."""
    return loaded(unloaded(content, path), path)


def unloaded(content: bytes, path: str) -> Image:
    """The picture of which only the header has been read."""
    module = pillow()
    with _named(path):
        picture: Image = module.open(io.BytesIO(content), formats=FORMATS)
        width, height = picture.size
        if module.MAX_IMAGE_PIXELS and width * height > module.MAX_IMAGE_PIXELS:
            raise BrokenImage(
                f"{path} claims {width} x {height} pixels, more than Pillow's limit of "
                f"{module.MAX_IMAGE_PIXELS} against decompression bombs: make it smaller."
            )
    return picture


def loaded(picture: Image, path: str) -> Image:
    """The picture, decoded and upright."""
    with _named(path):
        picture.load()
    if picture.mode == "F" or (picture.mode.startswith("I") and not _sixteen_bits(picture)):
        raise BrokenImage(
            f"{path} has pixels beyond 16 bits (mode {picture.mode}): save it with 8 or 16 bits."
        )
    return upright(picture)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """What is wrong with a file, as a `BrokenImage` that names it."""
    try:
        yield
    except BrokenImage:
        raise
    except pillow().DecompressionBombError:
        raise BrokenImage(
            f"{path} is larger than Pillow's limit against decompression bombs: make it smaller."
        ) from None
    except Exception as error:  # the formats' readers raise whatever their damage leads to
        known = type(error).__name__ != "UnidentifiedImageError"
        formats = ", ".join(FORMATS)
        reason = shown(error) or type(error).__name__ if known else f"none of the formats read: {formats}"
        raise BrokenImage(f"{path} is broken and cannot be read as an image ({reason}).") from None


@contextlib.contextmanager
def decoding(path: str) -> Iterator[None]:
    """Damage that shows only when colours are looked up is named as well."""
    try:
        yield
    except BrokenImage:
        raise
    except (ValueError, OSError) as error:
        raise BrokenImage(f"{path} is broken and cannot be read as an image ({shown(error)}).") from None


def upright(picture: Image) -> Image:
    """Turned as the camera's EXIF says; as it is stored where that cannot be read."""
    from PIL import ImageOps

    with contextlib.suppress(Exception):  # the pixels are sound; only the note beside them is not
        ImageOps.exif_transpose(picture, in_place=True)
    return picture


def is_grey(picture: Image) -> bool:
    return picture.mode in GREY_MODES


def has_alpha(picture: Image) -> bool:
    return picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info


def coloured(picture: Image, channels: int) -> Image:
    """In eight-bit grey or red, green, blue; transparency is dropped."""
    if picture.mode in WIDE_MODES:  # Pillow's own conversion clips at 255
        wide = np.asarray(picture)
        grey = np.empty(wide.shape, np.uint8)
        for row, line in zip(
            grey, wide, strict=True
        ):  # by rows: whole pictures of eight bytes a pixel are large
            row[:] = (line.astype(np.int64) * 255 + 32767) // 65535
        picture = pillow().fromarray(grey)
    if picture.mode in ("P", "PA") and has_alpha(picture):
        picture = picture.convert("RGBA")
    mode = "L" if channels == 1 else "RGB"
    return picture if picture.mode == mode else picture.convert(mode)


def centred(picture: Image, size: int, resize: int) -> Image:
    """The shorter side resized to `resize`, then the centre of `size` by `size`."""
    width, height = picture.size
    short = min(width, height)
    wide, high = int(width * resize / short), int(height * resize / short)
    left, top = round((wide - size) / 2), round((high - size) / 2)
    box = (left, top, left + size, top + size)
    if wide * high > HUGE:  # a picture of one long row: compute the centre alone
        scale, ends = (width / wide, height / high) * 2, (width, height) * 2
        inside = tuple(min(edge * by, end) for edge, by, end in zip(box, scale, ends, strict=True))
        return resized(picture, size, size, inside)
    if short != resize:
        picture = resized(picture, wide, high)
    return picture if picture.size == (size, size) else picture.crop(box)


def stream_of(draw: int, row: int) -> np.random.Generator:
    """The random numbers of one picture's crop."""
    return np.random.default_rng(np.random.SeedSequence(draw, spawn_key=(row,)))


def random_box(width: int, height: int, random: np.random.Generator) -> tuple[int, int, int, int]:
    """Where a random resized crop lies: left, top, right, bottom; the usual definition."""
    for _ in range(10):
        area = width * height * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left = int(random.integers(width - wide + 1))
            top = int(random.integers(height - high + 1))
            return left, top, left + wide, top + high
    wide, high = width, height  # too long a picture: its centre, at the nearest ratio allowed
    if width / height < RATIO[0]:
        high = min(height, round(width / RATIO[0]))
    elif width / height > RATIO[1]:
        wide = min(width, round(height * RATIO[1]))
    left, top = (width - wide) // 2, (height - high) // 2
    return left, top, left + wide, top + high


def resized(picture: Image, width: int, height: int, box: Any = None) -> Image:
    """The picture, or what of it is in `box`, in another size."""
    return picture.resize((width, height), pillow().Resampling.BICUBIC, box=box)


def pixels_of(picture: Image) -> Pixels:
    """The picture as an array."""
    array = np.asarray(picture)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def _sixteen_bits(picture: Image) -> bool:
    low, high = np.asarray(picture).min(), np.asarray(picture).max()
    return bool(low >= 0 and high <= 65535)
