"""Break things on purpose, and see that nothing is lost beyond the last unsaved step and nothing hangs.

Each fault is tried several times at moments, places or bytes drawn from a seed; after each the command is
called again as a user would, and what comes out is compared with what came out undisturbed, to the bit.
A try counts if the fault hit: the process was still at work, or said in one sentence that it could not go on.
One that came too late is made again at another moment. Prints one JSON line per fault: how often it hit
(tried), came too late (late), survived (the same result in the end, and one sentence where one is due), lost
(must be none), and the longest time that a command took to end after it. Exits with 1 if anything was lost,
or if a fault never hit. It takes about 20 minutes on two cores; `--tries 4`, ten.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from kills import content

from auglabel.lab.runs.checkpoint import Checkpoint, load_checkpoint
from auglabel.lab.runs.run import Run

SMALL = ["--split.train=240", "--split.validation=80", "--split.test=40", "--batch_size=40", "--epochs=6"]
TRAIN = ["train", "embedded", *SMALL, "--regime=randaug_autolabel", "--alpha=0.2"]
ENDS = ["--resume", "--save_minutes=0", "--tracker=none"]
PATIENCE = 300  # seconds after which something counts as hanging


@dataclass
class Tally:
    """What became of one kind of fault."""

    fault: str
    tried: int = 0
    late: int = 0  # the process had ended before the fault
    survived: int = 0
    lost: list[str] = field(default_factory=list)
    longest: float = 0.0  # seconds until the command that was hit, or called again, had ended

    def judge(self, well: bool, what: str, hit: bool = True) -> None:
        self.tried += hit
        self.late += not hit
        self.survived += hit and well
        self.lost += [] if well else [what]

    def until(self, tries: int) -> Iterator[int]:
        """The numbers of tries, until as many have hit or four times as many were made."""
        for number in range(4 * tries):
            if self.tried < tries:
                yield number


HUMBLE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]  # permissions count for root, too


def call(words: list[str], humble: bool = False, **environment: str) -> subprocess.Popen[str]:
    before = HUMBLE if humble and os.geteuid() == 0 else []
    return subprocess.Popen(
        [*before, sys.executable, "-m", "auglabel.cli", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], tally: Tally) -> tuple[int, str]:
    """Its exit code and what it said; a process that hangs is killed, and its code is 999."""
    start = time.monotonic()
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        kill(process)
        _, said = process.communicate()
        return 999, said
    finally:
        tally.longest = max(tally.longest, time.monotonic() - start)
    return process.returncode, said


def kill(process: subprocess.Popen[str]) -> bool:
    """It and all that it started; whether it was still at work."""
    at_work = process.poll() is None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return at_work and process.returncode == -signal.SIGKILL


def killed_after(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether it was still at work by then."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return kill(process)


def train(out: Path) -> list[str]:
    return [*TRAIN, f"--out={out}", *ENDS]


def one_sentence(said: str) -> bool:
    return said.startswith("auglabel: ") and "Traceback" not in said and said.strip().count("\n") == 0


def undisturbed(folder: Path, tally: Tally) -> tuple[tuple, float]:
    """What training gives when it is left alone, and how long it takes."""
    start = time.monotonic()
    code, said = ended(call(train(folder / "whole")), tally)
    assert code == 0, said
    return content(folder / "whole"), time.monotonic() - start


# Each fault: (folder of its own, draw, tries) -> Tally


def training_killed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("training killed with SIGKILL at random moments")
    whole, seconds = undisturbed(folder, tally)
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        kills = [killed_after(call(train(out)), draw.uniform(0.3, 1) * seconds) for _ in range(3)]
        begun = Run(out).exists()
        code, said = ended(call(train(out)), tally)
        well = code == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} {said}", hit=any(kills) and begun)
    return tally


def rank_killed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("one rank of two killed with SIGKILL")
    words = ["--processes=2"]
    start = time.monotonic()
    code, said = ended(call([*train(folder / "whole"), *words]), tally)
    assert code == 0, said
    whole, seconds = content(folder / "whole"), time.monotonic() - start
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        process = call([*train(out), *words])
        time.sleep(draw.uniform(0.5, 0.95) * seconds)
        listed = ["pgrep", "-P", str(process.pid)]
        ranks = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()
        hit = False
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(int(draw.choice(ranks)), signal.SIGKILL)
            hit = True
        code, said = ended(process, tally)
        told = code == 1 and "was killed (SIGKILL)." in said and all(map(one_sentence, said.splitlines()))
        again, complaint = ended(call([*train(out), *words]), tally)
        well = (told or not hit) and again == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} {said} then {again} {complaint}", hit)
    return tally


def sweep_killed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("a sweep killed with SIGKILL")
    base = ["sweep", "embedded", *SMALL, "--epochs=2", "--over", "labels.alpha=0.1,0.2", "--seeds=2"]

    def results(out: Path) -> dict[str, object]:
        found = {path.name: json.loads(path.read_text()) for path in (out / "results").glob("*.json")}
        return {
            name: {k: v for k, v in one.items() if k not in ("seconds", "checksum")}
            for name, one in found.items()
        }

    start = time.monotonic()
    code, said = ended(call([*base, f"--out={folder / 'whole'}"]), tally)
    assert code == 0, said
    whole, seconds = results(folder / "whole"), time.monotonic() - start
    for number in tally.until(tries):
        out = folder / f"sweep-{number}"
        hit = killed_after(call([*base, f"--out={out}"]), draw.uniform(0.2, 1) * seconds) and out.exists()
        before = {path: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}
        code, said = ended(call([*base, f"--out={out}"]), tally)
        kept = all(path.stat().st_mtime_ns == changed for path, changed in before.items())
        tally.judge(code == 0 and kept and results(out) == whole, f"sweep {number}: {code} {said}", hit)
    return tally


def copies_killed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("writing corrupted copies killed with SIGKILL")
    words = ["--suite=fog,jpeg_compression,glass_blur,motion_blur", "--workers=2", "--layout=npy"]

    def files(out: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in out.glob("*.npy")}

    start = time.monotonic()
    code, said = ended(call(["corrupt", "embedded", str(folder / "whole"), *words]), tally)
    assert code == 0, said
    whole, seconds = files(folder / "whole"), time.monotonic() - start
    for number in tally.until(tries):
        out = folder / f"copies-{number}"
        process = call(["corrupt", "embedded", str(out), *words])
        hit = killed_after(process, draw.uniform(0.3, 1) * seconds) and out.exists()
        code, said = ended(call(["corrupt", "embedded", str(out), *words]), tally)
        tally.judge(code == 0 and files(out) == whole, f"copies {number}: {code} {said}", hit)
    return tally


def report_killed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("a report killed with SIGKILL: the page before it stays, or the new one is whole")
    undisturbed(folder, tally)
    page, run = folder / "page.html", str(folder / "whole")
    start = time.monotonic()
    code, said = ended(call(["report", run, f"--out={page}", "--title=new"]), tally)
    assert code == 0, said
    seconds, new = time.monotonic() - start, page.read_bytes()
    for number in tally.until(tries):
        page.write_text("the page before")
        process = call(["report", run, f"--out={page}", "--title=new"])
        hit = killed_after(process, draw.uniform(0.6, 1.05) * seconds)
        there = page.read_bytes()
        tally.judge(there in (b"the page before", new), f"report {number}: {len(there)} bytes", hit)
    return tally


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of that many bytes."""
    place = folder / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def disk_full(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("the disk full at a random moment of training")
    whole, _ = undisturbed(folder, tally)
    used = sum(path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file())
    for number in range(tries):
        room = int(draw.uniform(0.1, 0.95) * used)
        kept = folder / f"kept-{number}"
        with small_disk(folder, max(room, 65536)) as disk:
            code, said = ended(call(train(disk / "run")), tally)
            told = code == 1 and one_sentence(said)
            if (disk / "run").exists():
                shutil.copytree(disk / "run", kept)  # the same with more room
        (folder / "disk").rmdir()
        again, complaint = ended(call(train(kept)), tally)
        well = told and again == 0 and content(kept) == whole
        tally.judge(well, f"run {number}, {room} bytes: {code} {said} then {again} {complaint}")
    return tally


def read_only(folder: Path, draw: random.Random, tries: int) -> Tally:
    """Root, whom permissions do not stop, gives that privilege up for it."""
    tally = Tally("a directory that becomes read-only while it is trained in")
    whole, seconds = undisturbed(folder, tally)
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        process = call(train(out), humble=True)
        time.sleep(draw.uniform(0.5, 0.95) * seconds)
        places = [out, out / "checkpoints"] if (out / "checkpoints").exists() else []
        for place in places:
            place.chmod(0o555)
        code, said = ended(process, tally)
        told = code == 0 or (code == 1 and one_sentence(said))
        for place in places:
            place.chmod(0o755)
        again, complaint = ended(call(train(out), humble=True), tally)
        well = told and again == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} {said} then {again} {complaint}", hit=code != 0)
    return tally


