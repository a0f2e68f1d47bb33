"""What a reader is, and ways to spoil bytes, JSON and YAML that keep most of their structure."""

from __future__ import annotations

import functools
import json
import math
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    return {key: functools.partial(with_file, rest or {}, name, content) for key, content in cases.items()}


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
    return {each: functools.partial(with_file, rest, name, content) for each, content in cases.items()}


def with_file(rest: Files, name: str, content: bytes | Callable[[], bytes]) -> Files:
    return {**rest, name: content if isinstance(content, bytes) else content()}


def with_files(run: Files, make: Callable[[], Files]) -> Files:
    return {**run, **make()}
