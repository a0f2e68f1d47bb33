"""What each table and figure rests on: its rows, at the paper's size, at CPU size, and at `fast`."""

from __future__ import annotations

from auglabel.lab.paper.row import Row, Scale
from auglabel.lab.paper.rows_cpu import CPU
from auglabel.lab.paper.rows_fast import FAST
from auglabel.lab.paper.rows_paper import paper_rows
from auglabel.util.checks import entry

MADE: dict[Scale, dict[str, list[Row]]] = {"cpu": CPU, "fast": FAST}  # of what has been run


def rows_of(name: str, scale: Scale) -> list[Row]:
    """The rows that a table or figure rests on; none for those that are drawn without a run."""
    if scale == "paper":
        return paper_rows(name)
    return list(entry("table or figure", MADE[scale], name))


def row_named(name: str, scale: Scale) -> Row:
    """A row of a scale at which rows take each other's choices."""
    return {row.name: row for rows in MADE[scale].values() for row in rows}[name]
