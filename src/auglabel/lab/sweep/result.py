"""`Result`: the file that a job leaves behind, described, written and read here, in either version."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from auglabel.calibration import Calibration
from auglabel.errors import UserError
from auglabel.lab.runs.evaluations import TA, MeasuredRow, T, Values
from auglabel.lab.runs.records import DataFacts
from auglabel.util.atomic_write import write_text
from auglabel.util.checksummed_json import mismatch, read_checksummed, with_checksum

FORMAT = "auglabel result, version 2"
VERSION_1 = "auglabel result, version 1"
KEPT = ("accuracy", "confidence", "ece", "debiased_ece", "nll", "brier", "aurc")  # of each measured row
AT = ("", f" {T}", f" {TA}")  # as trained, and at each temperature: columns are "ece", "ece T", "ece TA"
COLUMNS = ("on", "severity", "count", *(f"{name}{at}" for at in AT for name in KEPT))
AGAIN = "Remove it, and it is made again."
AUGMENTED = " --temperature=augmented"  # ends the words of an evaluation at TA in version 1


@dataclass(frozen=True)
class ResultEvaluation:
    """One evaluation on the test images: a row per condition."""

    notes: Sequence[str]
    rows: Sequence[MeasuredRow]

    def as_json(self) -> dict[str, object]:
        rows = [
            [row.on, row.severity, row.count, *(_rounded(row.value(name)) for name in COLUMNS[3:])]
            for row in self.rows
        ]
        return {"notes": self.notes, "columns": COLUMNS, "rows": rows}


@dataclass(frozen=True)
class KindReadings:
    """Calibration on the test images under one kind of distortion, by its level."""

    count: Sequence[int]
    accuracy: Sequence[float]
    ece: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a job leaves behind: what it was, its run in short, and what was measured of it."""

    name: str
    digest: str
    recipe: Mapping[str, Any]  # as JSON, without where its data lie
    measured: Sequence[object]  # what was asked for
    versions: Mapping[str, str]
    seed: int
    parameters: int
    data: DataFacts
    labelled_images: int
    validation: Values | None  # on clean validation images, after the last epoch
    labels: Mapping[str, Sequence[float]] | None  # that were learned: by kind of distortion and level
    seconds: Mapping[str, float]
    validation_augmented: Values | None = None  # under the training's augmentation; version 1 has none
    processor: str | None = None  # that trained it, where the run says
    temperatures: Mapping[str, float]
    evaluations: Sequence[ResultEvaluation]
    views: Mapping[str, KindReadings] | None  # by kind of distortion

    @property
    def label_spread(self) -> dict[str, float] | None:
        """Mean, lowest and highest of the learned labels, over all buckets."""
        values = [value for kind in (self.labels or {}).values() for value in kind]
        if not values:
            return None
        spread = {"mean": statistics.fmean(values), "lowest": min(values), "highest": max(values)}
        return {name: round(value, 6) for name, value in spread.items()}

    def write(self, path: Path) -> None:
        """A line per entry: short enough to keep many, and to read."""
        told: dict[str, object] = {"format": FORMAT} | {name: getattr(self, name) for name in FIELDS}
        told |= {
            "data": {"name": self.data.name, "checksum": self.data.checksum, "images": self.data.images},
            "evaluations": [each.as_json() for each in self.evaluations],
            "views": None if self.views is None else {k: vars(v) for k, v in self.views.items()},
            "label_spread": self.label_spread,
        }
        lines = [
            f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in with_checksum(told).items()
        ]
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


NUMBERS = (None, {...: (math.inf, None)})
ROWS = {"columns": [str], "rows": [[(float, None, str)]], "notes?": [str]}
EITHER = {
    **{"name": str, "digest": str, "recipe": dict, "measured": list, "versions": {...: str}, "seed": int},
    **{"parameters": int, "seconds": {...: float}, "validation": NUMBERS, "labels": (None, {...: [float]})},
    "data": {"name": str, "checksum": str, "images": {"train": int, "validation": int, ...: int}},
    "views": (None, {...: {"count": [int], "accuracy": [float], "ece": [math.inf]}}),
}
SHAPES = {
    FORMAT: EITHER
    | {
        "processor?": (None, str),
        "labelled_images": int,
        "validation_augmented": NUMBERS,
        "temperatures": {...: float},
    }
    | {"evaluations": [ROWS]},
    VERSION_1: EITHER | {"evaluations": [ROWS | {"words": str, "temperature?": (float, None)}]},
}
VIEW = ("count", "accuracy", "ece")
FIELDS = [each.name for each in fields(Result)]


