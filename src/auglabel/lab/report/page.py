"""The page: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from auglabel import __version__
from auglabel.lab.methods.comparisons import METRICS, Comparison, Place, cell_of, comparisons_of
from auglabel.lab.methods.methods import Method, TrainedRun, by_data, methods_of
from auglabel.lab.methods.verdict import Verdict
from auglabel.lab.paper.page import Block
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.report.figure import ReportFigure
from auglabel.lab.report.figures import figures_of
from auglabel.lab.report.paper_values import paper_value
from auglabel.util.resources import resource_folder

HERE = resource_folder("lab/report")
WIDEST = 1400  # pixels of a picture
SHOWN = 6  # names of classes
ALWAYS = ("accuracy", "ece", "debiased_ece", "nll", "brier", "ece T", "nll T")  # columns, measured or not


@dataclass(frozen=True)
class Picture:
    """A contact sheet, as it goes into the page."""

    title: str
    source: str  # data:
    width: int
    height: int


@dataclass(frozen=True)
class Section:
    """The part of the page on one data set."""

    name: str
    checksum: str
    methods: Sequence[Method]
    comparisons: Sequence[Comparison]
    figures: Sequence[ReportFigure]
    pictures: Sequence[Picture]

    @property
    def about(self) -> str:
        """Which classes and what size its images have; "" in runs of older versions."""
        data = self.methods[0].first.facts.data
        if data.classes is None or data.shape is None:
            return ""
        shown = [*data.classes[:SHOWN], *(["..."] if len(data.classes) > SHOWN else [])]
        channels, height, width = data.shape
        colour = {1: "grey, ", 3: "colour, "}.get(channels, "")
        return f"{len(data.classes)} classes: {', '.join(shown)}; {colour}{width} x {height} pixels"

    @property
    def rows(self) -> list[tuple[Comparison, Place, Method]]:
        """What the table has a row for."""
        return [
            (comparison, place, method)
            for comparison in self.comparisons
            for place in comparison.plain()
            for method in self.methods
            if method.title in comparison.rows[place]
        ]

    @cached_property
    def verdict(self) -> Verdict:
        """What the methods show, in words and a small table."""
        return Verdict.of(self.methods, self.comparisons)

    @property
    def marked(self) -> bool:
        """Whether a cell of the verdict's table is marked as the best, or as equal to it."""
        return any(cell.mark for _, cells in self.verdict.rows for cell in cells)

    @property
    def diagnoses(self) -> list[tuple[str, str]]:
        """For each method, what eval said of the clean images of its first seed that was measured."""
        found = []
        for method in self.methods:
            told = [(r.seed, e.diagnosis) for r in method.runs for e in r.evaluations.values() if e.diagnosis]
            found += [(f"{method.title}, seed {seed}", words) for seed, words in told[:1]]
        return found

    @property
    def intervals(self) -> bool:
        """Whether the tables have any."""
        return any("[" in cell for row in self.table.body for cell in row[3:])

    @property
    def table(self) -> Block:
        """What each method reached, mean ± standard deviation over seeds; the paper's in parentheses."""
        there = [name for name in METRICS if any(self._values(*row, name) for row in self.rows)]
        shown = [name for name in METRICS if name in there or name in ALWAYS]
        body = []
        for comparison, place, method in self.rows:
            cells = [self._cell(comparison, place, method, metric) for metric in shown]
            seeds = str(len(comparison.rows[place][method.title]))
            body.append([comparison.named(place), method.title, seeds, *cells])
        return Block("", ["images", "labels", "seeds", *(METRICS[metric].heading for metric in shown)], body)

    @staticmethod
    def _values(comparison: Comparison, place: Place, method: Method, metric: str) -> list[float]:
        return comparison.values(place, method.title, metric)

    @staticmethod
    def _cell(comparison: Comparison, place: Place, method: Method, metric: str) -> str:
        ours = cell_of(metric, list(comparison.rows[place][method.title].values()))
        paper = paper_value(method, comparison, place, metric)
        return ours if paper is None else f"{ours} ({paper:.1f})"

    @property
    def from_paper(self) -> bool:
        """Whether the table holds any of the paper's numbers."""
        return any(
            paper_value(method, comparison, place, metric) is not None
            for comparison, place, method in self.rows
            for metric in METRICS
        )

    @property
    def costs(self) -> Block:
        """For each method its time by the clock and on processors, its speed and the share of calibration."""
        body = []
        for method in self.methods:
            each = [run.seconds for run in method.runs]
            if not all(sum(parts.values()) > 0 for parts in each):
                continue
            seconds = statistics.fmean(sum(parts.values()) for parts in each)
            share = statistics.fmean(parts.get("calibrating", 0.0) / sum(parts.values()) for parts in each)
            speeds = [epoch.images_per_second or 0.0 for run in method.runs for epoch in run.epochs]
            facts, cpu = method.first.facts, [run.epochs[-1].cpu_seconds or 0.0 for run in method.runs]
            body.append(
                [
                    method.title,
                    f"{facts.parameters:,}",
                    f"{facts.data.images['train']:,}",
                    str(len(method.first.epochs)),
                    f"{seconds:,.0f}",
                    f"{statistics.fmean(cpu):,.0f}" if all(cpu) else "-",
                    f"{statistics.median(speeds):,.0f}",
                    f"{share:.1%}",
                ]
            )
        heads = ["parameters", "training images", "epochs", "wall, s", "CPU, s", "images/s", "calibration"]
        return Block("", ["labels", *heads], body)


def parts_of(runs: Sequence[TrainedRun], pictures: Sequence[tuple[str, Picture]] = ()) -> list[Section]:
    """One part for each data set; `pictures` come with the name of their run."""
    parts = []
    for group in by_data(runs):
        methods, names, data = methods_of(group), {run.name for run in group}, group[0].facts.data
        comparisons = comparisons_of(methods)
        shown = [picture for name, picture in pictures if name in names]
        figures = figures_of(methods, comparisons)
        parts.append(Section(data.name, data.checksum, methods, comparisons, figures, shown))
    return parts


def render(title: str, parts: Sequence[Section], notes: Sequence[str]) -> str:
    """The page as HTML."""
    load_altair()
    import jinja2
    import vl_convert

    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["recipe"] = _recipe_text
    environment.filters["unbroken"] = lambda head: head.replace(", %", ",\u00a0%").replace(
        "x 1000", "x\u00a01000"
    )
    return environment.get_template("page.html").render(
        title=title,
        parts=parts,
        notes=notes,
        version=__version__,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "page.js").read_text(encoding="utf-8"),
        library=vl_convert.javascript_bundle(),  # type: ignore[call-arg]
        data=_as_script([[_as_data(figure) for figure in part.figures] for part in parts]),
    )


def _as_data(figure: ReportFigure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "columns": figure.columns,
        "records": figure.records,
        "panels": [spec for _, spec in figure.panels],
        "start": {control.name: control.start for control in figure.controls},
        "values": {control.name: list(control.values) for control in figure.controls},
    }


def _as_script(value: object) -> str:
    """JSON that cannot end the script element that it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _recipe_text(run: TrainedRun) -> str:
    plain = dict(run.recipe)
    return str(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=80, allow_unicode=True))


def picture_of(title: str, sheet: Any) -> Picture:
    """A PIL image for the page, reduced to a width of at most 1,400 pixels."""
    if sheet.width > WIDEST:
        sheet = sheet.resize((WIDEST, round(sheet.height * WIDEST / sheet.width)))
    file = io.BytesIO()
    sheet.convert("RGB").save(file, "WEBP", quality=82, method=6)
    source = f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    return Picture(title, source, sheet.width, sheet.height)
