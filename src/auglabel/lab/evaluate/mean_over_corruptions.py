"""cECE and its kin: the plain mean of each metric over pairs of corruption and severity."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auglabel.lab.evaluate.evaluate import Row
from auglabel.lab.predictions.bootstrap import Figure


class Mean(NamedTuple):
    """The mean of `pairs` rows, by metric: as trained, and `scaled` at each fitted temperature."""

    on: str
    pairs: int
    figures: dict[str, float]
    scaled: dict[str, dict[str, float]]


def means_over_corruptions(rows: Sequence[Row]) -> list[Mean]:
    """Of each corruption over its severities and, last, of all pairs; nothing where no row has a severity."""
    graded = [row for row in rows if row.severity is not None]
    groups = {row.on: [each for each in graded if each.on == row.on] for row in graded}
    groups |= {"corrupted": graded} if graded else {}
    return [
        Mean(
            name,
            len(some),
            _mean([row.figures for row in some]),
            {at: _mean([row.scaled[at] for row in some]) for at in some[0].scaled},
        )
        for name, some in groups.items()
    ]


def _mean(parts: Sequence[Mapping[str, Figure]]) -> dict[str, float]:
    return {name: statistics.fmean(part[name].value for part in parts) for name in parts[0]}
