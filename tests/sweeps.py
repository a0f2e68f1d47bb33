"""Sweeps for the tests: as small as they go, begun in a process of their own, killed, and looked into."""

import json
import os
import signal
import subprocess
import sys
import time

from auglabel import cli

SMALL = ["--split.train=60", "--split.validation=40", "--split.test=40", "--batch_size=20"]
TINY = [*SMALL, "--epochs=2", "--model.widths=[4,8,8]"]
SLOW = [*SMALL, "--epochs=12"]  # a second or so


def sweep(out, *words, workers=1):
    """The exit code of `auglabel sweep` on a tiny part of the embedded images."""
    return cli.main(["sweep", "embedded", *TINY, f"--out={out}", f"--workers={workers}", *words])


def results_in(out):
    """By the job's name."""
    found = [json.loads(path.read_text()) for path in sorted((out / "results").glob("*.json"))]
    return {result["name"]: result for result in found}


def times(out):
    """When each result was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "results").glob("*.json")}


def trainings(out):
    """How often each run has been trained to its end, by its log."""
    return {path.stem: path.read_text().count("\ndone in ") for path in (out / "runs").glob("*.log")}


def under_way(out):
    """The runs that have an epoch behind them and no result yet."""
    begun = {path.parent.name for path in (out / "runs").glob("*/metrics.jsonl") if path.stat().st_size}
    return begun - {path.stem for path in (out / "results").glob("*.json")}


def begun(words):
    """`auglabel WORDS` as a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "auglabel.cli", *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def killed_in_the_middle(out, words, done=2):
    """Begin a sweep and kill all its processes, once some runs are done and one is under way."""
    process, until = begun(words), time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        if len(times(out)) >= done and under_way(out):
            break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
