"""`auglabel list`: the names that recipes and flags take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auglabel.corrupt import SUITES
from auglabel.lab.commands.arguments import name_first, require_no_more
from auglabel.lab.recipe.catalogue import AUGMENTATIONS, DATASETS, LABELS, LOSSES, REGIMES
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import recipe_names
from auglabel.lab.recipe.schedules import SCHEDULES
from auglabel.models.by_name import MODELS
from auglabel.util.checks import entry


@dataclass(frozen=True)
class ListOptions:
    """How much to list"""

    all: bool = False
    """recipes: also the one of every published row, paper/NAME and cpu/NAME"""


LISTS: dict[str, Callable[[], list[str]]] = {
    "recipes": recipe_names,
    "data": lambda: list(DATASETS),
    "models": lambda: [*MODELS, "timm:NAME", "torchvision:NAME", "module:function"],
    "augmentations": lambda: list(AUGMENTATIONS),
    "labels": lambda: list(LABELS),
    "losses": lambda: list(LOSSES),
    "schedules": lambda: list(SCHEDULES),
    "regimes": lambda: list(REGIMES),
    "corruptions": lambda: list(SUITES["all"]),
    "suites": lambda: list(SUITES),
}
USAGE, OPTIONS = f"[{' | '.join(LISTS)}]", (ListOptions,)


def run(words: list[str]) -> None:
    """One list, a name a line; or all of them, a list a line."""
    name, rest = name_first(words)
    options, rest = flags(ListOptions, rest)
    require_no_more(rest)
    for each in LISTS if name is None else [name]:
        names = entry("list", LISTS, each)()
        if each == "recipes" and not options.all:
            names = [recipe for recipe in names if "/" not in recipe]
        print("\n".join(names) if name is not None else f"{each}: {', '.join(names)}")
