"""Kill training with SIGKILL at random moments, resume, and compare with runs that were never killed.

Each of a few recipes is trained once undisturbed, then again under kills: a process is killed at a moment
drawn uniformly over what a run takes, start-up included, and started again with --resume, until it has been
killed often enough; then it is left to end. Checkpoints are written after every step (--save_minutes 0), so
that many kills hit a write. Prints one JSON line per recipe: kills, how many interrupted training, how many
left a torn file behind, and whether weights, momenta, table and metrics are equal to the bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from auglabel.lab.runs.checkpoint import load_checkpoint
from auglabel.lab.runs.records import TIMES
from auglabel.lab.runs.run import Run

SMALL = ["--split.train=240", "--split.validation=80", "--split.test=40", "--batch_size=40", "--epochs=12"]
RECIPES = {
    "RandAug + AutoLabel": ["--regime=randaug_autolabel", "--alpha=0.2"],
    "AugMix + AutoLabel, averaged weights": ["--regime=augmix_autolabel", "--alpha=0.2", "--ema=0.9"],
    "adversarial + AutoLabel": ["--regime=at_autolabel", "--alpha=0.5", "--augment.steps=2"],
    "mixup, a larger network": ["--regime=mixup", "--model.widths=[96,192,384]"],  # longer writes
}


def command(out: Path, words: list[str]) -> list[str]:
    base = [sys.executable, "-m", "auglabel.cli", "train", "embedded", *SMALL, *words]
    return [*base, f"--out={out}", "--resume", "--save_minutes=0", "--tracker=none"]


def content(out: Path) -> tuple:
    """Everything that two equal runs have in common."""
    run = Run(out)
    last = run.last()
    metrics = [{k: v for k, v in line.as_json().items() if k not in TIMES} for line in run.epochs()]
    tensors = {name: (str(t.dtype), t.shape, t.numpy().tobytes()) for name, t in last.tensors.items()}
    tables = run.tables_file.read_text() if run.tables_file.exists() else ""
    best = {name: t.numpy().tobytes() for name, t in load_checkpoint(run.best_file).tensors.items()}
    return metrics, tables, tensors, best, run.model_file.read_bytes()


def survive(words: list[str], kills: int, folder: Path, draw: random.Random) -> dict:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    subprocess.run(command(folder / "whole", words), env=environment, stdout=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - start
    out, done, inside, torn = folder / "killed", 0, 0, 0
    while done < kills:
        process = subprocess.Popen(command(out, words), env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            done += 1
            inside += out.exists() and any((out / "checkpoints").glob("step-*"))
            torn += out.exists() and any(out.rglob("*.partial"))
        if (out / "model.safetensors").exists():  # it came to its end: kill another one
            assert content(out) == content(folder / "whole")
            out = folder / f"killed-{done}"
    subprocess.run(command(out, words), env=environment, stdout=subprocess.DEVNULL, check=True)
    equal = content(out) == content(folder / "whole")
    return {"kills": done, "with_checkpoints": inside, "torn_files": torn, "equal_to_the_bit": equal}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=8, help="per recipe (default: 8)")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    equal = True
    for name, words in RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            found = survive(words, asked.kills, Path(folder), random.Random(f"{asked.seed}/{name}"))
        equal &= found["equal_to_the_bit"]
        print(json.dumps({"recipe": name, "seed": asked.seed, **found}), flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
