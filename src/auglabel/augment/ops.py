"""Ten image operations on batches, each image with a magnitude of its own.

Geometric operations are one affine map and one resampling pass; posterize, solarize, autocontrast
and equalize work on 8-bit levels, so floating-point images are rounded to them first. Magnitudes
are whole numbers, 1 to 10; magnitudes.py says what they are worth.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from auglabel.augment.magnitudes import MILD, Interpolation, Magnitudes
from auglabel.errors import UserError
from auglabel.util.checks import brief, require_whole
from auglabel.util.randomness import to_device

GEOMETRIC = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
WITHOUT_MAGNITUDE = ("autocontrast", "equalize")
OPERATIONS = (*GEOMETRIC, "posterize", "solarize", "color", *WITHOUT_MAGNITUDE)
WITHOUT_COLOR = tuple(name for name in OPERATIONS if name != "color")

# How many numbers are worked on at a time: few enough to stay in the cache, many enough to keep threads busy.
CHUNK = 2**19
# The usual weights of red, green and blue, as the fractions that sum exactly in float32.
LUMA = (19595 / 65536, 38470 / 65536, 7471 / 65536)


def distort(
    images: Tensor,
    operation: Tensor,  # (B,) int64 index into OPERATIONS
    magnitude: Tensor,  # (B,) int64
    sign: Tensor,  # (B,) -1 or 1: the direction of geometric operations and color
    *,
    magnitudes: Magnitudes = MILD,
    interpolation: Interpolation = "bilinear",
    fill: int = 128,
) -> Tensor:
    """Each image moved by its own operation at its own magnitude, in the dtype it came in.

    Images are grouped by operation, all geometric ones together, and brought back into their order. The
    groups are made on the CPU: an accelerator waits for an `operation` that is not there already.
    """
    if operation.device.type != "cpu":
        operation, magnitude, sign = torch.stack([operation, magnitude, sign]).cpu()

    def move(batch: Tensor, rows: Tensor) -> Tensor:
        maps = _maps(magnitudes, *images.shape[2:], _working_dtype(images.dtype))
        chosen = maps[operation[rows], 10 + magnitude[rows] * sign[rows]]
        return affine(batch, to_device(chosen, images.device), interpolation=interpolation, fill=fill)

    def picked(values: Tensor, place: Tensor) -> Tensor:
        return to_device(values[place], images.device)

    bits, threshold, factor = _values(magnitudes)

    steps: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (  # geometric, then in the order of OPERATIONS
        move,
        lambda batch, rows: posterize(batch, picked(bits, magnitude[rows])),
        lambda batch, rows: solarize(batch, picked(threshold, magnitude[rows])),
        lambda batch, rows: color(batch, picked(factor, 10 + magnitude[rows] * sign[rows])),
        lambda batch, rows: autocontrast(batch),
        lambda batch, rows: equalize(batch),
    )
    order = operation.argsort()
    count = operation.bincount(minlength=len(OPERATIONS)).tolist()
    first = len(GEOMETRIC)
    there, back = to_device(torch.stack([order, order.argsort()]), images.device)
    moved, size, start = torch.empty_like(images), _at_once(images), 0
    for step, length in zip(steps, [sum(count[:first]), *count[first:]], strict=True):
        for begin in range(start, start + length, size):
            part = slice(begin, min(begin + size, start + length))
            moved[part] = step(images.index_select(0, there[part]), order[part])
        start += length
    return moved.index_select(0, back)


@functools.lru_cache(maxsize=32)
def _values(magnitudes: Magnitudes) -> tuple[Tensor, Tensor, Tensor]:
    """Bits and threshold at magnitudes 0..10, and the saturation at signed magnitudes -10..10."""
    bits, threshold = (
        torch.tensor(values, device="cpu").long() for values in (magnitudes.posterize, magnitudes.solarize)
    )
    color = _signed(magnitudes.color)
    return bits, threshold, (1 + color if magnitudes.color_signed else color.abs()).float()


@functools.lru_cache(maxsize=32)
def _maps(magnitudes: Magnitudes, height: int, width: int, dtype: torch.dtype) -> Tensor:
    """Every geometric operation at every signed magnitude -10..10, (5, 21, 2, 3), as `affine` takes them.

    Rotation is about the centre; a shear fixes the top left corner.
    """
    one = torch.ones(21, dtype=torch.float64, device="cpu")
    none = torch.zeros_like(one)
    angle = _signed(magnitudes.rotate).deg2rad()
    cos, sin, x, y = angle.cos(), angle.sin(), width / 2, height / 2
    side_x, side_y = (1, 1) if magnitudes.translate_pixels else (width, height)
    maps = {
        "rotate": (cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y),
        "shear_x": (one, _signed(magnitudes.shear_x), none, none, one, none),
        "shear_y": (one, none, none, _signed(magnitudes.shear_y), one, none),
        "translate_x": (one, none, _signed(magnitudes.translate_x) * side_x, none, one, none),
        "translate_y": (one, none, none, none, one, _signed(magnitudes.translate_y) * side_y),
    }
    pixels = torch.stack([torch.stack(maps[name], dim=1).view(21, 2, 3) for name in GEOMETRIC])
    pixels *= torch.tensor([[2 / width], [2 / height]], dtype=torch.float64, device="cpu")
    pixels[..., 2] -= 1
    return pixels.to(dtype)


def _signed(values: Sequence[float]) -> Tensor:
    """Values at magnitudes 0..10 as those at -10..10, with the sign of the magnitude."""
    positive = torch.tensor(values, dtype=torch.float64, device="cpu")
    return torch.cat([-positive[1:].flip(0), positive])


@functools.lru_cache(maxsize=32)
def _centres(side: int, dtype: torch.dtype) -> Tensor:
    """The pixel centres along a side, in pixels from its start."""
    return torch.arange(side, dtype=dtype, device="cpu") + 0.5


def affine(images: Tensor, maps: Tensor, *, interpolation: Interpolation, fill: int) -> Tensor:
    """Resample through `maps` (B, 2, 3); what lies outside the source becomes `fill` of 255.

    A map takes an output pixel's centre, x + 1/2 and y + 1/2 from the top left corner, to its source in
    an image that reaches from -1 to 1 both ways. Beyond the outermost pixel centres the border pixel
    goes on, as in Pillow.
    """
    height, width = images.shape[2:]
    exact = images.to(_working_dtype(images.dtype))
    columns, rows = (to_device(_centres(side, exact.dtype), images.device) for side in (width, height))
    along = maps[:, :, :1] * columns  # (B, 2, W)
    down = torch.addcmul(maps[:, :, 2:], maps[:, :, 1:2], rows)  # (B, 2, H)
    source = exact.new_empty(len(images), height, width, 2)
    outside = exact.new_zeros(len(images), height, width)
    for axis in (0, 1):
        place = down[:, axis, :, None] + along[:, axis, None, :]
        source[..., axis] = place
        torch.maximum(outside, place.abs_(), out=outside)
    outside.gt_(1)
    moved = F.grid_sample(exact, source, mode=interpolation, padding_mode="border", align_corners=False)
    as_bytes = images.dtype == torch.uint8
    moved.lerp_(exact.new_full((), fill if as_bytes else fill / 255), outside.unsqueeze(1))
    return _as(moved, images.dtype) if as_bytes else moved.clamp_(0, 1).to(images.dtype)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest `bits` (B,) of 8."""
    if images.dtype == torch.uint8:
        return images & _per_image((256 - 2 ** (8 - bits)).to(torch.uint8))
    step = _per_image(2.0 ** (8 - bits))
    return _to_levels(images).div_(step).floor_().mul_(step).div_(255).to(images.dtype)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the levels at or above `threshold` (B,), 0..256."""
    if images.dtype == torch.uint8:
        inverted = images >= _per_image(threshold.clamp(max=255).to(torch.uint8))
        inverted &= _per_image(threshold < 256)  # which a byte cannot hold
        return inverted.view(torch.uint8).neg_().bitwise_xor_(images)  # 255 - x is x with every bit turned
    levels = _to_levels(images)
    inverted = (levels >= _per_image(threshold)).to(levels.dtype)
    return levels.addcmul_(inverted, 255 - 2 * levels).div_(255).to(images.dtype)


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Scale the difference to grey by `factor` (B,); the identity on one channel."""
    if images.shape[1] == 1:
        return images
    if images.shape[1] != 3:
        raise UserError(f"color takes images of 1 or 3 channels, got {images.shape[1]}.")
    exact = images.to(_working_dtype(images.dtype))
    red, green, blue = (exact[:, i : i + 1] for i in range(3))
    grey = (LUMA[0] * red).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])
    if images.dtype == torch.uint8:
        grey = grey.add_(0.5).floor_()
    top = 255 if images.dtype == torch.uint8 else 1
    return _as(torch.lerp(grey, exact, _per_image(factor).to(exact.dtype)).clamp_(0, top), images.dtype)


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel's levels to 0..255, rounding down; the identity on a flat channel."""
    levels = _levels(images)
    low, high = (edge.double() for edge in levels.flatten(2).aminmax(dim=2, keepdim=True))
    ramp = torch.arange(256, device=images.device).double()
    scale = torch.full_like(high, 255) / (high - low)  # 255 / tensor would round twice
    table = (ramp * scale - low * scale).clamp(0, 255).floor()
    return _look_up(levels, torch.where(high > low, table, ramp), images.dtype)


