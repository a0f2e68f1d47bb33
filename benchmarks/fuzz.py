"""Hand every reader damaged and hostile files, and see that each is read or refused in one sentence.

The inputs are those of `hostile`, the same for the same `--seed`. Each is read in a worker process that
may take SECONDS, and GIGABYTE of memory beyond what it started with. An input is read, or refused: an error
that the command line catches, whose message is one line that ends like a sentence and names the file.
Anything else is a defect: another error, a crash, a hang, more memory, a command, a file written.
Prints one JSON line per reader, and one per defect before it, with the number to repeat it by:

    python benchmarks/fuzz.py --only "npz" --from 1234 --inputs 1

Exits with 1 if there is a defect. 100,000 inputs take about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import mmap
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hostile.readers import READERS
from hostile.spoil import CANARY, Files, Reader, write

from auglabel.errors import UserError

GIGABYTE = 2**30  # bytes beyond the worker's start that an input may take
SECONDS = 10.0  # of computing; what waits for something else may take PATIENCE
PATIENCE = 60.0
CAUGHT = (UserError, OSError, ImportError)  # what the command line prints as a sentence
LONGEST = 1000  # letters of one
FORBIDDEN = (  # events that no file may lead to
    *("os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "subprocess.Popen"),
    *(
        "socket.connect",
        "socket.bind",
        "socket.getaddrinfo",
        "webbrowser.open",
        "urllib.Request",
        "ctypes.dlopen",
    ),
    *(
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.link",
        "shutil.rmtree",
        "pty.spawn",
        "os.chmod",
    ),
)


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    reader: str
    inputs: int = 0
    read: int = 0
    refused: int = 0
    defects: list[str] = field(default_factory=list)
    most_megabytes: float = 0.0  # beyond the worker's start
    longest_seconds: float = 0.0


def outcome(reader: Reader, place: Path) -> str:
    """What became of it: "read" or "refused", or what is wrong."""
    with _watched() as seen, contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        try:
            reader.read(place)
            found = "read"
        except CAUGHT as error:
            found = "refused" if _a_sentence(str(error), place) else f"not a sentence: {_told(error)}"
        except Exception as error:
            found = f"not caught: {_told(error)}"
    if seen or (place.parent / CANARY).exists():
        found = f"it did something: {', '.join(seen) or CANARY}"
    return found


def _a_sentence(text: str, place: Path) -> bool:
    return text.isprintable() and text.endswith((".", "?")) and str(place) in text and len(text) <= LONGEST


def _told(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    ours = [each for each in traceback.extract_tb(error.__traceback__) if "auglabel" in each.filename]
    ours = ours[-1:] or [where]
    return (
        f"{type(error).__name__} {str(error)[:400]!r} ({Path(ours[0].filename).name}, line {ours[0].lineno})"
    )


_seen: list[str] | None = None


@contextlib.contextmanager
def _watched() -> Iterator[list[str]]:
    """The forbidden events that happen meanwhile."""
    global _seen
    _hooked()
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


def _hooked(done: list[bool] = []) -> None:  # noqa: B006
    if not done:
        done.append(True)
        sys.addaudithook(_heard)


def _heard(event: str, words: tuple[object, ...]) -> None:
    if _seen is None:
        return
    if event in FORBIDDEN:
        _seen.append(event)
    elif event == "open" and isinstance(words[1], str) and set("wax+") & set(words[1]):
        _seen.append(f"open {words[0]!r} to write")


def once(reader: Reader, files: Files, place: Path) -> str:
    """The outcome of one input in this process; `place` is a folder that is emptied first."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write(files, place)
    return outcome(reader, place)


class _Shared:
    """Numbers that a worker writes and its parent reads, whatever becomes of the worker."""

    def __init__(self) -> None:
        self.numbers = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")

    def put(self, *values: float) -> None:
        """Input under way, its start by the wall and by the processor, read, refused, most, longest."""
        for place, value in enumerate(values):
            self.numbers[place] = value

    def get(self) -> list[float]:
        return self.numbers[:7].tolist()


