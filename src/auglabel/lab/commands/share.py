"""`auglabel share`: a finished run as a folder for others, in Hugging Face's layout."""

from __future__ import annotations

from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import names_first
from auglabel.lab.runs.run import Run
from auglabel.lab.share.card import temperature_of
from auglabel.lab.share.sharing import share_run

USAGE, OPTIONS = "RUN FOLDER", ()


def run(words: list[str]) -> None:
    names, rest = names_first(words, most=2)
    if len(names) < 2:
        raise UserError("which run, and where to? auglabel share runs/NAME shared/NAME.")
    name, folder = names
    print(f"wrote {share_run(Run(Path(name)), Path(folder), rest)}")
    if temperature_of(Run(Path(name))) is None:
        print(f"It has no fitted temperature: auglabel eval {name} fits one; share the run again then.")
