"""The .npy files of CIFAR-C: how they are read, and the MD5 of the official ones.

https://zenodo.org/records/2535967 and https://zenodo.org/records/3555552 give the archives. The checksums of
the files in them are the ones that torch-uncertainty and rAI-toolbox compare with, which agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.data.source import Source
from auglabel.errors import UserError
from auglabel.util.checks import shown

FIVE = 5  # severities, one after the other

Shape = tuple[int, int, int]  # channels, height, width

CHECKSUMS: dict[str, dict[str, str]] = {
    "CIFAR-10-C": {
        "brightness": "0a81ef75e0b523c3383219c330a85d48",
        "contrast": "3c8262171c51307f916c30a3308235a8",
        "defocus_blur": "7d1322666342a0702b1957e92f6254bc",
        "elastic_transform": "9421657c6cd452429cf6ce96cc412b5f",
        "fog": "7b397314b5670f825465fbcd1f6e9ccd",
        "frost": "31f6ab3bce1d9934abfb0cc13656f141",
        "gaussian_blur": "c33370155bc9b055fb4a89113d3c559d",
        "gaussian_noise": "ecaf8b9a2399ffeda7680934c33405fd",
        "glass_blur": "7361fb4019269e02dbf6925f083e8629",
        "impulse_noise": "2090e01c83519ec51427e65116af6b1a",
        "jpeg_compression": "2b9cc4c864e0193bb64db8d7728f8187",
        "labels": "c439b113295ed5254878798ffe28fd54",
        "motion_blur": "fffa5f852ff7ad299cfe8a7643f090f4",
        "pixelate": "0f14f7e2db14288304e1de10df16832f",
        "saturate": "1cfae0964219c5102abbb883e538cc56",
        "shot_noise": "3a7239bb118894f013d9bf1984be7f11",
        "snow": "bb238de8555123da9c282dea23bd6e55",
        "spatter": "8a5a3903a7f8f65b59501a6093b4311e",
        "speckle_noise": "ef00b87611792b00df09c0b0237a1e30",
        "zoom_blur": "6ea8e63f1c5cdee1517533840641641b",
    },
    "CIFAR-100-C": {
        "brightness": "f22d7195aecd6abb541e27fca230c171",
        "contrast": "322bb385f1d05154ee197ca16535f71e",
        "defocus_blur": "d923e3d9c585a27f0956e2f2ad832564",
        "elastic_transform": "a0792bd6581f6810878be71acedfc65a",
        "fog": "4efc7ebd5e82b028bdbe13048e3ea564",
        "frost": "3a39c6823bdfaa0bf8b12fe7004b8117",
        "gaussian_blur": "5204ba0d557839772ef5a4196a052c3e",
        "gaussian_noise": "ecc4d366eac432bdf25c024086f5e97d",
        "glass_blur": "0bf384f38e5ccbf8dd479d9059b913e1",
        "impulse_noise": "3b3c210ddfa0b5cb918ff4537a429fef",
        "jpeg_compression": "c851b7f1324e1d2ffddeb76920576d11",
        "labels": "bb4026e9ce52996b95f439544568cdb2",
        "motion_blur": "732a7e2e54152ff97c742d4c388c5516",
        "pixelate": "96c00c60f144539e14cffb02ddbd0640",
        "saturate": "c0697e9fdd646916a61e9c312c77bf6b",
        "shot_noise": "b0a1fa6e1e465a747c1b204b1914048a",
        "snow": "0237be164583af146b7b144e73b43465",
        "spatter": "12ccf41d62564d36e1f6a6ada5022728",
        "speckle_noise": "e3f215b1a0f9fd9fd6f0d1cf94a7ce99",
        "zoom_blur": "0204613400c034a81c4830d5df81cb82",
    },
}


class Mapped(Source):
    """Images (N, H, W, C) or (N, H, W) of an .npy file from row `first` on, copied as they are fetched."""

    def __init__(self, file: Path, first: int, labels: Tensor) -> None:
        self.file, self.first, self.labels = file, first, labels
        self.images = mapped(file)[first : first + len(labels)]
        self.shape = shape_of(self.images)

    def fetch(self, rows: Tensor, draw: int | None = None) -> Tensor:
        images = self.images[rows.numpy()]
        pixels = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
        return torch.from_numpy(np.ascontiguousarray(pixels))

    def __reduce__(self) -> tuple[Any, ...]:  # to another process goes the name of the file
        return Mapped, (self.file, self.first, self.labels)


def mapped(file: Path) -> npt.NDArray[Any]:
    """An .npy file mapped into memory; nothing in it is unpickled."""
    try:
        _require_sizes(file)
        found = np.load(file, mmap_mode="r", allow_pickle=False)
        if not isinstance(found, np.ndarray):
            raise UserError("it is an archive of arrays")
    except Exception as error:  # numpy's reader of headers fails in many ways
        if "ickle" in str(error) or "Python objects" in str(error):
            raise UserError(
                f"{file} is pickled or no .npy file at all; pickles could run code and are not read: "
                "save a plain array."
            ) from None
        raise UserError(
            f"{file} is cut short or damaged and cannot be read ({shown(error)}): write or fetch it again."
        ) from None
    return found


def _require_sizes(file: Path) -> None:
    """Sizes that memory can be mapped to: numpy itself divides by that of an entry."""
    with file.open("rb") as opened:
        if opened.read(6) != b"\x93NUMPY":
            return
        opened.seek(0)
        first = np.lib.format.read_magic(opened) == (1, 0)
        header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, kind = header(opened)
        if min(shape, default=0) < 0 or kind.itemsize == 0:
            raise UserError(f"it says that it holds {kind} of shape {shape}")


def pixels_of(file: Path) -> npt.NDArray[np.uint8]:
    images = mapped(file)
    channels = images.shape[3] if images.ndim == 4 else 1
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or channels not in (1, 3) or 0 in images.shape:
        raise UserError(
            f"{file} must hold uint8 images of shape (N, H, W, C), with 1 or 3 channels, or (N, H, W), "
            f"got {images.dtype} of {images.shape}."
        )
    if len(images) % FIVE:
        raise UserError(
            f"{file} must hold five severities of equally many images, got {len(images)} images, "
            "which is no multiple of 5."
        )
    return images


def whole_numbers(file: Path) -> Tensor:
    labels = mapped(file)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        raise UserError(
            f"{file} must hold whole numbers of shape (N,), got {labels.dtype} of {labels.shape}."
        )
    if labels.min() < 0 or labels.max() >= 2**31:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise UserError(f"{file} must hold classes, 0 or more, got {wrong}.")
    return torch.from_numpy(labels.astype(np.int64))


def shape_of(images: npt.NDArray[Any]) -> Shape:
    height, width = images.shape[1:3]
    return (images.shape[3] if images.ndim == 4 else 1), height, width
