"""Checks of arguments: each raises one sentence that says what was expected and what came.

On an accelerator every look at values makes training wait. There shapes and dtypes of ids are checked, and an
id out of range ends in torch's own device assertion.
"""

import difflib
import math
import numbers
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.errors import UserError, UserTypeError

OVERSHOOT = 0.2  # of bicubic resizing and of sharpening, beyond [0, 1]
Entry = TypeVar("Entry")
Array: TypeAlias = Tensor | npt.NDArray[Any]


def readable(tensor: Tensor) -> bool:
    """Whether values can be read without waiting for an accelerator; False for an empty tensor."""
    return tensor.device.type == "cpu" and tensor.numel() > 0


def kind_of(value: object) -> str:
    """A value's type and content, short enough for an error message."""
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array of {value.dtype} and shape {value.shape}"
    return f"{type(value).__name__} {brief(value)}"


def brief(value: object) -> str:
    """The repr of a value on one line, shortened if it is long."""
    try:
        told = " ".join(_BRIEF.repr(value).split())
    except ValueError:  # a whole number of more digits than Python writes
        told = "of many digits"
    return told if len(told) <= 60 else f"{told[:57]}..."


_BRIEF = reprlib.Repr()  # stops where a value is long or deep
_BRIEF.maxlevel, _BRIEF.maxlist, _BRIEF.maxdict, _BRIEF.maxtuple, _BRIEF.maxset = 8, 30, 30, 30, 30
_BRIEF.maxstring, _BRIEF.maxlong, _BRIEF.maxother = 80, 80, 200


def shown(words: object, longest: int = 200) -> str:
    """Text of a file or a library for use inside a sentence: one printable line without a full stop."""
    text = " ".join(str(words)[: 10 * longest].split()).rstrip(".")
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def require_instance(kind: type[Entry], name: str, made: object) -> Entry:
    """What the function or class called `name` has made, which must be a `kind`."""
    if not isinstance(made, kind):
        raise UserTypeError(f"{name} must return {kind.__name__}, got {kind_of(made)}.")
    return made


