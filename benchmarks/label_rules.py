"""Ways to move labels by few images a bucket, compared on validation images and on seeds kept for choosing.

    label_rules.py CIFAR10 --seeds 100 --augmentations randaug augmix > label_rules.jsonl

Each rule trains `cpu-cifar10` once per seed. Prints JSON lines: validation figures of the trained network,
clean and in every bucket, its table and its times. No test image is read. `--alpha` is the same for all.
scripts/cost_chart.py draws docs/cost.svg from these lines.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auglabel import Calibration, calibrate
from auglabel.distance import DistanceGrid
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.train.trainer import Trainer
from auglabel.pooling import PooledCalibration

EPOCHS = 40


@dataclass
class Rule:
    """How one variant reads a step off decayed sums; called like a Pool, whose table it does not look at."""

    step: str = "gap"  # gap, ece (the paper's, 15 bins), debiased, or shrunk: the gap by its standard error
    memory: float = 0.7
    neighbours: int = 1  # 1: none; 2: one level on either side, at half weight; 3: two, at 2/3 and 1/3
    monotone: bool = False  # accuracy and confidence made to fall with the level
    doubt: float = 0.0
    delay: float = 0.0  # the share of epochs before the first step
    gain: float = 1.0
    visits: int = 2

    def begin(self, grid: DistanceGrid, bins: int) -> None:
        self.grid, self.epoch = grid, 0
        self.sums = torch.zeros(5, len(grid), bins, dtype=torch.float64)
        self.squares = torch.zeros(len(grid), dtype=torch.float64)
        self.weights = torch.block_diag(*(near(levels, self.neighbours) for levels in grid.levels))

    def __call__(self, seen: Calibration, table: Tensor | None = None) -> PooledCalibration:
        self.epoch += 1
        self.sums = self.memory * self.sums + seen.sums
        self.squares = self.memory**2 * self.squares + seen.count
        read = Calibration(len(self.grid), self.sums.shape[2])
        if self.epoch <= self.delay * EPOCHS:
            return read
        read.sums = torch.einsum("ab,sbr->sar", self.weights, self.sums)
        count = read.count
        read.sums *= (count / (self.weights.square() @ self.squares))[None, :, None]  # examples' worth
        accuracy, confidence = read.accuracy, read.confidence
        if self.monotone:
            accuracy, confidence = (
                falling(figure, read.count, self.grid) for figure in (accuracy, confidence)
            )
        gap = confidence - accuracy
        error = (accuracy * (1 - accuracy)).clamp(min=1e-4) / read.count
        size = {
            "gap": gap.abs(),
            "ece": read.ece,
            "debiased": read.debiased_ece.clamp(min=0),
            "shrunk": gap.abs() ** 3 / (gap.square() + error),
        }[self.step]
        trust = count / (count + self.doubt)
        move, lowest = self.gain * size * gap.sign() * trust, accuracy * trust
        return PooledCalibration(torch.stack([torch.ones_like(move), lowest + move, lowest]))


RULES = {
    "paper": Rule("ece"),
    "gap": Rule(),
    "debiased": Rule("debiased"),
    "shrunk": Rule("shrunk"),
    "gap, monotone": Rule(monotone=True),
    "gap, neighbours": Rule(neighbours=2),
    "debiased, neighbours": Rule("debiased", neighbours=2),
    "debiased, two neighbours": Rule("debiased", neighbours=3),
    "paper, delayed": Rule("ece", delay=0.1),
    "gap, delayed": Rule(delay=0.1),
    "gap x 3": Rule(gain=3),
    "gap, neighbours, doubt": Rule(neighbours=2, doubt=20),
    "linear": Rule(neighbours=2, doubt=20, memory=0.5),  # "pooled" in its first form
    **{
        f"linear, visits {visits}": Rule(neighbours=2, doubt=20, memory=0.5, visits=visits)
        for visits in (1, 4, 8)
    },
}
SHIPPED = {"exact": None, "pooled": 2, "pooled, visits 1": 1, "pooled, visits 4": 4, "pooled, visits 8": 8}


def near(levels: int, reach: int) -> Tensor:
    apart = (torch.arange(levels)[:, None] - torch.arange(levels)).abs().double()
    return (1 - apart / reach).clamp(min=0)


def falling(figure: Tensor, count: Tensor, grid: DistanceGrid) -> Tensor:
    """The nearest that does not rise with the level, by least squares weighted with the counts."""
    fitted: list[float] = []
    for some, weight in zip(figure.split(list(grid.levels)), count.split(list(grid.levels)), strict=True):
        blocks: list[tuple[float, float, int]] = []
        for value, many in zip(some.tolist(), weight.tolist(), strict=True):
            block = (value, many, 1)
            while blocks and blocks[-1][0] < block[0]:
                before = blocks.pop()
                both = before[1] + block[1]
                value = (before[0] * before[1] + block[0] * block[1]) / both
                block = (value, both, before[2] + block[2])
            blocks.append(block)
        fitted += [value for value, _, length in blocks for _ in range(length)]
    return torch.tensor(fitted, dtype=torch.float64)


def trained(root: str, augmentation: str, name: str, seed: int, alpha: float) -> dict[str, Any]:
    words = [
        f"--data.root={root}",
        f"--regime={augmentation}_autolabel",
        f"--seed={seed}",
        f"--alpha={alpha}",
    ]
    words += [f"--epochs={EPOCHS}", f"--calibrate.rule={'exact' if name == 'exact' else 'pooled'}"]
    visits = RULES[name].visits if name in RULES else SHIPPED[name]
    words += [] if visits is None else [f"--calibrate.visits={visits}"]
    recipe = read_recipe("cpu-cifar10", words)
    trainer = Trainer(recipe, *data_for(recipe), device="cpu")
    if name in RULES:
        RULES[name].begin(trainer.learned.augment.grid, recipe.calibrate.bins)
        trainer.learned.pool = RULES[name]  # type: ignore[assignment]
    start = time.perf_counter()
    for _ in range(EPOCHS):
        for _ in trainer.epoch(lambda step: False):
            pass
        record = trainer.end_epoch()
    seconds = time.perf_counter() - start
    generator = torch.Generator().manual_seed(0)
    moved = calibrate(
        trainer.measured, trainer.learned.augment, trainer.validation_batches(), generator=generator
    )
    table = trainer.table()
    assert table is not None
    return {
        "augmentation": augmentation,
        "rule": name,
        "seed": seed,
        "alpha": alpha,
        "validation": {key: round(value, 4) for key, value in record.validation.items()},
        "views": {
            "accuracy": round(moved.accuracy.mean().item(), 4),
            "gap": round((moved.confidence - moved.accuracy).mean().item(), 4),
            "debiased_ece": round(moved.debiased_ece.mean().item(), 4),
            "nll": round(moved.nll.mean().item(), 4),
        },
        "labels": round(table.mean().item(), 4),
        "seconds": {"all": round(seconds, 1), "calibrating": round(trainer.state.calibrating, 1)},
        "table": [round(value, 4) for value in table.tolist()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--augmentations", nargs="+", default=["randaug", "augmix"])
    parser.add_argument("--rules", nargs="+", default=[*SHIPPED, *RULES], choices=[*SHIPPED, *RULES])
    parser.add_argument("--alpha", type=float, default=0.02)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    for seed in asked.seeds:
        for augmentation in asked.augmentations:
            for name in asked.rules:
                print(json.dumps(trained(asked.root, augmentation, name, seed, asked.alpha)), flush=True)


if __name__ == "__main__":
    main()
