"""A label table as a file: plain JSON that people can read and write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from torch import Tensor

from auglabel.distance import DistanceGrid

FORMAT = "auglabel table, version 1"


def save_table(path: str | os.PathLike[str], table: Tensor, grid: DistanceGrid) -> None:
    """Write the confidences of `grid`'s buckets, kind by kind; whole, or not at all."""
    if table.shape != (len(grid),):
        raise ValueError(f"the grid has {len(grid)} buckets, but the table has shape {tuple(table.shape)}.")
    rows = [part.tolist() for part in table.detach().cpu().double().split(list(grid.levels))]
    text = json.dumps({"format": FORMAT, "confidence": rows}, indent=1) + "\n"
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_table(path: str | os.PathLike[str], grid: DistanceGrid) -> Tensor:
    """The confidences (num_buckets,) that `save_table` wrote, once they are known to fit `grid`."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a label table: it is not JSON ({error}).") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f'{path} is not a label table: its "format" must be "{FORMAT}".')
    rows = found.get("confidence")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ValueError(f'{path}: "confidence" must be a list with one list of numbers per kind.')
    levels = tuple(len(row) for row in rows)
    if levels != grid.levels:
        raise ValueError(f"{path} is a table for levels {levels}, but the grid has levels {grid.levels}.")
    values = [value for row in rows for value in row]
    if not all(type(value) in (int, float) and 0 <= value <= 1 for value in values):
        raise ValueError(f"{path}: every confidence must be a number in [0, 1].")
    return torch.tensor(values, dtype=torch.float32)
