"""What options a recipe has: those of the signatures that its sections name, read by jsonargparse.

A verb's own flags are read the same way: the fields of a dataclass.
"""

from __future__ import annotations

import functools
import inspect
import re
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import yaml
from jsonargparse import ArgumentParser, set_parsing_settings

from auglabel.augment.clean import Clean
from auglabel.data.split import split
from auglabel.errors import UserError
from auglabel.lab.recipe.catalogue import AUGMENTATIONS, DATASETS, LABELS
from auglabel.lab.recipe.recipe import Calibrate, Engine, Optimizer, Training, flat, listed
from auglabel.lab.recipe.schedules import SCHEDULES
from auglabel.models.by_name import model_function
from auglabel.util.checks import entry, shown

Flags = TypeVar("Flags")


class RecipeError(UserError):
    """A recipe that cannot be used, and where in it."""


class Menu(NamedTuple):
    """A section that names an entry: where names are looked up, the one meant otherwise, what we give."""

    find: Callable[[str], Callable[..., Any]]
    default: str
    given: frozenset[str] = frozenset()


MENUS = {
    "data": Menu(partial(entry, "data set", DATASETS), "embedded"),
    "model": Menu(model_function, "small", frozenset({"num_classes", "mean", "std"})),
    "augment": Menu(partial(entry, "augmentation", AUGMENTATIONS), "randaug"),
    "labels": Menu(
        partial(entry, "label policy", LABELS), "one_hot", frozenset({"num_classes", "num_buckets", "grid"})
    ),
    "schedule": Menu(partial(entry, "schedule", SCHEDULES), "cosine", frozenset({"step", "steps"})),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "split": split,
    "prepare": Clean,
    "optimizer": Optimizer,
    "calibrate": Calibrate,
    "engine": Engine,
}
MAKES = {section: PLAIN[section] for section in ("optimizer", "calibrate", "engine")}
GIVEN_TO_PLAIN: dict[str, set[str | int]] = {"split": {"data", "generator"}}


def parser_for(names: Mapping[str, str]) -> ArgumentParser:
    """A parser of every option, with these entries in the sections that name one."""
    if _may_change(names):
        return _parser(names)
    return _kept(tuple(sorted(names.items())))


@functools.lru_cache(maxsize=64)
def _kept(names: tuple[tuple[str, str], ...]) -> ArgumentParser:
    return _parser(dict(names))


def help_of(names: Mapping[str, str]) -> str:
    """Every option, with these entries in the sections that name one, and what each means."""
    with explained_options():
        return without_files(_parser(names).format_help())


@contextmanager
def explained_options() -> Iterator[None]:
    """Parsers made meanwhile know what fields mean: help needs that alone, and it is slow to find out."""
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    try:
        yield
    finally:
        set_parsing_settings(docstring_parse_attribute_docstrings=False)


def _parser(names: Mapping[str, str]) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    parser.add_class_arguments(Training)
    for section, menu in MENUS.items():
        parser.add_argument(f"--{section}.name", default=names[section], type=str, help="which one")
        call = menu.find(names[section])
        takes = set(inspect.signature(call).parameters)
        add = parser.add_class_arguments if inspect.isclass(call) else parser.add_function_arguments
        add(call, section, skip=set(takes & menu.given), fail_untyped=False)
    for section, call in PLAIN.items():
        add = parser.add_class_arguments if inspect.isclass(call) else parser.add_function_arguments
        add(call, section, skip=GIVEN_TO_PLAIN.get(section, set()), fail_untyped=False)
    return parser


def usual(names: Mapping[str, str]) -> Mapping[str, Any]:
    """The value of every option, by its dotted key, where nothing but these entries was asked for."""
    if _may_change(names):
        return _defaults(_parser(names))
    return _usual(tuple(sorted(names.items())))


