"""What a sweep found: mean and spread over seeds at each point, as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from auglabel.lab.runs.metric_list import OverSeeds, metric_named, over_seeds
from auglabel.lab.sweep.grid import Point
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.result import Result, mean_of
from auglabel.util.atomic_write import write_text
from auglabel.util.checksummed_json import write_checksummed

FORMAT = "auglabel sweep, version 1"
CHOOSES = "validation_nll"
PREFIX = {"clean": "", "corrupted": "c"}  # of test figures: accuracy, ece; caccuracy, cece


@dataclass(frozen=True)
class PointSummary:
    """A point, its runs, and what they reached: the values of each metric, one per run that is there."""

    point: Point
    jobs: Sequence[Job]
    there: Sequence[Job]
    values: Mapping[str, Sequence[float]]

    @cached_property
    def figures(self) -> dict[str, OverSeeds]:
        return {name: over_seeds(values) for name, values in self.values.items()}

    @property
    def whole(self) -> bool:
        """Whether every run is there and says how well it does on validation images."""
        return len(self.there) == len(self.jobs) and CHOOSES in self.values


@dataclass(frozen=True)
class Summary:
    """A line per point, and `measure`, the names of what was measured on test images."""

    lines: Sequence[PointSummary]
    measure: Sequence[str]

    @property
    def choice(self) -> PointSummary | None:
        """The point of lowest mean validation NLL; one that lacks a run is not chosen."""
        whole = [line for line in self.lines if line.whole]
        return min(whole, key=lambda line: line.figures[CHOOSES].mean, default=None)

    @property
    def names(self) -> list[str]:
        """The names of all figures, in the order of the columns."""
        test = [f"{_prefix(name)}{metric}" for name in self.measure for metric in ("accuracy", "ece")]
        return [*(f"validation_{metric}" for metric in ("accuracy", "ece", "nll")), *test]

    def write(self, path: Path, about: Mapping[str, object]) -> None:
        """`summary.json` and `summary.csv` in a folder."""
        choice = self.choice
        points = [_plain(line) for line in self.lines]
        chosen = None if choice is None else choice.point.name
        write_checksummed(
            path / "summary.json", {"format": FORMAT, **about, "choice": chosen, "points": points}
        )
        write_text(path / "summary.csv", self._csv())

    def _csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        options = list(self.lines[0].point.values)
        columns = [f"{name}_{part}" for name in self.names for part in OverSeeds._fields]
        writer.writerow(["name", *options, "runs", "missing", *columns, "choice"])
        for line in self.lines:
            values = [value for name in self.names for value in line.figures.get(name, ("", ""))]
            counts = [len(line.there), len(line.jobs) - len(line.there)]
            chosen = int(line is self.choice)
            writer.writerow([line.point.name, *line.point.values.values(), *counts, *values, chosen])
        return file.getvalue()

    def table(self, title: str) -> Table:
        """Under each mean its spread; how many runs there are is said where some are missing."""
        table = Table(title=Text(title), box=box.SIMPLE_HEAD, padding=0, caption=self._caption())
        table.add_column("", width=2)
        table.add_column("point", overflow="fold")
        before = ""
        for name in self.names:
            where, _, metric = name.rpartition("_")
            where = where or "test"
            head = f" {where}\n" if where != before else "\n"
            table.add_column(f"{head} {metric_named(metric).title}", justify="right", no_wrap=True)
            before = where
        for line in self.lines:
            lacking = "" if len(line.there) == len(line.jobs) else f" ({len(line.there)}/{len(line.jobs)})"
            cells = [_shown(name, line.values.get(name)) for name in self.names]
            mark, style = ("*", "bold") if line is self.choice else ("", "")
            table.add_row(mark, Text(f"{line.point.name}{lacking}"), *cells, style=style)
        return table

    def _caption(self) -> str:
        parts = ["accuracy and ECE in %"]
        if any(len(line.there) > 1 for line in self.lines):
            parts.append("below, the standard deviation over seeds")
        if any(len(line.there) < len(line.jobs) for line in self.lines):
            parts.append("(1/3): 1 of 3 runs is there")
        if self.choice is not None:
            parts.append("* the choice: lowest mean validation NLL")
        return "; ".join(parts)


def summary_of(
    runs: Sequence[tuple[Point, Sequence[Job]]], results: Results, measure: Sequence[str]
) -> Summary:
    """What the results that are there say of each point."""
    lines = []
    for point, jobs in runs:
        found = [(job, result) for job in jobs if (result := results.read(job)) is not None]
        figures = [_figures(result, measure) for _, result in found]
        names = [name for name in figures[0] if all(name in each for each in figures)] if figures else []
        values = {name: [each[name] for each in figures] for name in names}
        lines.append(PointSummary(point, jobs, [job for job, _ in found], values))
    return Summary(lines, measure)


def _figures(result: Result, measure: Sequence[str]) -> dict[str, float]:
    """The figures of one run by name; one measured on several rows, such as corrupted, is their mean."""
    seen = result.validation or {}
    found = {f"validation_{metric}": seen.get(metric) for metric in ("accuracy", "ece", "nll")}
    for name, evaluation in zip(measure, result.evaluations, strict=True):
        for metric in ("accuracy", "ece"):
            found[f"{_prefix(name)}{metric}"] = mean_of(evaluation.rows, metric)
    return {name: value for name, value in found.items() if value is not None}


def _prefix(name: str) -> str:
    return PREFIX.get(name, f"{name}_")


def _plain(line: PointSummary) -> dict[str, object]:
    return {
        "name": line.point.name,
        "values": {option: _value(text) for option, text in line.point.values.items()},
        "seeds": [job.recipe.training.seed for job in line.there],
        "missing": len(line.jobs) - len(line.there),
        "figures": {name: reading._asdict() for name, reading in line.figures.items()},
        "results": [f"results/{job.stem}.json" for job in line.there],
    }


def _value(text: str) -> object:
    """A number, list or word, as JSON has it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(name: str, values: Sequence[float] | None) -> str:
    metric = metric_named(name.rpartition("_")[2])
    return metric.mean_and_spread(values, "\n±") if values else "-"
