"""Files that mean harm, or were damaged: inputs for `fuzz.py` and for the tests.

A reader takes a folder of files. Each has valid inputs, a way to spoil one of them that keeps as much of its
structure as it can (checksums are made right again, so that what lies behind them is reached), and cases
written by hand: payloads, bombs, ways out of an archive, claims of enormous sizes.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import math
import pickle
import pickletools
import random
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image
from rich.console import Console
from safetensors.torch import load, save
from torch import nn

from auglabel import RandAug
from auglabel.data.cifar import cifar10
from auglabel.data.corrupted import FORMAT as COPIES
from auglabel.data.corrupted import corrupted
from auglabel.data.folder import folder
from auglabel.data.npz import npz
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.lab.build import data_for
from auglabel.lab.card import measured
from auglabel.lab.chart import history_chart
from auglabel.lab.checkpoint import FORMAT as CHECKPOINT
from auglabel.lab.checkpoint import WEIGHTS, load_weights, require_fitting
from auglabel.lab.checkpoint import _checksum as checkpoint_sum
from auglabel.lab.draft import read_recipe
from auglabel.lab.files import read_lines
from auglabel.lab.fit import Trainer
from auglabel.lab.grid import Point
from auglabel.lab.inspect import heat_map, read_history, summary
from auglabel.lab.job import FORMAT as RESULT
from auglabel.lab.job import KEPT, Job, Results
from auglabel.lab.measured import run_weights
from auglabel.lab.paper.readings import reading
from auglabel.lab.report.page import parts_of
from auglabel.lab.report.subject import read_subject
from auglabel.lab.results import EVALUATION_FORMAT
from auglabel.lab.rundir import PARTS, RUN_FORMAT, Run
from auglabel.lab.saving import checkpoint_of, restore
from auglabel.lab.sharing import FORMAT as SHARED
from auglabel.lab.sharing import load_shared
from auglabel.lab.summary import summary_of
from auglabel.lab.train import facts_of, labels_of
from auglabel.lab.yamlfile import sealed_text
from auglabel.models.small import SmallNet
from auglabel.tablefile import AUDIT, FORMAT, load_table

Files = dict[str, bytes]  # by their names in a folder
Draw = random.Random
CANARY = "canary"  # what a payload would leave in the folder above that of the input


@dataclass(frozen=True)
class Reader:
    name: str
    share: float  # of all inputs, before they are scaled to sum to 1
    valid: Callable[[], list[Files]]
    spoil: Callable[[Draw, Files], Files]
    read: Callable[[Path], object]
    hostile: Callable[[], dict[str, Callable[[], Files]]] = dict  # by hand; made when they are needed

    def input(self, seed: int, number: int) -> Files:
        """Input `number`: those by hand come first, then spoilt ones."""
        cases = _cases(self)
        if number < len(cases):
            return list(cases.values())[number]()
        draw = random.Random(f"{seed} {self.name} {number}")
        files = dict(draw.choice(_seeds(self)))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            files = self.spoil(draw, files)
        return files


@functools.cache
def _seeds(reader: Reader) -> list[Files]:
    return reader.valid()


@functools.cache
def _cases(reader: Reader) -> dict[str, Callable[[], Files]]:
    return reader.hostile()


def write(files: Files, place: Path) -> None:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def zeros(size: int) -> bytes:
    """So many zeros as zlib packs them, without packing them: equal blocks, each by itself."""
    packer = zlib.compressobj(9)
    first = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    count, left = divmod(size, 2**20)
    if not count:
        return zlib.compress(bytes(size), 9)
    last = zlib.compressobj(9, wbits=-15)
    end = last.compress(bytes(left)) + last.flush()
    return first + block * (count - 1) + end + struct.pack(">I", size % 65521 << 16 | 1)


# Bytes

NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
)


def spoil_bytes(draw: Draw, content: bytes) -> bytes:
    """Flip, cut, repeat, splice, or write a number that is a length somewhere."""
    some, size = bytearray(content), len(content)
    if size < 2:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(64)))
    place = _place(draw, size)
    end = min(size, place + draw.choice((1, 2, 4, 16, 100, size)))
    kind = draw.randrange(8)
    if kind == 0:
        for _ in range(draw.choice((1, 1, 2, 8))):
            some[_place(draw, size)] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del some[place:]
    elif kind == 2:
        some[place:end] = some[place:end] * draw.choice((2, 3, 50))
    elif kind == 3:
        del some[place:end]
    elif kind == 4:
        other = draw.randrange(size)
        some[place:place] = some[other : other + draw.choice((1, 8, 64))]
    elif kind == 5:
        width, order = draw.choice((1, 2, 4, 8)), draw.choice(("little", "big"))
        number = draw.choice(NUMBERS) % 256**width
        some[place : place + width] = number.to_bytes(width, order)
    elif kind == 6:
        some[place] = draw.choice((0, 10, 13, 34, 39, 45, 58, 92, 127, 128, 255))
    else:
        some[place:end] = bytes(draw.randrange(256) for _ in range(end - place if end - place < 300 else 8))
    return bytes(some)


def _place(draw: Draw, size: int) -> int:
    """Headers are worth more: half of all places are near the beginning."""
    return draw.randrange(min(size, 200)) if draw.random() < 0.5 else draw.randrange(size)


def spoil_one(draw: Draw, files: Files, names: list[str] | None = None) -> Files:
    name = draw.choice(names or sorted(files))
    return {**files, name: spoil_bytes(draw, files[name])}


# JSON and YAML

DEEP: Any = functools.reduce(lambda inner, _: [inner], range(400), 0)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e308, -1e308, 2**31, 2**63, -(2**63), 10**400, 10**4000),
    *(math.nan, math.inf, -math.inf, "", "x", "nan", "1e999", "\ud800", "a\0b", "a\nb\r\x1b[31m", "é" * 500),
    *([], {}, [[]], [{}], {"": {}}, [0] * 50, ["a"] * 3, {"name": "os:system"}, {"name": []}, DEEP),
    *("<script>alert(1)</script>", "os:system", "../../etc/passwd", "!!python/name:os.system", "{{ 7 * 7 }}"),
)


def spoil_tree(draw: Draw, value: Any) -> Any:
    """A copy with one thing in it changed: a value of another kind, gone, twice, renamed, or exchanged."""
    value = json.loads(json.dumps(value))
    inside = list(_inside(value))
    if not inside:
        return draw.choice(VALUES)
    holder, key = draw.choice(inside)
    kind = draw.randrange(6)
    if kind <= 2:
        holder[key] = draw.choice(VALUES)
    elif kind == 3:
        del holder[key]
    elif kind == 4:
        other, at = draw.choice(inside)
        holder[key] = json.loads(json.dumps(other[at])) if at in other or isinstance(other, list) else 0
    elif isinstance(holder, dict):
        holder[draw.choice(("", "name", "\n", "é", "\ud800", "x" * 300, "__class__"))] = holder.pop(key)
    else:
        holder[key:key] = [holder[key]] * draw.choice((1, 3, 100))
    return value


def _inside(value: Any, deep: int = 0) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(pairs):
        yield value, key
        if deep < 8:
            yield from _inside(each, deep + 1)


def spoil_json(draw: Draw, content: bytes) -> bytes:
    """Half of the time as JSON, without the checksum that would give it away."""
    if draw.random() < 0.3:
        return spoil_bytes(draw, content)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return spoil_bytes(draw, content)
    if isinstance(value, dict):
        value.pop("checksum", None)
        value.pop("crc32", None)
    return json.dumps(spoil_tree(draw, value)).encode()


def spoil_lines(draw: Draw, content: bytes) -> bytes:
    lines = content.split(b"\n")
    place = draw.randrange(len(lines))
    kind = draw.randrange(5)
    if kind <= 2:
        lines[place] = spoil_json(draw, lines[place])
    elif kind == 3:
        lines[place:place] = [lines[draw.randrange(len(lines))]] * draw.choice((1, 2, 30))
    else:
        del lines[place]
    return b"\n".join(lines)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def nested(opening: str, count: int, closing: str = "") -> bytes:
    return (opening * count + closing * count).encode()


def json_cases(name: str, usual: dict[str, Any], rest: Files | None = None) -> dict[str, Callable[[], Files]]:
    """What no JSON file of ours may do harm with; `usual` is what a good one holds."""
    first = next(key for key in usual if key != "format")
    start = b'{"format": ' + as_json(usual["format"])
    cases: dict[str, bytes | Callable[[], bytes]] = {
        "deep lists": nested("[", 200_000),
        "deep objects": nested('{"a":', 100_000, "}"),
        "deep inside": as_json({**usual, first: "@"}).replace(b'"@"', nested("[", 50_000, "]")),
        "a huge whole number": as_json({**usual, first: "@"}).replace(b'"@"', b"9" * 100_000),
        "a number beyond floats": as_json({**usual, first: "@"}).replace(b'"@"', b"1e400"),
        "infinity": as_json({**usual, first: math.inf}),
        "nan": as_json({**usual, first: math.nan}),
        "half a letter": as_json({**usual, first: "\ud800"}),
        "zero bytes": b"\0" * 1000,
        "nothing": b"",
        "utf-16": json.dumps(usual).encode("utf-16"),
        "another type": b"3",
        "many empty lists": lambda: start + b', "a": [' + b"[]," * 5_000_000 + b"[]]}",
        "many numbers": lambda: start + b', "a": [' + b"0.1," * 3_900_000 + b"1]}",
        "more than fits": lambda: start + b', "a": "' + b"x" * (300 * 2**20) + b'"}',
        "a format that is a tree": as_json({**usual, "format": VALUES[-6]}),
    }
    return {key: functools.partial(_with, rest or {}, name, content) for key, content in cases.items()}


# Pickles: CIFAR's python files


class _Runs:
    """What a pickle can ask for: a function, and what to call it with."""

    def __init__(self, function: Callable[..., Any], *words: Any) -> None:
        self.function, self.words = function, words

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.words


def python_batch(images: int, key: str = "labels", protocol: int = 3) -> bytes:
    rows = np.arange(images * 3072, dtype=np.uint8).reshape(images, 3072)
    return pickle.dumps({"data": rows, key: [n % 2 for n in range(images)], "batch_label": "x"}, protocol)


def python2_batch(images: int) -> bytes:
    """The bytes that Python 2 and numpy 1 wrote."""
    rows = np.arange(images * 3072, dtype=np.uint8).reshape(images, 3072)

    def string(text: bytes) -> bytes:
        return b"T" + struct.pack("<i", len(text)) + text

    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array += b"(K\x01" + b"(" + b"".join(b"M" + struct.pack("<H", n) for n in rows.shape) + b"t" + kind
    array += b"\x89" + string(rows.tobytes()) + b"tb"
    listed = b"](" + b"".join(b"K" + bytes([n % 2]) for n in range(images)) + b"e"
    return b"\x80\x02}q\x00(U\x04data" + array + b"U\x06labels" + listed + b"u."


BATCHES = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]


def python_files(content: bytes | None = None) -> Files:
    good = python2_batch(2)
    return {name: good if content is None or n else content for n, name in enumerate(BATCHES)}


def spoil_pickle(draw: Draw, content: bytes) -> bytes:
    """Whole operations of its little machine left out, repeated, exchanged or put in."""
    try:
        places = [place for _, _, place in pickletools.genops(content)]
    except Exception:  # spoilt already
        return spoil_bytes(draw, content)
    if draw.random() < 0.3:
        return spoil_bytes(draw, content)
    pieces = [content[a:b] for a, b in zip(places, [*places[1:], len(content)], strict=True)]
    place = draw.randrange(len(pieces))
    kind = draw.randrange(4)
    if kind == 0:
        del pieces[place]
    elif kind == 1:
        pieces[place:place] = [draw.choice(pieces)] * draw.choice((1, 2, 100))
    elif kind == 2:
        other = draw.randrange(len(pieces))
        pieces[place], pieces[other] = pieces[other], pieces[place]
    else:
        pieces[place:place] = [draw.choice(OPERATIONS)]
    return b"".join(pieces)


OPERATIONS = (  # of pickle's machine
    *(b"(", b".", b"0", b"1", b"2", b"N", b"}", b"]", b")", b"t", b"\x85", b"\x86", b"\x87", b"R", b"b"),
    *(b"e",),
    *(b"u", b"s", b"a", b"d", b"l", b"\x88", b"\x89", b"\x81", b"\x92", b"\x8f", b"\x90", b"\x91", b"\x93"),
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"h\x00", b"q\xff"),
    *(b"r\xff\xff\xff\x7f", b"j\xff\xff\xff\x7f", b"p999999999\n", b"K\xff", b"J\xff\xff\xff\xff"),
    *(b"G" + b"\x7f" * 8,),
    *(b"\x8a\xff", b"\x8b\xff\xff\xff\x7f", b"T\xff\xff\xff\x7f", b"\x8e" + b"\xff" * 7 + b"\x7f"),
    *(b"Pid\n", b"Q"),
    *(b"\x96" + b"\xff" * 7 + b"\x7f", b"\x97", b"\x98", b"\x82\x01", b"\x80\xff", b"\x95" + b"\xff" * 8),
    *(b"ios\nsystem\n", b"U\x02O8", b"U\x03V99", b"I" + b"9" * 5000 + b"\n", b"L9L\n", b"F1e999\n", b"\x94"),
)


def pickle_cases() -> dict[str, bytes]:
    import builtins
    import os
    import subprocess

    touch = f"touch ../{CANARY}"
    cases: dict[str, bytes] = {}
    for protocol in range(6):
        for function, words in (
            (os.system, (touch,)),
            (eval, (f"open('../{CANARY}', 'w')",)),
            (exec, (f"open('../{CANARY}', 'w')",)),
            (subprocess.Popen, (["touch", f"../{CANARY}"],)),
            (builtins.__import__, ("antigravity",)),
            (getattr, ("a", "upper")),
            (np.lib.format.open_memmap, (f"../{CANARY}", "w+", "u1", (1,))),
        ):
            named = f"{function.__name__}, protocol {protocol}"
            cases[named] = pickle.dumps(_Runs(function, *words), protocol)
            cases[f"{named}, in a batch"] = pickle.dumps({"data": _Runs(function, *words)}, protocol)
    twice = b"".join(b"2\x86" for _ in range(60))  # (t, t), sixty times over
    cases |= {
        "INST": b"(S'" + touch.encode() + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + touch.encode() + b"'\no.",
        "BUILD on a module's name": b"cos\nsystem\n}(U\x03envU\x01xub.",
        "a registered extension": b"\x80\x02\x82\x01.",
        "an attribute of numpy": b"\x80\x04\x8c\x05numpy\x8c\x12ndarray.__class__\x93.",
        "dtype's attribute": b"\x80\x04\x8c\x05numpy\x8c\x0cdtype.newbyteorder\x93)R.",
        "memo at two billion": b"\x80\x02}r\xff\xff\xff\x7f.",
        "memo at eight hundred million": b"}p800000000\n.",
        "bytes of 2^62": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".",
        "bytes of 3 GB": b"\x80\x04\x8e" + struct.pack("<Q", 3 * 10**9) + b".",
        "a bytearray of 3 GB": b"\x80\x05\x96" + struct.pack("<Q", 3 * 10**9) + b".",
        "a frame of 2^62": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b".",
        "a key to hash for ever": b"\x80\x02}K\x01" + twice + b"K\x01s.",
        "a key too deep to hash": b"\x80\x02}K\x01" + b"\x85" * 200_000 + b"K\x01s.",
        "a set to hash for ever": b"\x80\x04\x8f(K\x01" + twice + b"\x90.",
        "too deep": b"]" * 200_000 + b"a" * 199_999 + b".",
        "an array of 10^15 bytes": b"cnumpy\nndarray\n(\x8a\x08"
        + struct.pack("<q", 10**15)
        + b"\x85U\x02u1tR.",
        "an array of 3 GB": b"cnumpy\nndarray\n(J" + struct.pack("<i", 2**31 - 1) + b"\x85U\x02u1tR.",
        "objects out of bytes": b"cnumpy\nndarray\n(K\x01\x85U\x01OU\x08AAAAAAAAtR.",
        "a dtype made of lies": b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN"
        + b"J\xff\xff\xff\x7fK\x10K\x3ftb.",
        "a whole number of many digits": b"I" + b"9" * 100_000 + b"\n.",
        "text where a number was": b"Inine\n.",
        "nothing": b"",
        "no end": b"\x80\x02}",
    }
    return cases


# Archives


def tar_of(files: Files, zipped: bool = False, **changes: Any) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            for key, value in changes.items():
                setattr(about, key, value)
            tar.addfile(about, io.BytesIO(content))
    return gzip.compress(file.getvalue(), 1, mtime=0) if zipped else file.getvalue()


def spoil_tar(draw: Draw, content: bytes) -> bytes:
    """A field of a header, with the header's checksum made right again."""
    blocks = [
        place for place in range(0, len(content) - 511, 512) if content[place + 257 : place + 262] == b"ustar"
    ]
    if not blocks or draw.random() < 0.3:
        return spoil_bytes(draw, content)
    start = draw.choice(blocks)
    some = bytearray(content)
    field, width = draw.choice(
        ((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155))
    )
    odd = (
        *(b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"L", b"K", b"S", b"g", b"x", b"X", b"\0"),
        *(b"\x80" + b"\xff" * 11,),
        *(b"77777777777", b"-1", b"../../up.png", b"/absolute.png", b"\xff" * 12, b"a/\n/x.png", b"\xe9"),
        *(b"",),
        *(b"\x80" + b"\0" * 6 + struct.pack(">I", 2**31), b"00000000000", b"00000001000", b"." * 100, b"//"),
    )
    some[start + field : start + field + width] = draw.choice(odd)[:width].ljust(width, b"\0")
    some[start + 148 : start + 156] = b" " * 8
    some[start + 148 : start + 156] = b"%06o\0 " % sum(some[start : start + 512])
    return bytes(some)


