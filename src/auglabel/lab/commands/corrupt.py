"""`auglabel corrupt`: corrupted copies of a data set's test images, in the official layouts."""

from __future__ import annotations

from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import names_first
from auglabel.lab.copies.copies import CopyOptions, corrupt_data
from auglabel.lab.recipe.options import flags

USAGE, OPTIONS = "DATA OUT [--data.root DIR]", (CopyOptions,)


def run(words: list[str]) -> None:
    names, rest = names_first(words, most=2)
    if len(names) < 2:
        raise UserError(
            "which images, and where to? DATA (a data set, a recipe or a path) and OUT come first, options "
            "after them: auglabel corrupt cifar10 copies --data.root DIR."
        )
    options, rest = flags(CopyOptions, rest)
    corrupt_data(names[0], rest, Path(names[1]), options)
