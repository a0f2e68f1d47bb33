"""The chart on top of the results: accuracy against calibration error, of each seed and in the mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auglabel.lab.paper.page import Page, Record
from auglabel.lab.pictures.vega import COLOURS, load_altair, save_chart
from auglabel.lab.study.rows_fast import IMAGES

X, Y = "cece", "caccuracy"
# What is drawn of each augmentation, as the row and its temperature are called behind its name, and how here.
METHODS = {
    ("", ""): "one-hot labels",
    ("", " + T"): "one-hot + temperature (clean)",
    ("", " + TA"): "one-hot + temperature (augmented)",
    (" + label smoothing", ""): "label smoothing",
    (" + label smoothing", " + T"): "label smoothing + temperature",
    (" + AutoLabel", ""): "AutoLabel",
    (" + AutoLabel, one label for all distances", ""): "AutoLabel, one label for all",
}
A_QUARTER = f", {IMAGES // 4:,} training images"
ALL = f", all {IMAGES:,} training images"
PANELS = [("RandAug", A_QUARTER), ("AugMix", A_QUARTER), ("RandAug", "")]
COLOUR = dict(zip(METHODS.values(), (COLOURS[0],) * 3 + (COLOURS[1],) * 2 + (COLOURS[2],) * 2, strict=True))
SHAPES = ("circle", "triangle-up", "square", "circle", "triangle-up", "circle", "diamond")


class OverviewPoint(NamedTuple):
    """What one run reached, in percent."""

    method: str
    seed: int
    x: float
    y: float


def write_overview(table2: Page, folder: Path) -> bool:
    """overview.svg and .png out of Table 2; False where nothing has two seeds yet."""
    alt = load_altair()
    drawn = {f"{base}{images or ALL}": points_of(table2.records, base, images) for base, images in PANELS}
    several = {title: points for title, points in drawn.items() if len({point.seed for point in points}) > 1}
    panels = [_panel(alt, title, points) for title, points in several.items()]  # one seed looks certain
    if not panels:
        return False
    title = "CIFAR-100, corrupted test images; large marks are means, small ones seeds. Axes differ."
    heading = alt.TitleParams(title, fontSize=13, anchor="start")
    chart = alt.concat(*panels, columns=min(2, len(panels))).properties(title=heading)
    save_chart(chart, folder / "overview")
    return True


def points_of(records: Sequence[Record], base: str, images: str = "") -> list[OverviewPoint]:
    """Calibration error and accuracy in percent, of every seed that has both.

    `images` is how the table names a row's number of training images, where that is not all.
    """
    by_name = {
        (record.method, record.metric): dict(zip(record.seeds, record.values, strict=True))
        for record in records
        if record.data == "cifar100"
    }
    points = []
    for (labels, temperature), method in METHODS.items():
        name = f"{base}{labels}{images}{temperature}"
        x, y = (by_name.get((name, metric), {}) for metric in (X, Y))
        points += [
            OverviewPoint(method, seed, 100 * x[seed], 100 * y[seed]) for seed in sorted(x.keys() & y.keys())
        ]
    return points


def _panel(alt: Any, title: str, points: Sequence[OverviewPoint]) -> Any:
    methods = list(dict.fromkeys(point.method for point in points))
    places = list(METHODS.values())
    colours, shapes = [COLOUR[each] for each in methods], [SHAPES[places.index(each)] for each in methods]
    legend = alt.Legend(title=None, orient="bottom", columns=4, labelLimit=300, symbolSize=90)
    colour = alt.Color("method:N", scale=alt.Scale(domain=methods, range=colours), legend=legend)
    shape = alt.Shape("method:N", scale=alt.Scale(domain=methods, range=shapes), legend=legend)
    near = alt.Scale(zero=False, padding=20)
    x = alt.X("x:Q", title="calibration error (cECE), %: lower is better", scale=near)
    y = alt.Y("y:Q", title="accuracy, %: higher is better", scale=near)
    base = alt.Chart(alt.Data(values=[point._asdict() for point in points])).encode(color=colour, shape=shape)
    seeds = base.mark_point(filled=True, size=35, opacity=0.5).encode(x=x, y=y)
    means = base.mark_point(filled=True, size=200, opacity=0.9).encode(
        x=x.aggregate("mean"), y=y.aggregate("mean")
    )
    heading = alt.TitleParams(f"trained with {title}", anchor="start")
    return (seeds + means).properties(width=380, height=320, title=heading)
