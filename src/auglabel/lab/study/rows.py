"""What each table and figure rests on: its rows, at the paper's size, at CPU size, and at `fast`."""

from __future__ import annotations

from auglabel.lab.study.row import Scale, StudyRow
from auglabel.lab.study.rows_cpu import CPU
from auglabel.lab.study.rows_fast import FAST
from auglabel.lab.study.rows_paper import paper_rows
from auglabel.util.checks import entry

MADE: dict[Scale, dict[str, list[StudyRow]]] = {"cpu": CPU, "fast": FAST}  # of what has been run


def rows_of(name: str, scale: Scale) -> list[StudyRow]:
    """The rows that a table or figure rests on; none for those that are drawn without a run."""
    return list(entry("table or figure", paper_rows() if scale == "paper" else MADE[scale], name))


def rows_by_name(scale: Scale) -> dict[str, StudyRow]:
    """Every row of a scale at which rows take each other's choices."""
    return {row.name: row for rows in MADE[scale].values() for row in rows}
