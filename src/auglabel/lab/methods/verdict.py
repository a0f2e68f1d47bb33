"""What runs show, in words and in one small table: which methods differ, and which one to use.

Methods are compared seed by seed. They differ where the 95 % Student interval of the mean difference leaves
out 0, each metric by itself; anything else is called equal. With one seed nothing is called different.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from typing_extensions import Self

from auglabel.lab.methods.comparisons import OVERALL, Comparison, Place, cell_of
from auglabel.lab.methods.methods import Method
from auglabel.lab.paper.claim_verdicts import Part
from auglabel.lab.runs.evaluations import MeasuredRow
from auglabel.lab.runs.metric_list import METRICS, Metric, metric_named
from auglabel.metrics import NOTICED

CLEAN: Place = ("clean", None)
JUDGED = ("accuracy", "ece", "nll")  # what sentences are about
SEEDS_FOR_ADVICE = 3
SHOWN = (*JUDGED, "aurc")


@dataclass(frozen=True)
class Line:
    """A method as trained, or at a temperature fitted on validation images: T clean ones, TA augmented."""

    method: str
    at: str = ""

    @property
    def title(self) -> str:
        return f"{self.method}, {self.at}" if self.at else self.method


@dataclass(frozen=True)
class Column:
    """A metric on clean images, or its mean over corruptions."""

    metric: str
    place: Place
    comparison: Comparison

    @property
    def kind(self) -> Metric:
        return METRICS[self.metric]

    @property
    def heading(self) -> str:
        return metric_named(f"{'c' * (self.place == OVERALL)}{self.metric}").heading

    def by_seed(self, line: Line) -> dict[int, float]:
        """The values of a line; empty where it was not measured."""
        found = {seed: row.value(self.name_at(line)) for seed, row in self.rows(line).items()}
        return {seed: value for seed, value in sorted(found.items()) if value is not None}

    def name_at(self, line: Line) -> str:
        """The metric at the line's temperature, which leaves accuracy as it is."""
        return f"{self.metric} {line.at}" if line.at and self.metric != "accuracy" else self.metric

    def rows(self, line: Line) -> Mapping[int, MeasuredRow]:
        return self.comparison.rows.get(self.place, {}).get(line.method, {})

    def difference(self, line: Line, other: Line) -> Part | None:
        """By how much a line is better than another, seed by seed; None with fewer than two seeds."""
        ours, theirs = self.by_seed(line), self.by_seed(other)
        sign = 1 if self.kind.higher_is_better else -1
        values = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
        return Part("", [], values) if len(values) > 1 else None

    def better(self, line: Line, other: Line) -> int:
        """1 if the line is certainly better, -1 if it is certainly worse, else 0."""
        part = self.difference(line, other)
        if part is None:
            return 0
        low, high = part.interval
        return 1 if low > 0 else -1 if high < 0 else 0


