"""An evaluation written down: strict JSON, CSV that reads back, a table that fits a terminal."""

import csv
import io
import json
import math

import pytest
from rich.console import Console

from auglabel.lab.evaluate.evaluate import Evaluation, Row
from auglabel.lab.evaluate.results import as_csv, as_json, as_tables
from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.predictions.figures import STREAMING

NAMES = [*STREAMING, "equal_mass_ece", "classwise_ece", "aurc"]


def figures(start, intervals, nll=None):
    """Each metric a little more than the one before."""
    found = {}
    for place, name in enumerate(NAMES):
        value = start + 0.0123 * place
        ends = (value - 0.021, value + 0.034) if intervals else (math.nan, math.nan)
        found[name] = Figure(value, *ends)
    if nll is not None:
        found["nll"] = Figure(nll, nll, nll) if intervals else Figure(nll, math.nan, math.nan)
    return found


def evaluation(temperature=1.7, intervals=True, nll=None):
    """At T, each figure is 0.2 more; at TA, where the temperature is 3.1, 0.3 more."""
    temperatures = {} if temperature is None else {"T": temperature, "TA": 3.1}

    def row(on, severity, start):
        more = {"T": 0.2, "TA": 0.3}
        scaled = {at: figures(start + more[at], intervals, nll) for at in temperatures}
        return Row(on, severity, 1234, figures(start, intervals, nll), scaled)

    graded = [row("corruptions.weather:snow", severity, 0.3 + severity / 50) for severity in range(1, 6)]
    return Evaluation([row("clean", None, 0.1), row("pgd", None, 0.4), *graded], temperatures, ["a note"])


VARIANTS = pytest.mark.parametrize(
    ("temperature", "intervals"), [(1.7, True), (None, True), (1.7, False), (None, False)]
)


def refuse(token):
    raise AssertionError(f"{token} is not JSON")


@VARIANTS
@pytest.mark.parametrize("nll", [None, math.inf])
def test_json_is_strict_and_holds_every_number(temperature, intervals, nll):
    found = evaluation(temperature, intervals, nll)
    read = json.loads(json.dumps(as_json(found, {"run": "runs/x"})), parse_constant=refuse)
    assert read["run"] == "runs/x"
    assert read["temperatures"] == found.temperatures
    assert read["notes"] == ["a note"]
    assert [(row["on"], row["severity"], row["count"]) for row in read["rows"]] == [
        (row.on, row.severity, row.count) for row in found.rows
    ]
    for written, row in zip(read["rows"], found.rows, strict=True):
        assert list(written["scaled"]) == ([] if temperature is None else ["T", "TA"])
        pairs = [
            (written["figures"], row.figures),
            *((written["scaled"][at], row.scaled[at]) for at in row.scaled),
        ]
        for plain, figures in pairs:
            for name, figure in figures.items():
                for end, value in figure._asdict().items():
                    assert plain[name][end] == (value if math.isfinite(value) else None)
    assert [mean["on"] for mean in read["means"]] == ["corruptions.weather:snow", "corrupted"]
    accuracy = sum(0.3 + severity / 50 for severity in range(1, 6)) / 5
    assert read["means"][1]["figures"]["accuracy"] == pytest.approx(accuracy)
    assert (read["means"][1]["figures"]["nll"] is None) == (nll is not None)
    means = {at: each["accuracy"] for at, each in read["means"][1]["scaled"].items()}
    expected = {} if temperature is None else {"T": accuracy + 0.2, "TA": accuracy + 0.3}
    assert means == pytest.approx(expected)


@VARIANTS
@pytest.mark.parametrize("nll", [None, math.inf])
def test_csv_reads_back_to_the_same_numbers(temperature, intervals, nll):
    found = evaluation(temperature, intervals, nll)
    lines = list(csv.DictReader(io.StringIO(as_csv(found))))
    expected = [
        (row, at, part) for row in found.rows for at, part in [("", row.figures), *row.scaled.items()]
    ]
    assert len(lines) == len(expected) == 7 * (3 if temperature else 1)
    for line, (row, at, part) in zip(lines, expected, strict=True):
        assert line["on"] == row.on
        assert line["severity"] == ("" if row.severity is None else str(row.severity))
        assert int(line["count"]) == 1234
        assert line["at"] == at
        assert float(line["temperature"]) == {"": 1.0, "T": temperature, "TA": 3.1}[at]
        for name, figure in part.items():
            for end, value in zip(("", "_low", "_high"), figure, strict=True):
                read = float(line[f"{name}{end}"])
                assert read == value or (math.isnan(read) and math.isnan(value))


def printed(found, title="runs/x"):
    file = io.StringIO()
    console = Console(file=file, width=80, highlight=False, emoji=False)
    for table in as_tables(found, title):
        console.print(table)
    return file.getvalue()


@VARIANTS
def test_the_table_fits_80_columns_and_shows_the_numbers(temperature, intervals):
    text = printed(evaluation(temperature, intervals))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text
    assert "1,234 test images" in text
    # clean: accuracy 10.0 %, then the third metric ECE 12.5 %, debiased 13.7 %, NLL the sixth,
    # 0.1 + 5 x 0.0123, Brier the seventh and AURC the tenth
    lines = [line.split() for line in text.splitlines()]
    (clean,) = (words for words in lines if words[:1] == ["clean"] and words[1:2] != ["validation"])
    assert clean[1:] == ["10.0", "12.5", "13.7", "0.162", "0.174", "211"]  # AURC x 1000
    for at, start in {"T": "30.0", "TA": "40.0"}.items():
        found = [words for words in lines if words[:2] == ["at", at]]
        assert len(found) == (3 if temperature else 0)  # clean, pgd and the mean over corruptions
        assert not found or found[0][2] == start
    assert ("7.9-13.4" in text) == intervals
    assert ("0.14-0.20" in text) == intervals
    assert ("bootstrap intervals" in " ".join(text.split())) == intervals
    told = "T: temperature fitted on clean validation images, 1.7; TA: on augmented ones, 3.1"
    assert (told in " ".join(text.split())) == (temperature is not None)
    # over the five severities: accuracy 36 %, ECE two metrics of 1.23 % later
    (corrupted,) = (line.split() for line in text.splitlines() if line.strip().startswith("corrupted"))
    assert corrupted[-len(clean) + 1 :][:2] == ["36.0", "38.5"]
    (snow,) = (line.split() for line in text.splitlines() if "36.0/38.5" in line)
    assert snow[1:6] == [f"{30 + 2 * s:.1f}/{30 + 2 * s + 2.46:.1f}" for s in range(1, 6)]


@pytest.mark.parametrize("nll", [9.9999, 12.3456, 123.456, 98765.4, 1.5e30, math.inf])
def test_large_numbers_fit_too(nll):
    text = printed(evaluation(nll=nll))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text
    shown = {9.9999: "10.00", 12.3456: "12.35", 123.456: "123.5", 98765.4: "9.9e+04", 1.5e30: "1.5e+30"}
    assert shown.get(nll, "inf") in text


def test_one_image_all_right_fits():
    sure = dict.fromkeys(NAMES, Figure(1.0, 1.0, 1.0))
    text = printed(Evaluation([Row("clean", None, 1, sure, {"T": sure})], {"T": 1e-30}))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text
    assert "100.0-100.0" in text
    assert "1 test image " in text


def test_names_with_brackets_and_colons_are_shown_as_they_are():
    text = printed(evaluation(), "runs/[bold]x:fire:")
    assert "runs/[bold]x:fire:" in text