def read_result(path: Path) -> Result:
    """The result in a file of either version."""
    found = read_checksummed(path, *SHAPES, what="a result", otherwise=AGAIN)
    if wrong := mismatch(found, SHAPES[found["format"]]):
        raise UserError(f"{path} is damaged or of another version: {wrong}. {AGAIN}")
    data, views = found["data"], found["views"]
    try:
        about = (_of_version_1 if found["format"] == VERSION_1 else _of_version_2)(found)
    except ValueError:
        raise UserError(f"{path} is damaged: a measurement in it lacks rows or columns. {AGAIN}") from None
    about |= {
        "data": DataFacts(data["name"], data["checksum"], images=data["images"]),
        "views": views and {kind: KindReadings(*map(each.get, VIEW)) for kind, each in views.items()},
    }
    return Result(**{name: value for name, value in found.items() if name in FIELDS} | about)


def _read(found: Mapping[str, Any], needed: Sequence[str] = COLUMNS[3:]) -> ResultEvaluation:
    """Its rows; a ValueError if it has none, or rows that lack a column."""
    columns, rows = found["columns"][3:], []
    for on, severity, count, *values in found["rows"]:
        if not isinstance(on, str) or any(isinstance(each, str) for each in (severity, count, *values)):
            raise ValueError
        by_temperature: dict[str, dict[str, float | None]] = {"": {}}
        for column, value in zip(columns, values, strict=True):
            name, _, temperature = column.partition(" ")
            by_temperature.setdefault(temperature, {})[name] = value
        rows.append(MeasuredRow(on, severity, count, by_temperature.pop(""), by_temperature))
    if not rows or not set(needed) <= set(columns):
        raise ValueError
    return ResultEvaluation(found.get("notes", []), rows)


def _of_version_2(found: Mapping[str, Any]) -> dict[str, Any]:
    return {"evaluations": [_read(each) for each in found["evaluations"]]}


def _of_version_1(found: Mapping[str, Any]) -> dict[str, Any]:
    """What version 1 has otherwise: TA had an evaluation of its own, and some values were not recorded."""
    temperatures: dict[str, float] = {}
    by_words = {}
    for each in found["evaluations"]:
        at = TA if each["words"].endswith(AUGMENTED) else T
        if (temperature := each.get("temperature")) is not None:
            temperatures.setdefault(at, temperature)
        columns = [re.sub("^scaled_(.*)", rf"\1 {at}", name) for name in each["columns"]]
        needed = [f"{name}{end}" for name in KEPT[:6] for end in ("", f" {at}")]
        by_words[each["words"]] = _read(each | {"columns": columns}, needed)
    plain = [words for words in by_words if not words.endswith(AUGMENTED)]
    evaluations = [_joined(by_words[words], by_words.get(f"{words}{AUGMENTED}")) for words in plain]
    labelled = found["data"]["images"]["train"] + found["data"]["images"]["validation"]
    return {"evaluations": evaluations, "temperatures": temperatures, "labelled_images": labelled}


def _joined(plain: ResultEvaluation, augmented: ResultEvaluation | None) -> ResultEvaluation:
    """The same evaluation at T and at TA as one."""
    if augmented is None:
        return plain
    at_ta = {(row.on, row.severity): row for row in augmented.rows}
    rows = [row.with_temperatures(at_ta.get((row.on, row.severity), row)) for row in plain.rows]
    return replace(plain, rows=rows)


def mean_of(rows: Iterable[MeasuredRow], metric: str) -> float | None:
    """The mean of a metric over rows; None without rows, or where one of them lacks it."""
    values = [row.value(metric) for row in rows]
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there and len(there) == len(values) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def readings_of(seen: Calibration | None) -> dict[str, float | None] | None:
    """What is kept of the validation images under the training's augmentation; null for an infinite NLL."""
    if seen is None:
        return None
    values = {name: float(getattr(seen, name)) for name in KEPT if name != "aurc"}
    finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
    return {"count": int(seen.count), **finite}