def begun(folder: Path, tally: Tally) -> Path:
    """A run stopped half-way, with two checkpoints."""
    code, said = ended(call([*train(folder / "begun"), "--max_steps=20"]), tally)
    assert code == 0, said
    assert len(Run(folder / "begun").steps()) == 2
    return folder / "begun"


def same(one: Checkpoint, other: Checkpoint) -> bool:
    """To the bit."""
    tensors = one.tensors.keys() == other.tensors.keys() and all(
        torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items()
    )
    return tensors and one.facts == other.facts


def damages(sound: bytes, draw: random.Random) -> Iterator[bytes]:
    """Cut at every 1 % of its length, then with a bit changed in a hundred places."""
    yield from (sound[: len(sound) * percent // 100] for percent in range(100))
    for _ in range(100):
        place = draw.randrange(len(sound))
        yield sound[:place] + bytes([sound[place] ^ (1 << draw.randrange(8))]) + sound[place + 1 :]


def checkpoint_damaged(folder: Path, draw: random.Random, tries: int) -> Tally:
    """As often as there are damages, whatever `tries` says: reading takes no training."""
    tally = Tally("the last checkpoint cut at every 1 % of its length, or with a bit changed: read")
    run = begun(folder, tally)
    last, before = Run(run).steps()[-1], Run(run).steps()[-2]
    sound, older = last.read_bytes(), before.read_bytes()
    either = [load_checkpoint(path) for path in (last, before)]
    for number, spoilt in enumerate(damages(sound, draw)):
        last.write_bytes(spoilt)
        told: list[str] = []
        found = Run(run).last(told.append)
        # named, and then the one before it is used; a changed bit that says nothing may go unnamed
        well = found is not None and same(found, either[bool(told)]) and (bool(told) or number >= 100)
        tally.judge(well, f"damage {number}: {told}")
    assert older == before.read_bytes()
    return tally


def damaged_resumed(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("a run that goes on from such a damaged checkpoint")
    whole, _ = undisturbed(folder, tally)
    run = begun(folder, tally)
    every = list(damages(Run(run).steps()[-1].read_bytes(), draw))
    for number, spoilt in enumerate(draw.sample(every, tries)):
        out = folder / f"again-{number}"
        shutil.copytree(run, out)
        Run(out).steps()[-1].write_bytes(spoilt)
        code, said = ended(call(train(out)), tally)
        tally.judge(code == 0 and content(out) == whole, f"going on: {code} {said}")
    return tally


def data_vanish(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("40 of 240 image files that vanish while they are trained on")
    pictures = folder / "pictures"
    _write_pictures(pictures, draw)
    words = ["train", "folder", f"--data.root={pictures}", "--data.memory_gb=0", "--data.size=28"]
    words += ["--epochs=12", "--batch_size=20", "--split.validation=20", "--split.test=20", "--model=small"]
    words += [*ENDS, "--workers=0"]
    code, said = ended(call([*words, f"--out={folder / 'whole'}"]), tally)
    assert code == 0, said
    whole = content(folder / "whole")
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        process = call([*words, f"--out={out}"])
        while process.poll() is None and not _has_epochs(out):
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.2))
        gone = draw.sample(sorted(pictures.rglob("*.png")), 40)
        for path in gone:
            path.rename(path.with_suffix(".gone"))
        code, said = ended(process, tally)
        told = code == 0 or (code == 1 and one_sentence(said))
        for path in gone:
            path.with_suffix(".gone").rename(path)
        again, complaint = ended(call([*words, f"--out={out}"]), tally)
        well = told and again == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} {said} then {again} {complaint}", hit=code != 0)
    return tally


def _has_epochs(run: Path) -> bool:
    lines = run / "metrics.jsonl"
    return lines.is_file() and lines.stat().st_size > 0


def _write_pictures(folder: Path, draw: random.Random) -> None:
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(draw.randrange(2**32)).integers(0, 256, (240, 28, 28), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        place = folder / f"class{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture // 3 + 60 * (number % 3)).save(place / f"{number}.png")


CLOCK = """
import atexit, pathlib, random, time
draw, real, offsets = random.Random({seed}), time.time, [0.0]
def jumping():
    if draw.random() < 0.2:
        offsets.append(draw.uniform(-1e9, 1e9))
    return real() + offsets[-1]
time.time = jumping
atexit.register(lambda: pathlib.Path({told!r}).write_text(str(len(offsets) - 1)))
"""


def clock_jumps(folder: Path, draw: random.Random, tries: int) -> Tally:
    """auglabel reads no wall clock itself; TensorBoard's writer does, and file times follow the clock."""
    tally = Tally("a clock that jumps by up to thirty years, file times with it")
    whole, _ = undisturbed(folder, tally)
    for number in tally.until(tries):
        out, jumps = folder / f"run-{number}", folder / f"jumps-{number}"
        script = CLOCK.format(seed=draw.randrange(2**32), told=str(jumps))
        path = beside(folder / f"clock-{number}", script)
        words = [*train(out), "--tracker=tensorboard"]
        half, complaint = ended(call([*words, f"--max_steps={draw.randint(7, 30)}"], PYTHONPATH=path), tally)
        for file in out.rglob("*"):
            os.utime(file, (draw.uniform(0, 2e9),) * 2)
        code, said = ended(call(words, PYTHONPATH=path), tally)
        well = half == code == 0 and content(out) == whole
        hit = jumps.exists() and int(jumps.read_text()) > 0
        tally.judge(well, f"run {number}: {half} {complaint} then {code} {said}", hit)
    return tally


def beside(place: Path, script: str) -> str:
    """The value of PYTHONPATH with which Python runs that script before anything else."""
    place.mkdir()
    (place / "sitecustomize.py").write_text(script)
    return os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))


