"""Options that `auglabel reproduce` gives to every run: --engine.precision bf16, --set a.b=c, --copies DIR.

They decide what a run computes and are part of its result's identity. All results in one folder are made
with the same ones, which stand in a file beside them: tables are made of them without typing them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.recipe.options import pairs
from auglabel.lab.recipe.read import NAMED
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import read_checksummed, write_checksummed

FORMAT = "auglabel options of all runs, version 1"
ROWS_DECIDE = ("seed", "training.seed", "regime")
COPIES = "--copies="  # the one option that is not the recipe's; where the folder lies may change


def options_of(folder: Path, words: Sequence[str]) -> tuple[str, ...]:
    """The options of the results in `folder`: those given, which must be the ones it has, or its own."""
    given = _checked(words)
    kept = _kept(folder)
    if not given:
        _require_no_own_parts(folder, kept or ())
        return kept or ()
    if kept is None and any((folder / "runs").glob("*.json")):
        kept = ()
    if kept is not None and _identity(kept) != _identity(given):
        had = " ".join(kept) if kept else "no options"
        raise UserError(
            f"the results in {folder} were made with {had}, got {' '.join(given)}. "
            "Give the same, or another --out."
        )
    return given


def copies_of(words: Sequence[str]) -> str | None:
    """The folder of corrupted copies among the options."""
    return next((word.removeprefix(COPIES) for word in words if word.startswith(COPIES)), None)


def recipe_words(words: Sequence[str]) -> tuple[str, ...]:
    """The options that are the recipe's."""
    return tuple(word for word in words if not word.startswith(COPIES))


def _identity(words: Sequence[str]) -> list[str]:
    return sorted(COPIES if word.startswith(COPIES) else word for word in words)


def keep_options(folder: Path, words: Sequence[str]) -> None:
    """Write them down before the first run; a folder without options has no file."""
    if words and _kept(folder) is None:
        folder.mkdir(parents=True, exist_ok=True)
        write_checksummed(_file(folder), {"format": FORMAT, "options": list(words)})


def _kept(folder: Path) -> tuple[str, ...] | None:
    if not _file(folder).is_file():
        return None
    found = read_checksummed(_file(folder), FORMAT, what="the options of all runs", shape={"options": [str]})
    return tuple(found["options"])


def _require_no_own_parts(folder: Path, kept: Sequence[str]) -> None:
    """A file cannot make us import a module: what it names as module:function must be typed again."""
    for key, value in pairs(kept):
        if key.removesuffix(".name") in NAMED and ":" in value:
            raise UserError(
                f'the results in {folder} were made with "{shown(value)}", which would be imported and run, '
                f"and no file may ask for that. If you trust it, say so: {shown(' '.join(kept))}"
            )


def _file(folder: Path) -> Path:
    return folder / "options.json"


def _checked(words: Sequence[str]) -> tuple[str, ...]:
    """--set a.b=c as --a.b=c; what the rows decide is refused."""
    plain = [f"--{word.removeprefix('--set=')}" if word.startswith("--set=") else word for word in words]
    for key, _ in pairs(plain):
        if key in ROWS_DECIDE:
            raise UserError(f"--{key} is decided by the rows of the table; --seeds says how many seeds.")
    return tuple(f"--{key}={value}" for key, value in pairs(plain))
