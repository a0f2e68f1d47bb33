"""Read a recipe: YAML and flags, checked against the signatures of what they name.

A section such as `augment: {name: augmix, max_depth: 2}` names an entry of the catalogue and gives its
constructor's arguments; there is no second list of options. Later layers win: the recipe that the file
names as its `base`, the file, then the flags, and in each a regime first. Choosing another entry resets its
options.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from auglabel.augment.clean import Clean
from auglabel.errors import UserError
from auglabel.lab.parts import schedules
from auglabel.lab.parts.catalogue import HARD_LABELS, REGIMES, Regime, augmentation_for, labels_for
from auglabel.lab.parts.optimizers import OPTIMIZERS
from auglabel.lab.recipe.options import MENUS, PLAIN, RecipeError, all_options, checked, pairs, sections_of
from auglabel.lab.recipe.recipe import Choice, Recipe, Training, flat, listed
from auglabel.lab.recipe.row_recipes import row_recipes
from auglabel.lab.recipe.yamlfile import Lines, read_yaml
from auglabel.util.checks import brief, did_you_mean, entry, shown
from auglabel.util.help_text import help_of_section
from auglabel.util.resources import resource_folder
from auglabel.util.signatures import REQUIRED

RECIPES = resource_folder("recipes")
NAMED = (*MENUS, "loss")  # options that may name a part of the user's own, as module:function
SHORT = {"lr": "learning_rate", "wd": "weight_decay", "bs": "batch_size", "batch": "batch_size"}  # for hints


def read_recipe(name: str | None = None, words: Sequence[str] = (), *, typed: Sequence[str] = ()) -> Recipe:
    """The recipe of a file or of a built-in name, changed by `words`: --section.option value ...

    A file cannot make us import a module: a `module:function` in it counts only if the user has `typed`
    that name, as a flag or elsewhere.
    """
    return _draft(name, words, typed).recipe()


def help_of_recipe(name: str | None, words: Sequence[str]) -> str:
    """Every option of the recipe, with the entries that `name` and `words` choose."""
    return "\n".join(help_of_section(*section) for section in sections_of(_draft(name, words).names))


def recipe_names(rows: bool = True) -> list[str]:
    """The built-in recipes: first those that people use, then, if asked for, those of published rows."""
    files = sorted(path.stem for path in RECIPES.glob("*.yaml") if path.name != "rows.yaml")
    return [*files, *(sorted(row_recipes()) if rows else ())]


def recipe_text(name: str) -> str:
    """A built-in recipe as YAML, with comments that say what it is for."""
    rows = row_recipes()
    return rows[name].text if name in rows else _find(name)[0].path.read_text(encoding="utf-8")


def _draft(name: str | None, words: Sequence[str], typed: Sequence[str] = ()) -> _Draft:
    flags = [Setting(key, value, f"--{key}: ") for key, value in pairs(words)]
    draft = _Draft({*typed, *(value for key, value, _ in flags if key.removesuffix(".name") in NAMED)})
    if name is not None:
        _take_recipe(draft, *_find(name), ())
    draft.take(flags)
    return draft


def _find(name: str, place: str = "") -> tuple[Lines, dict[str, Any]]:
    """What a file, a run's recipe or a built-in recipe holds; a complaint begins with `place`."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        return read_yaml(path)
    if path.is_dir() and (path / "recipe.yaml").is_file():
        return read_yaml(path / "recipe.yaml")
    if name in row_recipes():
        return Lines(path), dict(row_recipes()[name].settings)
    usual = recipe_names(rows=False)
    if name in usual:
        return read_yaml(RECIPES / f"{name}.yaml")
    hint = did_you_mean(name, recipe_names())
    raise RecipeError(
        f'{place}there is no recipe "{shown(name)}". Give a .yaml file, or one of: {", ".join(usual)}, '
        f"or a published row's, which auglabel list recipes --all shows.{hint}"
    )