TORN = """
import atexit, json, os, pathlib, signal, stat
whole, sizes, written = os.fsync, {{}}, []
def torn(handle):
    about, name = os.fstat(handle), os.readlink(f"/proc/self/fd/{{handle}}")
    if stat.S_ISREG(about.st_mode):
        written.append(os.path.basename(name))
        if len(written) == {number}:
            before = 0 if name.endswith(".partial") else sizes.get(name, 0)
            os.truncate(name, before + int({share} * (about.st_size - before)))
            os.kill(os.getpid(), signal.SIGKILL)
        sizes[name] = about.st_size
    whole(handle)
os.fsync = torn
atexit.register(lambda: pathlib.Path({told!r}).write_text(json.dumps(written)))
"""


def write_torn(folder: Path, draw: random.Random, tries: int) -> Tally:
    """Before a write is brought to the disk, what it added is cut short and the process is gone.

    In turn of a line that is appended, which leaves it torn in its place, and of a whole file.
    """
    tally = Tally("a write torn in the middle: a part of it on the disk, and the process gone")
    told = folder / "written"

    def torn(out: Path, number: int, share: float) -> int:
        script = TORN.format(number=number, share=share, told=str(told))
        path = beside(folder / f"torn-{out.name}", script)
        return ended(call(train(out), PYTHONPATH=path), tally)[0]

    assert torn(folder / "whole", 0, 0) == 0
    whole, writes = content(folder / "whole"), json.loads(told.read_text())
    lines = [number for number, name in enumerate(writes, start=1) if name.endswith(".jsonl")]
    files = [number for number, name in enumerate(writes, start=1) if name.endswith(".partial")]
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        code = torn(out, draw.choice((lines, files)[number % 2]), draw.random())
        again, complaint = ended(call(train(out)), tally)
        well = again == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} then {again} {complaint}", hit=code == -signal.SIGKILL)
    return tally