def tar_cases(inside: Callable[[], Files], name: str, zipped: bool) -> dict[str, Callable[[], Files]]:
    """Ways out of a tar, and claims; `inside` is what a good one holds."""

    def made(
        edit: Callable[[tarfile.TarFile], None], format: int = tarfile.GNU_FORMAT
    ) -> Callable[[], Files]:
        def make() -> Files:
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w", format=format) as tar:
                for each, content in inside().items():
                    about = tarfile.TarInfo(each)
                    about.size = len(content)
                    tar.addfile(about, io.BytesIO(content))
                edit(tar)
            content = file.getvalue()
            return {name: gzip.compress(content, 1, mtime=0) if zipped else content}

        return make

    def member(
        path: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
    ) -> Callable[..., None]:
        def add(tar: tarfile.TarFile) -> None:
            about = tarfile.TarInfo(path)
            about.type, about.linkname, about.size = kind, link, size
            tar.addfile(about, io.BytesIO(b"x" * size))

        return add

    def claims(header: bytes) -> Callable[[], Files]:
        def make() -> Files:
            content = header.ljust(512, b"\0") + b"\0" * 1024
            return {name: gzip.compress(content, 1, mtime=0) if zipped else content}

        return make

    def header(kind: bytes, size: int) -> bytes:
        about = tarfile.TarInfo("a/x.png")
        about.type, about.size = kind, size
        return about.tobuf(tarfile.GNU_FORMAT)

    cases = {
        "an absolute path": made(member("/tmp/evil.png")),
        "an upward path": made(member("../../evil.png")),
        "an upward path inside": made(member("a/../../evil.png")),
        "a name with a new line": made(member("a\nb/c.png", size=3)),
        "a symbolic link": made(member("a/link.png", tarfile.SYMTYPE, "/etc/passwd")),
        "a hard link": made(member("a/hard.png", tarfile.LNKTYPE, "../../etc/passwd")),
        "a device": made(member("a/dev.png", tarfile.CHRTYPE)),
        "a block device": made(member("a/block.png", tarfile.BLKTYPE)),
        "a pipe": made(member("a/pipe.png", tarfile.FIFOTYPE)),
        "a sparse file": claims(header(tarfile.GNUTYPE_SPARSE, 2**40)),
        "a size of 2^60": claims(header(tarfile.REGTYPE, 2**60)),
        "a size below zero": claims(header(tarfile.REGTYPE, -1)),
        "a long name of 2^50": claims(header(tarfile.GNUTYPE_LONGNAME, 2**50)),
        "a long name of 3 GB": claims(header(tarfile.GNUTYPE_LONGNAME, 3 * 10**9)),
        "a header of 3 GB": claims(header(tarfile.XHDTYPE, 3 * 10**9)),
        "many long names": lambda: {
            name: header(tarfile.GNUTYPE_LONGNAME, 10).ljust(1024, b"a") * 3000 + b"\0" * 1024
        },
    }
    if zipped:

        def bomb(first: bytes, size: int) -> Callable[[], Files]:
            def make() -> Files:
                block = gzip.compress(bytes(2**24), 9, mtime=0)
                return {name: gzip.compress(first.ljust(512, b"\0"), mtime=0) + block * (size // 2**24)}

            return make

        wanted = tarfile.TarInfo(next(iter(inside())))
        wanted.size = 3 * 2**30
        cases |= {
            "3 GB of zeros": bomb(wanted.tobuf(tarfile.GNU_FORMAT), 3 * 2**30),
            "3 GB of zeros beside": bomb(header(tarfile.REGTYPE, 3 * 2**30), 3 * 2**30),
            "3 GB of zeros in a header": bomb(header(tarfile.XHDTYPE, 3 * 2**30), 3 * 2**30),
            "3 GB of zeros as a name": bomb(header(tarfile.GNUTYPE_LONGNAME, 3 * 2**30), 3 * 2**30),
        }
    return cases


# Arrays


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

    runs = pickle.dumps(_Runs(eval, f"open('../{CANARY}', 'w')"))
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


# Images


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of(
    width: int, height: int, *chunks: bytes, rows: bytes | None = None, colour: int = 0, bits: int = 8
) -> bytes:
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    rows = zlib.compress((b"\0" * (width + 1)) * height, 9) if rows is None else rows
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")


@functools.cache
def pictures() -> list[tuple[str, bytes]]:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 4), dtype=np.uint8)
    colours, found = Image.fromarray(noise), []
    for ending, modes in {
        "png": ("RGB", "L", "P", "RGBA", "1", "I;16"),
        "jpg": ("RGB", "L", "CMYK"),
        "gif": ("P", "L"),
        "bmp": ("RGB", "L", "1"),
        "webp": ("RGB", "RGBA"),
        "tif": ("RGB", "L", "1", "I;16"),
        "ppm": ("RGB", "L"),
    }.items():
        for mode in modes:
            picture = (
                Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
                if mode == "I;16"
                else colours.convert(mode)
            )
            file = io.BytesIO()
            picture.save(file, {"jpg": "JPEG", "tif": "TIFF", "ppm": "PPM"}.get(ending, ending.upper()))
            found.append((ending, file.getvalue()))
    for compression in ("tiff_lzw", "tiff_deflate", "jpeg", "packbits"):
        file = io.BytesIO()
        colours.convert("RGB").save(file, "TIFF", compression=compression)
        found.append(("tif", file.getvalue()))
    file = io.BytesIO()
    frames = [colours.convert("P"), colours.rotate(90).convert("P")]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return [*found, ("gif", file.getvalue()), ("jpg", _with_exif(colours))]


