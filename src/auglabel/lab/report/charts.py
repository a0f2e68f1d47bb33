"""The charts of a report: Vega-Lite by altair, with controls that the page sets, and their data as CSV."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auglabel.lab.paper.charts import COLOURS, load_altair
from auglabel.lab.pictures.inspect import shape_of
from auglabel.lab.pictures.preview import WEAKEST_RED
from auglabel.lab.report.conditions import METRICS, PERCENT, Condition, Place
from auglabel.lab.report.subject import Method

MOST_POINTS = 12_000  # of the learned labels: more would make the page heavy, so epochs are thinned
MOST_EPOCHS = 200  # of the curves
PANEL = 250  # pixels


@dataclass(frozen=True)
class Control:
    """Something that the reader sets: a value of a parameter that all panels of a figure share."""

    name: str
    label: str
    values: Sequence[str | int]
    slider: bool = False

    @property
    def start(self) -> str | int:
        """A slider starts at its end."""
        return self.values[-1 if self.slider else 0]


@dataclass(frozen=True)
class Figure:
    """Charts side by side, drawn from the same data."""

    name: str
    title: str
    note: str
    columns: Sequence[str]
    records: Sequence[Sequence[object]]
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


def figures_of(methods: Sequence[Method], conditions: Sequence[Condition]) -> list[Figure]:
    """Every chart that there are figures for."""
    alt = load_altair()
    drawn = [
        reliability(alt, methods, conditions),
        severity(alt, methods, conditions),
        heat_maps(alt, methods, conditions),
        learned(alt, methods),
        curves(alt, methods),
        cost(alt, methods),
    ]
    return [figure for figure in drawn if figure is not None]


def reliability(alt: Any, methods: Sequence[Method], conditions: Sequence[Condition]) -> Figure | None:
    """Accuracy against confidence, bin by bin, over all seeds."""
    records: list[list[object]] = []
    for condition in conditions:
        for place in _worth_drawing(condition):
            for method in condition.methods:
                bins = condition.bins(place, method)
                if bins is not None:
                    records += _bars(condition.named(place), method, bins)
    if not records:
        return None
    columns = ["images", "labels", "low", "high", "count", "share", "confidence", "accuracy"]
    shown = _control("images", "Images", [str(record[0]) for record in records])
    most = max(float(str(record[5])) for record in records)
    panels = [(title, _reliability_panel(alt, title, shown, most)) for title in _those(methods, records, 1)]
    note = (
        "Bars: accuracy of the predictions in each bin of confidence; the stronger the colour, the more of "
        "them. Red: from there to their mean confidence. A red line under the diagonal is over-confidence."
    )
    return Figure("reliability", "Reliability diagrams", note, columns, records, panels, [shown])


def _worth_drawing(condition: Condition) -> list[Place]:
    """Images without a severity, and the worst of each corruption."""
    worst = [(name, levels[-1]) for name, levels in condition.graded().items()]
    return condition.plain() if len(worst) > 4 else [*condition.plain(), *worst]


def _bars(images: str, method: str, bins: Mapping[str, Sequence[float]]) -> list[list[object]]:
    total, width = sum(bins["count"]), 1 / len(bins["count"])
    return [
        [
            images,
            method,
            round(index * width, 4),
            round((index + 1) * width, 4),
            int(count),
            round(count / total, 5),
            round(confidence / count, 5),
            round(correct / count, 5),
        ]
        for index, (count, confidence, correct) in enumerate(
            zip(bins["count"], bins["confidence"], bins["correct"], strict=True)
        )
        if count
    ]


def _reliability_panel(alt: Any, method: str, shown: Control, most: float) -> dict[str, Any]:
    unit = alt.Scale(domain=[0, 1], nice=False)
    of_all = [
        alt.Tooltip("count:Q", title="images", format=","),
        alt.Tooltip("confidence:Q", format=".1%"),
        alt.Tooltip("accuracy:Q", format=".1%"),
    ]
    base = _chart(alt).encode(tooltip=of_all)
    share = alt.Opacity("share:Q", legend=None, scale=alt.Scale(domain=[0, most], range=[0.25, 1]))
    bars = base.mark_bar(color=COLOURS[0], binSpacing=1).encode(
        x=alt.X("low:Q", title="confidence", scale=unit, axis=alt.Axis(format="%", grid=False, tickCount=5)),
        x2="high:Q",
        y=alt.Y("accuracy:Q", title="accuracy", scale=unit, axis=alt.Axis(format="%", tickCount=5)),
        y2=alt.datum(0),
        opacity=share,
    )
    gap = base.mark_rule(color="#D62728", strokeWidth=2.5).encode(
        x=alt.X("confidence:Q", title="confidence"), y="accuracy:Q", y2="confidence:Q"
    )
    # The diagonal is drawn from one record, so that it needs no data of its own.
    diagonal = (
        _chart(alt)
        .transform_window(number="row_number()")
        .transform_filter("datum.number === 1")
        .mark_rule(strokeDash=[4, 4], color="#888")
        .encode(x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1))
    )
    chart = _of(alt, alt.layer(bars, diagonal, gap), method, [shown])
    return _plain(chart.properties(width=PANEL, height=PANEL))


def severity(alt: Any, methods: Sequence[Method], conditions: Sequence[Condition]) -> Figure | None:
    """Each metric against the severity, mean over corruptions."""
    records: list[list[object]] = []
    for condition in conditions:
        graded = condition.graded()
        levels = sorted({level for some in graded.values() for level in some})
        for method in condition.methods if len(levels) > 1 else ():
            for metric in METRICS:
                for level in levels:
                    places = [(name, level) for name, some in graded.items() if level in some]
                    cell = condition.mean(places, method, metric)
                    if cell is not None:
                        words = [condition.title, method, METRICS[metric], level]
                        records.append([*words, *_spread(cell.values)])
    if not records:
        return None
    columns = ["images", "labels", "metric", "severity", "mean", "low", "high"]
    controls = [
        _metric_control(records, 2),
        _control("images", "Corrupted images", [str(record[0]) for record in records]),
    ]
    chart = _chart(alt).encode(
        x=alt.X("severity:Q", axis=alt.Axis(tickMinStep=1, grid=False), title="severity"),
        color=_colour(alt, _those(methods, records, 1)),
        tooltip=["labels:N", "severity:Q", "metric:N", alt.Tooltip("mean:Q", format=".4f")],
    )
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False))
    layers = alt.layer(
        chart.mark_line().encode(y=y),
        chart.mark_rule().encode(y="low:Q", y2="high:Q"),
        chart.mark_point(filled=True, size=45, opacity=1).encode(y=y),
    )
    spec = _plain(_of(alt, layers, None, controls).properties(width="container", height=280))
    note = "The plain mean over all corruptions at each severity; bars: standard deviation over seeds."
    return Figure("severity", "Against severity", note, columns, records, [("", spec)], controls)


def heat_maps(alt: Any, methods: Sequence[Method], conditions: Sequence[Condition]) -> Figure | None:
    """Every corruption at every severity."""
    records: list[list[object]] = []
    for condition in conditions:
        for name, levels in condition.graded().items():
            for method in condition.methods:
                for metric in METRICS:
                    for level in levels:
                        cell = condition.cell((name, level), method, metric)
                        if cell is not None:
                            value = round(cell.mean, 5)
                            words = [condition.title, method, METRICS[metric], name, level, value]
                            records.append([*words, _shown(metric, cell.mean)])
    if not records:
        return None
    columns = ["images", "labels", "metric", "corruption", "severity", "mean", "shown"]
    controls = [
        _metric_control(records, 2),
        _control("images", "Corrupted images", [str(record[0]) for record in records]),
    ]
    ends = {
        str(metric): [float(str(record[5])) for record in records if record[2] == metric]
        for metric in controls[0].values
    }
    names = list(dict.fromkeys(str(record[3]) for record in records))
    panels = [
        (title, _map_panel(alt, title, controls, ends, names, "corruption", "severity", "severity"))
        for title in _those(methods, records, 1)
    ]
    note = "Mean over seeds. The colours of a metric mean the same in every panel."
    return Figure("corruptions", "By corruption and severity", note, columns, records, panels, controls)


def learned(alt: Any, methods: Sequence[Method]) -> Figure | None:
    """The label confidence of every bucket, with a slider over epochs."""
    learning = [method for method in methods if _same_shape(method)]
    if not learning:
        return None
    per_epoch = sum(sum(map(len, method.first.history[0][1].values())) for method in learning)
    most = max(2, MOST_POINTS // per_epoch)
    lowest = min(v for m in learning for s in m.subjects for row in s.history[-1][1].values() for v in row)
    digits = 0 if lowest < WEAKEST_RED else 1
    records: list[list[object]] = []
    for method in learning:
        by_epoch = [dict(subject.history) for subject in method.subjects]
        epochs = sorted(set.intersection(*map(set, by_epoch)))
        for number in _thinned(len(epochs), most):
            epoch = epochs[number]
            tables = [found[epoch] for found in by_epoch]
            for kind, row in tables[0].items():
                for level in range(len(row)):
                    mean = statistics.fmean(table[kind][level] for table in tables)
                    records.append(
                        [method.title, kind, level + 1, epoch, round(mean, 4), f"{100 * mean:.{digits}f}"]
                    )
    columns = ["labels", "kind", "level", "epoch", "confidence", "shown"]
    shown = sorted({int(str(record[3])) for record in records})
    slider = Control("epoch", "Epoch", shown, slider=True)
    ends = {"": [WEAKEST_RED, 1.0, *(float(str(record[4])) for record in records)]}
    panels = []
    for method in learning:
        kinds = list(method.first.history[0][1])
        chart = _map_panel(alt, method.title, [slider], ends, kinds, "kind", "level", "level, weak to strong")
        panels.append((method.title, chart))
    note = (
        "How confident the label of an augmented image became, in %, per kind and level of its distance; "
        "mean over seeds."
    )
    return Figure("labels", "Learned labels", note, columns, records, panels, [slider])


def _same_shape(method: Method) -> bool:
    """Whether all its runs learn labels, for the same distances."""
    shapes = [shape_of(subject.history[0][1]) if subject.history else {} for subject in method.subjects]
    return bool(shapes[0]) and all(shape == shapes[0] for shape in shapes)


def curves(alt: Any, methods: Sequence[Method]) -> Figure | None:
    """What was measured on the validation images after each epoch."""
    names = {"nll": "validation NLL", "ece": "validation ECE", "accuracy": "validation accuracy"}
    records: list[list[object]] = []
    for method in methods:
        for number in _thinned(min(len(subject.epochs) for subject in method.subjects), MOST_EPOCHS):
            each = [subject.epochs[number] for subject in method.subjects]
            found = {"training loss": [epoch["loss"] for epoch in each]}
            found |= {
                words: [epoch["validation"][name] for epoch in each]
                for name, words in names.items()
                if all(epoch.get("validation", {}).get(name) is not None for epoch in each)
            }
            for metric, values in found.items():
                if all(map(math.isfinite, values)):  # half precision may skip a step whose loss is not
                    records.append([method.title, metric, each[0]["epoch"], *_spread(values)])
    if not records:
        return None
    columns = ["labels", "metric", "epoch", "mean", "low", "high"]
    control = _metric_control(records, 1)
    chart = _chart(alt).encode(
        x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1, grid=False), title="epoch"),
        color=_colour(alt, _those(methods, records, 0)),
    )
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False))
    layers = alt.layer(
        chart.mark_line(point=len({str(r[2]) for r in records}) == 1).encode(
            y=y, tooltip=["labels:N", "epoch:Q", alt.Tooltip("mean:Q", format=".4f")]
        ),
        chart.mark_area(opacity=0.15).encode(
            y=alt.Y("low:Q", title=None, scale=alt.Scale(zero=False)), y2="high:Q"
        ),
    )
    spec = _plain(_of(alt, layers, None, [control]).properties(width="container", height=240))
    note = (
        "Mean and standard deviation over seeds. The loss is of each method's own labels: not to be compared."
    )
    return Figure("training", "While it trained", note, columns, records, [("", spec)], [control])


def cost(alt: Any, methods: Sequence[Method]) -> Figure | None:
    """Where the time of a run went."""
    records: list[list[object]] = []
    for method in methods:
        each = [seconds_of(subject.facts, subject.epochs) for subject in method.subjects]
        if all(each):
            for part in ("training", "calibrating", "validating"):
                mean = statistics.fmean(seconds.get(part, 0.0) for seconds in each)
                records.append([method.title, part, round(mean, 2)])
    if not records:
        return None
    titles, order = _those(methods, records, 0), ["training", "calibrating", "validating"]
    colour = alt.Color(
        "part:N",
        sort=order,
        title=None,
        scale=alt.Scale(domain=order, range=COLOURS[:3]),
        legend=alt.Legend(orient="bottom"),
    )
    chart = (
        _chart(alt)
        .transform_calculate(place=f"indexof({order}, datum.part)")
        .mark_bar()
        .encode(
            y=alt.Y("labels:N", sort=titles, title=None, axis=alt.Axis(labelLimit=180)),
            x=alt.X("seconds:Q", title="seconds of a run", stack="zero"),
            color=colour,
            order=alt.Order("place:Q"),
            tooltip=["labels:N", "part:N", "seconds:Q"],
        )
        .properties(width="container", height=26 * len(titles))
    )
    note = "Wall-clock time, mean over seeds: training also holds the augmentation."
    return Figure("cost", "Cost", note, ["labels", "part", "seconds"], records, [("", _plain(chart))])


def seconds_of(facts: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of a run, by part; empty where they were not written down."""
    if not all(epoch.get("images_per_second", 0) > 0 and "seconds" in epoch for epoch in epochs):
        return {}
    images = facts["data"]["images"]["train"]
    found = {"training": sum(images / epoch["images_per_second"] for epoch in epochs)}
    for epoch in epochs:
        for part, seconds in epoch["seconds"].items():
            found[part] = found.get(part, 0.0) + seconds
    return found