def two_at_once(folder: Path, draw: random.Random, tries: int) -> Tally:
    tally = Tally("two processes started on one run directory; the first then killed")
    whole, seconds = undisturbed(folder, tally)
    for number in tally.until(tries):
        out = folder / f"run-{number}"
        first = call(train(out))
        end = time.monotonic() + PATIENCE
        while not Run(out).metrics_file.exists() and time.monotonic() < end and first.poll() is None:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGSTOP)
        if first.poll() is not None:
            tally.judge(first.returncode == 0, f"run {number}: {first.communicate()}", hit=False)
            continue
        code, said = ended(call(train(out)), tally)
        refused = code == 1 and "another process is training in" in said and one_sentence(said)
        os.killpg(first.pid, signal.SIGCONT)
        time.sleep(draw.uniform(0, 0.2) * seconds)
        hit = kill(first)
        again, complaint = ended(call(train(out)), tally)  # the lock went with the process
        well = refused and again == 0 and content(out) == whole
        tally.judge(well, f"run {number}: {code} {said} then {again} {complaint}", hit)
    return tally


FAULTS: dict[str, Callable[[Path, random.Random, int], Tally]] = {
    each.__name__: each
    for each in (
        training_killed,
        rank_killed,
        sweep_killed,
        copies_killed,
        report_killed,
        disk_full,
        read_only,
        write_torn,
        checkpoint_damaged,
        damaged_resumed,
        data_vanish,
        clock_jumps,
        two_at_once,
    )
}
NEED_MOUNT = (disk_full,)


def may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "tmpfs", folder]
        done = subprocess.run(command, capture_output=True, check=False).returncode == 0
        if done:
            subprocess.run(["umount", folder], check=True)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=8, help="of each fault (default: 8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("faults", nargs="*", help=f"of {', '.join(FAULTS)}; all of them if not given")
    asked = parser.parse_args()
    if unknown := [name for name in asked.faults if name not in FAULTS]:
        parser.error(f"there is no fault {unknown[0]}")
    mounts, lost = may_mount(), 0  # a fault that never hit counts as lost
    for name in asked.faults or FAULTS:
        if FAULTS[name] in NEED_MOUNT and not mounts:
            print(json.dumps({"fault": name, "skipped": "only root may mount a small disk"}), flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = FAULTS[name](Path(folder), random.Random(f"{asked.seed}/{name}"), asked.tries)
        lost += len(found.lost) + (found.tried == 0)
        line = {"name": name, **vars(found), "longest": round(found.longest, 1), "seed": asked.seed}
        print(json.dumps(line), flush=True)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
