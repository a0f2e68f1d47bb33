"""The paper's numbers beside those of a report."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from auglabel.lab.methods.comparisons import OVERALL, Comparison, Place
from auglabel.lab.methods.methods import Method
from auglabel.lab.parts.catalogue import AUGMENTATIONS, REGIMES, Regime
from auglabel.lab.recipe.recipe import listed
from auglabel.lab.study.published import published


def paper_value(method: Method, comparison: Comparison, place: Place, metric: str) -> float | None:
    """What the paper printed for this augmentation and kind of labels on these images, in percent."""
    if place == OVERALL and not comparison.whole:
        return None
    metric = {OVERALL: f"c{metric}", ("clean", None): metric}.get(place, "")
    recipe = method.first.recipe
    data = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100"}.get(method.first.facts.data.name)
    data = "imagenet" if recipe["data"]["name"] == "imagenet" else data
    options = recipe["augment"]
    for source in ("table2", "table3", "table5", "table6"):
        if source == "table3" and options.get("epsilon_max", 0.01) != 0.01:
            continue
        for row in published()[source]["rows"]:
            beta = row.get("beta")
            fits = row["method"] in _regimes(recipe) and row["data"] == data
            if fits and (beta is None or beta == options.get("beta")) and row.get(metric) is not None:
                return float(row[metric])
    return None


def _regimes(recipe: Mapping[str, Any]) -> list[str]:
    """The names of the regimes that train like this recipe, whatever their rho and alpha."""
    names = [recipe["augment"]["name"], recipe["labels"]["name"], recipe["loss"]]
    return [
        name
        for name, regime in REGIMES.items()
        if [regime.augment, regime.labels, regime.loss] == names and _as_usual(recipe["augment"], regime)
    ]


def _as_usual(options: Mapping[str, Any], regime: Regime) -> bool:
    """Whether the augmentation has the paper's options; its rows differ in the radius and beta."""
    asked = inspect.signature(AUGMENTATIONS[regime.augment]).parameters
    usual = {name: each.default for name, each in asked.items()} | dict(regime.augment_options)
    return all(
        listed(options[name]) == listed(value)
        for name, value in usual.items()
        if name in options and name not in ("epsilon_max", "beta")
    )
