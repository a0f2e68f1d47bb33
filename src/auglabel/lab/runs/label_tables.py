"""tables.jsonl: the labels that a run has learned after each epoch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import Self

from auglabel.errors import UserError
from auglabel.lab.runs.files import read_lines
from auglabel.util.checks import brief, kind_of

MOST_KINDS, MOST_BUCKETS, MOST_EPOCHS = 1000, 20_000, 10**9  # of a table that is read

Confidences = dict[str, list[float]]  # a kind's name -> the label confidence of each of its levels


class LabelTable(NamedTuple):
    """A line of tables.jsonl: the label confidence of every bucket after an epoch."""

    epoch: int
    confidence: Confidences

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Self:
        epoch, rows = found.get("epoch"), found.get("confidence")
        if type(epoch) is not int or not 0 <= epoch <= MOST_EPOCHS:
            raise UserError(f'an object with a whole number as "epoch" was expected, got {kind_of(found)}.')
        if not isinstance(rows, dict) or not rows or not all(type(r) is list and r for r in rows.values()):
            raise UserError(f'"confidence" must hold a list of numbers per kind, got {kind_of(rows)}.')
        if len(rows) > MOST_KINDS or sum(map(len, rows.values())) > MOST_BUCKETS:
            raise UserError(
                f"a table has at most {MOST_KINDS:,} kinds and {MOST_BUCKETS:,} buckets, got more."
            )
        for value in (value for row in rows.values() for value in row):
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise UserError(f"every confidence must be a number in [0, 1], got {kind_of(value)}.")
        return cls(epoch, rows)

    @property
    def levels(self) -> dict[str, int]:
        """The number of levels of each kind."""
        return {kind: len(row) for kind, row in self.confidence.items()}


History = Sequence[LabelTable]  # in the order of epochs


def read_history(path: str | os.PathLike[str]) -> list[LabelTable]:
    """The tables of a run's tables.jsonl.

    A last line that broke off while it was written is left out. An epoch that is there twice, as after a
    resumed run, replaces the first one and those after it.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist: training writes it, a line per epoch.")
    history: list[LabelTable] = []
    for number, found in read_lines(Path(path)).items():
        try:
            _add(LabelTable.read(found), history)
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
    if not history:
        raise UserError(f"{path} holds no epoch yet.")
    return history


def _add(table: LabelTable, history: list[LabelTable]) -> None:
    while history and history[-1].epoch >= table.epoch:
        history.pop()
    if history and history[0].levels != table.levels:
        raise UserError(
            "it is a table for other distances than the lines before: "
            f"{brief(table.levels)} after {brief(history[0].levels)}."
        )
    history.append(table)


def thinned(count: int, most: int) -> list[int]:
    """At most that many of the numbers below `count`, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
