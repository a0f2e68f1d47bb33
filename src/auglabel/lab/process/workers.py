"""Do the same to many things, in this process or in several."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

import torch

from auglabel.lab.process.memory import keep_memory

AGAIN = "the same command again goes on from here"
Item = TypeVar("Item")
Result = TypeVar("Result")
_do: Callable[[Any], Any]  # of a worker process


def each(
    do: Callable[[Item], Result], work: Sequence[Item], workers: int, way_out: str = AGAIN
) -> Generator[tuple[Item, Result], None, None]:
    """`do` of every item, with its result, as they are done; `do` goes to every process once.

    Processes have one thread each and end when this one does, however it does. `way_out` ends the
    sentence that is raised if one of them is killed.
    """
    workers = min(workers, len(work))
    if workers < 2:
        yield from ((item, do(item)) for item in work)
        return
    pool = ProcessPoolExecutor(workers, context(), _begin, (do,))
    waiting: set[Future[tuple[Item, Result]]] = set()
    try:
        for item in work:
            with undisturbed():
                waiting.add(pool.submit(_done, item))
            if len(waiting) >= 4 * workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    except BrokenProcessPool:
        _kill(pool)  # the pool only asks them to end, which training answers with a checkpoint, and goes on
        raise OSError(f"a process was killed from outside, perhaps for lack of memory: {way_out}.") from None
    except BaseException:
        _kill(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _kill(pool: ProcessPoolExecutor) -> None:
    """End its processes, and no others that this process may have begun."""
    for process in list(pool._processes.values()):
        process.kill()


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def context() -> BaseContext:
    """On Linux, workers are forked from one process that has imported all that they need.

    It listens at a socket in the folder for temporary files, whose address must not be long.
    """
    if sys.platform != "linux" or len(tempfile.gettempdir()) > 60:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["auglabel.lab.sweep.executor"])
    return context


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C waits until the end of this, and a process that begins in it never hears of one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(do: Callable[[Any], Any]) -> None:
    global _do
    _do = do
    begin_worker(lambda: os._exit(1))


def begin_worker(orphaned: Callable[[], None]) -> None:
    """Settle down in a process that was begun in `undisturbed`; `orphaned` is called if its parent ends."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # of an older server too
    torch.set_num_threads(1)
    keep_memory()
    threading.Thread(target=_watch_parent, args=(orphaned,), daemon=True).start()


def _watch_parent(orphaned: Callable[[], None]) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    orphaned()


def _done(item: Item) -> tuple[Item, Any]:
    return item, _do(item)
