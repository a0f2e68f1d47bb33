"""Reliability diagrams: accuracy against confidence, bin by bin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from auglabel.lab.methods.comparisons import Comparison, Place
from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.vega import COLOURS
from auglabel.lab.report.figure import (
    PANEL,
    Control,
    ReportFigure,
    as_vega,
    images_control,
    new_chart,
    only,
    titles_in,
)
from auglabel.lab.runs.evaluations import BinSums

COLUMNS = ("images", "labels", "low", "high", "count", "share", "confidence", "accuracy")  # of a bar
FEW = 0.01  # of all images: the accuracy of so small a bin says little


def reliability(
    alt: Any, methods: Sequence[Method], comparisons: Sequence[Comparison]
) -> ReportFigure | None:
    """Accuracy against confidence, bin by bin, over all seeds."""
    records = [
        bar
        for comparison in comparisons
        for place in _worth_drawing(comparison)
        for method in comparison.methods
        if (bins := comparison.bins(place, method)) is not None
        for bar in bars_of(comparison.named(place), method, bins)
    ]
    if not records:
        return None
    shown = images_control(records)
    most = max(float(str(record[5])) for record in records)
    panels = [(title, panel_of(alt, title, shown, most)) for title in titles_in(methods, records, 1)]
    note = (
        "Blue: accuracy of the predictions in each bin of confidence, and red from there to their mean "
        "confidence: above the bar it is over-confidence, inside under-confidence. Pale with a dashed edge: "
        f"less than {100 * FEW:g} % of the images. Below, in grey: the share of the images in each bin."
    )
    return ReportFigure("reliability", "Reliability diagrams", note, COLUMNS, records, panels, [shown])


def _worth_drawing(comparison: Comparison) -> list[Place]:
    """Places without a severity, and the highest severity of each corruption unless there are many."""
    worst = [(name, levels[-1]) for name, levels in comparison.graded().items()]
    return comparison.plain() if len(worst) > 4 else [*comparison.plain(), *worst]


def bars_of(images: str, method: str, bins: BinSums) -> Iterator[list[object]]:
    total, width = sum(bins.count), 1 / len(bins.count)
    sums = zip(bins.count, bins.confidence, bins.correct, strict=True)
    for index, (count, confidence, correct) in enumerate(sums):
        if count:
            edges = [round(index * width, 4), round((index + 1) * width, 4)]
            means = [round(confidence / count, 5), round(correct / count, 5)]
            yield [images, method, *edges, int(count), round(count / total, 5), *means]


def panel_of(alt: Any, method: str, shown: Control, most: float) -> dict[str, Any]:
    """Accuracy against confidence, and below it the share of the images in each bin, of `most` at most."""
    unit = alt.Scale(domain=[0, 1], nice=False)
    of_all = [
        alt.Tooltip("count:Q", title="images", format=","),
        alt.Tooltip("share:Q", title="of all", format=".1%"),
        alt.Tooltip("confidence:Q", format=".1%"),
        alt.Tooltip("accuracy:Q", format=".1%"),
    ]
    base = new_chart(alt).encode(tooltip=of_all)
    share = base.mark_bar(color="#888888", stroke="#666666", strokeWidth=1).encode(
        x=alt.X("low:Q", title=None, scale=unit, axis=None),
        x2="high:Q",
        y=alt.Y(
            "share:Q",
            title="images",
            scale=alt.Scale(domain=[0, most]),
            axis=alt.Axis(format="%", tickCount=2),
        ),
        y2=alt.datum(0),
    )
    parts = [
        as_vega(only(alt, chart, method, [shown]).properties(width=PANEL, height=height))
        for chart, height in ((_accuracies(alt, base, unit), PANEL), (share, PANEL // 5))
    ]
    kept = {key: parts[0][key] for key in ("$schema", "params")}
    inner = [{key: value for key, value in part.items() if key not in kept} for part in parts]
    return {**kept, "vconcat": inner, "spacing": 6}


def _accuracies(alt: Any, base: Any, unit: Any) -> Any:
    few = f"datum.share < {FEW}"
    percent = alt.Axis(format="%", tickCount=5, grid=False, labelFlush=False)
    bars = base.mark_bar(color=COLOURS[4], stroke=COLOURS[0], strokeWidth=1).encode(
        x=alt.X("low:Q", title="confidence", scale=unit, axis=percent),
        x2="high:Q",
        y=alt.Y("accuracy:Q", title="accuracy", scale=unit, axis=alt.Axis(format="%", tickCount=5)),
        y2=alt.datum(0),
        fillOpacity=alt.condition(few, alt.value(0.1), alt.value(0.9)),
        strokeDash=alt.condition(few, alt.value([3, 3]), alt.value([1, 0])),
    )
    gap = base.mark_rule(color="#D62728", strokeWidth=2.5).encode(
        x=alt.X("confidence:Q", title="confidence"),
        y="accuracy:Q",
        y2="confidence:Q",
        opacity=alt.condition(few, alt.value(0.3), alt.value(1)),
    )
    # The diagonal is drawn from one record, so that it needs no data of its own.
    diagonal = (
        new_chart(alt)
        .transform_window(number="row_number()")
        .transform_filter("datum.number === 1")
        .mark_rule(strokeDash=[4, 4], color="#888")
        .encode(x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1))
    )
    return alt.layer(bars, diagonal, gap)