def _map_panel(
    alt: Any,
    method: str,
    controls: Sequence[Control],
    ends: Mapping[str, Sequence[float]],
    rows: Sequence[str],
    row: str,
    column: str,
    title: str,
) -> dict[str, Any]:
    """A heat map with the value in each cell; `ends` has the values of each metric, for the colours."""
    low, high = ({metric: limit(values) for metric, values in ends.items()} for limit in (min, max))
    falling = "" in ends  # labels: the lower the darker
    metric = "metric" if not falling else "''"
    scale = alt.Scale(
        scheme="orangered",
        reverse=falling,
        domainMin=alt.ExprRef(_looked_up(low, metric)),
        domainMax=alt.ExprRef(_looked_up(high, metric)),
    )
    value = "confidence" if falling else "mean"
    base = _chart(alt).encode(
        x=alt.X(f"{column}:O", title=title, axis=alt.Axis(labelAngle=0)),
        y=alt.Y(f"{row}:N", sort=list(rows), title=None, axis=alt.Axis(labelLimit=120)),
    )
    cells = base.mark_rect().encode(color=alt.Color(f"{value}:Q", legend=None, scale=scale))
    start, end = _looked_up(low, metric), _looked_up(high, metric)
    depth = f"(datum.{value} - {start}) / ({end} - {start} + 1e-9)"
    on_dark = f"{depth} < 0.35" if falling else f"{depth} > 0.65"
    words = base.mark_text(fontSize=10).encode(
        text="shown:N", color=alt.condition(on_dark, alt.value("white"), alt.value("#222"))
    )
    chart = _of(alt, alt.layer(cells, words), method, controls)
    return _plain(chart.properties(width="container", height=20 * len(rows)))


