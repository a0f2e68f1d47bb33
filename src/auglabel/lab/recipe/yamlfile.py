"""Read a YAML file with the line of every key, running nothing that it says."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import yaml

from auglabel.errors import UserError
from auglabel.lab.recipe.recipe import stored_meaning
from auglabel.util.checks import shown
from auglabel.util.yaml_values import MOST, too_many

CHECKSUM = "# checksum "
FIRST = re.compile(rf"\A{CHECKSUM}([0-9a-f]{{32}})\n")  # so that a file cut short still has it
LAST = re.compile(rf"^{CHECKSUM}([0-9a-f]{{32}})\s*\Z", re.M)  # where older runs have it
LARGEST = 2**17  # bytes


class Lines:
    """The line on which each dotted key of a file stands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number: dict[str, int] = {}

    def place(self, key: str) -> str:
        """The file and line of `key`, or of the section around it, as the beginning of a sentence."""
        while key and key not in self.number:
            key = key.rpartition(".")[0]
        return f"{self.path}, line {self.number[key]}: " if key else f"{self.path}: "


def with_checksum(text: str) -> str:
    """`text` with a comment in front of it that holds its checksum."""
    return f"{CHECKSUM}{_checksum(text)}\n{text}"


def read_yaml(path: Path) -> tuple[Lines, dict[str, Any]]:
    """Where each key stands, and what it holds; a checksum, if there is one, must fit."""
    try:
        if path.stat().st_size > LARGEST:
            raise UserError(f"{path} has more than {LARGEST:,} bytes, which no recipe has.")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a text file: {error.reason} at byte {error.start}.") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    if not text.strip() or ("\n" not in text and CHECKSUM.startswith(text[: len(CHECKSUM)])):
        raise UserError(f'{path} is empty or cut short: a recipe holds lines such as "epochs: 40".')
    stated = FIRST.search(text) or LAST.search(text)
    if stated is not None and stated[1] != _checksum(text[: stated.start()] + text[stated.end() :]):
        raise UserError(
            f"{path} is damaged: its checksum does not fit its content; remove that line if you changed it "
            "yourself."
        )
    lines = Lines(path)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if too_many(node):
            raise UserError(f"{path} holds more than {MOST:,} values, which no recipe has.")
        _number(node, "", lines)
        found = None if node is None else loader.construct_document(node)
    except RecursionError:
        raise UserError(f"{path}: this is nested too deeply for a recipe.") from None
    except UserError:
        raise
    except Exception as error:  # dates, numbers and tags that are none fail in ways of their own
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        why = shown(getattr(error, "problem", None) or error)
        raise UserError(f"{path}{place}: this is not a recipe's YAML ({why}).") from None
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise UserError(f'{path}: a recipe holds lines such as "epochs: 40", got something else.')
    return lines, found if stated is None else stored_meaning(found)  # only runs write a checksum


def _number(node: yaml.Node | None, prefix: str, lines: Lines) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        name = f"{prefix}{key.value if isinstance(key, yaml.ScalarNode) else ''}"
        line = key.start_mark.line + 1
        if name in lines.number:
            first = lines.number[name]
            raise UserError(
                f'{lines.path}, line {line}: "{shown(name)}" is there twice, first on line {first}.'
            )
        lines.number[name] = line
        _number(value, f"{name}.", lines)


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
