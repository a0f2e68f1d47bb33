"""Metrics against the severity of corruptions and over the epochs of training, and where the time went."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from auglabel.lab.methods.comparisons import METRICS, Comparison
from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.vega import COLOURS
from auglabel.lab.report.figure import (
    ReportFigure,
    as_vega,
    axis_of,
    corruption_controls,
    metric_control,
    new_chart,
    only,
    spread_of,
    titles_in,
    told_apart,
)
from auglabel.lab.runs.label_tables import thinned

MOST_EPOCHS = 200  # of the training curves
SPENT_ON = ["training", "calibrating", "validating"]


def severity(alt: Any, methods: Sequence[Method], comparisons: Sequence[Comparison]) -> ReportFigure | None:
    """Each metric against the severity, mean over corruptions."""
    records = [record for comparison in comparisons for record in _by_severity(comparison)]
    controls = corruption_controls(records)
    if not records:
        return None
    columns = ["images", "labels", "metric", "severity", "mean", "low", "high"]
    titles = titles_in(methods, records, 1)
    y, cut = axis_of(alt, records, 2, 4)
    chart = new_chart(alt).encode(
        x=alt.X(
            "severity:O", axis=alt.Axis(labelAngle=0), title="severity", scale=alt.Scale(paddingInner=0.8)
        ),
        xOffset=alt.XOffset("labels:N", sort=titles),
        **told_apart(alt, titles),
        tooltip=["labels:N", "severity:Q", "metric:N", alt.Tooltip("mean:Q", format=".4f")],
    )
    mean, low = (alt.Y(f"{name}:Q", **y) for name in ("mean", "low"))
    layers = alt.layer(
        chart.mark_line(clip=True).encode(y=mean),
        chart.mark_rule(clip=True).encode(y=low, y2="high:Q"),
        chart.mark_point(filled=True, size=45, opacity=1, clip=True).encode(y=mean),
    )
    spec = as_vega(only(alt, layers, None, controls).properties(width="container", height=280))
    note = "The plain mean over all corruptions at each severity; bars: standard deviation over seeds."
    return ReportFigure("severity", "Against severity", note + cut, columns, records, [("", spec)], controls)


def _by_severity(comparison: Comparison) -> Iterator[list[object]]:
    graded = comparison.graded()
    levels = sorted({level for some in graded.values() for level in some})
    methods = comparison.methods if len(levels) > 1 else ()
    for method, (key, metric), level in itertools.product(methods, METRICS.items(), levels):
        places = [(name, level) for name, some in graded.items() if level in some]
        if values := comparison.means(places, method, key):
            yield [comparison.title, method, metric.title, level, *spread_of(values)]


def training(alt: Any, methods: Sequence[Method]) -> ReportFigure | None:
    """What was measured on the validation images after each epoch."""
    records = [record for method in methods for record in _by_epoch(method)]
    if not records:
        return None
    columns = ["labels", "metric", "epoch", "mean", "low", "high"]
    control = metric_control(records, 1)
    epochs = sorted({int(str(record[2])) for record in records})
    ticks = {"values": epochs} if len(epochs) < 10 else {"tickMinStep": 1}
    y, cut = axis_of(alt, records, 1, 3)
    mean, low = (alt.Y(f"{name}:Q", **y) for name in ("mean", "low"))
    apart = told_apart(alt, titles_in(methods, records, 0))
    chart = new_chart(alt).encode(
        x=alt.X("epoch:Q", axis=alt.Axis(grid=False, format="d", **ticks), title="epoch"),
        color=apart["color"],
    )
    layers = alt.layer(
        chart.mark_line(point=len(epochs) == 1, clip=True).encode(
            y=mean, tooltip=["labels:N", "epoch:Q", alt.Tooltip("mean:Q", format=".4f")], **apart
        ),
        chart.mark_area(opacity=0.15, clip=True).encode(y=low, y2="high:Q"),
    )
    spec = as_vega(only(alt, layers, None, [control]).properties(width="container", height=240))
    note = (
        "Mean and standard deviation over seeds. The loss is of each method's own labels: not to be compared."
    )
    return ReportFigure("training", "While it trained", note + cut, columns, records, [("", spec)], [control])


def _by_epoch(method: Method) -> Iterator[list[object]]:
    for number in thinned(min(len(run.epochs) for run in method.runs), MOST_EPOCHS):
        each = [run.epochs[number] for run in method.runs]
        found: dict[str, list[float | None]] = {"training loss": [epoch.loss for epoch in each]}
        for name in ("nll", "ece", "accuracy"):
            found[f"validation {METRICS[name].title}"] = [epoch.validation.get(name) for epoch in each]
        for metric, values in found.items():
            known = [value for value in values if value is not None and math.isfinite(value)]
            if len(known) == len(values):  # half precision may skip a step whose loss is not finite
                yield [method.title, metric, each[0].epoch, *spread_of(known)]


def cost(alt: Any, methods: Sequence[Method]) -> ReportFigure | None:
    """Where the time of a run went."""
    records: list[list[object]] = []
    for method in methods:
        if all(each := [run.seconds for run in method.runs]):
            for part in SPENT_ON:
                mean = statistics.fmean(seconds.get(part, 0.0) for seconds in each)
                records.append([method.title, part, round(mean, 2)])
    if not records:
        return None
    titles = titles_in(methods, records, 0)
    colour = alt.Color(
        "part:N",
        sort=SPENT_ON,
        title=None,
        scale=alt.Scale(domain=SPENT_ON, range=COLOURS[:3]),
        legend=alt.Legend(orient="bottom"),
    )
    chart = (
        new_chart(alt)
        .transform_calculate(place=f"indexof({SPENT_ON}, datum.part)")
        .mark_bar()
        .encode(
            y=alt.Y("labels:N", sort=titles, title=None, axis=alt.Axis(labelLimit=180)),
            x=alt.X("seconds:Q", title="seconds of a run", stack="zero", axis=alt.Axis(tickCount=6)),
            color=colour,
            order=alt.Order("place:Q"),
            tooltip=["labels:N", "part:N", "seconds:Q"],
        )
        .properties(width="container", height=26 * len(titles))
    )
    note = (
        "Wall-clock time, mean over seeds: training also holds the augmentation. CPU, in the table: time of "
        "the training processes on processors, without workers that decode images; other work on the machine "
        "stretches it far less."
    )
    return ReportFigure("cost", "Cost", note, ["labels", "part", "seconds"], records, [("", as_vega(chart))])
