"""What jobs will cost, from a few steps of each kind, on the device that will train them.

They are timed in a process of their own, which is killed when its time is over: one step may take minutes.
A GPU is timed by the clock; a core by what this process uses of it, so that other work does not count.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch

from auglabel.lab.evaluate.predict import VIEWS
from auglabel.lab.process.slots import gpus, told_within
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.train.feed import batches
from auglabel.lab.train.trainer import Trainer
from auglabel.util.inference import eval_mode

STEPS = 6  # timed, after as many to warm up
IMAGES = 100  # calibrated and predicted
HOW_FAR = ("m_max", "magnitude", "magnitudes", "epsilon_max", "fixed", "beta")
CORRUPTING = 1.4  # a corrupted image costs so much more than a prediction


class Timing(NamedTuple):
    """Seconds that a job will take, rough while not all of it is timed; or why it cannot be timed."""

    seconds: float | None = None
    rough: bool = True
    trouble: str = ""


@dataclass(frozen=True)
class Forecast:
    """Hours of each job on one GPU or core: as timed, or as its result recorded.

    A job whose turn did not come is taken for the mean of the others, and all are nan if no turn came.
    """

    hours: list[float]
    rough: bool
    troubles: list[str]  # of jobs that cannot be timed, whose hours are 0


def unit() -> str:
    return "GPU-hours" if gpus() else "core-hours"


def forecast(
    jobs: Sequence[Job], results: Results, limit: float, told: Callable[[str], None] = lambda name: None
) -> Forecast:
    """Time jobs that are not there, those that cost the same once, for `limit` seconds in all."""
    kinds = [_kind(job).digest for job in jobs]
    read = [results.read(job) for job in jobs]
    waiting = {kind: job for kind, job, there in zip(kinds, jobs, read, strict=True) if there is None}
    found = timings(waiting, limit, told) if waiting and limit else {}
    known = [timing.seconds for timing in found.values() if timing.seconds is not None]
    otherwise = statistics.fmean(known) if known else math.nan
    troubles = {kind: timing.trouble for kind, timing in found.items() if timing.trouble}
    seconds = dict.fromkeys(waiting, otherwise) | dict.fromkeys(troubles, 0.0)
    seconds |= {kind: timing.seconds for kind, timing in found.items() if timing.seconds is not None}
    hours = [
        (seconds[kind] if there is None else sum(there.seconds.values())) / 3600
        for kind, there in zip(kinds, read, strict=True)
    ]
    rough = any(found.get(kind, Timing()).rough for kind in waiting)
    return Forecast(hours, rough, list(troubles.values()))


def timings(jobs: Mapping[str, Job], limit: float, told: Callable[[str], None]) -> dict[str, Timing]:
    """Of each job, as far as `limit` seconds reach, on the first GPU or on one thread."""
    names, found = list(jobs), {}
    slot = next(iter(gpus()), None)
    for number, timing in told_within(limit, _tell_timings, (list(jobs.values()),), slot):
        if timing == Timing():
            told(jobs[names[number]].name)
        found[names[number]] = timing
    return found


def _tell_timings(jobs: Sequence[Job], tell: Callable[[tuple[int, Timing]], None]) -> None:
    for number, job in enumerate(jobs):
        tell((number, Timing()))
        try:
            seconds = seconds_of(job, partial(_tell_rough, number, tell))
            tell((number, Timing(seconds, rough=False)))
        except Exception as error:  # a network of the user's own may fail in any way
            words = " ".join(str(error).split()) or type(error).__name__
            tell((number, Timing(rough=False, trouble=f"{job.name}: {words}")))


def _kind(job: Job) -> Job:
    """Without what changes no cost: the seed, how far images are moved, and labels that do not learn."""
    recipe, labels = job.recipe, job.recipe.labels
    if ":" not in labels.name:  # a policy of the user's own may learn, too
        learns = "autolabel" in labels.name or labels.name == "self_distilled"
        replays = labels.options.get("replay") is not None
        labels = Choice(labels.name if learns and not replays else "one_hot", {})
    moves = {key: value for key, value in recipe.augment.options.items() if key not in HOW_FAR}
    recipe = replace(
        recipe,
        training=replace(recipe.training, seed=0),
        augment=recipe.augment._replace(options=moves),
        labels=labels,
    )
    return replace(job, name="", recipe=recipe)


def _tell_rough(number: int, tell: Callable[[tuple[int, Timing]], None], seconds: float) -> None:
    tell((number, Timing(seconds)))


@torch.no_grad()
def seconds_of(job: Job, rough: Callable[[float], None] = lambda seconds: None) -> float:
    """Of training, calibration after each epoch, and every measurement; `rough` hears of the first step's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return sum(_parts(job, rough))
    finally:
        torch.set_num_threads(threads)


def _parts(job: Job, rough: Callable[[float], None] = lambda seconds: None) -> Iterator[float]:
    data, parts = data_for(job.recipe)
    still = job.recipe.changed("optimizer.learning_rate", 0.0)  # as slow as any, and cannot diverge
    trainer = Trainer(still, data, parts)
    with torch.enable_grad():
        rough(_train(trainer, 1) * trainer.steps)
        _train(trainer, STEPS - 1)
        seconds = _train(trainer, STEPS)
    yield seconds / STEPS * trainer.steps
    rows = torch.arange(min(IMAGES, len(parts.validation)))
    if trainer.learned.policy.adaptive and len(rows):
        start = _clock(trainer)
        trainer.learned.update(trainer.measured, batches(parts.validation, [rows]))
        share = len(parts.validation) / len(rows)
        yield (_clock(trainer) - start) * share * trainer.held_out
    prediction = _prediction(trainer)
    yield prediction * len(parts.validation) * trainer.held_out
    if job.recipe.training.give_back is None:
        yield prediction * (len(parts.validation) + max(VIEWS, len(parts.validation)))  # to fit T and TA
    yield prediction * sum(_predictions(each, len(parts.test)) for each in job.measured)


def _clock(trainer: Trainer) -> float:
    """Seconds of the device, once it has done all that it was given."""
    if trainer.device.type == "cpu":
        return time.process_time()
    getattr(torch, trainer.device.type).synchronize()
    return time.perf_counter()


def _train(trainer: Trainer, steps: int) -> float:
    """Seconds of some steps; an epoch that has fewer is trained again."""
    done, start = 0, _clock(trainer)
    while done < steps:
        done += sum(1 for _ in islice(trainer.epoch(lambda step: False), steps - done))
        trainer.state.batch = 0
    return _clock(trainer) - start


def _prediction(trainer: Trainer) -> float:
    """Seconds for one image."""
    images = torch.rand(IMAGES, *trainer.parts.train.shape, device=trainer.device)
    with eval_mode(trainer.measured):
        trainer.measured(images)
        start = _clock(trainer)
        trainer.measured(images)
    return (_clock(trainer) - start) / IMAGES


def _predictions(measurement: Measurement, test: int) -> float:
    """How many predictions an evaluation is worth; a step of an attack counts for three."""
    request, total = measurement.without_copies.request(), 0.0
    for each in request.conditions:
        attack = 3 * request.attack.steps * request.attack.restarts
        cost = attack if each.attacks else 1 if each.source is None else CORRUPTING
        total += cost * min(measurement.images or test, test)
    return total
