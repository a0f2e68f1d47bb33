"""The text of --help: every option with its meaning, its kind and its default."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from auglabel.util.signatures import REQUIRED, Option, meanings, options_of, wanted
from auglabel.util.yaml_values import yaml_text

COLUMN, WIDTH = 24, 100


def help_of_flags(*kinds: type) -> str:
    """The flags of a command, which are the fields of these dataclasses."""
    return "\n".join(help_of_section("", kind, options_of(kind)) for kind in kinds)


def help_of_section(section: str, call: Callable[..., Any], options: Mapping[str, Option]) -> str:
    """These options of `call`, under the first paragraph of its docstring."""
    title = (inspect.getdoc(call) or section).split("\n\n")[0]
    told = {"name": "which one", **meanings(call)}
    lines = [_line(f"{section}.{key}".lstrip("."), each, told.get(key, "")) for key, each in options.items()]
    return "\n".join([f"{' '.join(title.split()).rstrip('.:')}:", *lines, ""])


def _line(key: str, option: Option, meaning: str) -> str:
    default = "required" if option.default is REQUIRED else f"default: {yaml_text(option.default)}"
    about = f"{meaning} ({', '.join(filter(None, [wanted(option.kind), default]))})".strip()
    indent = COLUMN * " "
    lines = textwrap.fill(about, WIDTH, initial_indent=indent, subsequent_indent=indent)
    flag = f"  --{key}"
    return flag.ljust(COLUMN) + lines.lstrip() if len(flag) + 2 <= COLUMN else f"{flag}\n{lines}"
