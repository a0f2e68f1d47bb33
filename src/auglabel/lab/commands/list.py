"""`auglabel list`: the names that recipes and flags take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from auglabel.corrupt import SUITES
from auglabel.lab.commands.arguments import name_first, require_no_more
from auglabel.lab.parts.catalogue import AUGMENTATIONS, DATASETS, LABELS, LOSSES, REGIMES
from auglabel.lab.parts.optimizers import OPTIMIZERS
from auglabel.lab.parts.schedules import SCHEDULES
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import recipe_names, recipe_text
from auglabel.models.by_name import MODELS
from auglabel.util.checks import entry


@dataclass(frozen=True)
class ListOptions:
    """How much to list"""

    all: bool = False
    """recipes: also the one of every published row, paper/NAME, paper-8gpu/NAME and cpu/NAME"""


LISTS: dict[str, Callable[[], list[str]]] = {
    "recipes": lambda: recipe_names(rows=False),
    "data": lambda: list(DATASETS),
    "models": lambda: [*MODELS, "timm:NAME", "torchvision:NAME", "module:function"],
    "augmentations": lambda: list(AUGMENTATIONS),
    "labels": lambda: list(LABELS),
    "losses": lambda: list(LOSSES),
    "optimizers": lambda: list(OPTIMIZERS),
    "schedules": lambda: list(SCHEDULES),
    "regimes": lambda: list(REGIMES),
    "corruptions": lambda: list(SUITES["all"]),
    "suites": lambda: list(SUITES),
}
USAGE, OPTIONS = f"[{' | '.join(LISTS)}] [RECIPE]", (ListOptions,)


def run(words: list[str]) -> None:
    """One list, a name a line; or all of them, a list a line; or a recipe as it would be read."""
    name, rest = name_first(words)
    recipe, rest = name_first(rest) if name == "recipes" else (None, rest)
    options, rest = flags(ListOptions, rest)
    require_no_more(rest)
    if recipe is not None:
        print(recipe_text(recipe), end="")
        return
    for each in LISTS if name is None else [name]:
        names = recipe_names() if each == "recipes" and options.all else entry("list", LISTS, each)()
        print("\n".join(names) if name is not None else f"{each}: {', '.join(names)}")
