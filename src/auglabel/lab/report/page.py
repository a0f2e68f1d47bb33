"""The page: one HTML file that asks nothing of the network."""

from __future__ import annotations

import base64
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from auglabel import __version__
from auglabel.lab.paper.charts import load_altair
from auglabel.lab.paper.page import Block
from auglabel.lab.report.charts import Figure, figures_of, seconds_of
from auglabel.lab.report.conditions import METRICS, PERCENT, Condition, conditions_of, paper_value
from auglabel.lab.report.subject import Method, Subject, by_data, methods_of
from auglabel.util.resources import resource_folder

HERE = resource_folder("lab/report")
WIDEST = 1400  # pixels of a picture


@dataclass(frozen=True)
class Picture:
    """A contact sheet, as it goes into the page."""

    title: str
    source: str  # data:
    width: int
    height: int


@dataclass(frozen=True)
class Part:
    """What there is to say of the runs on one data set."""

    name: str
    checksum: str
    methods: Sequence[Method]
    conditions: Sequence[Condition]
    figures: Sequence[Figure]
    pictures: Sequence[Picture]

    @property
    def table(self) -> Block:
        """What each method reached, mean and standard deviation over seeds; the paper's in parentheses."""
        body = []
        for condition in self.conditions:
            for place in condition.plain():
                for method in self.methods:
                    if method.title in condition.rows[place]:
                        cells = [self._cell(condition, place, method, metric) for metric in METRICS]
                        seeds = str(len(condition.rows[place][method.title]))
                        body.append([condition.named(place), method.title, seeds, *cells])
        heads = [f"{name}, %" if metric in PERCENT else name for metric, name in METRICS.items()]
        return Block("", ["images", "labels", "seeds", *heads], body)

    @staticmethod
    def _cell(condition: Condition, place: Any, method: Method, metric: str) -> str:
        cell = condition.cell(place, method.title, metric)
        scale, digits = (100, 1) if metric in PERCENT else (1, 3)
        shown = "-"
        if cell is not None:
            shown = f"{scale * cell.mean:.{digits}f}"
            shown += f" ± {scale * cell.sd:.{digits}f}" if len(cell.values) > 1 else ""
        paper = paper_value(method, condition, place, metric)
        return shown if paper is None else f"{shown} ({100 * paper:.1f})"

    @property
    def from_paper(self) -> bool:
        """Whether the table holds any of the paper's numbers."""
        return any(
            paper_value(method, condition, place, metric) is not None
            for condition in self.conditions
            for place in condition.plain()
            for method in self.methods
            for metric in METRICS
        )

    @property
    def costs(self) -> Block:
        """Per method: its time, its speed and the share of calibration."""
        body = []
        for method in self.methods:
            each = [seconds_of(subject.facts, subject.epochs) for subject in method.subjects]
            if not all(sum(parts.values()) > 0 for parts in each):
                continue
            seconds = statistics.fmean(sum(parts.values()) for parts in each)
            share = statistics.fmean(parts.get("calibrating", 0.0) / sum(parts.values()) for parts in each)
            speeds = [epoch["images_per_second"] for s in method.subjects for epoch in s.epochs]
            facts = method.first.facts
            body.append(
                [
                    method.title,
                    f"{facts['parameters']:,}",
                    f"{facts['data']['images']['train']:,}",
                    str(len(method.first.epochs)),
                    f"{seconds:,.0f}",
                    f"{statistics.median(speeds):,.0f}",
                    f"{share:.1%}",
                ]
            )
        heads = ["parameters", "training images", "epochs", "seconds", "images/s", "calibration"]
        return Block("", ["labels", *heads], body)


def parts_of(subjects: Sequence[Subject], pictures: Sequence[tuple[str, Picture]] = ()) -> list[Part]:
    """One part for each data set; `pictures` come with the name of the run that they are of."""
    parts = []
    for group in by_data(subjects):
        methods = methods_of(group)
        conditions = conditions_of(methods)
        names = {subject.name for subject in group}
        facts = group[0].facts["data"]
        parts.append(
            Part(
                facts["name"],
                facts["checksum"],
                methods,
                conditions,
                figures_of(methods, conditions),
                [picture for name, picture in pictures if name in names],
            )
        )
    return parts


def render(title: str, parts: Sequence[Part], notes: Sequence[str]) -> str:
    """The page as one text."""
    load_altair()
    import jinja2
    import vl_convert

    loader = jinja2.FileSystemLoader(HERE)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["recipe"] = _recipe_text
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


def _as_data(figure: Figure) -> dict[str, Any]:
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


def _recipe_text(subject: Subject) -> str:
    plain = dict(subject.recipe)
    return str(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=80, allow_unicode=True))


def picture_of(title: str, sheet: Any) -> Picture:
    """A PIL image, no wider than a page needs it."""
    if sheet.width > WIDEST:
        sheet = sheet.resize((WIDEST, round(sheet.height * WIDEST / sheet.width)))
    file = io.BytesIO()
    sheet.convert("RGB").save(file, "WEBP", quality=82, method=6)
    source = f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    return Picture(title, source, sheet.width, sheet.height)
