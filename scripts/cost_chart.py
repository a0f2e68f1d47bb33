"""Draw docs/cost.svg: what each rule for moving labels costs, and what it reaches.

    python scripts/cost_chart.py label_rules.jsonl docs/cost.svg

The lines are those that benchmarks/label_rules.py prints, of one augmentation and seed. Also prints them as
the table of docs/cost.md.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDE, HIGH, LEFT, TOP, GAP = 340, 240, 64, 40, 110
TICKS = (10, 20, 50, 100, 200, 500, 1000)
ASIDE = 230  # where names stand
INK, PALE, OURS, OTHERS = "#222", "#ddd", "#c0392b", "#34618f"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lines", type=Path, nargs="+")
    parser.add_argument("output", type=Path)
    asked = parser.parse_args()
    found = [json.loads(line) for path in asked.lines for line in path.read_text().splitlines()]
    (exact,) = (run for run in found if run["rule"] == "exact")
    rows = [row(run, exact) for run in found]
    print("| rule | calibration, % of training | RMSE to exact | ECE, % | NLL | gap in buckets | label, % |")
    print("|---|---|---|---|---|---|---|")
    for each in sorted(rows, key=lambda each: each["cost"]):
        print(
            f"| {each['rule']} | {each['cost']:.0f} | {each['rmse']:.3f} | {each['ece']:.1f} "
            f"| {each['nll']:.3f} | {each['gap']:+.1f} | {each['label']:.1f} |"
        )
    panels = [panel(rows, "rmse", "RMSE of the labels to the exact rule's", 0)]
    panels.append(
        panel(rows, "nll", "NLL, mean of clean and transformed validation images", LEFT + WIDE + GAP)
    )
    wide, high = 2 * (LEFT + WIDE) + GAP + 20, TOP + HIGH + 60
    asked.output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" '
        f'font-size="11" fill="{INK}"><rect width="{wide}" height="{high}" fill="white"/>'
        f"{''.join(panels)}</svg>\n"
    )


def row(run: dict[str, Any], exact: dict[str, Any]) -> dict[str, Any]:
    seconds = run["seconds"]
    squares = [(ours - theirs) ** 2 for ours, theirs in zip(run["table"], exact["table"], strict=True)]
    return {
        "rule": run["rule"],
        "cost": 100 * seconds["calibrating"] / (seconds["all"] - seconds["calibrating"]),
        "rmse": math.sqrt(sum(squares) / len(squares)),
        "ece": 100 * run["validation"]["ece"],
        "nll": (run["validation"]["nll"] + run["views"]["nll"]) / 2,
        "gap": 100 * run["views"]["gap"],
        "label": 100 * run["labels"],
    }


def panel(rows: list[dict[str, Any]], figure: str, title: str, left: float) -> str:
    """One figure against the cost; logarithmic axes, but for NLL. Exact lies 0 from itself: no point."""
    scale: Callable[[float], float] = math.log if figure == "rmse" else float
    rows = [each for each in rows if figure != "rmse" or each["rule"] != "exact"]
    values = [scale(each[figure]) for each in rows]
    room = (max(values) - min(values)) / 20
    low, high = min(values) - room, max(values) + room

    def x(cost: float) -> float:
        first, last = math.log(TICKS[0]), math.log(2 * TICKS[-1])
        return left + LEFT + WIDE * (math.log(cost) - first) / (last - first)

    def y(value: float) -> float:
        return TOP + HIGH * (high - scale(value)) / (high - low)

    drawn = [f'<text x="{left + LEFT}" y="{TOP - 16}" font-weight="bold">{title}</text>']
    for tick in TICKS:
        drawn.append(f'<path d="M{x(tick):.1f} {TOP}v{HIGH}" stroke="{PALE}"/>')
        drawn.append(f'<text x="{x(tick):.1f}" y="{TOP + HIGH + 16}" text-anchor="middle">{tick} %</text>')
    for part in range(5):
        level = low + (high - low) * part / 4
        value = math.exp(level) if figure == "rmse" else level
        drawn.append(f'<path d="M{left + LEFT} {y(value):.1f}h{WIDE}" stroke="{PALE}"/>')
        drawn.append(
            f'<text x="{left + LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3f}</text>'
        )
    middle = left + LEFT + WIDE / 2
    drawn.append(
        f'<text x="{middle}" y="{TOP + HIGH + 36}" text-anchor="middle">calibration, % of training</text>'
    )
    ours = sorted((each for each in rows if each["rule"].startswith("pooled")), key=lambda each: each["cost"])
    corners = " ".join(f"{x(each['cost']):.1f},{y(each[figure]):.1f}" for each in ours)
    drawn.append(f'<polyline points="{corners}" fill="none" stroke="{OURS}"/>')
    named = sorted((each for each in rows if "visits" not in each["rule"]), key=lambda each: -each[figure])
    for each, line in zip(named, apart([y(each[figure]) + 4 for each in named]), strict=True):
        across, down = x(each["cost"]), y(each[figure])
        if each["rule"] == "exact":
            drawn.append(f'<text x="{across - 7:.1f}" y="{down - 6:.1f}" text-anchor="end">exact</text>')
            continue
        drawn.append(
            f'<path d="M{across + 4:.1f} {down:.1f}L{x(ASIDE) - 3:.1f} {line - 4:.1f}" stroke="{PALE}"/>'
        )
        drawn.append(f'<text x="{x(ASIDE):.1f}" y="{line:.1f}">{each["rule"]}</text>')
    for each in rows:
        colour = OURS if each["rule"].startswith("pooled") else OTHERS
        drawn.append(
            f'<circle cx="{x(each["cost"]):.1f}" cy="{y(each[figure]):.1f}" r="3.5" fill="{colour}"/>'
        )
    return "".join(drawn)


def apart(lines: list[float]) -> list[float]:
    """Heights for names, in order, 12 apart, as near as that allows to where they should be."""
    placed: list[float] = []
    for line in lines:
        placed.append(max([line, *(before + 12 for before in placed[-1:])]))
    limit = TOP + HIGH
    for place in reversed(range(len(placed))):
        placed[place] = min(placed[place], limit)
        limit = placed[place] - 12
    return placed


if __name__ == "__main__":
    main()
