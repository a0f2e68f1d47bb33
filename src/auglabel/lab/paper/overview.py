"""The chart on top of the results: accuracy against calibration error, a point per method and seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auglabel.lab.paper.charts import COLOURS, load_altair, save
from auglabel.lab.paper.page import Page, Record

NAME = "overview"
X, Y = "cece", "caccuracy"
# What is drawn of each augmentation, as the row is called behind its name, and how it is called here.
METHODS = {
    "": "one-hot labels",
    " + T": "one-hot + temperature (clean)",
    " + TA": "one-hot + temperature (augmented)",
    " + label smoothing": "label smoothing",
    " + label smoothing + T": "label smoothing + temperature",
    " + AutoLabel": "AutoLabel",
    " + AutoLabel, one label for all distances": "AutoLabel, one label for all",
}
COLOUR = dict(zip(METHODS.values(), (COLOURS[0],) * 3 + (COLOURS[1],) * 2 + (COLOURS[2],) * 2, strict=True))
SHAPES = ("circle", "triangle-up", "square", "circle", "triangle-up", "circle", "diamond")


def write_overview(table2: Page, folder: Path) -> bool:
    """overview.svg and .png out of Table 2; False where it has no runs yet."""
    alt = load_altair()
    bases = {base: points_of(table2.records, base) for base in ("RandAug", "AugMix")}
    panels = [_panel(alt, base, points) for base, points in bases.items() if points]
    if not panels:
        return False
    title = (
        "CIFAR-100, corrupted test images: one point per method and seed. Better: further up, further left."
    )
    chart = alt.hconcat(*panels).properties(title=alt.TitleParams(title, fontSize=13, anchor="start"))
    chart = chart.configure_view(stroke="#ddd").configure(font="DejaVu Sans, Arial, sans-serif")
    save(chart.to_json(), folder / NAME)
    return True


def points_of(records: Sequence[Record], base: str) -> list[dict[str, Any]]:
    """Calibration error and accuracy in percent, of every seed that has both."""
    by_name = {
        (record.method, record.metric): dict(zip(record.seeds, record.values, strict=True))
        for record in records
        if record.data == "cifar100"
    }
    points = []
    for end, method in METHODS.items():
        x, y = (by_name.get((f"{base}{end}", metric), {}) for metric in (X, Y))
        points += [
            {"method": method, "seed": seed, "x": 100 * x[seed], "y": 100 * y[seed]}
            for seed in sorted(x.keys() & y.keys())
        ]
    return points


def _panel(alt: Any, base: str, points: Sequence[dict[str, Any]]) -> Any:
    methods = list(dict.fromkeys(point["method"] for point in points))
    places = list(METHODS.values())
    colours, shapes = [COLOUR[each] for each in methods], [SHAPES[places.index(each)] for each in methods]
    x = alt.X("x:Q", title="calibration error (cECE), %: lower is better", scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", title="accuracy, %: higher is better", scale=alt.Scale(zero=False))
    colour = alt.Color("method:N", sort=methods, scale=alt.Scale(domain=methods, range=colours), title=None)
    shape = alt.Shape("method:N", sort=methods, scale=alt.Scale(domain=methods, range=shapes), title=None)
    seeds = alt.Chart(alt.Data(values=list(points))).mark_point(size=70, filled=True, opacity=0.75)
    names = alt.Chart(alt.Data(values=_middles(points))).mark_text(dy=-12, fontSize=10)
    layers = [
        seeds.encode(x=x, y=y, color=colour, shape=shape),
        names.encode(x=x, y=y, text="method:N", color=colour),
    ]
    return alt.layer(*layers).properties(
        width=380, height=320, title=f"{base}, network trained on all images"
    )


def _middles(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where a method's name stands: over the mean of its seeds, at the height of the highest."""
    found = []
    for method in dict.fromkeys(point["method"] for point in points):
        some = [point for point in points if point["method"] == method]
        across = sum(point["x"] for point in some) / len(some)
        found.append({"method": method, "x": across, "y": max(point["y"] for point in some)})
    return found
