"""The file that is left of a job: what is in it, and reading those of earlier versions in the same form."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from auglabel.calibration import Calibration
from auglabel.errors import UserError
from auglabel.util.checksummed_json import mismatch, read_checksummed, with_checksum

FORMAT = "auglabel result, version 2"
VERSION_1 = "auglabel result, version 1"
KEPT = ("accuracy", "confidence", "ece", "debiased_ece", "nll", "brier", "aurc")  # of each measured row
AT = ("", " T", " TA")  # as trained, and at each temperature: columns are named "ece", "ece T", "ece TA"
COLUMNS = ("on", "severity", "count", *(f"{name}{at}" for at in AT for name in KEPT))
ROWS = {"columns": [str], "rows": [[(float, None, str)]]}
NUMBERS = (None, {...: (math.inf, None)})
RESULT = {  # what is read of one
    **{"recipe": dict, "validation": NUMBERS, "labels": (None, {...: [float]})},
    "evaluations": [ROWS],
    "views": (None, {...: {"accuracy": [float], ...: [math.inf]}}),
}
NEWER = RESULT | {  # and of one that is not of version 1
    **{"validation_augmented": NUMBERS, "temperatures": {...: float}, "labelled_images": int},
    "label_spread": (None, {"mean": float, "lowest": float, "highest": float}),
}
AUGMENTED = " --temperature=augmented"  # in the words of version 1
AGAIN = "Remove it, and it is made again."


def read_result(path: Path) -> dict[str, Any]:
    """The result in a file, in the form of version 2."""
    found = read_checksummed(path, FORMAT, VERSION_1, what="a result", otherwise=AGAIN)
    old = found["format"] == VERSION_1
    shape = RESULT | {"evaluations": [ROWS | {"words": str}]} if old else NEWER
    if wrong := mismatch(found, shape):
        raise UserError(f"{path} is damaged or of another version: {wrong}. {AGAIN}")
    needed = {*KEPT[:6], *(f"scaled_{name}" for name in KEPT[:6])} if old else {*COLUMNS[3:]}
    for evaluation in found["evaluations"]:
        columns, rows = evaluation["columns"], evaluation["rows"]
        fitting = all(len(row) == len(columns) and _is_row(row) for row in rows)
        if not rows or not needed <= set(columns[3:]) or not fitting:
            raise UserError(f"{path} is damaged: a measurement in it lacks rows or columns. {AGAIN}")
    return _converted(found) if old else found


def _is_row(row: Sequence[Any]) -> bool:
    """What it is on, and numbers."""
    return isinstance(row[0], str) and not any(isinstance(each, str) for each in row[1:])


def _converted(found: dict[str, Any]) -> dict[str, Any]:
    """A result of version 1: TA was an evaluation of its own there, and much was not recorded."""
    by_words = {each["words"]: each for each in found["evaluations"]}
    pairs = [(each, by_words.get(f"{words}{AUGMENTED}")) for words, each in by_words.items()]
    pairs = [(each, other) for each, other in pairs if not each["words"].endswith(AUGMENTED)]
    named = (
        {"T": pairs[0][0].get("temperature"), "TA": (pairs[0][1] or {}).get("temperature")} if pairs else {}
    )
    images = found.get("data", {}).get("images", {})
    return found | {
        "evaluations": [_with_ta(*pair) for pair in pairs],
        "temperatures": {name: value for name, value in named.items() if value is not None},
        "validation_augmented": None,
        "labelled_images": images.get("train", 0) + images.get("validation", 0),
        "label_spread": label_spread(found["labels"]),
    }


def _with_ta(clean: Mapping[str, Any], augmented: Mapping[str, Any] | None) -> dict[str, Any]:
    """An evaluation of version 1 under today's names of columns; `augmented` is the same one at TA."""
    names = [
        f"{name.removeprefix('scaled_')} T" if name.startswith("scaled_") else name
        for name in clean["columns"]
    ]
    rows = clean["rows"]
    if augmented is not None:
        places = [n for n, name in enumerate(augmented["columns"]) if name.startswith("scaled_")]
        names += [f"{augmented['columns'][n].removeprefix('scaled_')} TA" for n in places]
        lines = {tuple(row[:3]): row for row in augmented["rows"]}
        rows = [[*row, *(lines[tuple(row[:3])][n] for n in places)] for row in rows]
    return {"notes": clean.get("notes", []), "columns": names, "rows": rows}


def as_text(result: Mapping[str, Any]) -> str:
    """A line per entry: short enough to keep many, and to read."""
    lines = [
        f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in with_checksum(result).items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def evaluation_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of an evaluation."""
    return {"notes": found["notes"], "columns": list(COLUMNS), "rows": list(_rows(found["rows"]))}


def _rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        parts = [row["figures"], *(row["scaled"].get(at.strip()) for at in AT[1:])]
        values = [None if part is None else part[name]["value"] for part in parts for name in KEPT]
        yield [row["on"], row["severity"], row["count"], *(v if v is None else round(v, 6) for v in values)]


def label_spread(labels: Mapping[str, Sequence[float]] | None) -> dict[str, float] | None:
    """Mean, lowest and highest of the learned labels, over all buckets."""
    values = [value for kind in (labels or {}).values() for value in kind]
    if not values:
        return None
    spread = {"mean": statistics.fmean(values), "lowest": min(values), "highest": max(values)}
    return {name: round(value, 6) for name, value in spread.items()}


def readings_of(seen: Calibration | None) -> dict[str, float | None] | None:
    """What is kept of the validation images under the training's augmentation; null for an infinite NLL."""
    if seen is None:
        return None
    values = {name: float(getattr(seen, name)) for name in KEPT if name != "aurc"}
    finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return {"count": int(seen.count), **finite}
