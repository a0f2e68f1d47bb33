"""The records of a run, each described once: the dataclass, and how its JSON is checked and read.

run.json            RunFacts, with DataFacts
metrics.jsonl       Epoch, a line each
split.safetensors   SplitRows
checkpoints/        CheckpointFacts, beside the tensors

The learned labels of each epoch are in label_tables.py, and what `auglabel eval` leaves in evaluations.py.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from auglabel import __version__
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from auglabel.lab.runs.files import read_lines
from auglabel.pooling import RULE
from auglabel.util.checks import shown
from auglabel.util.checksummed_json import mismatch, read_checksummed, write_checksummed

RUN_FORMAT = "auglabel run, version 1"
PARTS = ("train", "validation", "test")
# of an epoch: what differs between equal runs
TIMES = ("seconds", "images_per_second", "calibration_share", "cpu_seconds")

Record = TypeVar("Record")


def versions() -> dict[str, str]:
    """The versions that results depend on."""
    return {
        "auglabel": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "pooled_rule": RULE,
    }


def _of(record: type[Record], found: Mapping[str, Any]) -> Record:
    """A dataclass from JSON of the right shape; keys that it does not know are ignored."""
    names = {each.name for each in fields(record)}  # type: ignore[arg-type]
    return record(**{name: value for name, value in found.items() if name in names})


def _told(record: Any) -> dict[str, Any]:
    """A dataclass as JSON, without what it does not say."""
    return {name: value for name, value in asdict(record).items() if value is not None and value != {}}


@dataclass(frozen=True)
class DataFacts:
    """The images that a run is trained on. Runs of older versions lack what may be None."""

    name: str
    checksum: str
    classes: list[str] | None = None
    notes: list[str] | None = None
    mean: list[float] | None = None
    std: list[float] | None = None
    shape: list[int] | None = None  # channels, height, width
    images: dict[str, int] = field(default_factory=dict)  # the number of images in each part of the split

    @classmethod
    def of(cls, data: DataSet, parts: Parts) -> Self:
        return cls(
            data.name,
            data.checksum,
            list(data.classes),
            list(data.notes),
            list(data.mean),
            list(data.std),
            list(data.train.shape),
            {name: len(getattr(parts, name)) for name in PARTS},
        )


@dataclass(frozen=True)
class Resumed:
    """A run went on after this epoch with other versions than before."""

    epoch: int
    versions: dict[str, str]


RUN_FACTS = {
    **{"versions": {...: str}, "seed": int, "parameters": int},
    **{"measured?": str, "processes?": int, "device?": str, "threads?": int, "labelled_images?": int},
    "processor?": str,
    "data": {
        **{"name": str, "checksum": str, "images": {"train": int, ...: int}},
        **{"classes?": [str], "notes?": [str], "mean?": [float], "std?": [float], "shape?": [int]},
    },
    "resumed?": [{"epoch": int, "versions": {...: str}}],
}


@dataclass(frozen=True)
class RunFacts:
    """run.json: what a run was begun with."""

    versions: dict[str, str]
    seed: int
    data: DataFacts
    parameters: int
    measured: str | None = None  # weights, or averaged weights
    processes: int | None = None
    device: str | None = None
    threads: int | None = None
    labelled_images: int | None = None  # used in all, for training and for the labels
    processor: str | None = None  # what seconds of training are of
    resumed: list[Resumed] | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        found = read_checksummed(path, RUN_FORMAT, what="what a run was begun with", shape=RUN_FACTS)
        found["data"] = _of(DataFacts, found["data"])
        if "resumed" in found:
            found["resumed"] = [_of(Resumed, each) for each in found["resumed"]]
        return _of(cls, found)

    def write(self, path: Path) -> None:
        write_checksummed(path, {"format": RUN_FORMAT, **_told(self), "data": _told(self.data)})


EPOCH = {  # a loss that is no number is of a step that half precision skipped
    **{"epoch": int, "loss": math.inf, "images?": int, "validation?": {...: (math.inf, None)}},
    **{"step?": int, "learning_rate?": math.inf, "confidence?": {...: math.inf}},
    **{"seconds?": {...: float}, "images_per_second?": float, "calibration_share?": float},
    "cpu_seconds?": float,
}


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """A line of metrics.jsonl: what was measured after an epoch."""

    epoch: int
    step: int | None = None
    learning_rate: float | None = None
    loss: float
    images: int | None = None  # trained on; in runs of older versions all that are for training
    validation: Mapping[str, float | None] = field(default_factory=dict)  # metrics; count is that of images
    confidence: Mapping[str, float] = field(default_factory=dict)  # of labels: mean, lowest, highest
    seconds: Mapping[str, float] = field(default_factory=dict)  # calibrating, validating
    images_per_second: float | None = None
    calibration_share: float | None = None  # of the time so far
    cpu_seconds: float | None = None  # so far, of all processes that train, without a loader's workers

    def as_json(self) -> dict[str, Any]:
        return _told(self)


def read_epochs(path: Path) -> list[Epoch]:
    """The lines of metrics.jsonl."""
    return [_of(Epoch, line) for line in read_lines(path, EPOCH).values()]


def seconds_by_part(facts: RunFacts, epochs: Sequence[Epoch]) -> dict[str, float]:
    """Seconds spent on training, calibrating and validating; empty where they were not recorded."""
    speeds = [epoch.images_per_second or 0.0 for epoch in epochs]
    if not all(speed > 0 and epoch.seconds for speed, epoch in zip(speeds, epochs, strict=True)):
        return {}
    counts = [epoch.images or facts.data.images["train"] for epoch in epochs]
    found = {"training": sum(count / speed for count, speed in zip(counts, speeds, strict=True))}
    for epoch in epochs:
        for part, seconds in epoch.seconds.items():
            found[part] = found.get(part, 0.0) + seconds
    return found


class SplitRows(NamedTuple):
    """split.safetensors: the rows of the data set in each part."""

    train: Tensor
    validation: Tensor
    test: Tensor

    @classmethod
    def of(cls, parts: Parts) -> Self:
        return cls(*(getattr(parts, name).rows for name in PARTS))

    @classmethod
    def read(cls, path: Path) -> Self:
        found = load_checkpoint(path).tensors
        if found.keys() != set(PARTS):
            raise UserError(f"{path} is not a run's split: it must hold {', '.join(PARTS)}.")
        return cls(**found)

    def write(self, path: Path) -> None:
        save_checkpoint(path, self._asdict(), {})

    def labelled(self, validation_from: str, data: DataSet) -> Tensor:
        """Numbers of the images for training and validation; those of the test part follow the others."""
        before = len(data.train) if validation_from == "test" else 0
        return torch.cat([self.train, self.validation + before])


def require_untested(title: str, labelled: Tensor, data: DataSet, parts: Parts) -> None:
    """No test image may be among the `labelled` ones of the run that this one takes something from."""
    tested = parts.test.rows + (0 if data.test is None else len(data.train))
    if seen := int(torch.isin(tested, labelled).sum()):
        raise UserError(
            f"{title} has learned from {seen:,} of this run's {len(tested):,} test images: give both runs "
            "the same --split.seed and --split.test, with validation_from test also --split.validation."
        )


@dataclass
class TrainingState:
    """How far training has got."""

    epoch: int = 0  # finished
    batch: int = 0  # finished in the epoch after those
    loss: float = 0.0  # sum over the images of that epoch so far
    images: int = 0
    best: float = math.inf  # validation NLL
    training: float = 0.0  # seconds in total
    calibrating: float = 0.0
    # seconds on processors of this process, in a checkpoint of all: training, calibrating and validating,
    # without a loader's workers; nan after a checkpoint of an older version
    cpu: float = 0.0

    @property
    def calibration_share(self) -> float:
        """The share of calibration in the time of training and calibration."""
        return self.calibrating / max(self.training + self.calibrating, 1e-9)


CHECKPOINT_FACTS = {
    **{"epoch": int, "batch": int, "loss": math.inf, "images": int, "best": math.inf},
    **{"training": float, "calibrating": float, "processes": int, "scaler?": {...: math.inf}},
    "cpu?": math.inf,
}
RANK = {"loss": math.inf, "images": int}


@dataclass(frozen=True)
class CheckpointFacts:
    """What a checkpoint holds beside its tensors."""

    state: TrainingState
    processes: int
    scaler: Mapping[str, float] | None = None  # the gradient scaler of half precision
    ranks: Mapping[str, Any] = field(default_factory=dict)  # rank0, ...: its own loss and images, as read

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Self:
        """From a checkpoint's facts; the error is a clause that says what is wrong with them."""
        ranks = {name: value for name, value in found.items() if name.startswith("rank")}
        plain = {name: value for name, value in found.items() if name not in ranks}
        strange = sorted(plain.keys() - {name.rstrip("?") for name in CHECKPOINT_FACTS})
        if wrong := mismatch(plain, CHECKPOINT_FACTS) or (f"it has {shown(strange[0])}" if strange else ""):
            raise UserError(wrong)
        state = _of(TrainingState, {"cpu": math.nan, **plain})
        return cls(state, plain["processes"], plain.get("scaler"), ranks)

    def rank(self, number: int) -> dict[str, Any]:
        """The loss and images of one rank's own part of the epoch so far."""
        if wrong := mismatch(self.ranks, {f"rank{number}": RANK}):
            raise UserError(wrong)
        return {name: self.ranks[f"rank{number}"][name] for name in RANK}

    def as_json(self) -> dict[str, Any]:
        scaler = {} if self.scaler is None else {"scaler": self.scaler}
        return {**asdict(self.state), "processes": self.processes, **scaler, **self.ranks}
