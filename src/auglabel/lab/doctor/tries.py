"""Tasks done in a child process that may die of them: the next child goes on with the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from auglabel.util.resources import resource_folder

PROGRAM = resource_folder("lab/doctor") / "probe.py"
# Run by its path, the program would have this folder, and its inspect.py, before Python's own modules.
START = (
    "import runpy, sys; sys.path = [each for each in sys.path if each]; del sys.argv[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
TASK_SECONDS, ALL_SECONDS = 30.0, 90.0


class Outcome(NamedTuple):
    """What came of a task; nothing at all if there was no time for it."""

    result: Any = None
    error: str | None = None  # the exception that it raised
    death: str | None = None  # how it ended the process, such as "dies with SIGILL"


def try_each(tasks: Sequence[str], task_seconds: float = TASK_SECONDS) -> dict[str, Outcome]:
    """The outcome of every task, in order, however many processes that takes."""
    found: dict[str, Outcome] = {}
    end = time.monotonic() + ALL_SECONDS
    while (left := [task for task in tasks if task not in found]) and time.monotonic() < end:
        try:
            found |= _tried(left, task_seconds)
        except OSError as error:
            return {**found, **{task: Outcome(error=f"no process can be started: {error}") for task in left}}
    return {task: found.get(task, Outcome()) for task in tasks}


def _tried(tasks: Sequence[str], seconds: float) -> dict[str, Outcome]:
    """The outcomes of the tasks that one child came to, that under way when it ended included."""
    found: dict[str, Outcome] = {}
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    # albumentations would ask the network for a newer version
    variables = {"PYTHONPATH": path, "NO_ALBUMENTATIONS_UPDATE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", START, str(PROGRAM), *tasks],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **variables},
        encoding="utf-8",
    ) as child:
        assert child.stdout is not None
        while len(found) < len(tasks):
            timer, start = threading.Timer(seconds, child.kill), time.monotonic()
            timer.start()
            line = child.stdout.readline()
            if not line:
                child.wait()
            timer.cancel()
            if not line:
                break
            told = json.loads(line)
            found[told["task"]] = Outcome(told.get("result"), told.get("error"))
        child.kill()
    if len(found) < len(tasks):
        late = time.monotonic() - start >= seconds
        death = f"gives no answer within {seconds:g} s" if late else _ending(child.returncode)
        found[next(task for task in tasks if task not in found)] = Outcome(death=death)
    return found


def _ending(code: int) -> str:
    if code >= 0:
        return f"ends the process with exit code {code}"
    try:
        return f"dies with {signal.Signals(-code).name}"
    except ValueError:
        return f"dies with signal {-code}"
