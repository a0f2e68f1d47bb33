"""Several training processes on this machine: the same command, once per rank, by torch's own launcher."""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from typing import Any

STOPPED = 130  # the exit code of a rank that was asked to stop, and saved
PATIENCE = 120  # seconds for the ranks to save and end once they are asked to, until they are killed


def stop_signals() -> list[signal.Signals]:
    """Those that ask a training to stop; not a hang-up that nohup has it ignore."""
    hears_hangup = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hears_hangup else [])]


def launch(command: Sequence[str], processes: int, port: int | None) -> int:
    """Run `command` in each of `processes`; one that fails ends them all, with its exit code.

    Signals to stop are passed on. From a terminal the processes hear them twice, and count them once.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import elastic_launch

    threads = max(1, (os.cpu_count() or 1) // processes)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # ranks tell why they fail
    program, *words = command
    try:
        with _config(processes, _free(port)) as config, _signals_kept():
            elastic_launch(config, program)(*words)
    except SignalException:
        return STOPPED
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
    else:
        return 0
    return _judge(codes, processes)


def end_with_launcher() -> None:
    """Have this rank save and stop once its launcher is gone, which may have been killed and cannot ask."""
    launcher = os.getppid()

    def watch() -> None:
        while os.getppid() == launcher:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _judge(codes: Mapping[int, int], processes: int) -> int:
    """The exit code of the lowest rank that failed by itself; torch ends the others by SIGTERM."""
    failed = [codes[rank] for rank in sorted(codes) if codes[rank] > 0]
    ended = [rank for rank in sorted(codes) if codes[rank] == -signal.SIGTERM]
    killed = [rank for rank in sorted(codes) if codes[rank] < 0 and rank not in ended]
    if killed or not failed:
        rank = [*killed, *ended][0]
        name = signal.Signals(-codes[rank]).name
        raise OSError(f"process {rank} of {processes} was killed ({name}).")
    return failed[0]


@contextmanager
def _config(processes: int, port: int) -> Iterator[Any]:
    """One machine, no second try, and no files that stay."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.launcher.api import LaunchConfig

    newer: dict[str, Any] = {
        "shutdown_timeout": PATIENCE,
        "signals_to_handle": ",".join(each.name for each in stop_signals()),
    }
    known = {each.name for each in fields(LaunchConfig)}
    with tempfile.TemporaryDirectory() as logs:
        yield LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            logs_specs=DefaultLogsSpecs(log_dir=logs),
            run_id="auglabel",
            rdzv_backend="static",
            rdzv_endpoint=f"127.0.0.1:{port}",
            rdzv_configs={"rank": 0, "timeout": 900},
            max_restarts=0,
            **{name: value for name, value in newer.items() if name in known},
        )


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Give back the handlers that torch's launcher replaces."""
    before = {number: signal.getsignal(number) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _free(port: int | None) -> int:
    """A port to meet at: the one asked for, if nobody is there, or any."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port or 0))
        except (OSError, OverflowError) as error:
            raise OSError(
                f"--port {port} cannot be used ({error}); without it a free one is taken."
            ) from None
        return int(probe.getsockname()[1])
