"""Options: the parameters of a function or of a class, read off its signature, and values checked against it.

A recipe's options are those of what its sections name; a command's flags are the fields of a dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from auglabel.augment.clean import Clean
from auglabel.data.split import split
from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import AUGMENTATIONS, DATASETS, LABELS, named
from auglabel.lab.parts.optimizers import OPTIMIZERS
from auglabel.lab.parts.schedules import SCHEDULES
from auglabel.lab.recipe.recipe import Calibrate, Engine, Training, listed
from auglabel.models.by_name import model_function
from auglabel.util.checks import brief, entry, shown
from auglabel.util.signatures import REQUIRED, Option, Unfit, converted, is_list, options_of

Flags = TypeVar("Flags")


class RecipeError(UserError):
    """A recipe that cannot be used, and where in it."""


class Menu(NamedTuple):
    """A section that names an entry: how names are looked up, the default, and the arguments that we give."""

    find: Callable[[str], Callable[..., Any]]
    default: str
    given: frozenset[str] = frozenset()


MENUS = {
    "data": Menu(partial(named, "data set", DATASETS), "embedded"),
    "model": Menu(model_function, "small", frozenset({"num_classes", "mean", "std"})),
    "augment": Menu(partial(named, "augmentation", AUGMENTATIONS), "randaug"),
    "labels": Menu(
        partial(named, "label policy", LABELS),
        "one_hot",
        frozenset({"num_classes", "num_buckets", "grid", "epochs"}),
    ),
    "optimizer": Menu(partial(entry, "optimizer", OPTIMIZERS), "sgd"),
    "schedule": Menu(partial(named, "schedule", SCHEDULES), "cosine", frozenset({"step", "steps"})),
}
PLAIN: dict[str, Callable[..., Any]] = {
    "split": split,
    "prepare": Clean,
    "calibrate": Calibrate,
    "engine": Engine,
}
GIVEN_TO_SPLIT = frozenset({"data", "generator"})


def sections_of(names: Mapping[str, str]) -> Iterable[tuple[str, Callable[..., Any], dict[str, Option]]]:
    """Each section, what it configures and its options, where sections of MENUS have these entries."""
    yield "", Training, options_of(Training)
    for section, menu in MENUS.items():
        call = menu.find(names[section])
        yield section, call, {"name": Option(str, names[section]), **options_of(call, menu.given)}
    for section, call in PLAIN.items():
        yield section, call, options_of(call, GIVEN_TO_SPLIT if call is split else ())


def all_options(names: Mapping[str, str]) -> dict[str, Option]:
    """Every option of a recipe with these entries, by its dotted key."""
    return {
        f"{section}.{name}".lstrip("."): option
        for section, _, options in sections_of(names)
        for name, option in options.items()
    }


def defaults_of(names: Mapping[str, str]) -> dict[str, Any]:
    """The value of every option, by its dotted key, of a recipe that names these entries and sets nothing."""
    return {
        key: None if option.default is REQUIRED else listed(option.default)
        for key, option in all_options(names).items()
    }


def checked(key: str, option: Option, value: Any, origin: str) -> Any:
    """`value` as the option takes it; a complaint begins with `origin`."""
    try:
        return converted(option.kind, value)
    except OverflowError:
        raise RecipeError(f"{origin}{key} is too large a number.") from None
    except Unfit as unfit:
        got = shown(unfit.value) if isinstance(unfit.value, str) else brief(unfit.value)
        single = isinstance(unfit.value, str | int | float) and not got.startswith(("[", "{"))
        way_out = f" Type it as [{got}]." if unfit.wanted == "a list" and single else ""
        raise RecipeError(f"{origin}{key} must be {unfit.wanted}, got {got}.{way_out}") from None


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


def flags(kind: type[Flags], words: Sequence[str]) -> tuple[Flags, list[str]]:
    """A command's own flags, the fields of a dataclass, out of `words`; and the words that are left."""
    options, found, rest = options_of(kind), {}, []
    for key, text in pairs(words):
        if key not in options:
            rest.append(f"--{key}={text}")
            continue
        if is_list(options[key].kind) and not text.startswith("["):
            text = f"[{text}]"
        found[key] = checked(key, options[key], text, f"--{key}: ")
    if missing := [key for key, option in options.items() if option.default is REQUIRED and key not in found]:
        raise RecipeError(f"--{missing[0]} VALUE is needed.")
    try:
        return kind(**found), rest
    except UserError as error:
        raise RecipeError(f"--{error}" if str(error).startswith(tuple(options)) else str(error)) from error
