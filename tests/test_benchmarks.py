"""The arithmetic of benchmarks that claims rest on."""

import importlib
import subprocess
from pathlib import Path

import pytest
import torch

from auglabel import RandAug


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    return importlib.import_module


def test_a_loss_is_judged_by_its_paired_upper_bound(benchmark):
    overhead = benchmark("overhead")
    # pooled - exact: 0.1, 0.1, -0.1, so mean 1/30 and sd 0.11547; t(0.95; 2) = 2.91999
    told = overhead.lost([1.0, 2.0, 3.0], [0.5, 0.7, 0.6], [0.4, 0.6, 0.7])
    assert told["pooled - exact"] == pytest.approx(1 / 30, abs=1e-5)
    assert told["upper bound"] == pytest.approx(1 / 30 + 2.91999 * 0.11547 / 3**0.5, abs=1e-5)
    assert told["quarter of one-hot - exact"] == pytest.approx(4.3 / 3 / 4, abs=1e-5)
    assert told["nothing lost"]
    assert not overhead.lost([0.5] * 3, [0.5, 0.7, 0.6], [0.4, 0.6, 0.7])["nothing lost"]


def test_a_monotone_fit_pools_what_rises(benchmark):
    rules = benchmark("label_rules")
    figure, count = torch.tensor([0.5, 0.9, 0.3, 0.6]), torch.tensor([1.0, 3.0, 1.0, 2.0])
    fitted = rules.falling(figure, count, RandAug(m_max=4, operations=["rotate"]).grid)
    torch.testing.assert_close(fitted, torch.tensor([0.8, 0.8, 0.5, 0.5], dtype=torch.float64))


def test_every_instruction_set_gets_all_tests_and_one_that_fails_is_named(benchmark, monkeypatch, capsys):
    sets = benchmark("instruction_sets")
    ran = []

    def run(command, env, check):
        ran.append((command[1:], env.get("ATEN_CPU_CAPABILITY"), env.get("ONEDNN_MAX_CPU_ISA")))
        return subprocess.CompletedProcess(command, 1 if ran[-1][1] == "avx2" else 0)

    for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sets.subprocess, "run", run)
    assert sets.main(["tests"]) == 1
    assert all(words == ["-m", "pytest", "tests"] for words, _, _ in ran)
    assert [which for _, *which in ran] == [
        ["default", None],
        ["avx2", None],
        [None, "AVX2"],
        [None, "AVX512_CORE"],
    ]
    summary = capsys.readouterr().out.splitlines()[-4:]
    assert [line.split()[1] for line in summary] == ["passed", "failed,", "passed", "passed"]
