"""One run per GPU: processes that see their own, slots that are given on, runs that take several.

No GPU is here: their number is made up in this process, and runs are real processes on the CPU.
"""

import json
import os
import signal
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch
from sweeps import SMALL, TINY, begun, results_in, times, trainings

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
        assert all(ended <= begun for (_, ended), (begun, _) in pairwise(spans))
    killed = seen[1][0]
    assert any(where == killed for where, *_ in seen[2:])


def test_processes_end_when_their_results_are_no_longer_wanted():
    def enough(*ignored):
        raise RuntimeError("enough")

    before, start = signal.signal(signal.SIGALRM, enough), time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(RuntimeError, match="enough"):
            list(each_in_slots(time.sleep, [60], ["0"]))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < 50


# A network that writes down which GPUs its process sees, and is killed once in its second epoch.
NETWORK = """
import os, signal
from torch import nn

class Network(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.steps, self.last = 0, nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, num_classes))
        with open("seen.txt", "a") as file:
            file.write(os.environ.get("CUDA_VISIBLE_DEVICES", "none") + "\\n")

    def forward(self, images):
        self.steps += self.training
        if self.steps == 5 and os.path.exists("kill"):
            os.remove("kill")
            os.kill(os.getpid(), signal.SIGKILL)
        return self.last(images)
"""


@pytest.fixture
def words(tmp_path, monkeypatch):
    """A sweep of four runs with that network, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    Path("network_on_gpu.py").write_text(NETWORK)
    small = [word for word in TINY if "widths" not in word]
    return ["sweep", "embedded", *small, "--model=network_on_gpu:Network", "--out=swept", "--forecast=0"]


def test_a_killed_run_gives_its_gpu_to_the_next_and_goes_on_from_its_checkpoint(words, have, capsys):
    have(2, visible="5,7")
    Path("kill").touch()
    assert cli.main([*words, "--seeds=4"]) == 1
    printed, complaint = capsys.readouterr()
    assert "its process was killed (SIGKILL), perhaps for lack of memory." in printed
    assert "1 of 4 runs failed" in complaint
    before = times(Path("swept"))
    assert len(before) == 3
    assert {"5", "7"} <= set(Path("seen.txt").read_text().split()) <= {"5", "7", "none"}
    assert cli.main([*words, "--seeds=4"]) == 0
    assert len(results_in(Path("swept"))) == 4
    assert before.items() < times(Path("swept")).items()
    assert list(trainings(Path("swept")).values()) == [1] * 4
    logs = [path.read_text() for path in Path("swept/runs").glob("*.log")]
    assert sum("epoch 1/2" in text for text in logs) == 4
    assert sum(text.count("epoch 1/2") for text in logs) == 4  # the first epoch was not trained again


def test_a_run_on_several_gpus_is_trained_by_as_many_processes(words, have):
    have(4)
    assert cli.main([*words, "--seeds=2", "--gpus_per_run=2"]) == 0
    facts = [json.loads(path.read_text()) for path in Path("swept/runs").glob("*/run.json")]
    assert [each["processes"] for each in facts] == [2, 2]
    assert {"0,1", "2,3"} <= set(Path("seen.txt").read_text().split())
    assert len(results_in(Path("swept"))) == 2


def test_ranks_save_and_end_when_their_launcher_is_killed(tmp_path):
    """So that the next run does not share its GPUs with them."""
    words = [*SMALL, "--epochs=100000", "--processes=2", f"--out={tmp_path}", "--tracker=none"]
    launcher, until = begun(["train", "embedded", *words]), time.monotonic() + 60
    while not any(tmp_path.glob("checkpoints/step-*")) and time.monotonic() < until:
        time.sleep(0.1)
    ranks = psutil.Process(launcher.pid).children(recursive=True)
    launcher.kill()
    launcher.wait()
    assert len(ranks) >= 2
    _, alive = psutil.wait_procs(ranks, timeout=30)
    for rank in alive:
        rank.kill()
    assert not alive
