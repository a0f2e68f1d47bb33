"""A short form of benchmarks/faults.py; its other faults are in test_train, test_sweep and test_copies."""

import importlib
import random
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["checkpoint_damaged", "data_vanish", "rank_killed", "write_torn"])
def test_nothing_is_lost(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    faults = importlib.import_module("faults")
    found = faults.FAULTS[name](tmp_path, random.Random(f"tests/{name}"), 1)
    assert found.lost == []
    assert found.survived == found.tried >= 1
