"""A reliability diagram as one picture: the page's bars, and under them the share of images in each bin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.report.figure import PANEL, Control
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
    return {
        **panel_of(alt, title, Control("images", "Images", ["all"]), most),
        "datasets": {"records": values},
        "title": {"text": title, "limit": 2 * PANEL},
        "background": "white",
        "config": {"view": {"stroke": "#ddd"}, "font": "DejaVu Sans, Arial, sans-serif"},
    }
