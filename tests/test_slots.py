"""One run per GPU: processes that see their own, slots that are given on, runs that take several.

No GPU is here: their number is made up in this process, and runs are real processes on the CPU.
"""

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from sweeps import TINY, results_in, times, trainings

from auglabel import cli
from auglabel.errors import UserError
from auglabel.lab.process.slots import VISIBLE, each_in_slots, gpus
from auglabel.lab.sweep.executor import Executor


@pytest.fixture
def have(monkeypatch):
    """Make this process believe in so many GPUs."""

    def believe(count, visible=None):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.delenv(VISIBLE, raising=False)
        if visible is not None:
            monkeypatch.setenv(VISIBLE, visible)

    return believe


def test_gpus_are_called_what_cuda_visible_devices_calls_them(have):
    have(3)
    assert gpus() == ["0", "1", "2"]
    have(2, visible="5, GPU-7f,99")  # CUDA stops at the first that is not there
    assert gpus() == ["5", "GPU-7f"]
    have(0, visible="5")
    assert gpus() == []


@pytest.mark.parametrize(
    ("options", "slots"),
    [
        ({}, ["0", "1", "2", "3", "4"]),
        ({"workers": 2}, ["0", "1"]),
        ({"workers": 7}, ["0", "1", "2", "3", "4", "0", "1"]),  # two share a GPU
        ({"gpus_per_run": 2}, ["0,1", "2,3"]),
        ({"gpus_per_run": 5}, ["0,1,2,3,4"]),
    ],
)
def test_a_run_has_a_gpu_or_several_of_its_own(have, options, slots):
    have(5)
    executor = Executor(**options)
    executor.require()
    assert executor.slots == slots
    assert executor.capacity == len(slots)


def test_more_gpus_per_run_than_there_are_is_one_sentence(have):
    have(2)
    with pytest.raises(UserError, match="gpus_per_run is 3, but this machine has 2 GPUs"):
        Executor(gpus_per_run=3).require()
    have(0)
    with pytest.raises(UserError, match="gpus_per_run is 2, but this machine has 0 GPUs"):
        Executor(gpus_per_run=2).require()


def recorded(folder: Path, item: int) -> str | None:
    """Write down which GPUs are seen and from when until when; the second is killed from outside."""
    begun = time.monotonic()
    time.sleep(0.3)
    (folder / f"{item}.json").write_text(json.dumps([os.environ[VISIBLE], begun, time.monotonic()]))
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "not well." if item == 2 else None


def test_one_at_a_time_has_a_slot_and_that_of_a_killed_process_goes_to_the_next(tmp_path):
    before = dict(os.environ)
    told = dict(each_in_slots(partial(recorded, tmp_path), range(5), ["4,5", "6,7"]))
    assert told == {
        **{0: None, 2: "not well.", 3: None, 4: None},
        1: "its process was killed (SIGKILL), perhaps for lack of memory.",
    }
    assert dict(os.environ) == before
    seen = [json.loads((tmp_path / f"{item}.json").read_text()) for item in range(5)]
    assert {slot for slot, *_ in seen[:2]} == {slot for slot, *_ in seen} == {"4,5", "6,7"}
    for slot in ("4,5", "6,7"):
        spans = sorted((begun, ended) for where, begun, ended in seen if where == slot)
        assert all(ended <= begun for (_, ended), (begun, _) in zip(spans, spans[1:], strict=False))
    killed = seen[1][0]
    assert any(where == killed for where, *_ in seen[2:])


def slow(folder: Path, item: int) -> None:
    (folder / f"begun{item}").touch()
    time.sleep(60)


def test_processes_end_when_their_results_are_no_longer_wanted(tmp_path):
    start = time.monotonic()
    wanted = each_in_slots(partial(slow, tmp_path), range(1), ["0"])
    with pytest.raises(RuntimeError, match="enough"):
        _interrupted(wanted, tmp_path)
    assert time.monotonic() - start < 50


def _interrupted(wanted, folder):
    """Stop waiting as Ctrl-C does, once the process is at work."""

    def enough(*ignored):
        raise RuntimeError("enough")

    before = signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        next(wanted)
    finally:
        signal.signal(signal.SIGALRM, before)
