"""Single values as YAML text, and back."""

from __future__ import annotations

import re
from typing import Any

import yaml

MOST = 20_000  # values, where one that is named (&a) counts as often as it is used (*a)
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")  # 4e-4, which is text in YAML 1.1


def value_of(text: Any) -> Any:
    """The value that `text` has as YAML; whatever is no YAML, and what is no text, is given back as it is."""
    if not isinstance(text, str) or not text:
        return text
    if EXPONENT.fullmatch(text):
        return float(text)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None or too_many(node):
            return None if node is None else text
        return loader.construct_document(node)
    except Exception:  # dates, numbers and tags that are none fail in ways of their own
        return text


def yaml_text(value: Any) -> str:
    """A value on one line, as a flag would carry it."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=10**6)).removesuffix("\n...\n").strip()


def too_many(node: yaml.Node | None) -> bool:
    """Whether it holds more than MOST values: a few lines can name a list of lists of lists of the same."""
    waiting, count = [node] if node is not None else [], 0
    while waiting and count <= MOST:
        count += 1
        value = waiting.pop().value
        for each in value if isinstance(value, list) else ():
            waiting += each if isinstance(each, tuple) else [each]
    return count > MOST
