"""Charts by altair and Vega-Lite, as SVG and PNG; both come with auglabel[report]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from auglabel.util.atomic_write import write_bytes, write_text

# Told apart by all kinds of eyes (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def load_altair() -> Any:
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError as missing:
        raise ImportError(f"charts need {missing.name}: pip install 'auglabel[report]'.") from None
    return altair


def save_chart(chart: Any, path: Path) -> None:
    """An altair chart as PATH.svg and PATH.png."""
    import vl_convert

    chart = chart.configure_view(stroke="#ddd").configure(font="DejaVu Sans, Arial, sans-serif")
    write_svg(vl_convert.vegalite_to_svg(chart.to_json()), path)


def write_svg(svg: str, path: Path) -> None:
    """A drawing as PATH.svg and, twice as large, PATH.png."""
    import vl_convert

    write_text(path.with_suffix(".svg"), svg)
    write_bytes(path.with_suffix(".png"), vl_convert.svg_to_png(svg, scale=2))
