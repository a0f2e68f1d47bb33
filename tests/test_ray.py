"""The same jobs on Ray: one of its workers killed on the way, and a cluster that does not answer."""

import os
import signal
import socket
import sys
import time
from importlib.util import find_spec

import psutil
import pytest
from sweeps import SLOW, begun, results_in, times, trainings, under_way

from auglabel import cli
from auglabel.lab.sweep.ray_engine import RETRIES, each_on_ray, require_answer

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="auglabel[ray] is not installed")


def workers_of(process):
    """Ray's worker processes below a process that do something now, and the log that each has open."""
    found = {}
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if " ".join(child.cmdline()).startswith("ray::"):
                found |= {os.path.basename(file.path): child.pid for file in child.open_files()}
        except psutil.NoSuchProcess:
            pass
    return {name.removesuffix(".log"): pid for name, pid in found.items() if "seed" in name}


def in_training(run):
    """Whether there is a checkpoint to go on from, and the end is not there yet."""
    return any((run / "checkpoints").glob("step-*")) and not (run / "model.safetensors").exists()


def kill_one(process, out):
    """SIGKILL for a worker in the middle of a run, once two runs are done; which run that was."""
    until = time.monotonic() + 80
    while time.monotonic() < until and process.poll() is None:
        busy = workers_of(process)
        for run in under_way(out) & busy.keys():
            if len(times(out)) >= 2:
                os.kill(busy[run], signal.SIGSTOP)  # it may have come to its end since
                if in_training(out / "runs" / run):
                    os.kill(busy[run], signal.SIGKILL)
                    return run
                os.kill(busy[run], signal.SIGCONT)
        time.sleep(0.05)
    pytest.fail(f"no worker was caught at work: {process.communicate()[0]}")


@needs_ray
def test_a_killed_worker_loses_nothing_and_no_run_is_trained_twice(tmp_path):
    words = ["sweep", "embedded", *SLOW, "--over", "labels.alpha=0.02,0.1,0.5", "--seeds", "4"]
    process = begun([*words, f"--out={tmp_path}", "--engine", "ray", "--workers", "2"])
    try:
        run = kill_one(process, tmp_path)
        printed, _ = process.communicate(timeout=80)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed
    assert len(results_in(tmp_path)) == 12
    assert trainings(tmp_path) == dict.fromkeys(trainings(tmp_path), 1)
    assert len(trainings(tmp_path)) == 12
    assert "going on from step" in (tmp_path / "runs" / f"{run}.log").read_text()


@needs_ray
def test_work_that_kills_its_workers_is_given_up_and_the_rest_is_done_where_the_caller_is(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    def do(item):
        with open(f"tried-{item}", "a") as file:
            file.write("x")
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return None if item else f"nothing at {os.getcwd()}"

    told = dict(each_on_ray(do, range(4), 2, None))
    assert told[0] == f"nothing at {tmp_path}"
    assert told[1].startswith("Ray gave it up (WorkerCrashedError): ")
    assert "\n" not in told[1]
    assert (told[2], told[3]) == (None, None)
    assert len((tmp_path / "tried-1").read_text()) == RETRIES + 1


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@needs_ray
def test_an_address_that_does_not_answer_is_one_sentence_at_once(tmp_path, capsys):
    address, start = f"127.0.0.1:{free_port()}", time.monotonic()
    words = [f"--out={tmp_path / 'out'}", "--engine", "ray", "--address", address]
    assert cli.main(["sweep", "embedded", *words]) == 1
    error = capsys.readouterr().err
    assert f"no Ray answers at {address} (Connection refused): start one there with ray start" in error
    assert error.count("\n") == 1
    assert time.monotonic() - start < 10
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["somewhere", "somewhere:", ":6379", "ray://somewhere"])
def test_an_address_without_host_or_port_is_one_sentence(address):
    with pytest.raises(ValueError, match="--address must be HOST:PORT of a Ray head node, got"):
        require_answer(address)


def test_a_missing_ray_is_one_sentence_that_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["sweep", "embedded", f"--out={tmp_path / 'out'}", "--engine", "ray"]) == 1
    error = capsys.readouterr().err
    assert "pip install 'auglabel[ray]'" in error
    assert error.count("\n") == 1
