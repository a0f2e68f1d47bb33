"""Read a YAML file with the line of every key, running nothing that it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


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


def read_yaml(path: Path) -> tuple[Lines, dict[str, Any]]:
    """Where each key stands, and what it holds."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file: {error.reason} at byte {error.start}.") from None
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}.") from None
    try:
        lines = Lines(path)
        _number(yaml.compose(text, yaml.SafeLoader), "", lines)
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"{path}{place}: this is not a recipe's YAML ({getattr(error, 'problem', error)})."
        ) from None
    except RecursionError:
        raise ValueError(f"{path}: this is nested too deeply for a recipe.") from None
    if found is None:
        found = {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f'{path}: a recipe holds lines such as "epochs: 40", but something else came.')
    return lines, found


def _number(node: yaml.Node | None, prefix: str, lines: Lines) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        name = f"{prefix}{getattr(key, 'value', '')}"
        line = key.start_mark.line + 1
        if name in lines.number:
            first = lines.number[name]
            raise ValueError(f'{lines.path}, line {line}: "{name}" is there twice, first on line {first}.')
        lines.number[name] = line
        _number(value, f"{name}.", lines)
