"""Train, calibrate, measure and report in one process for half an hour, and watch what it holds on to.

Each loop trains with RandAug, AugMix, mixup and attacks (all but mixup with AutoLabel), stops each run
half-way and goes on from its checkpoint, measures it on clean, corrupted and attacked images, audits the
first, and every few loops writes a report: the commands of the command line, on the embedded images, with
another seed each time. Resident memory, open files and threads are looked at every two seconds. Prints one
JSON line: what they were after the first tenth, which is warm-up, and at the end, and the slope of memory
over the means of twenty stretches in between (least squares, with its 95 % interval). `flat` says that memory
at the end is less than 5 % above that after warm-up, that the slope's interval begins below 10 MiB an hour,
and that there are no more open files and threads at the end than after warm-up. Exits with 1 if it is not.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from auglabel import cli

SMALL = ["--split.train=200", "--split.validation=60", "--split.test=60", "--batch_size=40", "--epochs=2"]
SMALL += ["--model.widths=[8,16,32]"]
REGIMES = {
    "randaug": ["--regime=randaug_autolabel", "--alpha=0.2"],
    "augmix": ["--regime=augmix_autolabel", "--alpha=0.2", "--ema=0.9"],
    "mixup": ["--regime=mixup"],
    "attacks": ["--regime=at_autolabel", "--alpha=0.5", "--augment.steps=2"],
}
ON = ["--on=clean,fog,pgd", "--steps=2", "--restarts=1", "--resamples=20"]
EVERY = 2.0  # seconds between looks
REPORT = 5  # loops between reports
GROWTH, SLOPE = 0.05, 10.0  # what still counts as flat: share, MiB per hour


@dataclass
class Look:
    """What this process holds at one moment."""

    seconds: float
    memory: float  # MiB, resident
    files: int
    threads: int


class Watch(threading.Thread):
    """Looks at this process every few seconds until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.start_time, self.looks = time.monotonic(), list[Look]()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(EVERY):
            self.look()

    def look(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files, threads = (len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task"))
        memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        self.looks.append(Look(time.monotonic() - self.start_time, memory, files, threads))


def work(folder: Path, loop: int, seed: int, tracker: str) -> None:
    """One loop: everything once, with a seed of its own."""
    runs = [folder / name for name in REGIMES]
    for out, words in zip(runs, REGIMES.values(), strict=True):
        train = ["train", "embedded", *SMALL, *words, f"--seed={seed}", f"--out={out}", "--resume"]
        train += [f"--tracker={tracker}"]
        call([*train, "--max_steps=7"])
        call(train)
        call(["eval", str(out), *ON])
    call(["audit", str(runs[0]), "--images=40"])
    call(["inspect", str(runs[0])])
    if loop % REPORT == 0:
        call(["report", *map(str, runs), f"--out={folder / 'page.html'}"])


def call(words: list[str]) -> None:
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = cli.main(words)
    assert code == 0, words


def slope(looks: Sequence[Look], stretches: int = 20) -> tuple[float, float, float]:
    """MiB per hour by least squares over the means of equal stretches, and the ends of its 95 % interval."""
    size = max(1, len(looks) // stretches)
    parts = [looks[start : start + size] for start in range(0, len(looks) - size + 1, size)]
    hours = [sum(look.seconds for look in part) / size / 3600 for part in parts]
    memory = [sum(look.memory for look in part) / size for part in parts]
    line = stats.linregress(hours, memory)
    error = line.stderr if len(set(memory)) > 1 else 0.0  # of a level line it is not known
    reach = float(stats.t.ppf(0.975, len(parts) - 2) * error)
    return float(line.slope), float(line.slope) - reach, float(line.slope) + reach


def judged(looks: Sequence[Look]) -> dict[str, object]:
    """What is printed, from the looks at the process in order."""
    end = looks[-1].seconds
    warm = [look for look in looks if look.seconds >= 0.1 * end]
    first = [look for look in warm if look.seconds < 0.2 * end]
    last = [look for look in warm if look.seconds >= 0.9 * end]
    before, after = (sum(look.memory for look in part) / len(part) for part in (first, last))
    files = [max(look.files for look in part) for part in (first, last)]
    threads = [max(look.threads for look in part) for part in (first, last)]
    found, low, high = slope(warm)
    flat = after < (1 + GROWTH) * before and low < SLOPE
    flat = flat and files[1] <= files[0] and threads[1] <= threads[0]
    return {
        "memory": {"after warm-up": round(before, 1), "at the end": round(after, 1)},
        "largest": round(max(look.memory for look in looks), 1),
        "growth": round(after / before - 1, 4),
        "slope": {"MiB per hour": round(found, 2), "low": round(low, 2), "high": round(high, 2)},
        "open files": {"after warm-up": files[0], "at the end": files[1]},
        "threads": {"after warm-up": threads[0], "at the end": threads[1]},
        "flat": flat,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--tracker", default="tensorboard", help="or none; TensorBoard's writer is not ours")
    parser.add_argument("--seed", type=int, default=0, help="of the first loop (default: 0)")
    parser.add_argument("--looks", type=Path, help="write every look at the process there, as JSON lines")
    asked = parser.parse_args()
    watch = Watch()
    watch.start()
    with tempfile.TemporaryDirectory() as folder:
        loops, place = 0, Path(folder) / "loop"
        while time.monotonic() - watch.start_time < 60 * asked.minutes:
            work(place, loops, asked.seed + loops, asked.tracker)
            shutil.rmtree(place)
            gc.collect()
            loops += 1
    watch.ended.set()
    watch.join()
    if asked.looks is not None:
        asked.looks.write_text("".join(json.dumps(vars(look)) + "\n" for look in watch.looks))
    found = judged(watch.looks)
    spent = time.monotonic() - watch.start_time
    about = {"minutes": round(spent / 60, 1), "loops": loops, "looks": len(watch.looks)}
    print(json.dumps({**about, **found, "tracker": asked.tracker, "seed": asked.seed}), flush=True)
    return 0 if found["flat"] else 1


if __name__ == "__main__":
    sys.exit(main())
