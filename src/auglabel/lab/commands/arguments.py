"""The words of a command line: names first, then flags of the command, then options of a recipe."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType

from auglabel.errors import UserError
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import help_of_recipe
from auglabel.util.help_text import help_of_flags


def names_first(words: Sequence[str], most: int | None = None) -> tuple[list[str], list[str]]:
    """The words before the first flag, `most` of them at the most, and the rest."""
    names = [*itertools.takewhile(lambda word: not word.startswith("-"), words)][:most]
    return names, list(words[len(names) :])


def name_first(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The first word if it is not a flag, and the rest."""
    names, rest = names_first(words, most=1)
    return (names[0] if names else None), rest


def require_no_more(words: Sequence[str]) -> None:
    if words:
        raise UserError(f'there is no option "{words[0].partition("=")[0]}"; --help lists them.')


def help_text(name: str, command: ModuleType, words: Sequence[str]) -> str:
    """The usage of a command and its flags; then a recipe's options, if the command takes them."""
    usage = f"usage: auglabel {name} {command.USAGE}".rstrip()
    usage += " [--option value ...]" if command.OPTIONS else ""
    text = f"{usage}\n\n{help_of_flags(*command.OPTIONS)}"
    if not getattr(command, "TAKES_RECIPE", False):
        return text
    recipe, rest = name_first(words)
    for kind in command.OPTIONS:
        _, rest = flags(kind, rest)
    about = (
        "Options of the recipe; each may stand in its file too. --regime NAME sets augment, labels and loss."
    )
    return f"{text}\n{about}\n\n{help_of_recipe(recipe, rest)}"
