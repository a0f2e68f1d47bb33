"""CIFAR's pickles, and pickles that run something."""

from __future__ import annotations

import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from hostile.spoil import CANARY, Draw, Files, spoil_bytes


class Runs:
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
            cases[named] = pickle.dumps(Runs(function, *words), protocol)
            cases[f"{named}, in a batch"] = pickle.dumps({"data": Runs(function, *words)}, protocol)
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
