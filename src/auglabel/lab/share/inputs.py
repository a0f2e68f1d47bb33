"""Which images a shared network takes: recorded from its run, and required of whoever uses it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from auglabel.data.folder import framed
from auglabel.data.picture import Frame, decoding, opened, pillow, upright
from auglabel.errors import UserError, UserTypeError
from auglabel.lab.runs.records import DataFacts
from auglabel.util.checks import kind_of, require_whole

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST = 2**14  # pixels a side: what a file may ask us to make of a picture


@dataclass(frozen=True)
class Input:
    """The shape of the images that a network was trained on, and how pictures were brought to it."""

    channels: int
    height: int
    width: int
    resize: int | None = None  # shorter side, of which the centre is cut out; None: pictures as they were

    def __post_init__(self) -> None:
        for name, most in (("channels", 2**10), ("height", LARGEST), ("width", LARGEST)):
            require_whole(name, getattr(self, name), 1, most)
        if self.resize is not None:
            require_whole("resize", self.resize, max(self.height, self.width), LARGEST)
            if self.height != self.width or self.channels not in (1, 3):
                raise UserError(f"resize goes with a square of 1 or 3 channels, got {self.shape}.")

    @property
    def shape(self) -> str:
        return f"{self.channels} x {self.height} x {self.width}"

    @classmethod
    def from_json(cls, found: Mapping[str, Any] | None) -> Self | None:
        """What `as_json` gave; None if nothing was recorded."""
        if found is None:
            return None
        return cls(found["channels"], found["height"], found["width"], found["resize"])

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"filter": None if self.resize is None else "bicubic"}

    def __str__(self) -> str:
        how = "which were not resized"
        if self.resize is not None:
            how = f"with the shorter side resized to {self.resize} pixels by Pillow's bicubic filter, "
            how += f"of which the centre of {self.height} x {self.width} is cut out"
        return f"{self.shape} images (channels, height, width), {how}"

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A hook that refuses images of another shape before `module` sees them."""
        for images in (*args, *kwargs.values()):
            if isinstance(images, Tensor) and images.dim() >= 3:
                self.require(images)

    def require(self, images: Tensor) -> None:
        """Images (..., C, H, W) of this shape."""
        if tuple(images.shape[-3:]) != (self.channels, self.height, self.width):
            came = " x ".join(str(size) for size in images.shape[-3:])
            way = ": load_shared(...).prepare(picture) resizes one as in training"
            way = way if self.resize is not None else ", and no rule to resize others was recorded"
            raise UserError(f"this network was trained on {self.shape} images, got {came}{way}.")

    def prepare(self, picture: str | os.PathLike[str] | Image | Tensor) -> Tensor:
        """A file, a picture of Pillow's, or bytes (C, H, W), as the training images were: (C, H, W) bytes."""
        name = str(picture) if isinstance(picture, str | os.PathLike) else "this picture"
        frame = Frame(self.channels, None if self.resize is None else self.height, self.resize)
        found = _picture(picture)
        with decoding(name):
            pixels = torch.tensor(frame.plain(found))
        self.require(pixels)
        return pixels


def _picture(given: str | os.PathLike[str] | Image | Tensor) -> Image:
    """Upright, whatever it was given as."""
    if isinstance(given, str | os.PathLike):
        return opened(Path(given).read_bytes(), str(given))
    if isinstance(given, Tensor) and given.dtype == torch.uint8 and given.dim() == 3 and len(given) in (1, 3):
        array = given.cpu().permute(1, 2, 0).numpy()
        picture: Image = pillow().fromarray(array[:, :, 0] if len(given) == 1 else array)
        return picture
    if isinstance(given, pillow().Image):
        return upright(given.copy())
    raise UserTypeError(f"prepare takes a file, a picture, or bytes (C, H, W), got {kind_of(given)}.")


def input_of(recipe: Mapping[str, Any], data: DataFacts) -> Input | None:
    """What a run recorded; None for an older run whose recipe does not say the size either."""
    options = recipe["data"]
    size, resize, crop = (options.get(name) for name in ("size", "resize", "train_crop"))
    frame = framed(size, resize, None, crop or "none")
    if data.shape is None and size is None:
        return None
    channels, height, width = data.shape or (len(data.mean or ()), size, size)
    return Input(channels, height, width, frame.resize)
