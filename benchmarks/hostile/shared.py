"""Shared models."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import save

from auglabel.lab.runs.checkpoint import WEIGHTS
from auglabel.lab.runs.checkpoint import _checksum as checkpoint_sum
from auglabel.lab.share.sharing import FORMAT as SHARED
from auglabel.models.small import SmallNet
from auglabel.table_file import FORMAT
from hostile.spoil import CANARY, Files, as_json, json_cases, with_files
from hostile.tables import a_table
from hostile.tensors import safetensors_cases


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
    return cases | {
        f"weights: {key}": functools.partial(with_files, good, make) for key, make in weights.items()
    }
