"""Checkpoints: tensors and plain facts in one safetensors file, with a checksum. Nothing in it can run."""

from __future__ import annotations

import hashlib
import json
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save_file
from torch import Tensor

from auglabel.data.npz import require_small
from auglabel.errors import UserError
from auglabel.util.atomic_write import write_atomically
from auglabel.util.checks import kind_of, shown

FORMAT = "auglabel checkpoint, version 1"
WEIGHTS = "auglabel weights, version 1"  # goes with the checksum
PICKLED = (".pth", ".pt", ".bin", ".ckpt")  # of torch.save, read with weights_only
STATES = ("state_dict", "model_state_dict", "model")  # names of the weights in people's checkpoints


class Checkpoint(NamedTuple):
    """What a run needs to go on as if it had never stopped."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class _Broken(Exception):
    """Why safetensors cannot read a file."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts as one file, completely or not at all."""
    plain, words = _plain(tensors), json.dumps(facts, sort_keys=True)
    _write(path, plain, {"format": FORMAT, "facts": words, "checksum": _checksum(plain, words)})


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def _write(path: Path, plain: dict[str, Tensor], about: dict[str, str]) -> None:
    def write(partial: Path) -> None:
        try:
            save_file(plain, partial, about)
        except SafetensorError as error:
            raise OSError(f"{path} could not be written: {error}.") from None

    write_atomically(path, write)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read what `save_checkpoint` wrote, and verify its checksum.

    A UserError says that it is damaged, an OSError that it cannot be read.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}.")
    try:
        tensors, about = _read(path)
        if about.get("format") != FORMAT:
            came = f'"{shown(about["format"])}"' if "format" in about else "another program's weights"
            raise UserError(f'{path} is not a checkpoint of a run: "{FORMAT}" was expected, got {came}.')
        words = about.get("facts", "")
        if _checksum(tensors, words) != about.get("checksum"):
            raise UserError(f"{path} is damaged: its checksum does not fit its content.")
    except _Broken as error:
        raise UserError(f"{path} is damaged or not a checkpoint: {error}.") from None
    try:
        facts = json.loads(words)
    except (ValueError, RecursionError):
        facts = words
    if not isinstance(facts, dict):
        raise UserError(f"{path} is not a checkpoint: its facts must be an object, got {kind_of(facts)}.")
    return Checkpoint(tensors, facts)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and what it says of itself.

    `safe_open` sees that the header fits the file before all of it is read, but does not hand the tensors
    over: of each that it does, some bytes stay for good.
    """
    try:
        with path.open("rb"):  # for which safetensors has no words of its own
            pass
        with safe_open(path, "pt"):
            pass
        content = path.read_bytes()
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or _short(error)}.") from None
    except (SafetensorError, KeyError, AssertionError, ValueError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" in str(error):
            raise  # a lack of it is no damage, though torch has no error of its own for it
        raise _Broken(_short(error)) from None
    return tensors, header.get("__metadata__") or {}


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Weights for use elsewhere: a plain safetensors file, with a checksum that others need not know."""
    plain = _plain(tensors)
    _write(path, plain, {WEIGHTS: _checksum(plain, "")})  # one entry: several would come in any order


def load_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a plain safetensors file of weights, or of torch's own format; runs no code they bring.

    A safetensors file of ours must fit its checksum.
    """
    if path.suffix.lower() in PICKLED:
        return _unpickled(path)
    try:
        tensors, about = _read(path)
    except _Broken as error:
        raise UserError(
            f"{path} is not a safetensors file ({error}). "
            f"Weights saved by torch are read from files called {', '.join(PICKLED)}."
        ) from None
    if WEIGHTS in about and _checksum(tensors, "") != about[WEIGHTS]:
        raise UserError(f"{path} is damaged: its checksum does not fit its content.")
    return tensors


def _unpickled(path: Path) -> dict[str, Tensor]:
    """A state dict that torch.save wrote, or the one of a checkpoint, under one of `STATES`."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                require_small(path, archive)
        with warnings.catch_warnings():  # that a pickle is of another protocol
            warnings.simplefilter("ignore")
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damage ends in errors of every kind
        unsafe = isinstance(error, pickle.UnpicklingError)  # torch's words for it say how to run its code
        why = "it is damaged, or holds more than tensors" if unsafe else _short(error)
        raise UserError(
            f"{path} cannot be read as weights ({why}). Save those alone: "
            "torch.save(model.state_dict(), path), or with safetensors."
        ) from None
    inner = [found[key] for key in STATES if isinstance(found, dict) and key in found]
    tensors = inner[0] if inner and isinstance(inner[0], dict) else found
    if not isinstance(tensors, dict) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise UserError(f"{path} must hold a state dict: torch.save(model.state_dict(), path).")
    return dict(tensors)


def require_fitting(ours: Mapping[str, Tensor], tensors: Mapping[str, Tensor], where: str) -> None:
    """Raise unless `tensors` have the names and shapes of `ours`, a network's own."""
    missing, extra = sorted(ours.keys() - tensors.keys()), sorted(tensors.keys() - ours.keys())
    shapes = sorted(n for n in ours.keys() & tensors.keys() if ours[n].shape != tensors[n].shape)
    if missing or extra or shapes:
        raise UserError(
            f"the weights in {where} are of another network: {len(missing)} missing{_first(missing)}, "
            f"{len(extra)} unknown{_first(extra)}, {len(shapes)} of another shape{_first(shapes)}."
        )


def part_of(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors of one part of a checkpoint, such as the model, under their own names."""
    return {n.removeprefix(f"{part}."): t for n, t in tensors.items() if n.startswith(f"{part}.")}


def _first(names: list[str]) -> str:
    return f" ({shown(names[0])})" if names else ""


def _short(error: Exception) -> str:
    return shown(str(error).split("\n", 1)[0]) or type(error).__name__


def _checksum(tensors: Mapping[str, Tensor], words: str) -> str:
    digest = hashlib.blake2b(words.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        if tensor.numel():
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
