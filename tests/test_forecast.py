"""What a sweep says it will cost: networks too slow to be timed, and stand-ins for GPUs."""

import re
import time
from pathlib import Path

import pytest
import torch
from sweeps import SMALL

from auglabel import cli

NETWORK = """
import time
from torch import nn

class Slow(nn.Module):
    def __init__(self, num_classes, first=0.0, later=0.0):
        super().__init__()
        self.last, self.seconds = nn.Linear(28 * 28, num_classes), [first, later]

    def forward(self, images):
        if self.training:
            time.sleep(self.seconds[0])
            self.seconds[0] = self.seconds[1]
        return self.last(images.flatten(1))
"""


@pytest.fixture
def plan(tmp_path, monkeypatch, capsys):
    """What `sweep --plan` prints with that network, and the seconds it took."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("slow_network.py").write_text(NETWORK)

    def planned(*words):
        start = time.monotonic()
        network = "--model=slow_network:Slow"
        assert cli.main(["sweep", "embedded", *SMALL, network, "--seeds=2", "--plan", *words]) == 0
        return capsys.readouterr().out, time.monotonic() - start

    return planned


def test_a_step_that_takes_longer_than_the_limit_is_not_waited_for(plan):
    printed, seconds = plan("--model.first=100", "--forecast=8")
    assert "No forecast: not one step was done in time. Timing stopped after 8 s (--forecast)." in printed
    assert seconds < 40


def test_a_forecast_of_one_step_is_called_rough(plan):
    printed, seconds = plan("--model.later=100", "--forecast=12", "--workers=2")
    assert re.search(
        r"Roughly \d+\.\d\d core-hours: \d+ min with 2 workers\. Timing stopped after 12 s", printed
    )
    assert seconds < 60


def test_a_forecast_that_is_not_wanted_takes_no_step(plan, monkeypatch):
    monkeypatch.setattr("auglabel.lab.sweep.forecast.timings", None)
    printed, _ = plan("--model.first=100", "--forecast=0")
    assert printed == "2 runs, 1 point x 2 seeds: 0 are there, 2 to do.\n"


def test_where_gpus_train_their_hours_are_told(plan, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    printed, _ = plan()
    assert re.search(r"About \d+\.\d\d GPU-hours: \d+ min with 2 workers\.", printed)
