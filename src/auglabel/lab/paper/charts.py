"""Charts of tables and figures, as SVG and PNG: points with their spread over seeds, by altair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auglabel.lab.paper.figures import AXES, CHARTED
from auglabel.lab.paper.page import Page, Record, name_of
from auglabel.lab.paper.tables import COLUMNS, DATA, DISTANCES
from auglabel.lab.pictures.vega import COLOURS, load_altair, save_chart
from auglabel.lab.runs.metric_list import over_seeds

PANEL = 230  # pixels, a figure's panel


def write_chart(page: Page, folder: Path) -> bool:
    """NAME.svg and NAME.png; False where there is nothing to draw."""
    alt = load_altair()
    chart = _curves(alt, page) if page.name in AXES else _dots(alt, page)
    if page.name == "table1":
        chart = _levels(alt)
    if chart is None:
        return False
    save_chart(chart, folder / page.name)
    return True


def _levels(alt: Any) -> Any:
    """Table 1: how many levels each kind of each augmentation is cut into."""
    bars = [
        {"kind": title if len(augment.grid.kinds) == 1 else f"{title}: {kind}", "levels": levels}
        for title, augment, *_ in DISTANCES
        for kind, levels in zip(augment.grid.kinds, augment.grid.levels, strict=True)
    ]
    y = alt.Y("kind:N", sort=[bar["kind"] for bar in bars], title=None, axis=alt.Axis(labelLimit=240))
    x = alt.X("levels:Q", title="levels of strength: buckets", axis=alt.Axis(tickMinStep=1))
    return alt.Chart(alt.Data(values=bars)).mark_bar(color=COLOURS[0]).encode(x=x, y=y).properties(width=300)


def _dots(alt: Any, page: Page) -> Any:
    """A table: a panel per data set and metric, a dot per method; the paper's are hollow diamonds."""
    metrics = COLUMNS.get(page.name, ())
    records = [r for r in page.records if r.metric in metrics]
    if not any(record.values for record in records):
        return None
    panels = dict.fromkeys(record.data for record in records if record.values)
    rows = [_dot_row(alt, [record for record in records if record.data == data]) for data in panels]
    title = "mean and standard deviation over seeds"
    if any(record.paper is not None and record.values for record in records):
        title += "; diamonds: the paper, with its own networks and training"
    return alt.vconcat(*rows).properties(title=alt.TitleParams(title, fontWeight="normal", fontSize=12))


def _dot_row(alt: Any, records: Sequence[Record]) -> Any:
    """The panels of a data set, whose methods are on the same lines in each: the first alone names them."""
    there = [record for record in records if record.values]
    methods = list(dict.fromkeys(record.method for record in there))
    metrics = dict.fromkeys(record.metric for record in there)
    return alt.hconcat(
        *(
            _dot_panel(alt, [record for record in there if record.metric == metric], methods, not place)
            for place, metric in enumerate(metrics)
        )
    )


def _dot_panel(alt: Any, records: Sequence[Record], methods: Sequence[str], first: bool) -> Any:
    values = [_point(record) for record in records]
    paper = [{"method": r.method, "value": r.paper} for r in records if r.paper is not None]
    axis = alt.Axis(labels=first, ticks=first, labelLimit=320)
    y = alt.Y("method:N", sort=methods, scale=alt.Scale(domain=methods), title=None, axis=axis)
    title = f"{DATA[records[0].data]}: {name_of(records[0].metric)}, %"
    ours = alt.Chart(alt.Data(values=values)).encode(y=y)
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False))
    layers = [
        ours.mark_rule(color=COLOURS[0]).encode(x=x, x2="high:Q"),
        ours.mark_point(filled=True, size=55, opacity=1, color=COLOURS[0]).encode(x="mean:Q"),
    ]
    if paper:
        theirs = alt.Chart(alt.Data(values=paper)).encode(y=y, x="value:Q")
        layers.append(theirs.mark_point(shape="diamond", size=55, color=COLOURS[1]))
    return alt.layer(*layers).properties(width=170)


def _point(record: Record) -> dict[str, object]:
    mean, spread = over_seeds(record.values)
    low, high = mean - (spread or 0.0), mean + (spread or 0.0)
    return {"method": record.method, "x": record.x, "mean": 100 * mean, "low": 100 * low, "high": 100 * high}


def _curves(alt: Any, page: Page) -> Any:
    """A figure: a panel per data set and metric, a line per method, bars of the spread."""
    shown = CHARTED[page.name]
    there = [record for record in page.records if record.values and record.metric in shown]
    if not there:
        return None
    methods = list(dict.fromkeys(record.method for record in there))
    panels = dict.fromkeys((record.data, record.metric) for record in there)
    charts = [
        _curve_panel(alt, [r for r in there if (r.data, r.metric) == panel], AXES[page.name], methods)
        for panel in panels
    ]
    return alt.concat(*charts, columns=2)


def _curve_panel(alt: Any, records: Sequence[Record], axis: str, methods: Sequence[str]) -> Any:
    places = sorted({record.x for record in records if record.x is not None})
    title = f"{DATA[records[0].data]}: {name_of(records[0].metric)}, %"
    colour = alt.Color(
        "method:N", sort=methods, title=None, scale=alt.Scale(domain=methods, range=COLOURS[: len(methods)])
    )
    aside = 0.05 * (places[-1] - places[0])
    scale = alt.Scale(zero=False, nice=False, domain=[places[0] - aside, places[-1] + aside])
    x = alt.X("x:Q", title=axis, axis=alt.Axis(values=places, grid=False), scale=scale)
    chart = alt.Chart(alt.Data(values=[_point(record) for record in records])).encode(x=x, color=colour)
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    return alt.layer(
        chart.mark_line().encode(y=y),
        chart.mark_rule().encode(y="low:Q", y2="high:Q"),
        chart.mark_point(filled=True, size=40, opacity=1).encode(y=y),
    ).properties(width=PANEL * 1.3, height=PANEL)
