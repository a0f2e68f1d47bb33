"""imagecorruptions-imaug at the other end of a pipe, since it lives in an environment of its own.

Imported, this file gives `Peer`, which starts itself as a script under the other interpreter. There it reads
orders, one JSON object per line, and answers each with the seconds it took. Pictures go through files.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Pictures = npt.NDArray[np.uint8]  # (N, H, W, 3)
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA")


class Peer:
    """The library under another interpreter, with as many threads as we say."""

    def __init__(self, python: str, threads: int = 1) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.given, self.made = (Path(self.folder.name, f"{name}.npy") for name in ("given", "made"))
        command = [python, __file__, str(threads)]
        environment = os.environ | {f"{name}_NUM_THREADS": str(threads) for name in THREADS}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.about = self.ask()  # versions, and where the frost photographs are

    def ask(self, **order: Any) -> dict[str, Any]:
        if order:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("The peer ended; what it said is above. Is imagecorruptions installed there?")
        return dict(json.loads(answer))

    def load(self, pictures: Pictures) -> None:
        """Hand over the pictures that later orders are about."""
        np.save(self.given, pictures)
        self.ask(do="load", file=str(self.given))

    def seconds(self, name: str, severity: int, count: int) -> float:
        """How long the first `count` pictures take."""
        return float(self.ask(do="corrupt", name=name, severity=severity, count=count)["seconds"])

    def corrupted(self, name: str, severity: int, count: int, seed: int, five: bool = False) -> Pictures:
        """The first `count` pictures as it leaves them; `five`: without its sixth frost photograph."""
        order = {"name": name, "severity": severity, "count": count, "seed": seed, "five": five}
        self.ask(do="corrupt", file=str(self.made), **order)
        return np.load(self.made)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def serve(threads: int) -> None:
    """Under the other interpreter: do what the lines say."""
    answers, sys.stdout = sys.stdout, sys.stderr  # the library prints, too

    def answer(**facts: Any) -> None:
        print(json.dumps(facts), file=answers, flush=True)

    import importlib.metadata

    import cv2
    import imagecorruptions

    cv2.setNumThreads(threads)
    packages = ("imagecorruptions-imaug", "numpy", "scipy", "scikit-image", "opencv-python", "numba")
    versions = {name: importlib.metadata.version(name) for name in packages}
    answer(versions=versions, frost=str(Path(imagecorruptions.__file__).with_name("frost")))
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "load":
            pictures = np.load(order["file"])
            answer()
            continue
        name, severity, seed = order["name"], order["severity"], order.get("seed")
        some = pictures[: order["count"]]
        made = np.empty_like(some)
        start = time.perf_counter()
        for number, picture in enumerate(some):
            options = {} if seed is None else seeded(name, [seed, severity, number], order["five"])
            made[number] = imagecorruptions.corrupt(picture, severity, name, **options)
        seconds = time.perf_counter() - start
        if "file" in order:
            np.save(order["file"], made)
        answer(seconds=seconds)


def seeded(name: str, seed: list[int], five: bool) -> dict[str, int]:
    """Seed what the library draws from; two of its functions have a generator of their own."""
    np.random.seed(seed)  # noqa: NPY002
    while five and name == "frost":  # its first draw says which photograph
        state = np.random.get_state()  # noqa: NPY002
        if np.random.randint(6) < 5:  # noqa: NPY002
            np.random.set_state(state)  # noqa: NPY002
            break
    own = np.random.default_rng(seed).integers(2**31)
    return {"seed": int(own)} if name in ("impulse_noise", "glass_blur") else {}


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve(int(sys.argv[1]))