def run(reader: Reader, seed: int, first: int, count: int, told: Callable[[str], None]) -> Tally:
    """Read inputs `first`, `first` + 1, ... of a reader, by workers of which one is alive at a time."""
    tally = Tally(reader.name, count)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as top:
        log, number = Path(top) / "defects", first
        log.touch()
        while number < first + count:
            shared = _Shared()
            shared.put(number, time.monotonic(), math.inf, 0, 0, 0, 0.0)
            sys.stdout.flush()
            worker = os.fork()
            if worker == 0:
                _work(reader, seed, number, first + count, Path(top), shared, log)
            end = _ended(worker, shared)
            number, _, _, read, refused, kilobytes, longest = shared.get()
            number, tally.read, tally.refused = (
                int(number),
                tally.read + int(read),
                tally.refused + int(refused),
            )
            tally.most_megabytes = max(tally.most_megabytes, round(kilobytes / 1024, 1))
            tally.longest_seconds = max(tally.longest_seconds, round(longest, 2))
            if end:
                with log.open("a") as file:
                    file.write(f"{number}: {end}\n")
                number += 1
        tally.defects = log.read_text().splitlines()
    for defect in tally.defects:
        told(json.dumps({"reader": reader.name, "seed": seed, "defect": defect}))
    return tally


def _ended(worker: int, shared: _Shared) -> str:
    """Wait for a worker; how it ended, if not well."""
    while True:
        done, status = os.waitpid(worker, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"the process ended with {code}"
        _, begun, computed, *_ = shared.get()
        if _computed(worker) - computed > SECONDS or time.monotonic() - begun > PATIENCE:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
            return f"it took more than {SECONDS:g} seconds"
        time.sleep(0.01)


def _computed(process: int) -> float:
    """Seconds that all its threads have computed; none if it has ended."""
    try:
        user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _work(reader: Reader, seed: int, number: int, end: int, top: Path, shared: _Shared, log: Path) -> None:
    """In the worker, which never returns."""
    code = 1
    try:
        place, names = top / "input", set()
        os.chdir(top)
        place.mkdir(exist_ok=True)
        start = _kilobytes("VmRSS")
        limit = 1024 * _kilobytes("VmSize") + 4 * GIGABYTE  # a second fence, far behind the first
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        tally = {"read": 0, "refused": 0}
        most, longest = 0, 0.0
        for each in range(number, end):
            shared.put(each, time.monotonic(), math.inf, *tally.values(), most, longest)
            files = reader.input(seed, each)
            for gone in names - set(files):
                (place / gone).unlink()
            write(files, place)
            names = set(files)
            large = sum(map(len, files.values())) > 2**22
            del files
            base = _kilobytes("VmRSS") if large else start
            Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
            begun = time.process_time()
            shared.put(each, time.monotonic(), begun, *tally.values(), most, longest)
            found = outcome(reader, place)
            seconds = time.process_time() - begun
            taken = _kilobytes("VmHWM") - max(base, start)
            if 1024 * taken > GIGABYTE:
                found = f"it took {taken // 1024} MB"
            if found in tally:
                tally[found] += 1
                most, longest = max(most, taken), max(longest, seconds)
            else:
                with log.open("a") as file:
                    file.write(f"{each}: {found}\n")
            (top / CANARY).unlink(missing_ok=True)
        shared.put(end, time.monotonic(), math.inf, *tally.values(), most, longest)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _kilobytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description="damaged and hostile files for every reader")
    parser.add_argument("--inputs", type=int, default=100_000, help="over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one reader, by its name")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first input")
    asked = parser.parse_args()
    readers = [reader for reader in READERS if asked.only in (None, reader.name)]
    whole, worst = sum(reader.share for reader in readers), 0
    for reader in readers:
        count = round(asked.inputs * reader.share / whole)
        start = time.monotonic()
        tally = run(reader, asked.seed, asked.first, count, lambda line: print(line, flush=True))
        told = asdict(tally) | {"defects": len(tally.defects), "seconds": round(time.monotonic() - start, 1)}
        print(json.dumps(told), flush=True)
        worst = max(worst, len(tally.defects))
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