@dataclass(frozen=True)
class Cell:
    """The text of `cell_of`; `mark` is "best", "equal" to the best, or ""."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Verdict:
    """Methods by their titles, the plain one that others are compared with, and what was measured."""

    methods: Sequence[str]
    plain_title: str
    comparisons: Sequence[Comparison]

    @classmethod
    def of(cls, methods: Sequence[Method], comparisons: Sequence[Comparison]) -> Self:
        """Of the runs of a report; plain are one-hot labels, or else the first method."""
        one_hot = [m.title for m in methods if m.first.recipe["labels"]["name"] == "one_hot"]
        return cls([m.title for m in methods], (one_hot or [methods[0].title])[0], comparisons)

    @cached_property
    def columns(self) -> list[Column]:
        """The metrics that were measured, on the images that most methods share."""
        found = []
        for place in (CLEAN, OVERALL):
            there = [each for each in self.comparisons if place in each.rows]
            if there:
                widest = max(there, key=lambda each: len(each.rows[place]))
                found += [Column(metric, place, widest) for metric in SHOWN]
        return [column for column in found if any(column.by_seed(line) for line in self._every_line)]

    @property
    def _every_line(self) -> list[Line]:
        return [Line(method, at) for method in self.methods for at in ("", "T", "TA")]

    @cached_property
    def lines(self) -> list[Line]:
        """Each method as trained and at T; the plain one at TA, too."""
        plain = self.plain
        wanted = [line for line in self._every_line if line.at != "TA" or line.method == plain.method]
        return [line for line in wanted if self._measured(line)]

    def _measured(self, line: Line) -> bool:
        """Whether its NLL is known for every seed that its method has: some seeds may lack a temperature."""
        trained = replace(line, at="")
        return any(
            column.by_seed(line).keys() == column.by_seed(trained).keys() != set()
            for column in self._judged("nll")
        )

    @property
    def plain(self) -> Line:
        return Line(self.plain_title)

    def _seeds(self, method: str) -> set[int]:
        return {seed for column in self.columns for seed in column.by_seed(Line(method))}

    @cached_property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """The small table: a title and a cell per column, those at the best or equal to it marked."""
        best = [_best(column, self.lines) for column in self.columns]
        return [
            (line.title, [_cell(c, line, top) for c, top in zip(self.columns, best, strict=True)])
            for line in self.lines
        ]

    @cached_property
    def sentences(self) -> list[str]:
        """What each method changes against the plain one, and last what to use."""
        if len(self.methods) < 2 or not self.columns:
            return []
        if len(self._seeds(self.plain_title)) < 2:
            return [f"With one seed of {self.plain_title} nothing can be told apart: train at least three."]
        others = [Line(method) for method in self.methods if method != self.plain_title]
        return [*self._diagnosis(), *(self._sentence(line) for line in others), self._advice()]

    def _diagnosis(self) -> list[str]:
        """Whether the plain method is over-confident on clean images, where confidence was measured."""
        accuracy = self.columns[0]
        sure = replace(accuracy, metric="confidence").by_seed(self.plain)
        right = accuracy.by_seed(self.plain)
        if accuracy.place != CLEAN or len(sure) < 2 or sure.keys() != right.keys():
            return []
        gaps = Part("", [], [sure[seed] - right[seed] for seed in sure])
        (low, high), gap = gaps.interval, gaps.mean
        word = "over-confident" if gap > 0 else "under-confident"
        if low <= 0 <= high:
            word = "neither over- nor under-confident" if abs(gap) <= NOTICED else f"perhaps {word}"
        settled = low > 0 or high < 0 or max(-low, high) <= NOTICED
        doubt = "" if settled else f"; these {len(sure)} seeds do not settle it"
        says, is_right = (accuracy.kind.shown(statistics.fmean(each.values())) for each in (sure, right))
        return [
            f"{self.plain.title} is {word}: on average it says {says} % and is right on {is_right} %{doubt}."
        ]

    def _sentence(self, line: Line) -> str:
        shared = len(self._seeds(line.method) & self._seeds(self.plain_title))
        if shared < 2:
            return f"{line.title}: it shares no two seeds with {self.plain.title}, so nothing can be said."
        lacks = len(self._seeds(self.plain_title) - self._seeds(line.method))
        told = f"{line.title} ({shared} of {shared + lacks} seeds)" if lacks else line.title
        clean, corrupted = (self._changes(line, place) for place in (CLEAN, OVERALL))
        if not any(column.better(line, self.plain) for column in self._judged()):
            words = f"no difference from {self.plain.title} that these {shared} seeds show"
        else:
            words = "; on corrupted images ".join(filter(None, (clean, corrupted)))
        return f"{told}: {words}.{self._beside_temperature(line)}"

    def _judged(self, *names: str) -> Iterator[Column]:
        return (column for column in self.columns if column.metric in (names or JUDGED))

    def _changes(self, line: Line, place: Place) -> str:
        """`ECE 3.1 instead of 9.8, accuracy and NLL equal`"""
        changed, equal = [], []
        for column in (each for each in self._judged() if each.place == place):
            if column.difference(line, self.plain) is None:
                continue  # one of them was not measured there
            if column.better(line, self.plain):
                ours, theirs = _means(column, line, self.plain)
                changed.append(f"{column.kind.title} {ours} instead of {theirs}")
            else:
                equal.append(column.kind.title)
        return ", ".join([*changed, *([f"{_listed(equal)} equal"] if equal else [])])

    def _beside_temperature(self, line: Line) -> str:
        """Whether the plain method with a fitted temperature can be told apart from it."""
        scaled = replace(self.plain, at="T")
        columns = [c for c in self._judged("ece", "nll") if c.difference(line, scaled) is not None]
        if scaled not in self.lines or not columns:
            return ""
        found = [(column, column.better(line, scaled)) for column in columns]
        told = [
            f"{'corrupted ' * (column.place == OVERALL)}{column.kind.title} "
            f"{' against '.join(_means(column, line, scaled))}"
            for column, better in found
            if better
        ]
        if not told:
            return f" {self.plain.method} with a temperature is not told apart from it."
        word = {1: "worse", -1: "better"}.get(sum({better for _, better in found}), "differently")
        return f" {self.plain.method} with a temperature does {word}: {', '.join(told)}."

    def _advice(self) -> str:
        """What has a lower NLL than the plain method at no loss of accuracy; else that, at T if T helps."""
        if len(self._seeds(self.plain_title)) < SEEDS_FOR_ADVICE:
            return f"These seeds are too few to say what to use: train at least {SEEDS_FOR_ADVICE}."
        scaled = replace(self.plain, at="T")
        worse = scaled not in self.lines or any(c.better(self.plain, scaled) > 0 for c in self._judged("nll"))
        best = self.plain if worse else scaled
        winners = [line for line in self.lines if line.at != "TA" and self._beats(line, best)]
        if not winners:
            return f"Use {best.title}: no other method has a certainly lower NLL at no loss of accuracy."
        nll = list(self._judged("nll"))
        first = min(winners, key=lambda line: statistics.fmean(nll[0].by_seed(line).values()))
        lower = [str(column.place[0]) for column in nll if column.better(first, best) > 0]
        where = f" on {lower[0]} images" if len(lower) < len(nll) else ""
        return f"Use {first.title}: its NLL{where} is lower than that of {best.title}, its accuracy no lower."

    def _beats(self, line: Line, other: Line) -> bool:
        columns = [c for c in self._judged("nll", "accuracy") if c.difference(line, other) is not None]
        shared = self._seeds(line.method) & self._seeds(other.method)
        if line.method == other.method or len(shared) < SEEDS_FOR_ADVICE or not columns:
            return False
        found = [(column.metric, column.better(line, other)) for column in columns]
        return ("nll", 1) in found and all(better >= 0 for _, better in found)


def _listed(words: Sequence[str]) -> str:
    """`accuracy, ECE and NLL`"""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _means(column: Column, line: Line, other: Line) -> tuple[str, str]:
    """The means of two lines over the seeds that both have."""
    both = [column.by_seed(each) for each in (line, other)]
    seeds = both[0].keys() & both[1].keys()
    ours, theirs = (statistics.fmean(each[seed] for seed in seeds) for each in both)
    return column.kind.shown(ours), column.kind.shown(theirs)


def _best(column: Column, lines: Sequence[Line]) -> Line | None:
    """The line of the best mean over the seeds that all lines have; None where they share fewer than two."""
    known = {line: seen for line in lines if (seen := column.by_seed(line))}
    seeds = set.intersection(*map(set, known.values())) if known else set()
    if len(seeds) < 2:
        return None
    means = {line: statistics.fmean(seen[seed] for seed in seeds) for line, seen in known.items()}
    return (max if column.kind.higher_is_better else min)(means, key=lambda line: means[line])


def _cell(column: Column, line: Line, best: Line | None) -> Cell:
    values = column.by_seed(line)
    if not values:
        return Cell("-")
    text = cell_of(column.name_at(line), [column.rows(line)[seed] for seed in values])
    if best is None:
        return Cell(text)
    if values == column.by_seed(best):
        return Cell(text, "best")
    told_apart = column.difference(line, best) is None or column.better(line, best) < 0
    return Cell(text, "" if told_apart else "equal")
