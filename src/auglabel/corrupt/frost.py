"""Frost on the window: five textures, the published photographs or panes drawn here, and crops of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from auglabel.corrupt.panes import drawn
from auglabel.errors import UserError

PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
OTHERWISE = "or name no directory: frost drawn here serves then"


@lru_cache(maxsize=4)
def textures(where: Path | None, shrink: float) -> tuple[Tensor, ...]:
    """Five of (3, H, W) uint8, for reading only: the photographs in directory `where`, or ours if None.

    `shrink` is 1 for their full size, or 1 over another odd number, as 0.2 is.
    """
    step = round(1 / shrink) if 0 < shrink <= 1 else 0
    if step % 2 == 0 or not math.isclose(step * shrink, 1):
        raise UserError(f"shrink should be 1 over an odd whole number, such as 1 or 0.2, but it is {shrink}.")
    pictures = drawn() if where is None else _photographs(where)
    # Bilinear sampling at half-pixel centres, without antialiasing, meets the middle pixel of each block.
    return tuple(picture[:, step // 2 :: step, step // 2 :: step].contiguous() for picture in pictures)


def frost_crops(textures: Sequence[Tensor], height: int, width: int, which: Tensor, place: Tensor) -> Tensor:
    """(N, 3, height, width) uint8 of the textures `which` (N,), with the corner at `place` (N, 2) in [0, 1).

    A place is a part of the corners 0 .. H - height - 1: as in the published code, the last one never comes.
    A texture smaller than the picture is enlarged until it covers it.
    """
    crops = textures[0].new_empty(len(which), 3, height, width)
    for number in which.unique().tolist():
        rows = (which == number).nonzero()[:, 0]
        texture = _covering(textures[number], height, width)
        y, x = place[rows].double().unbind(1)
        top, left = (y * (texture.shape[1] - height)).long(), (x * (texture.shape[2] - width)).long()
        windows = texture.unfold(1, height, 1).unfold(2, width, 1)  # (3, tops, lefts, height, width), a view
        crops[rows] = windows[:, top, left].transpose(0, 1)
    return crops


def _covering(texture: Tensor, height: int, width: int) -> Tensor:
    ratio = max(height / texture.shape[1], width / texture.shape[2])
    if ratio <= 1:
        return texture
    size = (round(texture.shape[1] * ratio), round(texture.shape[2] * ratio))
    large = functional.interpolate(texture[None].float(), size, mode="bilinear", align_corners=False)
    return large[0].round().to(torch.uint8)


def _photographs(where: Path) -> tuple[Tensor, ...]:
    wanted = f"the directory of the frost photographs ({', '.join(PHOTOGRAPHS)})"
    if not where.is_dir():
        came = "is a file" if where.exists() else "does not exist"
        raise FileNotFoundError(f"{where} should be {wanted}, but it {came}. Correct the path, {OTHERWISE}.")
    if missing := [name for name in PHOTOGRAPHS if not (where / name).is_file()]:
        raise FileNotFoundError(
            f"{where} should be {wanted}, but it lacks {', '.join(missing)}. Copy the missing, {OTHERWISE}."
        )
    return tuple(_photograph(where / name) for name in PHOTOGRAPHS)


def _photograph(file: Path) -> Tensor:
    import numpy as np

    from auglabel.data.picture import BrokenImage, opened

    try:
        pixels = np.array(opened(file.read_bytes(), str(file)).convert("RGB"))
    except BrokenImage as error:
        raise UserError(f"a frost photograph was expected, but {error} Copy it again, {OTHERWISE}.") from None
    return torch.from_numpy(pixels).permute(2, 0, 1)
