"""Checkpoints and weights, and headers that lie."""

from __future__ import annotations

import functools
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from auglabel.lab.runs.checkpoint import FORMAT as CHECKPOINT
from auglabel.lab.runs.checkpoint import _checksum as checkpoint_sum
from auglabel.lab.runs.checkpoint import load_weights, require_fitting
from auglabel.lab.runs.run import Run
from hostile.pickles import Runs
from hostile.spoil import CANARY, Draw, Files, spoil_bytes, spoil_tree


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
    return Run(place).weights()


def read_weights(place: Path) -> object:
    weights = load_weights(place / "model.safetensors")
    module = nn.Module()
    module.model = nn.Linear(2, 3)
    require_fitting(module.state_dict(), weights, str(place / "model.safetensors"))
    return module.load_state_dict(weights)


def safetensors_cases(name: str) -> dict[str, Callable[[], Files]]:
    one = {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}
    runs = Runs(eval, f"open('../{CANARY}', 'w')")
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
