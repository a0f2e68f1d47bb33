"""A label table as a file, plain JSON that people can read and write, and as text on a screen."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from auglabel.distance import DistanceGrid
from auglabel.errors import UserError
from auglabel.util.checks import kind_of, require_unit, shown
from auglabel.util.checksummed_json import read_checksummed, write_checksummed

FORMAT = "auglabel table, version 1"
AUDIT = "auglabel audit, version 1"  # a table and what it was read off


def save_table(path: str | os.PathLike[str], table: Tensor, grid: DistanceGrid) -> None:
    """Write the confidences of `grid`'s buckets, kind by kind, atomically."""
    values = table.detach().cpu().double()
    require_unit("table", values)
    if len(values) != len(grid):
        raise UserError(f"the grid has {len(grid)} buckets, but the table has {len(values)}.")
    parts = zip(grid.kinds, values.split(list(grid.levels)), strict=True)
    write_checksummed(
        Path(path), {"format": FORMAT, "confidence": {kind: part.tolist() for kind, part in parts}}
    )


def load_table(path: str | os.PathLike[str], grid: DistanceGrid) -> Tensor:
    """Read the confidences (num_buckets,) of a table or an audit, and check that they fit `grid`."""
    rows = read_checksummed(Path(path), FORMAT, AUDIT, what="a label table").get("confidence")
    if not isinstance(rows, dict) or not all(isinstance(row, list) for row in rows.values()):
        raise UserError(f'{path}: "confidence" must hold a list of numbers per kind, got {kind_of(rows)}.')
    has, wants = (
        {kind: len(row) for kind, row in rows.items()},
        dict(zip(grid.kinds, grid.levels, strict=True)),
    )
    if has != wants:
        raise UserError(
            f"{path} is a table for other distances: it has {shown(has)}, but the grid has {shown(wants)}."
        )
    values = [value for kind in grid.kinds for value in rows[kind]]
    wrong = [value for value in values if type(value) not in (int, float) or not 0 <= value <= 1]
    if wrong:
        raise UserError(f"{path}: every confidence must be a number in [0, 1], got {kind_of(wrong[0])}.")
    return torch.tensor(values, dtype=torch.float32)


def table_text(table: Tensor, grid: DistanceGrid, head: str = "level") -> str:
    """The confidences in %, a line per kind, a column per level, under `head`."""
    parts = [part.tolist() for part in (100 * table.detach().cpu()).split(list(grid.levels))]
    width = max(map(len, (head, *grid.kinds)))
    numbers = "".join(f"{level:6}" for level in range(1, max(grid.levels) + 1))
    lines = [f"{head:>{width}}{numbers}"]
    for kind, part in zip(grid.kinds, parts, strict=True):
        lines.append(f"{kind:>{width}}" + "".join(f"{value:6.1f}" for value in part))
    return "\n".join(lines)
