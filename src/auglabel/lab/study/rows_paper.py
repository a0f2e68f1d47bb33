"""The rows of the paper's own size: one recipe for each published row."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.study.published import published
from auglabel.lab.study.row import (
    CLEAN,
    FIVE,
    StudyRow,
    by_name,
    changed,
    fewer,
    five,
    method_of,
    named,
    title_of,
    tuned_of,
)
from auglabel.lab.sweep.measurement import Measurement

# Table 4 does not print rho and alpha, but what they were chosen from at each radius; alpha by threes.
TABLE4 = {"rho": (0.1, 0.2, 0.3), "alpha": (0.005, 0.015, 0.05, 0.15, 0.5, 1.0)}


@functools.cache
def paper_rows() -> dict[str, list[StudyRow]]:
    """The published rows of the tables, and what figures draw of them or beside them."""
    rows = {
        name: [_paper_row(line, published()[name]) for line in published()[name]["rows"]]
        for name in ("table2", "table3", "table4", "table5")
    }
    two = named(rows["table2"], "randaug", "randaug_autolabel", data="cifar100")
    four = [row for row in rows["table2"] if row.data == "imagenet" and not row.method.endswith("_ls")]
    shares = [changed(row, *fewer(share), images=share) for share in (0.1, 0.25, 0.5) for row in four]
    return by_name(
        "cifar100",
        rows["table4"],
        **rows,
        table6=rows["table5"],
        figure3=[changed(row, *five(m), magnitude=m, seeds=5) for m in (2, 4, 6, 8, 10) for row in two],
        figure6=[*shares, *four],
    )


def _paper_row(line: Mapping[str, Any], about: Mapping[str, Any]) -> StudyRow:
    """A published row; one run where the paper does not say how many it made."""
    regime, data, seeds = line["method"], line["data"], about["seeds"] or 1
    radius, beta = line.get("epsilon_max"), line.get("beta")
    tuned = tuned_of(regime) if radius is not None else ""  # all other rows have the printed value
    if regime.startswith(("at", "ccat")) and radius is None:
        radius = about["settings"]["epsilon_max"]
    attacked = Measurement("pgd", epsilon=0.03)
    suite = "standard" if data == "imagenet" else "paper"  # 15 types there, 17 on CIFAR
    corrupted = Measurement("corrupted", suite=suite)
    row = StudyRow(
        f"paper/{data}-{method_of(regime, radius, beta)}",
        title_of(regime),
        seeds[data] if isinstance(seeds, dict) else seeds,
        tuned=tuned,
        values=TABLE4.get(tuned, ()),
        measured=(CLEAN, attacked if "clean_accuracy" in about["metrics"] else corrupted),
        radius=radius,
        beta=beta,
    )
    if regime == "vanilla":  # the same runs in Tables 3, 4 and 5 and in Figure 2
        views = Choice("randaug", {"operations": list(FIVE)})
        row = replace(row, seeds=4, measured=(CLEAN, corrupted, attacked), views=views)
    return row
