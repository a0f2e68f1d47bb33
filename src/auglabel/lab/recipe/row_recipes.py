"""The recipes of published rows, made from one table: recipes/rows.yaml."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from auglabel.util.resources import resource_folder
from auglabel.util.yaml_values import yaml_text

VALUES = ("epsilon_max", "beta")  # options of the augmentation that are part of a recipe's name


@dataclass(frozen=True)
class RowRecipe:
    """A recipe that changes another one, and what the table says of it."""

    about: str
    settings: dict[str, Any]  # as a recipe file would have them, `base` among them
    tables: tuple[int, ...] = ()  # of the paper
    gpu_hours: float | None = None  # of one run, for recipes of the paper's size
    note: str = ""

    @property
    def text(self) -> str:
        """As a recipe file."""
        word = "table" if len(self.tables) == 1 else "tables"
        tables = f" A row of the paper's {word} {' and '.join(map(str, self.tables))}." if self.tables else ""
        hours = "" if self.gpu_hours is None else f" About {self.gpu_hours:g} GPU hours, by arithmetic."
        comments = [f"# {line}" for line in (f"{self.about}.{tables}{hours}", *self.note.splitlines())]
        body = [f"{key}: {yaml_text(value)}" for key, value in self.settings.items()]
        return "\n".join([*comments, *body, ""])


@functools.cache
def row_recipes() -> Mapping[str, RowRecipe]:
    """Every recipe of the table, by its name: paper/cifar10-at-0.03."""
    text = (resource_folder("recipes") / "rows.yaml").read_text(encoding="utf-8")
    return dict(itertools.chain.from_iterable(map(_recipes_of_group, yaml.safe_load(text))))


def _recipes_of_group(group: Mapping[str, Any]) -> Iterator[tuple[str, RowRecipe]]:
    for (prefix, base), row in itertools.product(group["recipes"].items(), group["rows"]):
        option = next((key for key in VALUES if key in row), None)
        for value in row.get(option, [None]):
            settings = {"base": base, **group.get("settings", {}), "regime": row.get("regime", row["row"])}
            settings |= {} if option is None else {"augment": {option: value}}
            settings |= {"labels": row["labels"]} if "labels" in row else {}
            name = f"{prefix}-{row['row']}" + ("" if option is None else f"-{value}")
            about = {key: row[key] for key in ("gpu_hours", "note") if key in row}
            recipe = RowRecipe(group["about"], settings, tuple(row.get("tables", ())), **about)
            yield name, recipe
            if "published" in group:
                yield _at_published_batch(name, recipe, group["published"])


def _at_published_batch(name: str, recipe: RowRecipe, published: Mapping[str, Any]) -> tuple[str, RowRecipe]:
    """paper-8gpu/NAME: the recipe paper/NAME with the batch of the published code."""
    note = f"{published['note']}\n{recipe.note}" if recipe.note else published["note"]
    settings = {"base": name, **published["settings"]}
    return name.replace("paper/", "paper-8gpu/"), replace(recipe, settings=settings, note=note)
