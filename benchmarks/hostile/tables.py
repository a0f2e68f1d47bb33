"""Label tables and audits; files of several kinds in one folder."""

from __future__ import annotations

from typing import Any

from auglabel import RandAug
from auglabel.table_file import AUDIT
from hostile.recipes import spoil_recipe
from hostile.spoil import Draw, Files, spoil_bytes, spoil_json, spoil_lines
from hostile.tensors import spoil_safetensors

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