def equalize(images: Tensor) -> Tensor:
    """Spread each channel's levels evenly, by the integer rule of the usual histogram equalisation."""
    levels = _levels(images)
    batch, channels = levels.shape[:2]
    plane = torch.arange(batch * channels, device=images.device) * 256
    index = (levels.reshape(batch * channels, -1) + plane[:, None]).flatten()
    # Counts are whole numbers in float64, exact and quicker to divide than integers.
    count = _counted(index, batch * channels * 256).view(batch, channels, 256)
    ramp = torch.arange(256, device=images.device).double()
    last = ((count > 0) * ramp).amax(dim=2, keepdim=True)  # the highest level in use does not count
    step = ((count.sum(dim=2, keepdim=True) - count.gather(2, last.long())) / 255).floor()
    below = count.cumsum(dim=2) - count
    table = ((below + (step / 2).floor()) / step.clamp(min=1)).floor().clamp(max=255)
    return _look_up(levels, torch.where(step > 0, table, ramp), images.dtype)


def _counted(index: Tensor, length: int) -> Tensor:
    """How often each of 0 .. length - 1 is in `index`; torch.bincount would make an accelerator wait."""
    if index.device.type == "cpu":
        return torch.bincount(index, minlength=length).double()
    one = torch.ones((), dtype=torch.float64, device=index.device).expand(len(index))
    return torch.zeros(length, dtype=torch.float64, device=index.device).scatter_add_(0, index, one)


