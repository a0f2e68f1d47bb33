"""Figure 4: how a bucket's label moves, drawn."""

from __future__ import annotations

PANELS = (
    ("over-confident", 0.86, 0.62, "confidence above accuracy:", "the label loses alpha x ECE"),
    ("under-confident", 0.58, 0.80, "confidence below accuracy:", "the label gains alpha x ECE"),
    ("at the floor", 0.78, 0.74, "never below the accuracy,", "never above 1"),
)
WIDE, TALL, TOP = 230, 150, 80


def schematic() -> str:
    """The drawing as SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 350" width="780" height="350" '
        'font-family="DejaVu Sans, Arial, sans-serif" font-size="13" fill="#222">',
        '<rect width="780" height="350" fill="white"/>',
        '<text x="20" y="26" font-size="15">After every epoch the label of each distance bucket n moves: '
        '</text><text x="20" y="48" font-size="15" font-style="italic">'
        "c[n] becomes clip(c[n] - alpha ECE[n] sign(conf[n] - acc[n]), acc[n], 1)</text>",
    ]
    for place, panel in enumerate(PANELS):
        parts.append(_panel(20 + place * (WIDE + 25), *panel))
    return "\n".join([*parts, "</svg>\n"])


def _panel(x: int, title: str, confidence: float, accuracy: float, *lines: str) -> str:
    """Two bars, of confidence and accuracy on validation images of the bucket, and where the label goes."""
    bottom = TOP + TALL
    goes = "down" if confidence > accuracy else "up"
    bars = (("confidence", confidence, "#D55E00"), ("accuracy", accuracy, "#0072B2"))
    drawn = [
        f'<rect x="{x + 20 + 75 * n}" y="{bottom - TALL * value:.0f}" width="50" height="{TALL * value:.0f}" '
        f'fill="{colour}"/><text x="{x + 45 + 75 * n}" y="{bottom + 18}" text-anchor="middle">{name}</text>'
        for n, (name, value, colour) in enumerate(bars)
    ]
    floor, middle, arrow = bottom - TALL * accuracy, x + WIDE / 2, x + 190
    start, end = (TOP + 8.0, TOP + 55.0) if goes == "down" else (TOP + 55.0, TOP + 12.0)
    if title == "at the floor":
        start, end = floor - 45, floor - 6
        dashes = 'stroke="#555" stroke-dasharray="4 3"'
        drawn.append(f'<line x1="{x + 95}" y1="{floor:.0f}" x2="{x + WIDE - 10}" y2="{floor:.0f}" {dashes}/>')
    tip = end + 7 if goes == "up" else end - 7
    centred = f'x="{middle:.0f}" text-anchor="middle"'
    drawn += [
        f'<line x1="{arrow}" y1="{start:.0f}" x2="{arrow}" y2="{end:.0f}" stroke="#222" stroke-width="2"/>',
        f'<path d="M{arrow - 6},{tip:.0f} L{arrow + 6},{tip:.0f} L{arrow},{end:.0f} Z"/>',
        f'<text x="{arrow}" y="{bottom + 18}" text-anchor="middle">label c[n]</text>',
        f'<line x1="{x}" y1="{bottom}" x2="{x + WIDE}" y2="{bottom}" stroke="#222"/>',
        f'<text {centred} y="{bottom + 48}" font-weight="bold">{title}</text>',
    ]
    drawn += [f'<text {centred} y="{bottom + 70 + 18 * n}">{line}</text>' for n, line in enumerate(lines)]
    return "\n".join(drawn)
