"""A figure of a report: Vega-Lite charts by altair, the controls that the page sets, and their data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.vega import COLOURS

PANEL = 250  # pixels
Records = Sequence[Sequence[object]]  # the rows of a figure's data


@dataclass(frozen=True)
class Control:
    """A choice or slider of the reader's: a parameter that all panels of a figure share."""

    name: str
    label: str
    values: Sequence[str | int]
    slider: bool = False

    @property
    def start(self) -> str | int:
        """The first value; the last for a slider."""
        return self.values[-1 if self.slider else 0]


@dataclass(frozen=True)
class ReportFigure:
    """Charts side by side, drawn from the same data."""

    name: str
    title: str
    note: str
    columns: Sequence[str]
    records: Records
    panels: Sequence[tuple[str, Mapping[str, Any]]]  # a title, and Vega-Lite without its data
    controls: Sequence[Control] = field(default_factory=list)

    def alone(self) -> dict[str, Any]:
        """All panels as one Vega-Lite chart that holds its data."""
        panels = [{**spec, "title": title} for title, spec in self.panels]
        values = [dict(zip(self.columns, record, strict=True)) for record in self.records]
        kept: dict[str, Any] = {key: panels[0][key] for key in ("$schema", "params") if key in panels[0]}
        inner = [{key: value for key, value in panel.items() if key not in kept} for panel in panels]
        sized = [panel | {"width": PANEL} if panel.get("width") == "container" else panel for panel in inner]
        return {**kept, "datasets": {"records": values}, "concat": sized, "columns": 3}


def only(alt: Any, chart: Any, method: str | None, controls: Sequence[Control]) -> Any:
    """Keep the records of a method, and those that the controls choose."""
    if method is not None:
        chart = chart.transform_filter(alt.FieldEqualPredicate(field="labels", equal=method))
    for control in controls:
        chart = chart.add_params(alt.param(name=control.name, value=control.start))
        if control.slider:  # the last epoch up to the one chosen: not all methods have the same
            chart = chart.transform_filter(f"datum.{control.name} <= {control.name}")
            chart = chart.transform_joinaggregate(latest=f"max({control.name})")
            chart = chart.transform_filter(f"datum.{control.name} === datum.latest")
        else:
            chart = chart.transform_filter(f"datum.{control.name} === {control.name}")
    return chart


def new_chart(alt: Any) -> Any:
    """A chart of the records that the page, or `alone`, adds."""
    return alt.Chart(alt.NamedData(name="records"))


def as_vega(chart: Any) -> dict[str, Any]:
    """A chart as Vega-Lite without its data."""
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    for layer in spec.get("layer", []):  # data on a layer would escape the filters on all of them
        layer.pop("data", None)
    return spec | {"data": {"name": "records"}}


def colour_of(alt: Any, methods: Sequence[str]) -> Any:
    visible = (*COLOURS[:-1], "#888888")  # black would be lost on a dark page
    colours = [visible[place % len(visible)] for place in range(len(methods))]
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=320, symbolOpacity=1)
    scale = alt.Scale(domain=list(methods), range=colours)
    return alt.Color("labels:N", sort=list(methods), title=None, scale=scale, legend=legend)


def metric_control(records: Records, column: int) -> Control:
    """The first metric to show is ECE, or NLL where training is watched."""
    found = list(dict.fromkeys(str(record[column]) for record in records))
    first = [name for name in ("ECE", "validation NLL") if name in found]
    return Control("metric", "Metric", list(dict.fromkeys([*first, *found])))


def images_control(records: Records, label: str = "Images") -> Control:
    """Which images, which records begin with."""
    return Control("images", label, list(dict.fromkeys(str(record[0]) for record in records)))


def corruption_controls(records: Records) -> list[Control]:
    """Which metric, and which corrupted images: records begin with the images, the labels and the metric."""
    return [metric_control(records, 2), images_control(records, "Corrupted images")]


def titles_in(methods: Sequence[Method], records: Records, column: int) -> list[str]:
    """The titles of the methods that occur in a column of the records, in order."""
    there = {record[column] for record in records}
    return [method.title for method in methods if method.title in there]


def spread_of(values: Sequence[float]) -> list[float]:
    """The mean, and one standard deviation over seeds below and above it."""
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return [round(value, 5) for value in (mean, mean - sd, mean + sd)]
