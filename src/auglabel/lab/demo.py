"""The demo's experiment: RandAug with three kinds of labels on the embedded images.

A small network learns from 1,000 images a seed, with one-hot labels, label smoothing and AutoLabel;
all three see the same images, initial weights and transformations. Then it is measured on clean test
images and on four distortions that RandAug does not contain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.augment.randaug import RandAug
from auglabel.autolabel import AutoLabel
from auglabel.calibration import Calibration
from auglabel.data.embedded import CLASSES, Split, load_embedded
from auglabel.lab.seeding import generator_for
from auglabel.labels import LabelPolicy, LabelSmoothing, OneHot
from auglabel.measure import calibrate, measure
from auglabel.models.small import SmallNet
from auglabel.view import View

TRAIN_IMAGES = 1000  # of the embedded 3,000; few enough that one-hot labels over-fit
BATCH = 50
LEARNING_RATE = 0.1
VISITS = 2  # buckets that each validation image visits in an epoch, of 82
MEMORY = 0.8  # how much of the calibration sums survives an epoch, so that a bucket has more than 24 images
RHO = 0.02  # chosen by benchmarks/demo_choice.py
ALPHA = 0.02  # chosen by benchmarks/demo_choice.py
METHODS = ("one-hot", "label smoothing", "AutoLabel")


class Reading(NamedTuple):
    """What a network reaches on one set of images."""

    accuracy: float
    ece: float
    debiased_ece: float
    nll: float
    brier: float


@dataclass(frozen=True)
class Outcome:
    """What one run measured; `readings` by the images' name, "clean" or one of DISTORTIONS."""

    method: str
    seed: int
    readings: dict[str, Reading]
    table: list[float] | None  # AutoLabel's confidence per bucket
    seconds: float
    calibrating: float  # seconds of them


def policy_for(method: str, buckets: int, rho: float = RHO, alpha: float = ALPHA) -> LabelPolicy:
    if method == "one-hot":
        return OneHot(len(CLASSES))
    if method == "label smoothing":
        return LabelSmoothing(len(CLASSES), rho)
    return AutoLabel(len(CLASSES), buckets, alpha)


class Ticks(Protocol):
    """Where a tick goes after each epoch: a queue."""

    def put(self, item: int) -> None: ...


def run(method: str, seed: int, epochs: int, ticks: Ticks | None = None) -> Outcome:
    """Train one network and measure it on the test images."""
    start = time.perf_counter()
    augment = RandAug()
    policy = policy_for(method, len(augment.grid))
    model, calibrating = train(policy, augment, seed, epochs, ticks)
    readings = test(model, load_embedded().test, seed)
    table = policy.table.tolist() if isinstance(policy, AutoLabel) else None
    return Outcome(method, seed, readings, table, time.perf_counter() - start, calibrating)


def train(
    policy: LabelPolicy, augment: RandAug, seed: int, epochs: int, ticks: Ticks | None = None
) -> tuple[nn.Module, float]:
    """A network trained with `policy`'s labels, and the seconds that calibrating took."""
    data = load_embedded()
    chosen = torch.randperm(len(data.train.labels), generator=generator_for(seed, "split"))[:TRAIN_IMAGES]
    train_set = Split(data.train.images[chosen], data.train.labels[chosen])
    torch.manual_seed(seed)
    model = SmallNet(len(CLASSES), mean=(0.2860,), std=(0.3530,))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, 0.9, weight_decay=5e-4, nesterov=True)
    steps = epochs * -(-TRAIN_IMAGES // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, steps, pct_start=0.1, cycle_momentum=False, div_factor=100
    )
    memory = Calibration(len(augment.grid))
    calibrating = 0.0
    for epoch in range(epochs):
        model.train()
        generator = generator_for(seed, "augment", epoch)
        for images, labels in batches(train_set, BATCH, generator_for(seed, "order", epoch)):
            view = augment(images, labels, generator=generator)
            loss = F.cross_entropy(model(view.images), policy(view))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if policy.adaptive:
            start = time.perf_counter()
            loader, generator = batches(data.validation, 250), generator_for(seed, "calibrate", epoch)
            seen = calibrate(model, augment, loader, visits=VISITS, turn=epoch, generator=generator)
            memory.sums.mul_(MEMORY).add_(seen.sums)
            policy.update(memory)
            calibrating += time.perf_counter() - start
        if ticks is not None:
            ticks.put(1)
    return model, calibrating


def test(model: nn.Module, split: Split, seed: int) -> dict[str, Reading]:
    """What `model` reaches on `split` as it is, and under each of DISTORTIONS."""

    def views() -> Iterator[View]:
        for group, distort in enumerate([as_it_is, *DISTORTIONS.values()]):
            generator = generator_for(seed, "distort", group)
            for images, labels in batches(split, 500):
                ones = torch.ones(len(labels))
                yield View(distort(images.float() / 255, generator), labels, group * ones.long(), ones)

    names = ["clean", *DISTORTIONS]
    seen = measure(model, views(), groups=len(names))
    columns = [getattr(seen, field).tolist() for field in Reading._fields]
    return {name: Reading(*row) for name, row in zip(names, zip(*columns, strict=True), strict=True)}


def batches(split: Split, size: int, generator: torch.Generator | None = None) -> Iterator[Split]:
    """Batches of `split`, shuffled if a generator says how."""
    order = torch.arange(len(split.labels))
    if generator is not None:
        order = torch.randperm(len(split.labels), generator=generator)
    for rows in order.split(size):
        yield Split(split.images[rows], split.labels[rows])


def as_it_is(images: Tensor, generator: torch.Generator) -> Tensor:
    return images


def noise(images: Tensor, generator: torch.Generator) -> Tensor:
    return (images + 0.15 * torch.randn(images.shape, generator=generator)).clamp(0, 1)


def blur(images: Tensor, generator: torch.Generator) -> Tensor:
    return F.avg_pool2d(F.pad(images, (2, 2, 2, 2), mode="replicate"), 5, stride=1)


def pixelate(images: Tensor, generator: torch.Generator) -> Tensor:
    return F.interpolate(F.avg_pool2d(images, 4), scale_factor=4, mode="nearest")


def occlude(images: Tensor, generator: torch.Generator) -> Tensor:
    """A grey square of 10 pixels, anywhere inside."""
    side, (height, width) = 10, images.shape[2:]
    top = torch.randint(height - side + 1, (len(images), 1, 1, 1), generator=generator)
    left = torch.randint(width - side + 1, (len(images), 1, 1, 1), generator=generator)
    row, column = torch.arange(height)[:, None], torch.arange(width)
    covered = (row >= top) & (row < top + side) & (column >= left) & (column < left + side)
    return images.masked_fill(covered, 0.5)


DISTORTIONS: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "noise": noise,
    "blur": blur,
    "pixelate": pixelate,
    "occlude": occlude,
}
