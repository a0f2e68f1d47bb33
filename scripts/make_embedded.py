"""Cut the small Fashion-MNIST that ships with auglabel out of the full one.

    python scripts/make_embedded.py FOLDER OUTPUT

FOLDER holds the four official .gz files; Debian's package dataset-fashion-mnist puts them in
/usr/share/datasets/fashion-mnist. The same files give the same bytes wherever zlib does.
"""

import argparse
import gzip
import hashlib
import io
import math
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SEED = b"auglabel 0"
CLASSES = 10


class Part(NamedTuple):
    images: NDArray[np.uint8]  # (N, 28, 28)
    labels: NDArray[np.uint8]  # (N,)


def read_idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The unsigned bytes in a gzipped idx file, which must have this shape."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: FOLDER must hold the four official .gz files.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}): fetch it again.") from error
    header = struct.pack(f">{1 + len(shape)}I", 0x0800 + len(shape), *shape)  # 0x08: unsigned bytes
    size = len(header) + math.prod(shape)
    if not raw.startswith(header) or len(raw) != size:
        raise ValueError(
            f"{path} must start with {header.hex()} (bytes of shape {shape}) and hold {size} bytes, "
            f"but starts with {raw[: len(header)].hex()} and holds {len(raw)}: is it the official file?"
        )
    return np.frombuffer(raw, np.uint8, offset=len(header)).reshape(shape)


def read_part(folder: Path, prefix: str, count: int) -> Part:
    """All images of the part in a fixed random order: that of their seeded hashes."""
    images = read_idx(folder / f"{prefix}-images-idx3-ubyte.gz", (count, 28, 28))
    labels = read_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", (count,))
    hashes = [hashlib.sha256(SEED + image.tobytes()).digest() for image in images]
    order = sorted(range(count), key=hashes.__getitem__)
    return Part(images[order], labels[order])


def take(part: Part, per_class: int) -> tuple[Part, Part]:
    """The first `per_class` images of every class, and the rest."""
    taken = np.zeros(len(part.labels), bool)
    for label in range(CLASSES):
        found = np.flatnonzero(part.labels == label)
        if len(found) < per_class:
            raise ValueError(
                f"Class {label} must have {per_class} images, but has {len(found)}: are the labels official?"
            )
        taken[found[:per_class]] = True
    return Part(part.images[taken], part.labels[taken]), Part(part.images[~taken], part.labels[~taken])


def cut(folder: Path) -> dict[str, Part]:
    train, rest = take(read_part(folder, "train", 60_000), 300)
    validation, _ = take(rest, 100)
    test, _ = take(read_part(folder, "t10k", 10_000), 200)
    return {"train": train, "validation": validation, "test": test}


def packed(parts: dict[str, Part]) -> bytes:
    """The parts as an npz file without timestamps."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, part in parts.items():
            for field, array in part._asdict().items():
                member = io.BytesIO()
                np.lib.format.write_array(member, array, allow_pickle=False)
                entry = zipfile.ZipInfo(f"{name}_{field}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                entry.create_system = 3  # Unix, wherever this runs
                archive.writestr(entry, member.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return target.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the Fashion-MNIST that ships with auglabel.")
    parser.add_argument("folder", type=Path, help="folder of the four official .gz files")
    parser.add_argument("output", type=Path, help="npz file to write")
    options = parser.parse_args()
    try:
        content = packed(cut(options.folder))
        options.output.write_bytes(content)
    except (ValueError, OSError) as error:
        sys.exit(f"make_embedded: {error}")
    print(hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    main()
