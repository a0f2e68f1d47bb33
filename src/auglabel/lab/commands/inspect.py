"""`auglabel inspect`: the learned confidence per bucket, epoch by epoch."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first, require_no_more
from auglabel.lab.commands.preview import PictureOptions
from auglabel.lab.pictures.show import inspect_run
from auglabel.lab.recipe.options import flags
from auglabel.lab.runs.run import Run

USAGE, OPTIONS = "RUN", (PictureOptions,)


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    options, rest = flags(PictureOptions, rest)
    require_no_more(rest)
    if name is None:
        raise UserError("which run? auglabel inspect runs/NAME.")
    print(f"wrote {inspect_run(Run(Path(name)), options.out, Console())}")
