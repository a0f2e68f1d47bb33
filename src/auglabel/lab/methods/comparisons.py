"""What the runs of one data set were measured on, and what each method reached there."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from auglabel.corrupt import SEVERITIES, SUITES
from auglabel.lab.methods.methods import Method, TrainedRun
from auglabel.lab.recipe.recipe import flat
from auglabel.lab.runs.evaluations import BinSums, CorruptionFacts, MeasuredRow, MeasuredRun
from auglabel.lab.runs.metric_list import metric_named

NAMES = ("accuracy", "ece", "debiased_ece", "nll", "brier", "aurc", "ece T", "nll T", "ece TA", "nll TA")
METRICS = {name: metric_named(name) for name in NAMES}  # that are compared, where they were measured
Place = tuple[str, int | None]  # what was measured, and its severity
OVERALL: Place = ("corrupted", None)  # the mean over all pairs of corruption and severity


class Key(NamedTuple):
    """What rows must share to be compared."""

    images: str  # how many
    origin: str  # of corrupted or attacked ones
    weights: str  # "best checkpoint", or "" for the last
    identity: str  # which images, exactly

    @property
    def detail(self) -> str:
        return ", ".join(word for word in (self.origin, self.weights) if word)


@dataclass
class Comparison:
    """Images that several methods were measured on, in the same way."""

    title: str
    detail: str  # what else there is to say of the images
    rows: dict[Place, dict[str, dict[int, MeasuredRow]]] = field(default_factory=dict)
    # rows[place][method's title][seed]
    whole: bool = False  # all of the paper's corruptions, at all five severities

    def named(self, place: Place) -> str:
        """A place in words."""
        name = place[0] if place[1] is None else f"{place[0]} {place[1]}"
        pairs = [row.pairs for rows in self.rows[place].values() for row in rows.values() if row.pairs]
        return f"{name}{f', mean of {pairs[0]}' if pairs else ''}, {self.title}"

    def values(self, place: Place, method: str, metric: str) -> list[float]:
        """A metric of a method, one value per seed; empty where some seed has no such value."""
        rows = self.rows.get(place, {}).get(method, {})
        return _all([rows[seed].value(metric) for seed in sorted(rows)])

    def means(self, places: Sequence[Place], method: str, metric: str) -> list[float]:
        """The mean over places, one value per seed that was measured at all of them."""
        rows = [self.rows.get(place, {}).get(method, {}) for place in places]
        seeds = sorted(set.intersection(*map(set, rows))) if rows else []
        each = [_all([row[seed].value(metric) for row in rows]) for seed in seeds]
        return [statistics.fmean(values) for values in each] if all(each) else []

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for rows in self.rows.values() for method in rows))

    def graded(self) -> dict[str, list[int]]:
        """The severities that each corruption was measured at."""
        found: dict[str, list[int]] = {}
        for name, severity in self.rows:
            if severity is not None:
                found.setdefault(name, []).append(severity)
        return {name: sorted(some) for name, some in found.items()}

    def plain(self) -> list[Place]:
        """The places without a severity."""
        return [place for place in self.rows if place[1] is None]

    def bins(self, place: Place, method: str) -> BinSums | None:
        """The sums of a reliability diagram, over seeds and, for the mean, over pairs."""
        places = [each for each in self.rows if each[1] is not None] if place == OVERALL else [place]
        rows = [row for each in places for row in self.rows.get(each, {}).get(method, {}).values()]
        bins = [row.bins for row in rows if row.bins is not None]
        if not bins or len(bins) < len(rows) or len({len(each.count) for each in bins}) > 1:
            return None
        together = zip(*((each.count, each.confidence, each.correct) for each in bins), strict=True)
        return BinSums(*([sum(cell) for cell in zip(*part, strict=True)] for part in together))


def cell_of(metric: str, rows: Sequence[MeasuredRow]) -> str:
    """Mean ± standard deviation over seeds, or of a single one the value and its interval in brackets."""
    values, kind = _all([row.value(metric) for row in rows]), metric_named(metric)
    if not values:
        return "-"
    ends = rows[0].intervals.get(metric, ()) if len(rows) == 1 else ()
    interval = f" [{', '.join(map(kind.shown, ends))}]" if ends else ""
    return f"{kind.mean_and_spread(values)}{interval}"


def _all(values: Sequence[float | None]) -> list[float]:
    """The values, or none of them if one is missing."""
    known = [float(value) for value in values if value is not None]
    return known if len(known) == len(values) else []


def comparisons_of(methods: Sequence[Method]) -> list[Comparison]:
    """Group rows of the same images measured in the same way, whichever call of `eval` made them."""
    groups: dict[Key, Comparison] = {}
    for method in methods:
        for run in method.runs:
            for evaluation in run.evaluations.values():
                for place, row, key in _rows_of(evaluation, run):
                    if key not in groups:
                        groups[key] = Comparison(key.images, key.detail, whole=_whole(evaluation, run))
                    seeds = groups[key].rows.setdefault(place, {}).setdefault(method.title, {})
                    before = seeds.get(run.seed)  # the same measured twice counts once
                    seeds[run.seed] = row if before is None else before.with_temperatures(row)
    return _told_apart(list(groups.values()))


def _rows_of(evaluation: MeasuredRun, run: TrainedRun) -> Iterator[tuple[Place, MeasuredRow, Key]]:
    """Every row, and the mean over corruptions, with what it may be compared with."""
    weights = "best checkpoint" if evaluation.checkpoint == "best" else ""
    split = str(flat(run.recipe).get("split.test"))  # how many test images are cut off, if any
    origin, which = _origin(evaluation.corruptions)
    attack = evaluation.attack or {}
    for row in evaluation.rows:
        key = Key(f"{row.count:,} images", "", weights, split)
        if row.severity is not None:
            key = key._replace(origin=origin, identity=which + split)
        elif row.on != "clean":
            options = (f"{name} {value}" for name, value in attack.items() if value is not None)
            key = key._replace(origin=", ".join(options))
        yield (row.on, row.severity), row, key
    for mean in evaluation.means[-1:]:
        yield OVERALL, mean, Key(f"{mean.count:,} images", origin, weights, which + split)


def _origin(corruptions: CorruptionFacts | None) -> tuple[str, str]:
    """Who made corrupted images and how many kinds, in words; and which ones exactly, for comparing."""
    if corruptions is None:
        return "", ""
    names, severities = sorted(corruptions.names), corruptions.severities
    words = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    return f"{corruptions.origin}, {words} at severities {severities}", json.dumps([names, severities])


def _whole(evaluation: MeasuredRun, run: TrainedRun) -> bool:
    """Whether these are the corruptions that the paper measured on."""
    corruptions = evaluation.corruptions
    suite = "standard" if run.recipe["data"]["name"] == "imagenet" else "paper"
    return corruptions is not None and (
        set(corruptions.names) == set(SUITES[suite]) and list(corruptions.severities) == [*SEVERITIES]
    )


def _told_apart(comparisons: list[Comparison]) -> list[Comparison]:
    """Add the details to the titles of those that share a place and a title."""
    plain = [comparison.title for comparison in comparisons]
    for number, comparison in enumerate(comparisons):
        others = [c for c, title in zip(comparisons, plain, strict=True) if title == plain[number]]
        if any(comparison.rows.keys() & other.rows.keys() for other in others if other is not comparison):
            twins = [other for other in others if other.detail == comparison.detail]
            which = f" ({twins.index(comparison) + 1})" if len(twins) > 1 else ""
            comparison.title += f", {comparison.detail}{which}"
    return comparisons
