"""docs/reliability.md says what results/reliability says; a long run is judged by the rule it states."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "results" / "reliability"


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.fixture
def script():
    return loaded(ROOT / "scripts" / "reliability_page.py")


@pytest.mark.skipif(not KEPT.exists(), reason="there are no results here")
def test_the_page_is_made_of_the_results(script):
    assert script.text() == (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"), (
        "python scripts/reliability_page.py writes it again"
    )


@pytest.mark.skipif(not KEPT.exists(), reason="there are no results here")
def test_nothing_was_lost_and_no_file_or_thread_leaked(script):
    for line in script.read("faults.jsonl"):
        assert line["survived"] == line["tried"] >= 1, line
        assert line["lost"] == [], line
    assert not any(line["defects"] for line in script.read("fuzz.jsonl"))
    for line in script.read("soak.jsonl"):
        assert line["minutes"] >= 30
        assert line["flat"], line


@pytest.mark.skipif(not KEPT.exists(), reason="there are no results here")
def test_every_fault_and_every_reader_was_tried(script, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    tried = [line["name"] for line in script.read("faults.jsonl")]
    assert tried == list(importlib.import_module("faults").FAULTS)
    readers = importlib.import_module("hostile.readers").READERS
    assert [line["reader"] for line in script.read("fuzz.jsonl")] == [reader.name for reader in readers]
    assert sum(line["inputs"] for line in script.read("fuzz.jsonl")) >= 99_990


def test_what_was_not_run_is_said(script, monkeypatch, tmp_path):
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    page = script.text()
    assert page.count("| not run |") == 13
    assert page.count(": not run.") == 4
    line = {
        "fault": "a cat on the keyboard",
        "tried": 8,
        "survived": 7,
        "late": 2,
        "lost": ["run 3: gone"],
        "longest": 2.5,
    }
    words = ["some other line", json.dumps(line), json.dumps({"fault": "a flood", "skipped": "no water"})]
    (tmp_path / "faults.jsonl").write_text("\n".join(words))
    page = script.text()
    assert "| a cat on the keyboard | 8 | 7 | 1 | 2.5 s |" in page
    assert "| a flood | no water |" in page
    assert "| lost beyond the last unsaved step | 1 |" in page


@pytest.mark.skipif(not KEPT.exists(), reason="there are no results here")
def test_every_package_that_is_asked_for_has_its_licence(script):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    always = re.search(r"^dependencies = \[(.*?)\]$", project, re.M)[1]
    extras = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\[", project, re.S)[1]
    parts = re.findall(r"^(\w+) = \[(.*?)\]( #.*)?$", extras, re.M | re.S)
    assert len(parts) > 10
    wanted = {
        re.match(r"[\w-]+", need)[0].lower()
        for need in re.findall(r'"([^"]+)"', always + "".join(p[1] for p in parts if p[0] not in OURS))
    }
    found = json.loads((KEPT / "licences.json").read_text(encoding="utf-8"))
    assert wanted == {one["name"] for one in found["named"]}
    assert all(one["licence"] for one in found["named"])


OURS = ("dev", "docs", "all")


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("soak")


def looks(soak, memory, files=lambda hour: 20):
    """Every minute for two hours, from functions of the hour."""
    hours = [minute / 60 for minute in range(1, 121)]
    return [soak.Look(3600 * hour, memory(hour), files(hour), 7) for hour in hours]


def test_the_slope_of_memory_is_that_of_a_line_with_its_interval(soak):
    found, low, high = soak.slope(looks(soak, lambda hour: 500 + 12 * hour))
    assert (found, low, high) == pytest.approx((12, 12, 12))
    found, low, high = soak.slope(looks(soak, lambda hour: 500 + (-1) ** int(6 * hour)))
    assert low < 0 < high


def test_memory_or_files_that_grow_are_not_flat(soak):
    assert soak.judged(looks(soak, lambda hour: 500))["flat"]
    assert not soak.judged(looks(soak, lambda hour: 500 + 12 * hour))["flat"]  # beyond 10 MiB an hour
    assert not soak.judged(looks(soak, lambda hour: 20 + 8 * hour))["flat"]  # beyond 5 %
    assert not soak.judged(looks(soak, lambda hour: 500, files=lambda hour: 20 + int(4 * hour)))["flat"]
    assert soak.judged(looks(soak, lambda hour: 500 - 40 * hour))["flat"]
