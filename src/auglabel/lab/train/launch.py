"""Several training processes on this machine: the same command, once per rank."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from types import FrameType

STOPPED = 130  # the exit code of a rank that was asked to stop, and saved


def stop_signals() -> list[int]:
    """Those that ask a training to stop; not a hang-up that nohup has it ignore."""
    hears_hangup = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hears_hangup else [])]


def launch(words: Sequence[str], processes: int, port: int | None) -> int:
    """Run `auglabel train` with `words` in each of `processes`; the first one that fails ends them all.

    Signals to stop are passed on. From a terminal the processes hear them twice, and count them once.
    """
    meeting = _free(port)
    command = [sys.executable, "-m", "auglabel.cli", "train", *_alone(words)]
    ranks: list[subprocess.Popen[bytes]] = []
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for rank in ranks:
            rank.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in stop_signals()}
    try:
        for rank in range(processes):
            ranks.append(subprocess.Popen(command, env=_environment(rank, processes, meeting)))
        if asked:  # while they were started
            pass_on(asked[0], None)
        return _wait(ranks, asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in ranks:
            if each.poll() is None:
                each.kill()


def _wait(ranks: Sequence[subprocess.Popen[bytes]], asked: Sequence[int] = ()) -> int:
    """Until all have ended, or one has failed; the others are then ended as well.

    One that ended by a signal that all were `asked` to stop by, before it could hear it, has not failed.
    """

    def failed() -> list[subprocess.Popen[bytes]]:
        return [rank for rank in ranks if rank.poll() not in (None, 0, STOPPED, *(-n for n in asked))]

    while not failed() and any(rank.poll() is None for rank in ranks):
        time.sleep(0.1)
    if failed():
        time.sleep(1)  # the others may be about to say why
    for number, rank in enumerate(ranks):
        if (code := rank.poll() or 0) < 0 and -code not in asked:
            raise OSError(f"process {number} of {len(ranks)} was killed ({signal.Signals(-code).name}).")
    if first := failed()[:1]:
        for rank in ranks:
            if rank.poll() is None:
                rank.terminate()
        return first[0].returncode
    codes = [rank.returncode for rank in ranks]
    return STOPPED if min(codes) < 0 else max(codes)


def _alone(words: Sequence[str]) -> list[str]:
    """The words without those that are for us."""
    kept, skip = [], False
    for word in words:
        if skip and not word.startswith("--"):
            skip = False
            continue
        ours = word.partition("=")[0] in ("--processes", "--port")
        skip = ours and "=" not in word
        if not ours:
            kept.append(word)
    return kept


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


def _environment(rank: int, processes: int, port: int) -> dict[str, str]:
    threads = max(1, (os.cpu_count() or 1) // processes)
    return {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
    }
