"""numpy's files, and claims of enormous ones."""

from __future__ import annotations

import functools
import io
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable

import numpy as np

from hostile.pickles import Runs
from hostile.spoil import CANARY, Draw, Files, spoil_bytes, spoil_one, zeros


def npy_of(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npy_with(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    words = header.encode("latin-1") + b"\n"
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(words))
    return b"\x93NUMPY" + version + length + words + data


SHAPES = (
    *("(1000000000000000,)", "(99999999999999999999999,)", "(-1,)", "(0,)", "()", "(2, 2)", "(3.5,)", "None"),
    *("(2147483647, 2147483647, 2147483647)", "(0, 9223372036854775807)", "(4294967296, 1)", "'a'"),
    *("(True,)",),
    *("(1," * 90, "(" * 3000, "[1]", "(1000000000,)", "(10, 8, 8, 3)", "(10, 8, 8)", "(10,)", "(-10, -8, 8)"),
)


KINDS = (
    "'|u1'",
    "'|O'",
    "'<i8'",
    "'<f8'",
    "'|V0'",
    "'|S1000000000'",
    "[('a', '|O')]",
    "'<U9'",
    "3",
    "'" + "x" * 90,
)


def spoil_npy(draw: Draw, content: bytes) -> bytes:
    if draw.random() < 0.5 or not content.startswith(b"\x93NUMPY"):
        return spoil_bytes(draw, content)
    kind, shape = draw.choice(KINDS), draw.choice(SHAPES)
    order = draw.choice(("False", "True", "2", "None"))
    words = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return npy_with(words, content[128:], draw.choice((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00")))


def npz_of(arrays: Files, packed: bool = True) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


@functools.cache
def some_arrays() -> Files:
    images, labels = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8), np.array([0, 1, 0, 1])
    pairs = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}
    return {f"{name}.npy": npy_of(array) for name, array in pairs.items()}


def spoil_npz(draw: Draw, files: Files) -> Files:
    if draw.random() < 0.4:
        return spoil_one(draw, files)
    arrays = dict(some_arrays())
    name = draw.choice(sorted(arrays))
    if draw.random() < 0.15:
        arrays[draw.choice(("a\nb.npy", "../x.npy", "x_train", "x_train.npy/", "é.npy", ""))] = arrays.pop(
            name
        )
    else:
        arrays[name] = spoil_npy(draw, arrays[name])
    return {"data.npz": npz_of(arrays, draw.random() < 0.5)}


def npz_cases() -> dict[str, Callable[[], Files]]:
    def with_array(name: str, content: bytes) -> Callable[[], Files]:
        return lambda: {"data.npz": npz_of({**some_arrays(), f"{name}.npy": content})}

    def bomb() -> Files:
        count = 3 * 2**30 // 64
        head = npy_with(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, 8, 8), }}")
        packed = zlib.compressobj(9, wbits=-15)
        data = packed.compress(head) + packed.flush(zlib.Z_FULL_FLUSH) + zeros(count * 64)[2:-4]
        sizes = struct.pack("<III", 0, len(data), count * 64 + len(head))  # no checksum: none is reached
        name, kind = b"x_train.npy", struct.pack("<HHHHH", 20, 0, 8, 0, 0)
        local = b"PK\3\4" + kind + sizes + struct.pack("<HH", len(name), 0) + name + data
        entry = b"PK\1\2\x14\0" + kind + sizes + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
        end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)
        return {"data.npz": local + entry + b"PK\5\6" + end}

    def patched(place: int, value: bytes) -> Callable[[], Files]:
        def make() -> Files:
            content = bytearray(npz_of(some_arrays(), packed=False))
            at = content.index(b"PK\x01\x02")
            content[at + place : at + place + len(value)] = value
            return {"data.npz": bytes(content)}

        return make

    def encrypted() -> Files:
        content = bytearray(npz_of(some_arrays(), packed=False))
        for mark, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
            at = content.index(mark)
            content[at + place] |= 1
        return {"data.npz": bytes(content)}

    runs = pickle.dumps(Runs(eval, f"open('../{CANARY}', 'w')"))
    objects = npy_with("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", runs)
    claim = "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000000, 8, 8), }"
    half = "{'descr': '|u1', 'fortran_order': False, 'shape': (40000000, 8, 8), }"
    return {
        "a payload as images": with_array("x_train", objects),
        "a payload as labels": with_array("y_train", objects),
        "a pickle for an array": with_array("x_train", runs),
        "10^15 images": with_array("x_train", npy_with(claim)),
        "2.5 GB of images": with_array("x_train", npy_with(half)),
        "a header that is a program": with_array("x_train", npy_with("__import__('os').system('x')")),
        "a header too deep": with_array("x_train", npy_with("(" * 60_000, b"", b"\x02\x00")),
        "a header of 2^32": with_array("x_train", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"),
        "a zip bomb": bomb,
        "encrypted": encrypted,
        "an unknown compression": patched(10, b"\x63\x00"),
        "lzma that is none": patched(10, b"\x0e\x00"),
        "bzip2 that is none": patched(10, b"\x0c\x00"),
        "a size of 4 GB": patched(24, b"\xfe\xff\xff\xff"),
        "a newer version needed": patched(6, b"\xff\x00"),
    }
