"""What AutoLabel costs beside one-hot labels, and whether its cheap rule loses anything to the exact one.

    overhead.py time CIFAR100           seconds of an epoch: one-hot, pooled, exact; four augmentations
    overhead.py time CIFAR100 --recipe fast-cifar100 --validation 250 --rules pooled --augmentations randaug
                                        the same where few images are held out
    overhead.py growth                  seconds of `calibrate` against buckets and validation images
    overhead.py inference               time of a forward pass: layouts, folded batch norm, batch sizes
    overhead.py attacks CIFAR10         what fewer steps of PGD would do to the labels, and save
    overhead.py runs CIFAR10 OUT        train and evaluate them over seeds; the same command goes on
    overhead.py compare OUT             what those runs say

`time` and `growth` interleave what they compare, on one thread, and want a machine with nothing else to do.
Each prints JSON.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from auglabel import Adversarial, Augmentation, DistanceGrid, View, calibrate
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.records import TrainingState
from auglabel.lab.train.trainer import Trainer
from auglabel.models.small import SmallNet

WARM_UP = 10  # steps
# each augmentation with the labels it has without AutoLabel, and with it
REGIMES = {
    "randaug": ("randaug", "randaug_autolabel"),
    "augmix": ("augmix", "augmix_autolabel"),
    "mixup": ("mixup", "mixup_autolabel"),
    "adversarial": ("at_multi", "at_autolabel"),
}
RULES = {rule: [f"--calibrate.rule={rule}", "--alpha=0.02"] for rule in ("pooled", "exact")}
LABELS = {"one-hot": [], **RULES}


def words_for(augmentation: str, labels: str) -> list[str]:
    return [f"--regime={REGIMES[augmentation][labels != 'one-hot']}", *LABELS[labels]]


def seconds_of_epochs(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train with some images for validation, a ninth unless told; every contender does an epoch in turn."""
    held_out = asked.train // 9 if asked.validation is None else asked.validation
    for augmentation in asked.augmentations:
        trainers = {}
        order = ["one-hot", *asked.rules]
        for labels in order:
            words = [*words_for(augmentation, labels), f"--data.root={asked.root}"]
            words += [f"--split.train={asked.train}", f"--split.validation={held_out}"]
            recipe = read_recipe(asked.recipe, words)
            trainers[labels] = Trainer(recipe, *data_for(recipe), device="cpu")
        seconds: dict[str, list[float]] = {labels: [] for labels in order}
        calibrating: dict[str, list[float]] = {labels: [] for labels in order}
        for trainer in trainers.values():
            for _ in trainer.epoch(lambda step: step >= WARM_UP):
                pass
            trainer.state = TrainingState()
        for _ in range(asked.rounds):
            for labels in order:
                trainer = trainers[labels]
                start = time.perf_counter()
                for _ in trainer.epoch(lambda step: False):
                    pass
                record = trainer.end_epoch()
                seconds[labels].append(time.perf_counter() - start)
                calibrating[labels].append(record.seconds["calibrating"])
            order = order[1:] + order[:1]
        one_hot = seconds["one-hot"]
        ratios = {
            labels: [mine / other for mine, other in zip(seconds[labels], one_hot, strict=True)]
            for labels in asked.rules
        }
        yield {
            "augmentation": augmentation,
            "buckets": len(trainers["one-hot"].learned.augment.grid),
            "images": asked.train,
            "validation": held_out,
            "visits": trainers["one-hot"].recipe.calibrate.visits,
            "seconds": {labels: [round(value, 2) for value in values] for labels, values in seconds.items()},
            "calibrating": {
                labels: [round(value, 2) for value in values] for labels, values in calibrating.items()
            },
            "ratio": {labels: round(statistics.median(values), 3) for labels, values in ratios.items()},
            "ratios": {labels: [round(value, 3) for value in values] for labels, values in ratios.items()},
        }


class Brighten(Augmentation):
    """As many buckets as one likes, and as much work in each."""

    def __init__(self, buckets: int) -> None:
        self.grid = DistanceGrid((buckets,))

    def apply(self, images, labels, distance, model, generator):  # type: ignore[no-untyped-def]
        moved = (images + distance.strength[:, None, None, None] / 2).clamp(max=1)
        return View(moved, labels, distance.bucket, distance.strength)


def seconds_of_calibrate(rounds: int) -> Iterator[dict[str, Any]]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (4000, 3, 32, 32), dtype=torch.uint8, generator=generator)
    labels = torch.randint(10, (4000,), generator=generator)
    model = SmallNet(10).to(memory_format=torch.channels_last)
    cases = [(buckets, count) for count in (1000, 2000, 4000) for buckets in (5, 82, 1000)]
    seconds: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for turn in range(rounds + 1):
        for buckets, count in cases:
            loader = zip(images[:count].split(500), labels[:count].split(500), strict=True)
            start = time.perf_counter()
            calibrate(model, Brighten(buckets), loader, visits=2, turn=turn, generator=generator)
            if turn:  # the first warms up
                seconds[buckets, count].append(time.perf_counter() - start)
    for (buckets, count), values in seconds.items():
        yield {
            "buckets": buckets,
            "validation": count,
            "visits": 2,
            "seconds": round(statistics.median(values), 4),
            "least": round(min(values), 4),
            "most": round(max(values), 4),
        }


