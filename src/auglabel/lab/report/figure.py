"""A figure of a report: Vega-Lite charts by altair, the controls that the page sets, and their data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auglabel.lab.methods.comparisons import METRICS
from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.vega import COLOURS

PANEL = 250  # pixels
DASHES = ([1, 0], [6, 3], [2, 2])  # of lines
PERCENT = [metric.title for metric in METRICS.values() if metric.unit == "%"]
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


def told_apart(alt: Any, methods: Sequence[str]) -> dict[str, Any]:
    """Encodings of lines by colour, and by their dashes where there are more methods than colours."""
    visible = (*COLOURS[:-1], "#888888")  # black would be lost on a dark page
    colours = [visible[place % len(visible)] for place in range(len(methods))]
    dashes = [DASHES[place // len(visible) % len(DASHES)] for place in range(len(methods))]
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=320, symbolOpacity=1, symbolType="stroke")
    legend.symbolStrokeWidth = 3
    shared = {"sort": list(methods), "title": None, "legend": legend}
    return {
        "color": alt.Color("labels:N", scale=alt.Scale(domain=list(methods), range=colours), **shared),
        "strokeDash": alt.StrokeDash(
            "labels:N", scale=alt.Scale(domain=list(methods), range=dashes), **shared
        ),
    }


def axis_of(alt: Any, records: Records, metric: int, mean: int) -> tuple[dict[str, Any], str]:
    """Options of the axis of the chosen metric, and what is to be said where it leaves out values.

    `metric` and `mean` are columns of the records; the labels stand before the metric.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        methods = found.setdefault(str(record[metric]), {})
        methods.setdefault(str(record[metric - 1]), []).append(float(str(record[mean])))
    percent = [name for name in found if name.removeprefix("validation ") in PERCENT]
    axis = alt.Axis(labelExpr=f"indexof({percent}, metric) < 0 ? datum.label : format(datum.value, '~%')")
    ends_of_all = [(name, ends_of([*methods.values()])) for name, methods in found.items()]
    cut = {name: each for name, each in ends_of_all if each != (None, None)}
    scale, note = alt.Scale(zero=False), ""
    if cut:
        limits = [" ".join(f"metric === '{n}' ? {_js(e[side])} :" for n, e in cut.items()) for side in (0, 1)]
        scale.domainMin, scale.domainMax = (alt.ExprRef(f"{limit} null") for limit in limits)
        note = f" The axis leaves out a few far values of {', '.join(cut)}, to show the rest."
    return {"title": None, "axis": axis, "scale": scale}, note


def ends_of(methods: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """Where an axis must end lest a few values flatten the rest; None where it may show all.

    Such values lie more than three times the range of the middle 80 % beyond it; that range is widened to
    the median of each method, whose line would else be nowhere.
    """
    ordered = sorted(value for values in methods for value in values)
    edge, medians = len(ordered) // 10, [statistics.median(values) for values in methods]
    low, high = min(ordered[edge], *medians), max(ordered[-1 - edge], *medians)
    wide = high - low
    if wide == 0:
        return None, None
    bottom = low - wide / 2 if ordered[0] < low - 3 * wide else None
    return bottom, high + wide / 2 if ordered[-1] > high + 3 * wide else None


def _js(value: float | None) -> str:
    return "null" if value is None else f"{value:.5g}"


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
