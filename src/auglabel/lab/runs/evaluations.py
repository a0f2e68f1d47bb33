"""RUN/eval/*.json: what `auglabel eval` measured, read as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import Self

from auglabel.errors import UserError
from auglabel.lab.runs.run import Run
from auglabel.util.checksummed_json import mismatch, read_checksummed

EVALUATION_FORMAT = "auglabel evaluation, version 2"
VERSION_1 = (
    "auglabel evaluation, version 1"  # of one temperature, and a note said on which images it was fitted
)
MEASURE_AGAIN = "Measure it again."
T, TA = "T", "TA"  # the temperatures of lowest NLL on clean and on augmented validation images
CORRUPTED_FROM = "Corrupted images: "  # begins the note that says who made them
FIGURES = {...: {"value": (float, None), ...: (float, None)}}
MEANS = {...: (float, None)}
BINS = {name: [float] for name in ("count", "confidence", "correct")}


def _shape(scaled: Any, scaled_means: Any) -> dict[str, Any]:
    """What is read of an evaluation."""
    row = {"on": str, "severity": (int, None), "count": int, "figures": FIGURES, "scaled": scaled}
    return {
        **{"checkpoint": str, "epoch": int, "data": {"checksum": str}},
        **{"attack?": (None, {"epsilon": float}), "notes": [str], "diagnosis?": str},
        **{"temperature?": (float, None), "temperatures?": {...: float}, "temperature_from?": (str, None)},
        "corruptions?": (None, {"from": str, "names": [str], "severities": [int]}),
        "rows": [row | {"bins?": (None, dict)}],
        "means": [{"pairs": int, "figures": MEANS, "scaled": scaled_means}],
    }


SHAPES = {
    EVALUATION_FORMAT: _shape({...: FIGURES}, {...: MEANS}),
    VERSION_1: _shape((None, FIGURES), (None, MEANS)),
}

Values = Mapping[str, float | None]  # a metric's name -> its value; None where it is no finite number


@dataclass(frozen=True)
class BinSums:
    """Sums per bin of confidence, which a reliability diagram is drawn from; those of runs can be added."""

    count: Sequence[float]
    confidence: Sequence[float]
    correct: Sequence[float]


@dataclass(frozen=True)
class MeasuredRow:
    """The metrics on one condition, or the mean of several (corruption, severity) `pairs`."""

    on: str
    severity: int | None
    count: int
    values: Values
    scaled: Mapping[str, Values]  # by the name of the temperature
    bins: BinSums | None = None
    pairs: int | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # by the name of the metric

    def value(self, metric: str) -> float | None:
        """A metric by its name: ece, or "ece T" and "ece TA" at a fitted temperature."""
        name, _, temperature = metric.partition(" ")
        return (self.scaled.get(temperature, {}) if temperature else self.values).get(name)

    def with_temperatures(self, other: MeasuredRow) -> MeasuredRow:
        """This row, and at temperatures that it lacks the metrics of another measurement of the same."""
        intervals = {**other.intervals, **self.intervals}
        return replace(self, scaled={**other.scaled, **self.scaled}, intervals=intervals)


@dataclass(frozen=True)
class CorruptionFacts:
    """Which corrupted images were measured on, and who made them."""

    origin: str
    names: Sequence[str]
    severities: Sequence[int]


@dataclass(frozen=True)
class MeasuredRun:
    """One evaluation of a run."""

    checkpoint: str  # last or best
    epoch: int
    checksum: str  # of the data
    temperatures: Mapping[str, float]
    notes: Sequence[str]
    attack: Mapping[str, Any] | None  # its options
    corruptions: CorruptionFacts | None
    rows: Sequence[MeasuredRow]
    means: Sequence[MeasuredRow]  # of each corruption over its severities, and last of all pairs
    temperature_from: str | None = None  # the run that they were fitted for, if not this one
    diagnosis: str = ""  # of the clean images, in words; older versions have none

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """From the JSON of an evaluation."""
        only = TA if "The temperature was fitted on augmented validation images." in found["notes"] else T

        def scaled(part: Mapping[str, Any]) -> Mapping[str, Any]:
            if found["format"] == VERSION_1:
                return {only: part["scaled"]} if part["scaled"] else {}
            return dict(part["scaled"])

        rows = [
            MeasuredRow(
                row["on"],
                row["severity"],
                row["count"],
                _values(row["figures"]),
                {name: _values(figures) for name, figures in scaled(row).items()},
                BinSums(*(row["bins"][name] for name in BINS)) if row.get("bins") else None,
                intervals=_intervals({"": row["figures"], **scaled(row)}),
            )
            for row in found["rows"]
        ]
        count = max((row.count for row in rows if row.severity is not None), default=0)
        means = [
            MeasuredRow(str(mean.get("on")), None, count, mean["figures"], scaled(mean), pairs=mean["pairs"])
            for mean in found["means"]
        ]
        temperature, about = found.get("temperature"), found.get("corruptions")
        return cls(
            found["checkpoint"],
            found["epoch"],
            found["data"]["checksum"],
            found.get("temperatures") or ({} if temperature is None else {only: temperature}),
            found["notes"],
            found.get("attack"),
            about and CorruptionFacts(about["from"], about["names"], about["severities"]),
            rows,
            means,
            found.get("temperature_from"),
            found.get("diagnosis", ""),
        )


def _values(figures: Mapping[str, Mapping[str, float | None]]) -> Values:
    return {name: figure["value"] for name, figure in figures.items()}


def _intervals(scaled: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Where there are any, by the name of the metric: ece, "ece T"."""
    return {
        f"{name} {temperature}".strip(): (figure["low"], figure["high"])
        for temperature, figures in scaled.items()
        for name, figure in figures.items()
        if None not in (figure.get("low"), figure.get("high"))
    }


def read_evaluation(path: Path) -> MeasuredRun:
    """Read what `auglabel eval` wrote."""
    found = read_checksummed(path, *SHAPES, what="an evaluation", otherwise=MEASURE_AGAIN)
    if wrong := mismatch(found, SHAPES[found["format"]]):
        raise UserError(f"{path} is damaged or of another version: {wrong}. {MEASURE_AGAIN}")
    for row in found["rows"]:
        bins = row.get("bins") or {name: [] for name in BINS}  # older ones have none
        if row["count"] < 1 or mismatch(bins, BINS) or len({len(bins[name]) for name in BINS}) > 1:
            raise UserError(
                f"{path} is damaged: the images or bins of a row of it are wrong. {MEASURE_AGAIN}"
            )
    return MeasuredRun.of(found)


def evaluations_of(run: Run, epoch: int, checksum: str) -> tuple[dict[str, MeasuredRun], list[str]]:
    """The evaluations of a run as it is now, by the file's name, and notes on those that were left out.

    Those at the temperatures of another run come last.
    """
    found, notes = {}, []
    for file in sorted((run.path / "eval").glob("*.json")):
        evaluation = read_evaluation(file)
        if evaluation.checkpoint == "last" and evaluation.epoch != epoch:
            notes.append(
                f"{file} is left out: it was measured after epoch {evaluation.epoch}, but the run is at "
                f"{epoch}. auglabel eval {run.path} measures it again."
            )
        elif evaluation.checksum != checksum:
            notes.append(f"{file} is left out: it was measured on other images than the run's.")
        else:
            found[file.stem] = evaluation
    return dict(sorted(found.items(), key=lambda each: each[1].temperature_from is not None)), notes
