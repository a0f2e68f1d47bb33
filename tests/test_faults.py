"""A short form of benchmarks/faults.py; kills, full disks and read-only places are tested elsewhere."""

import importlib
import random
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name", ["checkpoint_damaged", "data_vanish", "two_at_once", "rank_killed", "write_torn"]
)
def test_nothing_is_lost(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    faults = importlib.import_module("faults")
    found = faults.FAULTS[name](tmp_path, random.Random(f"tests/{name}"), 1)
    assert found.lost == []
    assert found.survived == found.tried >= 1