def _take_recipe(draft: _Draft, lines: Lines, found: dict[str, Any], after: tuple[Path, ...]) -> None:
    """The settings of a recipe, on top of those of the one that it names as its `base`."""
    after = (lines.path.resolve(), *after)
    if (base := found.pop("base", None)) is not None:
        place = lines.place("base")
        if not isinstance(base, str):
            raise RecipeError(f"{place}base must name a recipe, got {brief(base)}.")
        beside = lines.path.parent / base
        is_file = beside.suffix in (".yaml", ".yml")
        if is_file and not beside.is_file():
            raise RecipeError(f"{place}there is no file {shown(beside)}.")
        below = _find(str(beside) if is_file else base, place)
        if below[0].path.resolve() in after:
            raise RecipeError(f"{place}{shown(base)} has this very recipe as its base.")
        _take_recipe(draft, *below, after)
    own = _own_regimes(found.pop("regimes", {}), lines)
    for name, settings in own.items():
        draft.regimes[name] = [*draft.regimes.get(name, []), *settings]
    if "regime" not in found:  # then the base's, which this file may change
        draft.take(own.get(draft.regime, []))
    draft.take([Setting(key, value, lines.place(key)) for key, value in flat(found).items()])


def _own_regimes(found: Any, lines: Lines) -> dict[str, list[Setting]]:
    """What a file changes in a regime, whenever that is chosen: {at_autolabel: {labels: {alpha: 0.5}}}."""
    own: dict[str, list[Setting]] = {}
    for name, sections in found.items() if isinstance(found, dict) else [("", None)]:
        place = lines.place(f"regimes.{name}")
        if not isinstance(sections, dict):
            raise RecipeError(f"{place}regimes must hold a regime's sections, got {brief(sections)}.")
        own[name] = [Setting(key, value, place) for key, value in flat(sections).items()]
        _regime(name, place)
    return own


class Setting(NamedTuple):
    """One option, and where it was set, as the beginning of a sentence."""

    key: str
    value: Any
    origin: str