def _with_exif(picture: Image.Image) -> bytes:
    file, note = io.BytesIO(), Image.Exif()
    note[274] = 6
    picture.convert("RGB").save(file, "JPEG", exif=note)
    return file.getvalue()


def picture_files() -> list[Files]:
    good = pictures()[0][1]
    return [{f"a/1.{ending}": content, "b/1.png": good} for ending, content in pictures()]


def spoil_picture(draw: Draw, content: bytes) -> bytes:
    """Of a PNG, half of the time a chunk with its checksum made right again."""
    if not content.startswith(b"\x89PNG") or draw.random() < 0.5:
        return spoil_bytes(draw, content)
    pieces, place = [], 8
    while place + 12 <= len(content):
        size = struct.unpack(">I", content[place : place + 4])[0]
        pieces.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    if not pieces:
        return spoil_bytes(draw, content)
    at = draw.randrange(len(pieces))
    kind, inner = pieces[at]
    other = draw.choice(
        (b"zTXt", b"iTXt", b"iCCP", b"tRNS", b"PLTE", b"acTL", b"fdAT", b"eXIf", b"gAMA", b"IDAT", b"pHYs")
    )
    pieces[at] = draw.choice(((kind, spoil_bytes(draw, inner)), (other, inner), (kind, b"")))
    return content[:8] + b"".join(png_chunk(*piece) for piece in pieces)