def seconds_of_forward(rounds: int) -> Iterator[dict[str, Any]]:
    for widths in ((24, 48, 96), (48, 96, 192)):
        plain = SmallNet(10, widths).eval()
        last = copy.deepcopy(plain).to(memory_format=torch.channels_last)
        models = {"plain": plain, "channels last": last, "channels last, folded": folded(last)}
        models["channels last, compiled"] = torch.compile(last)  # type: ignore[assignment]
        for batch in (50, 250, 1000):
            images = torch.rand(batch, 3, 32, 32)
            seconds: dict[str, list[float]] = {name: [] for name in models}
            for turn in range(rounds + 1):
                for name, model in models.items():
                    start = time.perf_counter()
                    with torch.no_grad():
                        for _ in range(1000 // batch):
                            model(images)
                    if turn:
                        seconds[name].append(time.perf_counter() - start)
            yield {
                "widths": widths,
                "batch": batch,
                "microseconds an image": {
                    name: round(statistics.median(values) * 1e3, 1) for name, values in seconds.items()
                },
            }


def folded(model: nn.Module) -> nn.Module:
    """The same network with every batch norm inside the convolution before it."""
    model = copy.deepcopy(model)
    for block in [module for module in model.modules() if isinstance(module, nn.Sequential)]:
        for place in range(len(block) - 1):
            convolution, norm = block[place], block[place + 1]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                block[place], block[place + 1] = fuse_conv_bn_eval(convolution, norm), nn.Identity()
    return model


def fewer_steps(root: str, epochs: int) -> Iterator[dict[str, Any]]:
    """The gap of every bucket under attacks of fewer steps, beside its own noise at two visits."""
    words = ["--regime=at_autolabel", "--alpha=0.005", f"--data.root={root}"]
    words += [f"--epochs={epochs}", "--seed=100"]
    recipe = read_recipe("cpu-cifar10", words)
    trainer = Trainer(recipe, *data_for(recipe), device="cpu")
    for _ in range(epochs):
        for _ in trainer.epoch(lambda step: False):
            pass
        trainer.end_epoch()
    told = {}
    for steps in (10, 5, 3, 2):
        augment = Adversarial(**{**recipe.augment.options, "steps": steps})
        start = time.perf_counter()
        generator = torch.Generator().manual_seed(0)
        seen = calibrate(trainer.measured, augment, trainer.validation_batches(), generator=generator)
        told[steps] = seen.confidence - seen.accuracy
        images = len(trainer.parts.validation) * recipe.calibrate.visits / len(augment.grid)
        yield {
            "steps": steps,
            "seconds": round(time.perf_counter() - start, 2),
            "accuracy, strongest": round(seen.accuracy[-1].item(), 4),
            "gap": [round(value, 4) for value in told[steps].tolist()],
            "largest change": round((told[steps] - told[10]).abs().max().item(), 4),
            "standard error": round((seen.accuracy * (1 - seen.accuracy) / images).sqrt().mean().item(), 4),
        }


def run_all(root: str, out: Path, seeds: list[int], names: list[str], jobs: int) -> None:
    """Every run that is not there yet, through the command line, `jobs` at a time on a thread each."""
    work = [(name, labels, seed) for seed in seeds for name in names for labels in LABELS]
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda item: one_run(root, out, *item), work):
            print(json.dumps({"run": str(done)}), flush=True)


def one_run(root: str, out: Path, augmentation: str, labels: str, seed: int) -> Path:
    """Train, then evaluate on all clean test images, and on 1,000 of them under the paper's corruptions."""
    run = out / f"{augmentation}-{labels}-{seed}"
    if not (run / "model.safetensors").exists():
        words = [*words_for(augmentation, labels), f"--seed={seed}", f"--data.root={root}", f"--out={run}"]
        auglabel(run, "train", "cpu-cifar10", *words, *(["--resume"] if run.exists() else []))
    for name, words in {"clean": [], "corrupted": ["--images=1000"]}.items():
        if not done(run / name):
            auglabel(run, "eval", str(run), f"--on={name}", "--resamples=0", f"--out={run / name}", *words)
    return run


def auglabel(run: Path, *words: str) -> None:
    log = run.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as lines:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "auglabel.cli", *words]
        subprocess.run(command, stdout=lines, stderr=lines, env=environment, check=True)


def done(evaluation: Path) -> bool:
    return any(evaluation.glob("*.json"))


def figures_of(run: Path) -> dict[str, float]:
    """Of 10,000 clean images, and means over the cells of (corruption, severity), of 1,000 images each."""
    told = {}
    for name, before in {"clean": "", "corrupted": "c"}.items():
        (file,) = (run / name).glob("*.json")
        rows = [row["figures"] for row in json.loads(file.read_text())["rows"]]
        for figure in ("accuracy", "ece", "debiased_ece", "nll", "brier"):
            told[before + figure] = statistics.mean(row[figure]["value"] for row in rows)
    return told


