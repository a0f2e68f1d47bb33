"""The rows of the paper's own size: one recipe for each published row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auglabel.lab.paper.published import published
from auglabel.lab.paper.row import CLEAN, FIVE, ROBUST, Row, fewer, five, title_of
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement


def paper_rows(name: str) -> list[Row]:
    """The published rows of a table, and what a figure draws of them or beside them."""
    if name in ("table1", "figure4", "ablations"):
        return []
    source = SOURCES.get(name, name)
    rows = [_paper_row(line, published()[source]) for line in published()[source]["rows"]]
    if name == "figure1":
        return [row for row in rows if row.name == "cifar100-augmix_autolabel"]
    if name == "figure2":
        return [row for row in rows if row.name == "cifar100-vanilla"]
    if name == "figure3":
        two = [row for row in rows if row.name in ("cifar100-randaug", "cifar100-randaug_autolabel")]
        return [replace(five(row, most), seeds=5) for most in (2, 4, 6, 8, 10) for row in two]
    if name == "figure5":
        return [row for row in rows if row.method in ("augmix", "augmix_autolabel")]
    if name == "figure6":
        four = [row for row in rows if row.data == "imagenet" and not row.method.endswith("_ls")]
        return [*(fewer(row, share) for share in (0.1, 0.25, 0.5) for row in four), *four]
    if name == "figure7":
        return [row for row in rows if row.method.startswith(ROBUST)]
    return rows


# Whose rows a figure draws; Table 6 is of Table 5's.
SOURCES = {
    "table6": "table5",
    "figure1": "table2",
    "figure2": "table5",
    "figure3": "table2",
    "figure5": "table2",
    "figure6": "table2",
    "figure7": "table4",
}


def _paper_row(line: Mapping[str, Any], about: Mapping[str, Any]) -> Row:
    """A published row; one run where the paper does not say how many it made."""
    method, data, seeds = line["method"], line["data"], about["seeds"] or 1
    place = line.get("epsilon_max") or line.get("beta")
    if method.startswith(("at", "ccat")) and place is None:
        place = about["settings"]["epsilon_max"]
    end = "" if place is None else f"-{place:g}"
    attacked = Measurement("pgd", epsilon=0.03)
    suite = "standard" if data == "imagenet" else "paper"  # 15 types there, 17 on CIFAR
    corrupted = Measurement("corrupted", suite=suite)
    row = Row(
        f"paper/{data}-{method}{end}",
        title_of(method),
        seeds[data] if isinstance(seeds, dict) else seeds,
        measured=(CLEAN, attacked if "clean_accuracy" in about["metrics"] else corrupted),
    )
    if method == "vanilla":  # the same runs in Tables 3, 4 and 5 and in Figure 2
        views = Choice("randaug", {"operations": list(FIVE)})
        row = replace(row, seeds=4, measured=(CLEAN, corrupted, attacked), views=views)
    return row