def spoil_pictures(draw: Draw, files: Files) -> Files:
    name = next(name for name in files if name.startswith("a/"))
    return {**files, name: spoil_picture(draw, files[name])}


def picture_cases() -> dict[str, Callable[[], Files]]:
    def case(content: bytes, ending: str = "png") -> Callable[[], Files]:
        return lambda: {f"a/1.{ending}": content, "b/1.png": pictures()[0][1]}

    def late(make: Callable[[], bytes], ending: str = "png") -> Callable[[], Files]:
        return lambda: case(make(), ending)()

    tiff = b"II*\0\x08\0\0\0"
    entry = lambda tag, kind, count, value: struct.pack("<HHII", tag, kind, count, value)  # noqa: E731
    huge = [
        entry(256, 4, 1, 2**31 - 1),
        entry(257, 4, 1, 2**31 - 1),
        entry(258, 3, 1, 8),
        entry(259, 3, 1, 1),
    ]
    huge += [entry(262, 3, 1, 1), entry(273, 4, 2**30, 8), entry(277, 3, 1, 1), entry(279, 4, 2**30, 8)]
    return {
        "PNG of 2^31 by 2^31": case(png_of(2**31 - 1, 2**31 - 1, rows=b"")),
        "PNG of 60000 by 60000": late(lambda: png_of(60_000, 60_000, rows=zeros(10**6))),
        "PNG of 80 megapixels": late(lambda: png_of(8944, 8944, rows=zeros(8945 * 8944))),
        "PNG of 80 megapixels, 16 bits": late(
            lambda: png_of(8944, 8944, rows=zeros(8944 * (2 * 8944 + 1)), bits=16)
        ),
        "PNG of one row of 80 megapixels": late(lambda: png_of(8 * 10**7, 1, rows=zeros(8 * 10**7 + 1))),
        "PNG with a zTXt bomb": late(lambda: png_of(8, 8, png_chunk(b"zTXt", b"a\0\0" + zeros(10**9 // 2)))),
        "PNG with an iTXt bomb": late(
            lambda: png_of(8, 8, png_chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(10**9 // 2)))
        ),
        "PNG with an iCCP bomb": late(lambda: png_of(8, 8, png_chunk(b"iCCP", b"a\0\0" + zeros(10**9 // 2)))),
        "PNG with many texts": late(
            lambda: png_of(8, 8, *[png_chunk(b"zTXt", b"%d\0\0" % n + zeros(10**6)) for n in range(200)])
        ),
        "PNG with a pixel bomb": late(lambda: png_of(8, 8, rows=zeros(10**9 // 2))),
        "GIF of 65535 by 65535": case(
            b"GIF89a\xff\xff\xff\xff\x80\0\0" + b"\0" * 6 + b",\0\0\0\0\xff\xff\xff\xff\0\x02\0;", "gif"
        ),
        "BMP of 2^31": case(
            b"BM"
            + struct.pack(
                "<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0
            ),
            "bmp",
        ),
        "TIFF of 2^31": case(tiff + struct.pack("<H", len(huge)) + b"".join(huge) + b"\0\0\0\0", "tif"),
        "TIFF whose directories go in circles": case(
            tiff + struct.pack("<H", 1) + huge[0] + struct.pack("<I", 8), "tif"
        ),
        "PPM of 10^12": case(b"P6 1000000 1000000 255\n", "ppm"),
        "PPM of endless digits": case(b"P6 " + b"9" * 10**6, "ppm"),
        "PPM in words": case(b"P3 8 8 " + b"9" * 5000 + b"\n1 2 3", "ppm"),
        "PostScript": case(
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(../canary) (w) file\n"
        ),
        "an icon": case(b"\0\0\1\0\1\0" + b"\0" * 16),
        "a web page": case(b"<html><script>alert(1)</script></html>", "jpg"),
        "nothing": case(b""),
    }


# Recipes

RECIPES = (
    "epochs: 3\nregime: randaug_autolabel\nlabels: {alpha: 0.02}\n",
    "base: embedded\nseed: 4\naugment: {name: augmix, max_depth: 2}\nlabels: autolabel\n",
    "model: {name: small, widths: [4, 8, 8]}\noptimizer:\n  learning_rate: 0.1\n  clip: 1\n",
    "data: {name: cifar10, root: x}\nschedule: {name: cosine}\nregimes: {randaug_ls: {labels: {rho: 0.1}}}\n",
    "split: {train: 100, validation: 0.1}\naugment:\n  name: randaug\n  operations: [rotate]\n  m_max: 3\n",
)
TOKENS = (
    *("!!python/object/apply:os.system ['touch x']", "!!python/name:os.system", "!!binary 4oaS"),
    *("!!set {a, b}",),
    *("!!timestamp x", "!!bool maybe", "!!int ''", "!!float x", "2001-99-99", "0b_", "0x_", "1:2:3"),
    *("&a [*a]", "*a"),
    *("<<: *a", "? [a, b]", "{", "[", "}", "]", "---", "...", "%YAML 9.9", "|", ">", "''", '"\\ud800"'),
    *("~", "\t"),
    *("9" * 5000, ".nan", ".inf", "-.inf", "1e999", "os:system", "timm:x", "a:b:c", "null", "\u2028"),
    *("\ufeff", "@", "`"),
    *("name: x", "augment: {name: []}", "seed: -1", "epochs: 1.5", "base: embedded", "regime: ''", "- a"),
    *("!x y", "'"),
    *("- " * 300, "[" * 300, "{a: " * 100, "é: ü", "\x85", '"\\0"', '"a\\nb"', "model: '\\x1b[31m'"),
    *("__class__: x",),
)


def spoil_recipe(draw: Draw, files: Files) -> Files:
    content = files["recipe.yaml"]
    kind = draw.random()
    if kind < 0.3:
        return {"recipe.yaml": spoil_bytes(draw, content)}
    if kind < 0.6:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return {"recipe.yaml": spoil_bytes(draw, content)}
        place = draw.choice([0, len(text), *(n for n, letter in enumerate(text) if letter in ":,[]{}\n ")])
        between = draw.choice(("", " ", "\n", ": "))
        text = text[:place] + between + draw.choice(TOKENS) + between + text[place:]
        return {"recipe.yaml": text.encode("utf-8", "surrogatepass")}
    try:
        tree = yaml.safe_load(content)
        text = yaml.safe_dump(spoil_tree(draw, tree), default_flow_style=draw.choice((None, True, False)))
    except Exception:  # spoilt already
        return {"recipe.yaml": spoil_bytes(draw, content)}
    return {"recipe.yaml": text.encode("utf-8", "surrogatepass")}


def recipe_cases() -> dict[str, Callable[[], Files]]:
    touch = f"touch ../{CANARY}"
    lists = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    maps = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}, z: *a{n - 1}}}\n" for n in range(1, 40)
    )
    merges = "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
    )
    cases = {
        "a call": f"!!python/object/apply:os.system ['{touch}']\n",
        "a call for a value": f"seed: !!python/object/apply:os.system ['{touch}']\n",
        "a new object": "seed: !!python/object/new:subprocess.Popen [[touch, ../canary]]\n",
        "a module": "seed: !!python/module:antigravity\n",
        "a name": "seed: !!python/name:os.system\n",
        "a function for the network": f"model: {{name: 'os:system', command: '{touch}'}}\n",
        "a function in a regime": "regimes: {randaug: {model: 'os:system'}}\nregime: randaug\n",
        "a class path": "model: {class_path: os.system}\n",
        "laughing lists": lists,
        "laughing maps": maps,
        "laughing merges": merges,
        "a circle": "a: &a {b: *a}\n",
        "a circle of lists": "a: &a [*a]\n",
        "a merge with itself": "a: &a {<<: *a}\n",
        "deep lists": "[" * 100_000,
        "deep maps": "{a: " * 100_000,
        "deep by indentation": "".join(f"{' ' * n}a:\n" for n in range(1200)),
        "many keys": "".join(f"k{n}: {n}\n" for n in range(60_000)),
        "many empty lists": "a: [" + "[]," * 300_000 + "[]]\n",
        "one long line": "a: " + "x" * (2**20 - 10) + "\n",
        "a huge number": "seed: " + "9" * 100_000 + "\n",
        "a long sexagesimal": "seed: 1" + ":59" * 100_000 + "\n",
        "a day that is not": "seed: 2001-99-99\n",
        "a bool that is not": "seed: !!bool maybe\n",
        "a time that is not": "seed: !!timestamp x\n",
        "binary": "model: !!binary AAAA\n",
        "half a letter": 'model: "\\ud800"\n',
        "a zero byte": "model: 'a\0b'\n",
        "html": "model: '<script>alert(1)</script>'\n",
        "a base that is a device": "base: /dev/zero.yaml\n",
        "a base far up": "base: ../../../../../../etc/passwd.yaml\n",
        "itself": "base: recipe.yaml\n",
    }
    return {name: functools.partial(dict, {"recipe.yaml": text.encode()}) for name, text in cases.items()}


# Checkpoints and weights


def safetensors_with(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(words) if length is None else length) + words + data


def a_checkpoint(tensors: dict[str, torch.Tensor], facts: str) -> bytes:
    """Written by hand: the library's own order of the metadata is any."""
    about = {"format": CHECKPOINT, "facts": facts, "checksum": checkpoint_sum(tensors, facts)}
    plain = save(tensors)
    length = struct.unpack("<Q", plain[:8])[0]
    header = {"__metadata__": about, **json.loads(plain[8 : 8 + length])}
    return safetensors_with(header, plain[8 + length :])


@functools.cache
def some_tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {f"model.{name}": value for name, value in nn.Linear(2, 3).state_dict().items()}


FACTS = {"epoch": 3, "step": 40, "labels": {"alpha": 0.1}, "history": [1, 2]}


def spoil_safetensors(draw: Draw, content: bytes) -> bytes:
    if draw.random() < 0.4 or len(content) < 9:
        return spoil_bytes(draw, content)
    length = struct.unpack("<Q", content[:8])[0]
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError, OverflowError):
        return spoil_bytes(draw, content)
    return safetensors_with(spoil_tree(draw, header), content[8 + length :] if length < 2**40 else b"")


def spoil_checkpoint(draw: Draw, files: Files) -> Files:
    name = next(iter(files))
    if draw.random() < 0.3:  # the checksum fits, but not what it is a checksum of
        facts = json.dumps(spoil_tree(draw, FACTS))
        return {name: a_checkpoint(some_tensors(), facts)}
    return {name: spoil_safetensors(draw, files[name])}


def read_checkpoint(place: Path) -> object:
    return run_weights(Run(place))


def read_weights(place: Path) -> object:
    weights = load_weights(place / "model.safetensors")
    module = nn.Module()
    module.model = nn.Linear(2, 3)
    require_fitting(module.state_dict(), weights, str(place / "model.safetensors"))
    return module.load_state_dict(weights)


def safetensors_cases(name: str) -> dict[str, Callable[[], Files]]:
    one = {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}
    runs = _Runs(eval, f"open('../{CANARY}', 'w')")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(runs, 2))
        file.writestr("archive/version", "3\n")
    cases = {
        "a pickle": pickle.dumps(runs),
        "torch's own format": archive.getvalue(),
        "10^15 numbers": safetensors_with({"a": one}),
        "a header of 2^63": safetensors_with(b"{}", length=2**63),
        "a header of 2^62": safetensors_with(b"{}", length=2**62),
        "a header of 100 MB": safetensors_with(b"{" + b" " * (100 * 2**20) + b"}"),
        "a deep header": safetensors_with(b"[" * 100_000),
        "offsets that cross": safetensors_with({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}),
        "offsets below zero": safetensors_with(
            {"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}
        ),
        "a shape that overflows": safetensors_with(
            {"a": {"dtype": "F64", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}
        ),
        "a shape of nothing": safetensors_with(
            {"a": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}
        ),
        "a name with a new line": safetensors_with(
            {"a\nb\x1b": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
        ),
        "deep facts": a_checkpoint(some_tensors(), "[" * 100_000),
        "facts that are a list": a_checkpoint(some_tensors(), "[1]"),
        "no epoch": a_checkpoint(some_tensors(), "{}"),
        "huge numbers for facts": a_checkpoint(some_tensors(), '{"epoch": ' + "9" * 100_000 + "}"),
        "nothing": b"",
    }
    return {key: functools.partial(dict, {name: content}) for key, content in cases.items()}


# Corrupted copies


def copies() -> list[Files]:
    images = np.arange(10 * 64 * 3, dtype=np.uint8).reshape(10, 8, 8, 3)
    about = {"format": COPIES, "types": ["fog"], "classes": ["a", "b"], "shape": [3, 8, 8], "images": 2}
    labels = np.array([0, 1] * 5)
    files = {"fog.npy": npy_of(images), "labels.npy": npy_of(labels)}
    good = pictures()[0][1]
    tree = {f"fog/{s}/{name}/1.png": good for s in range(1, 6) for name in "ab"}
    made = {"about.json": as_json(about)}
    return [files, {**files, **made}, tree, {**tree, **made}]


def spoil_copies(draw: Draw, files: Files) -> Files:
    name = draw.choice(sorted(files))
    content = files[name]
    if name.endswith(".npy"):
        return {**files, name: spoil_npy(draw, content)}
    return {
        **files,
        name: spoil_json(draw, content) if name.endswith(".json") else spoil_picture(draw, content),
    }


def read_copies(place: Path) -> object:
    found = corrupted(place)
    for name in found.names:
        for severity in (1, 5):
            source = found.source(name, severity)
            source.fetch(torch.arange(min(4, len(source))))
    return found.origin(found.names)


def copies_cases() -> dict[str, Callable[[], Files]]:
    arrays = copies()[0]
    runs = npy_with(
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        pickle.dumps(_Runs(eval, f"open('../{CANARY}', 'w')")),
    )
    cases: dict[str, Callable[[], Files]] = {}
    for name in ("fog", "labels"):
        for kind, content in {
            "a payload": runs,
            "a pickle": pickle.dumps(_Runs(eval, f"open('../{CANARY}', 'w')")),
            "10^15 of them": npy_with(
                "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000000,), }"
            ),
            "a zip": npz_of(some_arrays()),
            "a program": npy_with("__import__('os').system('x')"),
            "nothing": b"",
        }.items():
            cases[f"{name}: {kind}"] = functools.partial(dict, {**arrays, f"{name}.npy": content})
    about = {"format": COPIES, "types": ["fog"], "classes": ["a", "b"], "shape": [3, 8, 8], "images": 2}
    tree = copies()[3]
    odd = {
        "a huge shape": [3, 2**31, 2**31],
        "a shape below zero": [3, -8, -8],
        "a shape of words": ["a", "b", "c"],
    }
    for name, shape in odd.items():
        cases[name] = functools.partial(dict, {**tree, "about.json": as_json({**about, "shape": shape})})
    cases["classes that are lists"] = functools.partial(
        dict, {**tree, "about.json": as_json({**about, "classes": [[], {}]})}
    )
    return {**cases, **json_cases("about.json", about, tree)}


# Label tables and audits

GRID = RandAug(m_max=2, operations=["rotate", "equalize"]).grid


def a_table(format: str) -> dict[str, Any]:
    return {"format": format, "confidence": {"rotate": [1.0, 0.9], "equalize": [0.5]}}


def an_audit() -> dict[str, Any]:
    buckets = {kind: [{"count": 3, "accuracy": 0.5, "ece": 0.1}] for kind in GRID.kinds}
    return {**a_table(AUDIT), "clean": {"accuracy": 0.9, "count": 10}, "buckets": buckets, "model": "small"}


def spoil_file(draw: Draw, files: Files) -> Files:
    """One of several files, each in the way of its kind."""
    name = draw.choice(sorted(files))
    content = files[name]
    if name.endswith(".json"):
        return {**files, name: spoil_json(draw, content)}
    if name.endswith(".jsonl"):
        return {**files, name: spoil_lines(draw, content)}
    if name.endswith(".safetensors"):
        return {**files, name: spoil_safetensors(draw, content)}
    if name.endswith(".yaml"):
        return {**files, name: spoil_recipe(draw, {"recipe.yaml": content})["recipe.yaml"]}
    return {**files, name: spoil_bytes(draw, content)}


# Run directories


@functools.cache
def a_run() -> Files:
    recipe = read_recipe("embedded", ["--regime=randaug_autolabel", "--epochs=2", "--m_max=2", "--alpha=0.1"])
    grid = RandAug(m_max=2).grid
    data = {"name": "embedded", "checksum": "abc", "notes": [], "images": {"train": 100, "test": 10}}
    about = {"format": RUN_FORMAT, "versions": {"auglabel": "0"}, "seed": 0, "data": data, "parameters": 12}
    epochs = [
        {
            **{"epoch": n, "loss": 2.0, "validation": {"nll": 1.0, "ece": 0.1, "accuracy": 0.5, "count": 9}},
            **{"seconds": {"calibrating": 0.5, "validating": 0.2}, "images_per_second": 500.0},
        }
        for n in (1, 2)
    ]
    tables = [
        {"epoch": n, "confidence": {k: [0.9] * m for k, m in zip(grid.kinds, grid.levels, strict=True)}}
        for n in (1, 2)
    ]
    return {
        "recipe.yaml": sealed_text(recipe.as_yaml()).encode(),
        "run.json": as_json(about),
        "metrics.jsonl": b"".join(as_json(line) + b"\n" for line in epochs),
        "tables.jsonl": b"".join(as_json(line) + b"\n" for line in tables),
        "eval/clean.json": as_json(an_evaluation()),
    }


def an_evaluation() -> dict[str, Any]:
    figures = {name: {"value": 0.5, "low": None, "high": 0.6} for name in (*KEPT, "max_ce")}
    bins = {"count": [6.0, 4.0], "confidence": [2.4, 3.6], "correct": [3.0, 3.0]}
    rows = [
        {"on": on, "severity": s, "count": 10, "figures": figures, "scaled": figures, "bins": bins}
        for on, s in (("clean", None), ("fog", 1), ("fog", 2))
    ]
    means = [{"on": "corrupted", "pairs": 2, "figures": dict.fromkeys(KEPT, 0.5), "scaled": None}]
    about = {
        "checkpoint": "last",
        "epoch": 2,
        "data": {"checksum": "abc"},
        "attack": None,
        "corruptions": None,
    }
    return {"format": EVALUATION_FORMAT, **about, "notes": [], "rows": rows, "means": means}


def read_report(place: Path) -> object:
    """As `auglabel report` does, up to the page."""
    subject, _ = read_subject(place)
    for part in parts_of([subject]):
        json.dumps(
            [part.table.body, part.costs.body, [figure.records for figure in part.figures]], allow_nan=False
        )
    return measured(Run(place))


def begun(folder: Path) -> tuple[Trainer, DataSet, Parts]:
    """Begin a run there, as `auglabel train` does, with a first checkpoint."""
    words = ["--regime=randaug_autolabel", "--m_max=2", "--alpha=0.1", "--split.train=40", "--epochs=2"]
    words += ["--split.validation=20", "--split.test=20", "--batch_size=20", "--model.widths=[4,4,4]"]
    recipe = read_recipe("embedded", words)
    data, parts = data_for(recipe)
    trainer, run = Trainer(recipe, data, parts, device="cpu"), Run(folder)
    run.begin(recipe)
    run.record_split({name: getattr(parts, name).rows for name in PARTS})
    run.record_facts(facts_of(recipe, data, parts, trainer))
    list(trainer.epoch(lambda step: False))
    run.record_epoch(trainer.end_epoch(), labels_of(trainer))
    run.save(trainer.step, checkpoint_of(trainer), keep=2, best=False)
    return trainer, data, parts


@functools.cache
def a_begun_run() -> tuple[Files, Trainer, DataSet, Parts]:
    with tempfile.TemporaryDirectory() as place:
        made = begun(Path(place))
        paths = [path for path in Path(place).rglob("*") if path.is_file()]
        return {str(path.relative_to(place)): path.read_bytes() for path in paths}, *made


def spoil_begun(draw: Draw, files: Files) -> Files:
    name = next(name for name in files if name.startswith("checkpoints/"))
    if draw.random() < 0.8:
        return spoil_file(draw, files)
    sound = a_begun_run()[0][name]  # the checksum will fit, but not what it is a checksum of
    tensors = load(sound)
    facts = json.loads(json.loads(sound[8 : 8 + struct.unpack("<Q", sound[:8])[0]])["__metadata__"]["facts"])
    if draw.random() < 0.5:
        return {**files, name: a_checkpoint(tensors, json.dumps(spoil_tree(draw, facts)))}
    one, other = draw.sample(sorted(tensors), 2)
    spoilt = draw.choice(
        (
            {one: tensors[other].clone()},
            {one: tensors[one].double()[None]},
            {f"{one}x": tensors[one].clone()},
        )
    )
    return {**files, name: a_checkpoint({**tensors, **spoilt}, json.dumps(facts))}


def read_resumed(place: Path) -> object:
    """As `auglabel train --resume` does, up to the first step; nothing is written."""
    _, trainer, data, parts = a_begun_run()
    run = Run(place)
    run.require_free(trainer.recipe, resume=True)
    run.require_data(data, parts)
    if (last := run.last()) is not None:
        restore(trainer, last, str(run.checkpoints))
    return run.metrics(), read_lines(run.tables_file)


def resumed_cases() -> dict[str, Callable[[], Files]]:
    run = a_begun_run()[0]
    cases = json_cases("run.json", json.loads(run["run.json"]), run)
    name = next(name for name in run if name.startswith("checkpoints/"))
    found = safetensors_cases(name)
    cases |= {f"checkpoint: {key}": functools.partial(_among, run, make) for key, make in found.items()}
    found = safetensors_cases("split.safetensors")
    return cases | {f"split: {key}": functools.partial(_among, run, make) for key, make in found.items()}


def read_inspected(place: Path) -> object:
    """As `auglabel inspect` does, but for writing the picture."""
    history = read_history(place / "tables.jsonl")
    epoch, last = history[-1]
    console = Console(file=io.StringIO(), width=80)
    table, levels = [value for row in last.values() for value in row], [len(row) for row in last.values()]
    console.print(heat_map(list(last), levels, table, f"after {epoch}"))
    console.print(summary(history))
    return history_chart(history)


def run_cases() -> dict[str, Callable[[], Files]]:
    run = a_run()
    cases: dict[str, Callable[[], Files]] = {}
    for name in ("run.json", "eval/clean.json"):
        found = json_cases(name, json.loads(run[name]), run)
        cases |= {f"{name}: {key}": make for key, make in found.items()}
    for name in ("metrics.jsonl", "tables.jsonl"):
        found = line_cases(name, json.loads(run[name].split(b"\n")[0]), run)
        cases |= {f"{name}: {key}": make for key, make in found.items()}
    page = json.loads(run["eval/clean.json"])
    page["rows"][0]["on"] = "</script><script>alert(1)</script>"
    cases["a script for a name"] = lambda: {**run, "eval/clean.json": as_json(page)}
    recipes = recipe_cases()
    cases |= {f"recipe: {key}": functools.partial(_among, run, make) for key, make in recipes.items()}
    return cases


def _among(run: Files, make: Callable[[], Files]) -> Files:
    return {**run, **make()}


def line_cases(name: str, usual: dict[str, Any], rest: Files) -> dict[str, Callable[[], Files]]:
    key = "confidence" if "confidence" in usual else "loss"
    cases: dict[str, bytes | Callable[[], bytes]] = {
        "deep": nested("[", 100_000) + b"\n",
        "an epoch of many digits": as_json({**usual, "epoch": 10**4000}) + b"\n",
        "an epoch far away": as_json(usual) + b"\n" + as_json({**usual, "epoch": 10**18}) + b"\n",
        "nan": as_json({**usual, key: math.nan}) + b"\n",
        "many kinds": lambda: as_json({**usual, key: {str(n): [0.5] for n in range(200_000)}}) + b"\n",
        "a row of a million": lambda: as_json({**usual, key: {"a": [0.5] * 1_000_000}}) + b"\n",
        "a thousand lines": (as_json(usual) + b"\n") * 1000,
        "empty lists": lambda: b'{"epoch": 1, "a": [' + b"[]," * 5_200_000 + b"[]]}\n",
        "a line without an end": lambda: b"x" * (200 * 2**20),
        "a name to break lines": as_json({**usual, key: {"a\nb\x1b[31m": [0.5]}}) + b"\n",
        "half a letter": as_json({**usual, key: {"\ud800": [0.5]}}) + b"\n",
        "nothing": b"",
    }
    return {each: functools.partial(_with, rest, name, content) for each, content in cases.items()}


def _with(rest: Files, name: str, content: bytes | Callable[[], bytes]) -> Files:
    return {**rest, name: content if isinstance(content, bytes) else content()}


# Results


@functools.cache
def a_job() -> Job:
    recipe = read_recipe("embedded", ["--regime=randaug_autolabel", "--epochs=2", "--m_max=2", "--alpha=0.1"])
    return Job("one", recipe, ("--on=clean --resamples=0",))


def a_result() -> dict[str, Any]:
    job = a_job()
    columns = ["on", "severity", "count", *KEPT, *(f"scaled_{name}" for name in KEPT)]
    rows = [["clean", None, 10, *([0.5] * (len(columns) - 3))]]
    evaluation = {"words": job.measured[0], "columns": columns, "rows": rows}
    return {
        **{"format": RESULT, "name": job.name, "digest": job.digest, "recipe": job.plain, "seed": 0},
        **{"measured": list(job.measured), "seconds": {"training": 5.0, "measuring": 3.0}},
        **{"validation": {"nll": 1.0, "accuracy": 0.5, "ece": 0.1}, "labels": {"rotate": [1.0, 0.9]}},
        **{"evaluations": [evaluation], "views": {"rotate": {"accuracy": [0.9, 0.8], "count": [3, 3]}}},
    }


def result_files() -> list[Files]:
    return [{f"{a_job().stem}.json": as_json(a_result())}]


def read_result(place: Path) -> object:
    """As sweeps and the paper's tables do."""
    results = Results(place, place)
    result = results.read(a_job())
    assert result is not None
    for metric in ("ece", "gap", "ece T", "cece", "label_fall", "view_fall:rotate"):
        reading(result, metric)
    return summary_of([(Point("one", {}), [a_job()])], results, ["clean"])


# Shared models


@functools.cache
def a_shared_model() -> Files:
    classes = ("a", "b")
    torch.manual_seed(0)
    network = SmallNet(len(classes), (2, 2, 2), mean=(0.5,), std=(0.5,))
    tensors = {name: value.contiguous() for name, value in network.state_dict().items()}
    config = {
        **{"format": SHARED, "id2label": {"0": "a", "1": "b"}, "label2id": {"a": 0, "b": 1}},
        **{"model": {"name": "small", "widths": [2, 2, 2]}, "mean": [0.5], "std": [0.5]},
        **{"augment": {"name": "randaug", "m_max": 2, "operations": ["rotate", "equalize"]}},
        **{"labels": {"name": "autolabel"}, "epochs": 1, "seed": 0},
    }
    return {
        "config.json": as_json(config),
        "model.safetensors": save(tensors, {WEIGHTS: checkpoint_sum(tensors, "")}),
        "labels.json": as_json(a_table(FORMAT)),
    }


def shared_cases() -> dict[str, Callable[[], Files]]:
    good = a_shared_model()
    config = json.loads(good["config.json"])

    def changed(**changes: Any) -> Callable[[], Files]:
        return lambda: {**good, "config.json": as_json({**config, **changes})}

    cases = {
        "a function for the network": changed(model={"name": "os:system", "command": f"touch ../{CANARY}"}),
        "a network of another package": changed(model={"name": "timm:hf-hub:x/y"}),
        "a network of 10^9 layers": changed(
            model={"name": "wide_resnet", "depth": 6 * 10**9 + 4, "width": 1}
        ),
        "a network of a million layers": changed(
            model={"name": "wide_resnet", "depth": 6 * 10**6 + 4, "width": 1}
        ),
        "a network of 10^12 weights": changed(model={"name": "wide_resnet", "depth": 10, "width": 10**4}),
        "widths of 10^6": changed(model={"name": "small", "widths": [10**6] * 3}),
        "widths below zero": changed(model={"name": "small", "widths": [-1, -1, -1]}),
        "widths of words": changed(model={"name": "small", "widths": "abc"}),
        "an option we give": changed(model={"name": "small", "num_classes": 3}),
        "a mean that is a tree": changed(mean=[[0.5], [0.5, [1]]]),
        "a mean of words": changed(mean=["a"]),
        "a million channels": changed(mean=[0.5] * 1_000_000, std=[0.5] * 1_000_000),
        "an augmentation of 10^9 operations": changed(augment={"name": "randaug", "num_ops": 10**9}),
        "an augmentation that is none": changed(augment={"name": "os:system"}),
        "classes that are lists": changed(id2label={"0": [], "1": {}}),
        "a name to break lines": changed(model={"name": "a\nb\x1b[31m"}),
    }
    for file in ("config.json", "labels.json"):
        found = json_cases(file, json.loads(good[file]), good)
        cases |= {f"{file}: {key}": make for key, make in found.items()}
    weights = safetensors_cases("model.safetensors")
    return cases | {f"weights: {key}": functools.partial(_among, good, make) for key, make in weights.items()}


def packed() -> list[Files]:
    python = tar_of({f"cifar-10-batches-py/{name}": c for name, c in python_files().items()}, zipped=True)
    return [
        {"cifar-10-python.tar.gz": python},
        {"cifar-10-binary.tar.gz": tar_of(binary_files(), zipped=True)},
    ]


def binary_files() -> Files:
    records = b"".join(bytes([n]) + bytes(range(256)) * 12 for n in range(2))
    return {f"{name}.bin": records for name in BATCHES}


def spoil_packed(draw: Draw, files: Files) -> Files:
    name = next(iter(files))
    if draw.random() < 0.3:
        return {name: spoil_bytes(draw, files[name])}
    try:
        inner = gzip.decompress(files[name])
    except Exception:  # spoilt already
        return {name: spoil_bytes(draw, files[name])}
    return {name: gzip.compress(spoil_tar(draw, inner), 1, mtime=0)}


def spoil_picture_tar(draw: Draw, files: Files) -> Files:
    if draw.random() < 0.6:
        return {"set.tar": spoil_tar(draw, files["set.tar"])}
    return {"set.tar": tar_of(spoil_pictures(draw, draw.choice(picture_files())))}


def _cifar(place: Path) -> object:
    return cifar10(place, verify=False)


def _python_cases() -> dict[str, Callable[[], Files]]:
    return {name: functools.partial(python_files, content) for name, content in pickle_cases().items()}


def _binary_cases() -> dict[str, Callable[[], Files]]:
    odd = {
        "nothing": b"",
        "a class of 255": b"\xff" * 3073,
        "cut short": b"\0" * 3000,
        "text": b"<html>" * 999,
    }
    return {
        name: functools.partial(dict, {**binary_files(), "data_batch_3.bin": content})
        for name, content in odd.items()
    }


READERS = [
    Reader(
        "CIFAR, python",
        12,
        lambda: [python_files(c) for c in (python2_batch(2), python_batch(2), python_batch(2, protocol=4))],
        lambda draw, files: {**files, "data_batch_1": spoil_pickle(draw, files["data_batch_1"])},
        _cifar,
        _python_cases,
    ),
    Reader("CIFAR, binary", 8, lambda: [binary_files()], spoil_one, _cifar, _binary_cases),
    Reader(
        "CIFAR, packed",
        9,
        packed,
        spoil_packed,
        lambda place: cifar10(next(place.iterdir()), verify=False),
        lambda: tar_cases(binary_files, "cifar-10-binary.tar.gz", zipped=True),
    ),
    Reader(
        "npz",
        12,
        lambda: [{"data.npz": npz_of(some_arrays())}, {"data.npz": npz_of(some_arrays(), packed=False)}],
        spoil_npz,
        lambda place: npz(place / "data.npz"),
        npz_cases,
    ),
    Reader(
        "image folder",
        12,
        picture_files,
        spoil_pictures,
        lambda place: folder(place, size=8, cache=False),
        picture_cases,
    ),
    Reader(
        "image tar",
        8,
        lambda: [{"set.tar": tar_of(files)} for files in picture_files()],
        spoil_picture_tar,
        lambda place: folder(place / "set.tar", size=8, cache=False),
        lambda: tar_cases(lambda: picture_files()[0], "set.tar", zipped=False),
    ),
    Reader(
        "recipe",
        5,
        lambda: [
            *({"recipe.yaml": text.encode()} for text in RECIPES),
            {"recipe.yaml": sealed_text(RECIPES[0]).encode()},
        ],
        spoil_recipe,
        lambda place: read_recipe(str(place / "recipe.yaml")),
        recipe_cases,
    ),
    Reader(
        "checkpoint",
        8,
        lambda: [{"checkpoints/step-00000001.safetensors": a_checkpoint(some_tensors(), json.dumps(FACTS))}],
        spoil_checkpoint,
        read_checkpoint,
        lambda: safetensors_cases("checkpoints/step-00000001.safetensors"),
    ),
    Reader(
        "weights",
        8,
        lambda: [
            {"model.safetensors": save(some_tensors())},
            {"model.safetensors": save(some_tensors(), {WEIGHTS: checkpoint_sum(some_tensors(), "")})},
        ],
        spoil_file,
        read_weights,
        lambda: safetensors_cases("model.safetensors"),
    ),
    Reader("corrupted copies", 6, copies, spoil_copies, read_copies, copies_cases),
    Reader(
        "label table",
        7,
        lambda: [{"table.json": as_json(a_table(FORMAT))}],
        spoil_file,
        lambda place: load_table(place / "table.json", GRID),
        lambda: json_cases("table.json", a_table(FORMAT)),
    ),
    Reader(
        "audit",
        7,
        lambda: [{"audit.json": as_json(an_audit())}],
        spoil_file,
        lambda place: load_table(place / "audit.json", GRID),
        lambda: json_cases("audit.json", an_audit()),
    ),
    Reader("run, report", 1, lambda: [a_run()], spoil_file, read_report, run_cases),
    Reader("run, resume", 2, lambda: [a_begun_run()[0]], spoil_begun, read_resumed, resumed_cases),
    Reader(
        "run, inspect",
        2,
        lambda: [{"tables.jsonl": a_run()["tables.jsonl"]}],
        spoil_file,
        read_inspected,
        lambda: line_cases("tables.jsonl", json.loads(a_run()["tables.jsonl"].split(b"\n")[0]), {}),
    ),
    Reader(
        "result",
        6,
        result_files,
        spoil_file,
        read_result,
        lambda: json_cases(f"{a_job().stem}.json", a_result()),
    ),
    Reader("shared model", 4, lambda: [a_shared_model()], spoil_file, load_shared, shared_cases),
]