def table_of(run: Path) -> Tensor:
    kinds = json.loads((run / "table.json").read_text())["confidence"].values()
    return torch.tensor([value for kind in kinds for value in kind], dtype=torch.float64)


def rmse(one: Tensor, other: Tensor) -> float:
    return math.sqrt((one - other).square().mean().item())


def compare(out: Path) -> Iterator[dict[str, Any]]:
    for augmentation in REGIMES:
        seeds = [
            seed
            for seed in range(1000)
            if all(done(out / f"{augmentation}-{labels}-{seed}" / "corrupted") for labels in LABELS)
        ]
        if len(seeds) < 2:
            continue
        figures = {
            labels: [figures_of(out / f"{augmentation}-{labels}-{seed}") for seed in seeds]
            for labels in LABELS
        }
        tables = {
            labels: [table_of(out / f"{augmentation}-{labels}-{seed}") for seed in seeds]
            for labels in ("pooled", "exact")
        }
        same = [rmse(*pair) for pair in zip(tables["pooled"], tables["exact"], strict=True)]
        other = [
            rmse(one, two) for place, one in enumerate(tables["exact"]) for two in tables["exact"][:place]
        ]
        yield {
            "augmentation": augmentation,
            "seeds": seeds,
            "figures": {
                labels: {name: spread([row[name] for row in rows]) for name in rows[0]}
                for labels, rows in figures.items()
            },
            "lost": {
                name: lost(*([row[name] for row in figures[labels]] for labels in LABELS))
                for name in ("ece", "cece", "debiased_ece", "cdebiased_ece", "nll", "cnll")
            },
            "rmse": {
                "pooled to exact": round(statistics.mean(same), 4),
                "exact to exact of other seeds": round(statistics.mean(other), 4),
                "ratio": round(statistics.mean(same) / statistics.mean(other), 3),
            },
        }


def spread(values: list[float]) -> dict[str, float]:
    return {"mean": round(statistics.mean(values), 5), "sd": round(statistics.stdev(values), 5)}


def lost(one_hot: list[float], pooled: list[float], exact: list[float]) -> dict[str, Any]:
    """Paired by seed: is the upper bound of pooled - exact below a quarter of one-hot - exact?"""
    worse = [mine - theirs for mine, theirs in zip(pooled, exact, strict=True)]
    room = [plain - theirs for plain, theirs in zip(one_hot, exact, strict=True)]
    quarter = statistics.mean(room) / 4
    return {
        "pooled - exact": round(statistics.mean(worse), 5),
        "upper bound": round(upper_bound(worse), 5),
        "quarter of one-hot - exact": round(quarter, 5),
        "nothing lost": upper_bound(worse) < quarter,
        # the same with the noise of the right-hand side: below 0 if nothing is lost
        "upper bound of the difference": round(
            upper_bound([mine - other / 4 for mine, other in zip(worse, room, strict=True)]), 5
        ),
    }


def upper_bound(values: list[float]) -> float:
    """One-sided, 95 %, by Student's t."""
    quantile = float(stats.t.ppf(0.95, len(values) - 1))
    return statistics.mean(values) + quantile * statistics.stdev(values) / math.sqrt(len(values))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    timed = commands.add_parser("time")
    timed.add_argument("root")
    timed.add_argument("--recipe", default="cpu-cifar100")
    timed.add_argument("--train", type=int, default=10_000)
    timed.add_argument("--validation", type=int, help="a ninth of --train if not given")
    timed.add_argument("--rules", nargs="+", choices=list(RULES), default=list(RULES))
    timed.add_argument("--augmentations", nargs="+", default=list(REGIMES))
    grown = commands.add_parser("growth")
    forward = commands.add_parser("inference")
    attacks = commands.add_parser("attacks")
    attacks.add_argument("root")
    attacks.add_argument("--epochs", type=int, default=10)
    for command in (timed, grown, forward):
        command.add_argument("--rounds", type=int, default=3)
    runs = commands.add_parser("runs")
    runs.add_argument("root")
    runs.add_argument("out", type=Path)
    runs.add_argument("--seeds", type=int, nargs="+", default=list(range(8)))
    runs.add_argument("--augmentations", nargs="+", default=["randaug", "augmix"])
    runs.add_argument("--jobs", type=int, default=2)
    commands.add_parser("compare").add_argument("out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    if asked.command == "runs":
        run_all(asked.root, asked.out, asked.seeds, asked.augmentations, asked.jobs)
        return
    told: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "time": lambda: seconds_of_epochs(asked),
        "growth": lambda: seconds_of_calibrate(asked.rounds),
        "inference": lambda: seconds_of_forward(asked.rounds),
        "attacks": lambda: fewer_steps(asked.root, asked.epochs),
        "compare": lambda: compare(asked.out),
    }
    for line in told[asked.command]():
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
