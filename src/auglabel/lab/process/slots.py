"""A process for each thing to do, with GPUs of its own: one at a time has a slot, and the next gets it."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, TypeVar

import torch

from auglabel.lab.process.launch import PATIENCE, STOPPED
from auglabel.lab.process.workers import begin_worker, context, undisturbed

VISIBLE = "CUDA_VISIBLE_DEVICES"
Item = TypeVar("Item")


def gpus() -> list[str]:
    """Those this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = os.environ.get(VISIBLE)
    return [name.strip() for name in named.split(",")][:count] if named else [str(n) for n in range(count)]


def each_in_slots(
    do: Callable[[Item], str | None], work: Sequence[Item], slots: Sequence[str]
) -> Generator[tuple[Item, str | None], None, None]:
    """`do` of every item, with its result, as they are done; each in a process that sees its slot alone.

    A slot is what CUDA_VISIBLE_DEVICES takes, such as "0" or "2,3". It is free again when its process ends;
    for one that is killed the result is a sentence, and the others go on.
    """
    free, rest = list(slots), iter(work)
    busy: dict[Any, tuple[_Child, Item, str]] = {}
    try:
        while True:
            for item in islice(rest, len(free)):
                slot = free.pop(0)
                child = _begun(_tell_result, (do, item), slot)
                busy[child.process.sentinel] = child, item, slot
            if not busy:
                return
            for sentinel in multiprocessing.connection.wait(list(busy)):
                child, item, slot = busy.pop(sentinel)
                free.append(slot)
                yield item, _result(child)
    finally:
        _stop([child.process for child, *_ in busy.values()])


def told_within(
    seconds: float, do: Callable[..., None], arguments: tuple[Any, ...], slot: str | None = None
) -> Iterator[Any]:
    """What `do(*arguments, tell)` tells, in a process that is killed once so many seconds are over."""
    end = time.monotonic() + seconds
    child = _begun(do, arguments, slot)
    try:
        while child.told.poll(max(end - time.monotonic(), 0)):
            yield child.told.recv()
    except EOFError:  # it has told all
        pass
    finally:
        child.process.kill()
        child.process.join()


class _Child(NamedTuple):
    """A process, and the end of a pipe where it tells what came out."""

    process: BaseProcess
    told: Connection


def _begun(do: Callable[..., None], arguments: tuple[Any, ...], slot: str | None) -> _Child:
    """A process that calls `do(*arguments, tell)`; with GPUs it is not forked: CUDA may not survive it."""
    way: Any = context() if slot is None else multiprocessing.get_context("spawn")
    told, tell = way.Pipe(duplex=False)
    process = way.Process(target=_alone, args=(do, arguments, tell))
    with undisturbed(), _visible(slot):
        process.start()
    tell.close()
    return _Child(process, told)


def _alone(do: Callable[..., None], arguments: tuple[Any, ...], tell: Connection) -> None:
    begin_worker(_stop_here)
    try:
        do(*arguments, tell.send)
    except KeyboardInterrupt:  # training was asked to stop, and has saved
        sys.exit(STOPPED)


def _tell_result(do: Callable[[Item], Any], item: Item, tell: Callable[[Any], None]) -> None:
    tell(do(item))


def _result(child: _Child) -> str | None:
    child.process.join()
    try:
        result: str | None = child.told.recv()
    except EOFError:
        code = child.process.exitcode or 0
        if code < 0:
            return f"its process was killed ({signal.Signals(-code).name}), perhaps for lack of memory."
        return "it was asked to stop." if code == STOPPED else f"its process ended with exit code {code}."
    return result


def _stop_here() -> None:
    """As `_stop` does it, where nobody is left to do so."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)


def _stop(processes: Sequence[BaseProcess]) -> None:
    """Ask them to save and end; those that take too long are killed."""
    try:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(PATIENCE)
    finally:
        for process in processes:
            process.kill()


@contextmanager
def _visible(slot: str | None) -> Iterator[None]:
    """A process that begins in this sees the GPUs of the slot alone; None changes nothing."""
    before = os.environ.get(VISIBLE)
    try:
        if slot is not None:
            os.environ[VISIBLE] = slot
        yield
    finally:
        if before is not None:
            os.environ[VISIBLE] = before
        elif slot is not None:
            del os.environ[VISIBLE]