def require_tensor(what: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise UserTypeError(f"{what} must be a tensor, got {kind_of(value)}.")


def as_predictions(scores: Array, labels: Array) -> tuple[Tensor, Tensor]:
    """Scores and labels as tensors: numpy arrays are copied, and labels may be of any integer type."""
    return _as_tensor(scores), as_labels(_as_tensor(labels))


def as_labels(labels: object) -> Tensor:
    """Labels (N,) of any integer type as int64."""
    if (
        not isinstance(labels, Tensor)
        or labels.dim() != 1
        or labels.dtype == torch.bool
        or labels.is_floating_point()
        or labels.is_complex()
    ):
        raise UserTypeError(f"labels must be whole numbers of shape (N,), got {kind_of(labels)}.")
    return labels.long()


def _as_tensor(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        wide = value.dtype.kind == "f" and value.dtype.itemsize > 8  # long double, which torch has not
        return torch.tensor(value.astype("f8" if wide else value.dtype.newbyteorder("=")))
    return value


def require_integers(what: str, value: Tensor) -> None:
    """Check for an int64 tensor of shape (B,)."""
    require_tensor(what, value)
    if value.dim() != 1 or value.dtype != torch.int64:
        raise UserTypeError(f"{what} must be an int64 tensor of shape (B,), got {kind_of(value)}.")


def require_range(what: str, value: Tensor, count: int, each: str) -> None:
    """Check for ids (B,) in 0 .. count - 1."""
    require_integers(what, value)
    if not readable(value):
        return
    low, high = (int(edge) for edge in value.aminmax())
    if low < 0 or high >= count:
        wrong = low if low < 0 else high
        raise UserError(f"{what} must be in 0..{count - 1} for {count} {each}, got {wrong}.")


def require_unit(what: str, value: Tensor, high: float = 1.0) -> None:
    """Check for a floating point tensor of shape (B,) in [0, high]."""
    require_tensor(what, value)
    if value.dim() != 1 or not value.is_floating_point():
        raise UserTypeError(f"{what} must be a floating point tensor of shape (B,), got {kind_of(value)}.")
    if readable(value):
        least, most = (float(edge) for edge in value.aminmax())  # both nan if one is
        if not (least >= 0 and most <= high):
            wrong = least if not least >= 0 else most
            raise UserError(f"{what} must be in [0, {high:g}], got {wrong:.9g}.")


def require_same_length(what: str, **parts: Tensor) -> None:
    lengths = {}
    for name, part in parts.items():
        require_tensor(f"{what}'s {name}", part)
        if part.dim() == 0:
            raise UserError(f"{what}'s {name} must have one entry per image, got a single number.")
        lengths[name] = len(part)
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UserError(f"{what} takes parts of equal length, but their lengths are: {told}.")


def require_images(what: str, images: Tensor, *, look: bool = True) -> Tensor:
    """Check for images (B, C, H, W) in uint8 or floating point in [0, 1]; returns them, float error clamped.

    Without `look`, which makes an accelerator wait, all values are clamped to [0, 1] instead of checked.
    """
    require_tensor(what, images)
    if images.dim() != 4:
        crops = " Several crops of each: flatten(0, 1), and repeat_interleave the labels."
        raise UserError(
            f"{what} must have shape (B, C, H, W), got {kind_of(images)}.{crops if images.dim() == 5 else ''}"
        )
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point():
        raise UserTypeError(f"{what} must be uint8 or floating point, got {kind_of(images)}.")
    if images.numel() == 0:
        return images
    if not look:
        return images.clamp(0, 1)
    low, high = (float(edge) for edge in images.detach().aminmax())
    if math.isnan(low) or math.isnan(high):
        raise UserError(f"{what} must be in [0, 1], but some values are nan.")
    if low >= 0 and high <= 1:
        return images
    slack = max(1e-3, 4 * torch.finfo(images.dtype).eps)
    if low >= -slack and high <= 1 + slack:
        return images.clamp(0, 1)
    raise UserError(
        f"{what} must be in [0, 1], got values from {low:.9g} to {high:.9g}. {_way_in(low, high)}"
    )


def _way_in(low: float, high: float) -> str:
    """Advice for images with values from `low` to `high`, outside [0, 1]."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "Some pixels are infinite: look at what was done to the images before."
    if low >= -OVERSHOOT and high <= 1 + OVERSHOOT:
        return "Resizing and sharpening overshoot by as much: pass images.clamp(0, 1)."
    if low >= 0 and high > 10:  # normalised images stay below
        largest = 255 if high <= 256 else 65535
        return f"They look like 0..{largest}: divide by {largest}, or pass uint8."
    return (
        "They look normalised: pass the mean= and std= that they were normalised with to AugmentAndLabel, or "
        "augment before normalising, which belongs in the model's first layer."
    )


def require_number(what: str, value: float, low: float, high: float = math.inf) -> None:
    """Check for a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UserTypeError(f"{what} must be a number, got {kind_of(value)}.")
    if not (math.isfinite(value) and low <= value <= high):
        wanted = f"a finite number of at least {low}" if high == math.inf else f"in [{low}, {high}]"
        raise UserError(f"{what} must be {wanted}, got {value}.")


def require_whole(what: str, value: int, low: int, high: float = math.inf) -> None:
    """Check for a whole number in low .. high."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise UserTypeError(f"{what} must be a whole number, got {kind_of(value)}.")
    if not low <= value <= high:
        wanted = f"at least {low}" if high == math.inf else f"in {low}..{high}"
        raise UserError(f"{what} must be {wanted}, got {value}.")


def entry(what: str, menu: Mapping[str, Entry], name: str) -> Entry:
    """The entry of that name; the error for an unknown one suggests the nearest."""
    if name not in menu:
        hint = did_you_mean(name, menu)
        raise UserError(f'there is no {what} "{shown(name)}". There are: {", ".join(menu)}.{hint}')
    return menu[name]


def did_you_mean(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """A question that ends a sentence: the nearest of `names`; nothing if none is near."""
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return f' Did you mean "{near[0]}"?' if near else ""
