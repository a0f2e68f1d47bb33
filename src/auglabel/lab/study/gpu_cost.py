"""What a run costs on a GPU: counted operations, over a fraction of the GPU's peak.

A training image costs three forward passes, since backward is two, and each step of an attack two more: the
gradient of the image alone. Calibration is a forward pass per bucket and validation image after each epoch,
behind an attack where images are attacked; evaluation is one per image, or the attack's, and one per image
and bucket of other views.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from auglabel.lab.parts.catalogue import augmentation_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.sweep.job import Job
from auglabel.lab.sweep.measurement import Measurement
from auglabel.models.by_name import model_function

FRACTION = 0.15  # of the peak, where nobody has measured: cautious for tensor cores


MODEL = (
    "By a model, not measured: counted operations at {percent} % of the published dense peak, one run per "
    "GPU. GFLOP for a training image without an attack: {counted}. A minute of `auglabel train` on a GPU of "
    "yours shows its images/s: --fraction is images/s x GFLOP / 1000 / TFLOP/s."
)


class Images(NamedTuple):
    """What the paper trains on; counts without those that validate."""

    classes: int
    side: int
    train: int
    validation: int
    test: int


DATA = {
    "cifar10": Images(10, 32, 45_000, 5_000, 10_000),
    "cifar100": Images(100, 32, 45_000, 5_000, 10_000),
    "imagenet": Images(1000, 224, 1_281_167, 25_000, 25_000),
}
# Published dense peaks in TFLOP/s. float32: what torch computes convolutions with, TF32 where there is one.
PEAKS = {
    "V100 SXM2": {"float32": 15.7, "fp16": 125.0},
    "A100 SXM": {"float32": 156.0, "bf16": 312.0, "fp16": 312.0},
    "H100 SXM": {"float32": 494.5, "bf16": 989.0, "fp16": 989.0},
}


def training_flops(recipe: Recipe) -> float:
    """Floating-point operations for one training image, attack and backward pass included."""
    attack = _attack(recipe) * (1 - float(recipe.augment.options.get("clean_share", 0)))
    return _forward(recipe) * (3 + attack)


def run_flops(job: Job) -> float:
    """Of all of a run: training, calibration after each epoch, validation, and every measurement."""
    recipe, images = job.recipe, DATA[job.recipe.data.name]
    share, held = recipe.split["train"] or 1.0, recipe.split["validation"]
    train = images.train * share if share <= 1 else share
    validation = images.validation if 0 < held <= 1 else held  # a share is that of the paper's split
    buckets = len(augmentation_for(recipe.augment.name, **recipe.augment.options).grid)
    calibrated = buckets if recipe.calibrate.rule == "exact" else recipe.calibrate.visits
    held_out = 1.0  # pass over the validation images after each epoch
    if recipe.labels.name.startswith("autolabel"):
        held_out += calibrated * (1 + _attack(recipe))
    epochs = recipe.training.epochs * (
        train * training_flops(recipe) + validation * held_out * _forward(recipe)
    )
    predictions = sum(_predictions(each, images.test) for each in job.measured)
    if job.views is not None:
        predictions += images.test * len(augmentation_for(job.views.name, **job.views.options).grid)
    return epochs + predictions * _forward(recipe)


def show_gpus(jobs: Sequence[Job], fraction: float, console: Console) -> None:
    """Print hours and days of these runs on one and on eight GPUs of each kind, and by which model."""
    flops = [(run_flops(job), job.recipe.engine.precision) for job in jobs]
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    for title in ("GPU: TFLOP/s", " GPU-hours", " days on 1", " days on 8"):
        table.add_column(title, justify="left" if title.startswith("GPU") else "right")
    for gpu, peaks in PEAKS.items():
        if any(precision not in peaks for _, precision in flops):
            table.add_row(f"{gpu}: has not this precision", "-", "-", "-")
            continue
        each = [count / (peaks[precision] * 1e12 * fraction) / 3600 for count, precision in flops]
        days = [f"{wall_clock(each, gpus) / 24:,.1f}" for gpus in (1, 8)]
        used = " and ".join(f"{peaks[each]:g} in {each}" for each in sorted({each for _, each in flops}))
        table.add_row(f"{gpu}: {used}", f"{sum(each):,.0f}", *days)
    console.print(table)
    told = {job.recipe.data.name: 3 * _forward(job.recipe) / 1e9 for job in jobs}
    counted = ", ".join(f"{data} {count:.1f}" for data, count in told.items())
    console.print(MODEL.format(percent=f"{100 * fraction:g}", counted=counted), markup=False, soft_wrap=True)


def wall_clock(each: Sequence[float], gpus: int) -> float:
    """Hours of runs of so many hours, one per GPU: all GPUs busy, or as long as the longest run."""
    return max(sum(each) / gpus, max(each, default=0.0))


def _attack(recipe: Recipe) -> int:
    """Forward passes that the attack on one image is worth."""
    return 2 * int(recipe.augment.options["steps"]) if recipe.augment.name == "adversarial" else 0


def _predictions(measurement: Measurement, test: int) -> float:
    request = measurement.without_copies.request()
    attack = 2 * request.attack.steps * request.attack.restarts
    count = min(measurement.images or test, test)
    return sum(count * (attack if each.attacks else 1) for each in request.conditions)


def _forward(recipe: Recipe) -> float:
    images = DATA[recipe.data.name]
    options = {  # lists cannot be keys of the cache
        key: tuple(value) if isinstance(value, list) else value for key, value in recipe.model.options.items()
    }
    return _counted(recipe.model.name, tuple(sorted(options.items())), images.classes, images.side)


@functools.cache
def _counted(name: str, options: tuple[tuple[str, object], ...], classes: int, side: int) -> float:
    """Of one image through the network, counted without computing it: on torch's device "meta"."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter, torch.no_grad():
        model_function(name)(num_classes=classes, **dict(options)).eval()(torch.empty(1, 3, side, side))
    return float(counter.get_total_flops())
