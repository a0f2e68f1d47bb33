import multiprocessing
import os
import signal
import sys
import tempfile
import time

import pytest

from auglabel.lab.process.workers import each


def refused(item: int) -> int:
    if item == 3:
        raise OSError("not this one.")
    return item


def test_a_failure_ends_no_processes_but_those_at_work():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        with pytest.raises(OSError, match="not this one"):
            list(each(refused, range(8), workers=2))
        assert multiprocessing.active_children() == [other]
    finally:
        other.kill()
        other.join()


def about(item: int) -> tuple[int, int, set[int]]:
    time.sleep(0.2)  # so that each worker gets one
    return os.getpid(), os.getppid(), signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are spawned")
def test_workers_are_forked_from_one_process_and_never_hear_ctrl_c():
    found = [told for _, told in each(about, range(4), workers=2)]
    workers, servers = {told[0] for told in found}, {told[1] for told in found}
    assert len(workers) == 2
    assert len(servers) == 1
    assert os.getpid() not in workers | servers
    assert all(signal.SIGINT in blocked for *_, blocked in found)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are spawned")
def test_a_long_path_for_temporary_files_does_not_keep_workers_from_starting(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert {told[1] for _, told in each(about, range(4), workers=2)} == {os.getpid()}  # each spawned by us
