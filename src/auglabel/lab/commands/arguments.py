"""The words of a command line: names first, then flags of the command, then options of a recipe."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from auglabel.errors import UserError


class Parser(argparse.ArgumentParser):
    """For commands that need no extra: the standard library's, with our way of complaining and of helping."""

    def __init__(self, command: str, about: str, takes: str = "") -> None:
        usage = f"auglabel {command} {takes} [--option value ...]".replace("  ", " ")
        super().__init__(command, usage, about, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> Any:
        raise UserError(f"{message}; --help lists the options.")

    def read(self, words: Sequence[str]) -> argparse.Namespace | None:
        """What the words say; None where they ask for help, which is printed."""
        if "--help" in words or "-h" in words:
            print(self.format_help(), end="")
            return None
        options, rest = self.parse_known_args(words)
        require_no_more(rest)
        return options


def names_first(words: Sequence[str], most: int | None = None) -> tuple[list[str], list[str]]:
    """The words before the first flag, `most` of them at the most, and the rest."""
    names = [*itertools.takewhile(lambda word: not word.startswith("-"), words)][:most]
    return names, list(words[len(names) :])


def name_first(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The first word if it is not a flag, and the rest."""
    names, rest = names_first(words, most=1)
    return (names[0] if names else None), rest


def recipe_first(words: Sequence[str], such_as: str) -> tuple[str, list[str]]:
    """The name of a recipe, which must come first, and the rest."""
    name, rest = name_first(words)
    if name is None:
        raise UserError(f"which recipe? It comes first: {such_as}.")
    return name, rest


def require_no_more(words: Sequence[str]) -> None:
    if words:
        raise UserError(f'there is no option "{words[0].partition("=")[0]}"; --help lists them.')


def help_text(name: str, command: ModuleType, words: Sequence[str]) -> str:
    """The usage of a command and its flags; then a recipe's options, if the command takes them."""
    from auglabel.lab.recipe.options import flags  # needs an extra, as the commands do that call this
    from auglabel.lab.recipe.read import help_of_recipe
    from auglabel.util.help_text import help_of_flags

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
