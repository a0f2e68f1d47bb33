"""`auglabel preview`: a picture of every bucket of an augmentation, with its learned confidence."""

from __future__ import annotations

from dataclasses import dataclass

from auglabel.lab.commands.arguments import name_first
from auglabel.lab.pictures.show import preview_recipe
from auglabel.lab.recipe.options import flags


@dataclass(frozen=True)
class PictureOptions:
    """Where the picture goes"""

    out: str | None = None
    """PNG file"""


USAGE, OPTIONS, TAKES_RECIPE = "[RECIPE or RUN]", (PictureOptions,), True


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    options, rest = flags(PictureOptions, rest)
    print(f"wrote {preview_recipe(name, rest, options.out)}")