class _Draft:
    """Settings in the order they were made, and which entry each section has by now."""

    def __init__(self, typed: set[str]) -> None:
        self.typed = typed  # parts of the user's own that the user has named
        self.regimes: dict[str, list[Setting]] = {}  # what files change in them
        self.regime = ""  # the last one chosen
        self.names = {section: menu.default for section, menu in MENUS.items()}
        self.settings: list[Setting] = []
        self.origins: dict[str, str] = {}  # of sections' names

    def take(self, layer: Sequence[Setting]) -> None:
        """A layer wins over those before it: first its regime, then its entries, then its options."""
        for setting in layer:
            if setting.key == "regime":
                self.settings = [s for s in self.settings if not s.key.startswith(("augment.", "labels."))]
                self.take(_settings_of_regime(setting))
                self.regime = str(setting.value)
                self.take(self.regimes.get(self.regime, []))
        for key, value, origin in layer:
            section = key.removesuffix(".name")
            if section in MENUS:
                self._choose(section, value, origin)
            elif key == "loss" and isinstance(value, str):
                self._require_typed("loss", value, origin)
                if value != "focal":
                    self.settings = [s for s in self.settings if s.key != "gamma"]
        self.settings += [s for s in layer if s.key != "regime" and s.key.removesuffix(".name") not in MENUS]

    def _choose(self, section: str, name: Any, origin: str) -> None:
        if not isinstance(name, str):
            raise RecipeError(f"{origin}{section} must name an entry, got {brief(name)}.")
        self._require_typed(section, name, origin)
        try:
            MENUS[section].find(name)
        except (UserError, ImportError) as error:
            raise RecipeError(f"{origin}{error}") from None
        if name != self.names[section]:
            self.settings = [s for s in self.settings if not s.key.startswith(f"{section}.")]
        self.names[section], self.origins[section] = name, origin

    def _require_typed(self, option: str, name: str, origin: str) -> None:
        """Refuse a part that would be imported, or fetched, unless the user has named it."""
        library, colon, rest = name.partition(":")
        published = option == "model" and library in ("timm", "torchvision")
        if not colon or name in self.typed or (published and ":" not in rest):
            return
        does = "fetched from elsewhere" if published else "imported and run"
        raise RecipeError(
            f'{origin}"{shown(name)}" would be {does}, and no file may ask for that. '
            f"If you trust it, say so: --{option} {shown(name)}."
        )

    def recipe(self) -> Recipe:
        known = all_options(self.names)
        self.settings = [each._replace(key=self._resolved(each, set(known))) for each in self.settings]
        found = {key: option.default for key, option in known.items()}
        for key, value, origin in self.settings:
            found[key] = checked(key, known[key], value, origin)
        sections: dict[str, Any] = {section: {} for section in (*MENUS, *PLAIN)}
        for key, value in found.items():
            section, _, option = key.rpartition(".")
            if value is REQUIRED:
                raise RecipeError(f"{self._origin(section)}{section} needs {option}: --{key} VALUE.")
            (sections[section] if section else sections)[option] = listed(value)
        return self._built(sections)

    def _built(self, found: dict[str, Any]) -> Recipe:
        """The recipe, once everything in it that can be made without data has been made."""
        made: dict[str, Any] = {
            section: self._made(section, PLAIN[section], found[section])
            for section in ("calibrate", "engine")
        }
        top = {field.name: found[field.name] for field in fields(Training)}
        choices: dict[str, Any] = {
            section: Choice(name, {k: v for k, v in found[section].items() if k != "name"})
            for section, name in self.names.items()
        }
        name, options = choices.pop("optimizer")
        made["optimizer"] = self._made("optimizer", OPTIMIZERS[name], options)
        plain = {"split": found["split"], "prepare": found["prepare"]}
        recipe = Recipe(training=self._made("", Training, top), **plain, **made, **choices)
        self._made("prepare", Clean, recipe.prepare)
        make = partial(augmentation_for, recipe.augment.name)
        augment = self._made("augment", make, recipe.augment.options)
        own = ":" in recipe.labels.name  # which may depend on how many classes the data have
        if not own and recipe.labels.name != "table":  # files are read when training begins
            options = dict(recipe.labels.options)
            if options.get("replay") is None:
                options.pop("start_table", None)
            self._made("labels", partial(labels_for, recipe.labels.name, 2, augment.grid), options)
        if recipe.training.loss in HARD_LABELS and recipe.labels.name != "one_hot":
            raise RecipeError(
                f"{self._origin('labels')}the loss {recipe.training.loss} takes labels as they are, so "
                f"{recipe.labels.name} would change nothing. Use --labels one_hot, or another --loss."
            )
        rate = partial(schedules.SCHEDULES[recipe.schedule.name], 0, 1)
        self._made("schedule", rate, recipe.schedule.options)
        return recipe

    def _made(self, section: str, make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """make(**options), with the place of the option in front of a complaint."""
        try:
            return make(**options)
        except UserError as error:
            named = [key for key in options if re.search(rf"\b{key}\b", str(error))]
            origins = [self._origin(f"{section}.{key}".lstrip(".")) for key in named]
            place = next(filter(None, origins), self._origin(section))
            raise RecipeError(f"{place}{error}") from error

    def _origin(self, key: str) -> str:
        """Where the value of `key`, or else its section's name, was set; nothing for a default."""
        found = [setting.origin for setting in self.settings if setting.key == key]
        return found[-1] if found else self.origins.get(key.partition(".")[0], "")

    def _resolved(self, setting: Setting, known: set[str]) -> str:
        """The key as the recipe has it; its section may be left out if only one section has it."""
        key = setting.key
        if key in known:
            return key
        ends = sorted(name for name in known if name.endswith(f".{key}"))
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise RecipeError(f"{setting.origin}this could be {' or '.join(ends)}; say which.")
        section, _, option = key.rpartition(".")
        takes = sorted(name.removeprefix(f"{section}.") for name in known if name.startswith(f"{section}."))
        if section not in self.names and section not in PLAIN:
            lasts = {name.rpartition(".")[2]: name for name in sorted(known)} | {name: name for name in known}
            near = difflib.get_close_matches(SHORT.get(key, key), sorted(lasts), n=1)
            hint = f' Did you mean "{lasts[near[0]]}"?' if near else " --help lists them all."
            raise RecipeError(f'{setting.origin}there is no option "{shown(key)}".{hint}')
        hint = did_you_mean(SHORT.get(option, option), takes, cutoff=0.4)
        entry_name = f" for {self.names[section]}" if section in self.names else ""
        listed = ", ".join(name for name in takes if name != "name") or "none"
        raise RecipeError(
            f'{setting.origin}{shown(section)} has no option "{shown(option)}"{entry_name}. '
            f"It takes: {listed}.{hint}"
        )


def _regime(name: str, place: str) -> Regime:
    try:
        return entry("regime", REGIMES, name)
    except UserError as error:
        raise RecipeError(f"{place}{error}") from error


def _settings_of_regime(setting: Setting) -> list[Setting]:
    chosen = _regime(str(setting.value), setting.origin)
    sections = {
        "loss": chosen.loss,
        "augment": {"name": chosen.augment, **chosen.augment_options},
        "labels": {"name": chosen.labels, **chosen.label_options},
    }
    return [Setting(key, value, setting.origin) for key, value in flat(sections).items()]
