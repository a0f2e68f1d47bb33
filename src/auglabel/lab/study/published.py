"""What the paper printed: the numbers of its tables, as they stand there, in percent."""

from __future__ import annotations

import functools
from typing import Any

import yaml

from auglabel.util.resources import resource_folder


@functools.cache
def published() -> dict[str, Any]:
    """By the paper's numbering: table1 to table6, figure1 to figure7."""
    text = (resource_folder("lab/study") / "published.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found
