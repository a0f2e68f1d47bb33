"""What the paper claims, and what an expert asks beyond it: claims-SCALE.yaml, written before the runs."""

from __future__ import annotations

import functools
from typing import Any

import yaml

from auglabel.lab.study.row import Scale
from auglabel.util.resources import resource_folder

LEVEL = 0.05  # of the verdicts


@functools.cache
def claims(scale: Scale) -> dict[str, list[dict[str, Any]]]:
    """By family: the paper's, ours, and those added later than the plan."""
    text = (resource_folder("lab/study") / f"claims-{scale}.yaml").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(text)
    return found