@functools.lru_cache(maxsize=64)
def _usual(names: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
    """Asked for every job of a sweep or a table, and slow to ask a parser for."""
    return MappingProxyType(_defaults(_kept(names)))


def _defaults(parser: ArgumentParser) -> dict[str, Any]:
    return flat(listed(parser.get_defaults().as_dict()))


def _may_change(names: Mapping[str, str]) -> bool:
    """Whether one of them is a function of the user's, in a module that may be another tomorrow."""
    return any(":" in name for name in names.values())


def without_files(text: str) -> str:
    """Help without the usage, which repeats all that follows, and without a file per section."""
    text = re.sub(r"\A.*?\n\n", "", text, flags=re.S)
    return re.sub(r"^  --\w+ CONFIG\s+Path to a configuration file\.\n", "", text, flags=re.M)


def explained(message: str, origin: Callable[[str], str]) -> str:
    """jsonargparse's complaint as a sentence that begins with the place, which `origin` knows."""
    if missing := re.search(r"arguments are required: ([\w.]+)", message):
        section, _, option = missing[1].rpartition(".")
        return f"{origin(section)}{section} needs {option}: --{missing[1]} VALUE."
    wrong = re.search(r'key "([^"]+)"', message)
    came = re.search(r"(?:Got|Given) value: (.*)", message)
    expected = re.findall(r"Expected (?:an? )?(.*?)(?:\. Got value|\n|$)", message)
    if not (wrong and came and expected):
        return f"{origin(wrong[1]) if wrong else ''}{shown(message, 500)}."
    wanted = " or ".join(dict.fromkeys(_plain(each) for each in expected))
    if "a list" in wanted:
        form = "" if came[1].startswith(("[", "{")) else f" Type it as [{shown(came[1])}]."
        return f"{origin(wrong[1])}{wrong[1]} must be {wanted}, got {shown(came[1])}.{form}"
    return f"{origin(wrong[1])}{wrong[1]} must be {wanted}, got {shown(came[1])}."


def _plain(expected: str) -> str:
    """What jsonargparse expected, in words."""
    names = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
    names |= {"NoneType": "null", "tuple": "a list", "collections.abc.Sequence": "a list"}
    if literal := re.search(r"Literal\[(.*?)\]", expected):
        return f"one of {literal[1]}"
    if elements := re.search(r"tuple with (\d+) elements", expected):
        return f"a list of {elements[1]} values"
    inner = re.sub(r"<class '(.*?)'>", r"\1", expected)
    return names.get(inner, inner)


def yaml_text(value: Any) -> str:
    """A value on one line, as a flag would carry it."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=10**6)).removesuffix("\n...\n").strip()


def pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """--a-b c, --a_b=c and a bare --a as (key, text); a bare one is true."""
    found, rest = [], list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise RecipeError(f'an option such as --epochs 10 was expected, got "{word}".')
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        found.append((key.replace("-", "_"), value))
    return found


def flags(kind: type[Flags], words: list[str]) -> tuple[Flags, list[str]]:
    """A verb's own flags out of `words`, and the words that are left."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    given = pairs(words)
    parser = _parser_of(kind)  # type: ignore[arg-type]
    own = [(key, _listed(kind, key, value)) for key, value in given if key in names]
    try:
        found = parser.parse_args([f"--{key}={value}" for key, value in own])
    except ArgumentError as error:
        raise RecipeError(explained(str(error), lambda key: f"--{key}: ")) from None
    rest = [word for key, value in given if key not in names for word in (f"--{key}={value}",)]
    try:
        return kind(**found.as_dict()), rest
    except (ValueError, TypeError) as error:
        raise RecipeError(f"--{error}" if str(error).startswith(tuple(names)) else str(error)) from None


@functools.lru_cache(maxsize=32)
def _parser_of(kind: type) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    parser.add_class_arguments(kind)
    return parser


def _listed(kind: type, key: str, value: str) -> str:
    """a,b for a flag that takes several, as [a,b]."""
    several = isinstance(getattr(kind, key, None), tuple)
    return f"[{value}]" if several and not value.startswith("[") else value