def _at_once(images: Tensor) -> int:
    """How many images to work on at a time: at least one a thread, and on an accelerator all."""
    if images.device.type != "cpu":
        return max(1, len(images))
    return max(torch.get_num_threads(), CHUNK // max(1, images[:1].numel()))


def _look_up(levels: Tensor, table: Tensor, dtype: torch.dtype) -> Tensor:
    """`table` (B, C, 256), of levels, at every level of every channel, as images of `dtype`."""
    table = table.to(dtype) if dtype == torch.uint8 else table.to(dtype) / 255
    return table.gather(2, levels.flatten(2).long()).view_as(levels)


def _levels(images: Tensor) -> Tensor:
    """The 8-bit levels of `images` as whole numbers, in the type that converts fastest."""
    return images if images.dtype == torch.uint8 else (images.float() * 255).add_(0.5).int()


def _to_levels(images: Tensor) -> Tensor:
    """The 8-bit levels of floating-point `images` as floating-point numbers, in a tensor of their own."""
    return (images.to(_working_dtype(images.dtype)) * 255).add_(0.5).floor_()


def _as(values: Tensor, dtype: torch.dtype) -> Tensor:
    """`values` in `dtype`; to bytes by rounding, in place, through int32, which converts twice as fast."""
    return values.add_(0.5).int().to(torch.uint8) if dtype == torch.uint8 else values.to(dtype)


def _per_image(value: Tensor) -> Tensor:
    return value[:, None, None, None]


def _working_dtype(dtype: torch.dtype) -> torch.dtype:
    """What the arithmetic is done in: float32, or float64 for float64 images."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def blend(images: Tensor, others: Tensor, order: Tensor | None, weight: Tensor) -> Tensor:
    """(1 - weight) * images + weight * others[order], in the dtype of `images`; `weight` is (B,).

    In their own order if `order` is None.
    """
    out = torch.empty_like(images)
    exact = _working_dtype(images.dtype)
    weight = _per_image(weight).to(exact)
    size = _at_once(images)
    graded = torch.is_grad_enabled() and (images.requires_grad or others.requires_grad)  # cannot use out=
    for start in range(0, len(images), size):
        part = slice(start, start + size)
        other = others[part] if order is None else others.index_select(0, order[part])
        if images.dtype == exact and not graded:
            torch.lerp(images[part], other, weight[part], out=out[part])
        else:
            out[part] = _as(torch.lerp(images[part].to(exact), other.to(exact), weight[part]), images.dtype)
    return out


def require_options(interpolation: str | None, fill: int) -> None:
    """Check the options that are passed on to `distort`."""
    require_whole("fill", fill, 0, 255)
    if interpolation not in (None, "bilinear", "nearest"):
        raise UserError(f'interpolation must be "bilinear" or "nearest", got {brief(interpolation)}.')


def require_operations(operations: Sequence[str]) -> tuple[str, ...]:
    """Check for at least one name out of OPERATIONS, each once; returns them as a tuple."""
    unknown = [name for name in operations if name not in OPERATIONS]
    if unknown or not operations or len(set(operations)) < len(operations):
        raise UserError(
            f"operations must be different names out of {', '.join(OPERATIONS)}, got "
            f"{brief(list(operations))}."
        )
    return tuple(operations)


def operation_ids(operations: Sequence[str]) -> Tensor:
    """The index in OPERATIONS of each name."""
    return torch.tensor([OPERATIONS.index(name) for name in operations], device="cpu")