def _looked_up(values: Mapping[str, float], metric: str) -> str:
    """An expression: the value of the metric that is chosen."""
    if list(values) == [""]:
        return str(values[""])
    found = "0"
    for name, value in values.items():
        found = f"{metric} === '{name}' ? {value} : ({found})"
    return f"({found})"


def _of(alt: Any, chart: Any, method: str | None, controls: Sequence[Control]) -> Any:
    """Only the records of a method, and those that the controls ask for."""
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


def _chart(alt: Any) -> Any:
    """Of records that the page, or `alone`, adds."""
    return alt.Chart(alt.NamedData(name="records"))


def _plain(chart: Any) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("config", None)
    for layer in spec.get("layer", []):  # data on a layer would escape the filters on all of them
        layer.pop("data", None)
    return spec | {"data": {"name": "records"}}


def _colour(alt: Any, methods: Sequence[str]) -> Any:
    visible = (*COLOURS[:-1], "#888888")  # black would be lost on a dark page
    colours = [visible[place % len(visible)] for place in range(len(methods))]
    legend = alt.Legend(orient="bottom", columns=1, labelLimit=320, symbolOpacity=1)
    scale = alt.Scale(domain=list(methods), range=colours)
    return alt.Color("labels:N", sort=list(methods), title=None, scale=scale, legend=legend)


def _control(name: str, label: str, values: Iterable[str]) -> Control:
    each = list(dict.fromkeys(values))
    return Control(name, label, each)


def _metric_control(records: Sequence[Sequence[object]], column: int) -> Control:
    """The first metric to show is ECE, or NLL where training is watched."""
    found = list(dict.fromkeys(str(record[column]) for record in records))
    first = [name for name in ("ECE", "validation NLL") if name in found]
    return _control("metric", "Metric", [*first, *found])


def _those(methods: Sequence[Method], records: Sequence[Sequence[object]], column: int) -> list[str]:
    """The methods that the records speak of, in order."""
    there = {record[column] for record in records}
    return [method.title for method in methods if method.title in there]


def _spread(values: Sequence[float]) -> list[float]:
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return [round(value, 5) for value in (mean, mean - sd, mean + sd)]


def _thinned(count: int, most: int) -> list[int]:
    """At most that many of the numbers below `count`, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _shown(metric: str, value: float) -> str:
    return f"{100 * value:.0f}" if metric in PERCENT else f"{value:.2f}"
