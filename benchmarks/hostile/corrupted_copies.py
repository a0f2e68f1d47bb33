"""Corrupted copies in both layouts."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from auglabel.data.corrupted import FORMAT as COPIES
from auglabel.data.corrupted import corrupted
from auglabel.data.download import md5
from hostile.arrays import npy_of, npy_with, npz_of, some_arrays, spoil_npy
from hostile.images import pictures, spoil_picture
from hostile.pickles import Runs
from hostile.spoil import CANARY, Draw, Files, as_json, json_cases, spoil_json


def copies() -> list[Files]:
    images = np.arange(10 * 64 * 3, dtype=np.uint8).reshape(10, 8, 8, 3)
    about = {"format": COPIES, "types": ["fog"], "classes": ["a", "b"], "shape": [3, 8, 8], "images": 2}
    labels = np.array([0, 1] * 5)
    files = {"fog.npy": npy_of(images), "labels.npy": npy_of(labels)}
    good = pictures()[0][1]
    tree = {f"fog/{s}/{name}/1.png": good for s in range(1, 6) for name in "ab"}
    made = {"about.json": as_json(about)}
    sums = {name.removesuffix(".npy"): md5([content]) for name, content in files.items()}
    sealed = {"about.json": as_json({**about, "md5": sums})}
    return [files, {**files, **made}, {**files, **sealed}, tree, {**tree, **made}]


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
        pickle.dumps(Runs(eval, f"open('../{CANARY}', 'w')")),
    )
    cases: dict[str, Callable[[], Files]] = {}
    for name in ("fog", "labels"):
        for kind, content in {
            "a payload": runs,
            "a pickle": pickle.dumps(Runs(eval, f"open('../{CANARY}', 'w')")),
            "10^15 of them": npy_with(
                "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000000,), }"
            ),
            "a zip": npz_of(some_arrays()),
            "a program": npy_with("__import__('os').system('x')"),
            "nothing": b"",
        }.items():
            cases[f"{name}: {kind}"] = functools.partial(dict, {**arrays, f"{name}.npy": content})
    about = {"format": COPIES, "types": ["fog"], "classes": ["a", "b"], "shape": [3, 8, 8], "images": 2}
    tree = copies()[-1]
    told = {"fog": "0\n\x1b[31mauglabel: all is well.\n" * 1000}
    cases["a checksum of many lines"] = functools.partial(
        dict, {**arrays, "about.json": as_json({**about, "md5": told})}
    )
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
