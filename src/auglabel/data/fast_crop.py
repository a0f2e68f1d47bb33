"""Random crops of JPEG files, quickly: the codec itself shrinks large photographs, and torch resizes others.

Those others are decoded by OpenCV if it is installed, else by Pillow, which agree to the bit: both have
libjpeg-turbo. `Frame.random` is the exact crop that this is near to.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from auglabel.data.picture import (
    Frame,
    Pixels,
    coloured,
    decoding,
    loaded,
    pixels_of,
    random_box,
    resized,
    stream_of,
    unloaded,
)

if TYPE_CHECKING:
    from PIL.Image import Image

SCALES = (8, 4, 2)  # what the codec divides sides by
ORIENTATION = 0x0112  # EXIF's key


def fast_crop(content: bytes, path: str, frame: Frame, draw: int, row: int) -> Pixels:
    """The random crop of (draw, row), at the place where `Frame.random` has it."""
    assert frame.size is not None
    picture = unloaded(content, path)
    scalable = picture.format == "JPEG" and picture.mode in ("L", "RGB") and not _turned(picture)
    if not scalable:
        picture = loaded(picture, path)
    width, height = picture.size
    box = random_box(width, height, stream_of(draw, row))
    scale = scale_for(box, frame.size) if scalable else 1
    if scale > 1:
        picture.draft(None, (width // scale, height // scale))
        with decoding(path):
            picture = coloured(loaded(picture, path), frame.channels)
        return pixels_of(resized(picture, frame.size, frame.size, tuple(edge / scale for edge in box)))
    left, top, right, bottom = box
    found = _by_opencv(content) if scalable and frame.channels == 3 else None
    if found is not None:
        return _resized_by_torch(found[top:bottom, left:right], frame.size)[::-1]  # from blue, green, red
    with decoding(path):
        picture = coloured((loaded(picture, path) if scalable else picture).crop(box), frame.channels)
    return _resized_by_torch(np.array(picture), frame.size)


def scale_for(box: tuple[int, int, int, int], size: int) -> int:
    """The most that sides may be divided by, the crop still having `size` pixels either way."""
    left, top, right, bottom = box
    side = min(right - left, bottom - top)
    return next((scale for scale in SCALES if side >= size * scale), 1)


def _turned(picture: Image) -> bool:
    """Whether the camera's EXIF or XMP asks for the picture to be turned, or cannot be read."""
    try:
        return bool(picture.getexif().get(ORIENTATION, 1) != 1)
    except Exception:  # as many kinds as there are of damage
        return True


@functools.cache
def _opencv() -> Any:
    """OpenCV's module, or None."""
    try:
        import cv2
    except ImportError:
        return None
    return cv2


def _by_opencv(content: bytes) -> Any:
    """Pixels (H, W, 3) in blue, green, red; None without OpenCV, or if it cannot decode them."""
    if (cv2 := _opencv()) is None:
        return None
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)


def _resized_by_torch(pixels: Any, size: int) -> Pixels:
    """(H, W, C) or (H, W) as (C, size, size): bicubic with antialiasing, as Pillow's."""
    image = torch.from_numpy(pixels if pixels.ndim == 3 else pixels[:, :, None]).permute(2, 0, 1)[None]
    found: Pixels = F.interpolate(image, (size, size), mode="bicubic", antialias=True)[0].numpy()
    return found
