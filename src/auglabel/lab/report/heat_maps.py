"""Heat maps: each corruption at each severity, and the learned label of each bucket."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auglabel.lab.methods.comparisons import METRICS, Comparison
from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.contact_sheet import WEAKEST_RED
from auglabel.lab.report.figure import (
    Control,
    ReportFigure,
    as_vega,
    corruption_controls,
    new_chart,
    only,
    titles_in,
)
from auglabel.lab.runs.label_tables import thinned

MOST_POINTS = 12_000  # of the learned labels: more would make the page heavy, so epochs are thinned


def corruptions(
    alt: Any, methods: Sequence[Method], comparisons: Sequence[Comparison]
) -> ReportFigure | None:
    """Every corruption at every severity."""
    records = [record for comparison in comparisons for record in _cells(comparison)]
    controls = corruption_controls(records)
    if not records:
        return None
    columns = ["images", "labels", "metric", "corruption", "severity", "mean", "shown"]
    ends = {
        str(metric): [float(str(record[5])) for record in records if record[2] == metric]
        for metric in controls[0].values
    }
    names = list(dict.fromkeys(str(record[3]) for record in records))
    panels = [
        (title, _map_panel(alt, title, controls, ends, names, "corruption", "severity", "severity"))
        for title in titles_in(methods, records, 1)
    ]
    note = "Mean over seeds. The colours of a metric mean the same in every panel."
    return ReportFigure("corruptions", "By corruption and severity", note, columns, records, panels, controls)


def _cells(comparison: Comparison) -> Iterator[list[object]]:
    for name, levels in comparison.graded().items():
        for method, (key, metric), level in itertools.product(comparison.methods, METRICS.items(), levels):
            if values := comparison.values((name, level), method, key):
                mean = statistics.fmean(values)
                words = [comparison.title, method, metric.title, name, level]
                yield [*words, round(mean, 5), metric.shown(mean, fewer=1)]


def labels(alt: Any, methods: Sequence[Method]) -> ReportFigure | None:
    """The label confidence of every bucket, with a slider over epochs."""
    learning = [method for method in methods if _same_levels(method)]
    if not learning:
        return None
    most = max(2, MOST_POINTS // sum(sum(method.first.history[0].levels.values()) for method in learning))
    last = [run.history[-1].confidence for method in learning for run in method.runs]
    lowest = min(value for table in last for row in table.values() for value in row)
    digits = 0 if lowest < WEAKEST_RED else 1
    records = [record for method in learning for record in _buckets(method, most, digits)]
    columns = ["labels", "kind", "level", "epoch", "confidence", "shown"]
    shown = sorted({int(str(record[3])) for record in records})
    slider = Control("epoch", "Epoch", shown, slider=True)
    ends = {"": [WEAKEST_RED, 1.0, *(float(str(record[4])) for record in records)]}
    panels = []
    for method in learning:
        kinds = list(method.first.history[0].confidence)
        chart = _map_panel(alt, method.title, [slider], ends, kinds, "kind", "level", "level, weak to strong")
        panels.append((method.title, chart))
    note = (
        "How confident the label of an augmented image became, in %, per kind and level of its distance; "
        "mean over seeds."
    )
    return ReportFigure("labels", "Learned labels", note, columns, records, panels, [slider])


def _same_levels(method: Method) -> bool:
    """Whether all its runs learn labels, for the same distances."""
    levels = [run.history[0].levels if run.history else {} for run in method.runs]
    return bool(levels[0]) and all(each == levels[0] for each in levels)


def _buckets(method: Method, most: int, digits: int) -> Iterator[list[object]]:
    """The mean over seeds of every bucket's confidence, after at most `most` of the epochs."""
    by_epoch = [dict(run.history) for run in method.runs]
    epochs = sorted(set.intersection(*map(set, by_epoch)))
    for epoch in (epochs[number] for number in thinned(len(epochs), most)):
        tables = [found[epoch] for found in by_epoch]
        for kind, row in tables[0].items():
            for level in range(len(row)):
                mean = statistics.fmean(table[kind][level] for table in tables)
                yield [method.title, kind, level + 1, epoch, round(mean, 4), f"{100 * mean:.{digits}f}"]


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
    base = new_chart(alt).encode(
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
    chart = only(alt, alt.layer(cells, words), method, controls)
    return as_vega(chart.properties(width="container", height=20 * len(rows)))


def _looked_up(values: Mapping[str, float], metric: str) -> str:
    """An expression: the value of the metric that is chosen."""
    if list(values) == [""]:
        return str(values[""])
    found = "0"
    for name, value in values.items():
        found = f"{metric} === '{name}' ? {value} : ({found})"
    return f"({found})"
