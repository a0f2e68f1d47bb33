"""A reliability diagram as one picture: the page's bars, and under them the share of images in each bin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.report.figure import PANEL, Control, as_vega, new_chart
from auglabel.lab.report.reliability import COLUMNS, bars_of, panel_of
from auglabel.lab.runs.evaluations import BinSums
from auglabel.util.atomic_write import write_bytes, write_text

KINDS = (".png", ".svg")


def write_diagram(path: Path, bins: Mapping[str, Sequence[float]], title: str) -> None:
    """Draw the sums per bin (`count`, `confidence`, `correct`) as PNG or SVG, by the file's name."""
    if path.suffix.lower() not in KINDS:
        raise UserError(f"a diagram is written as {' or '.join(KINDS)}, got {path}.")
    alt = load_altair()
    import vl_convert

    svg = vl_convert.vegalite_to_svg(json.dumps(_spec(alt, BinSums(**bins), title)))
    if path.suffix.lower() == ".svg":
        write_text(path, svg)
    else:
        write_bytes(path, vl_convert.svg_to_png(svg, scale=2))


def _spec(alt: Any, bins: BinSums, title: str) -> dict[str, Any]:
    values = [dict(zip(COLUMNS, bar, strict=True)) for bar in bars_of("all", title, bins)]
    most = max(float(str(value["share"])) for value in values)
    share = (
        new_chart(alt)
        .mark_bar(color="#888888", binSpacing=1)
        .encode(
            x=alt.X("low:Q", title=None, scale=alt.Scale(domain=[0, 1], nice=False), axis=None),
            x2="high:Q",
            y=alt.Y("share:Q", title="images", axis=alt.Axis(format="%", tickCount=2)),
            y2=alt.datum(0),
        )
        .properties(width=PANEL, height=PANEL / 5)
    )
    panels = [panel_of(alt, title, Control("images", "Images", ["all"]), most), as_vega(share)]
    kept = {key: panels[0].pop(key) for key in ("$schema", "params")}
    return {
        **kept,
        "datasets": {"records": values},
        "vconcat": [{k: v for k, v in panel.items() if k != "$schema"} for panel in panels],
        "title": {"text": title, "limit": 2 * PANEL},
        "background": "white",
        "config": {"view": {"stroke": "#ddd"}, "font": "DejaVu Sans, Arial, sans-serif"},
    }
