"""Checkpoints: tensors and plain facts in one safetensors file, with a checksum. Nothing in it can run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from auglabel.checks import kind_of, shown
from auglabel.whole import write_whole

FORMAT = "auglabel checkpoint, version 1"
WEIGHTS = "auglabel weights, version 1"  # goes with the checksum


class Checkpoint(NamedTuple):
    """What a run needs to go on as if it had never stopped."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class _Other(Exception):
    """A sentence: this is no checkpoint of ours."""


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write both, whole or not at all."""
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

    write_whole(path, write)


def load_checkpoint(path: Path) -> Checkpoint:
    """What `save_checkpoint` wrote, once its checksum is right."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            if about.get("format") != FORMAT:
                came = f'"{shown(about["format"])}"' if "format" in about else "another program's weights"
                raise _Other(
                    f'{path} is not a checkpoint of a run: "{FORMAT}" was expected, but {came} came.'
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(about["facts"])
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no checkpoint {path}.") from None
    except _Other as error:
        raise ValueError(str(error)) from None
    except (SafetensorError, KeyError, ValueError, RuntimeError, OSError, MemoryError) as error:
        raise ValueError(f"{path} is damaged or not a checkpoint: {_short(error)}.") from None
    if _checksum(tensors, about["facts"]) != about.get("checksum"):
        raise ValueError(f"{path} is damaged: its checksum does not fit its content.")
    if not isinstance(facts, dict):
        raise ValueError(
            f"{path} is not a checkpoint: its facts must be an object, but {kind_of(facts)} came."
        )
    return Checkpoint(tensors, facts)


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Weights for use elsewhere: a plain safetensors file, with a checksum that others need not know."""
    plain = _plain(tensors)
    _write(path, plain, {WEIGHTS: _checksum(plain, "")})  # one entry: several would come in any order


def load_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a plain safetensors file of weights; one of ours must fit its checksum."""
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if WEIGHTS in about and _checksum(tensors, "") != about[WEIGHTS]:
            raise ValueError(f"{path} is damaged: its checksum does not fit its content.")
        return tensors
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    except (SafetensorError, RuntimeError, OSError, MemoryError) as error:
        raise ValueError(
            f"{path} is not a safetensors file ({_short(error)}). "
            "Pickled weights are not read, since they can run code: save them with safetensors."
        ) from None


def require_fitting(module: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Tensors with the names and shapes of the module's."""
    ours = module.state_dict()
    missing, extra = sorted(ours.keys() - tensors.keys()), sorted(tensors.keys() - ours.keys())
    shapes = sorted(n for n in ours.keys() & tensors.keys() if ours[n].shape != tensors[n].shape)
    if missing or extra or shapes:
        raise ValueError(
            f"the weights in {where} are of another network: {len(missing)} missing{_first(missing)}, "
            f"{len(extra)} unknown{_first(extra)}, {len(shapes)} of another shape{_first(shapes)}."
        )


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
