"""What jobs will cost, from a few steps of each kind, in time of one core: other work does not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import torch

from auglabel.lab.evaluate.predict import VIEWS
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


def core_hours(
    jobs: Sequence[Job],
    results: Results,
    told: Callable[[str], None] = lambda line: None,
    tried: dict[str, float] | None = None,
) -> list[float]:
    """Core-hours of each job: those its result recorded, or else an estimate from a few timed steps.

    Jobs that cost the same are timed once; `tried` keeps the estimates in seconds for later calls.
    """
    tried = {} if tried is None else tried
    hours = []
    for job in jobs:
        there, kind = results.read(job), _kind(job).digest
        if there is None and kind not in tried:
            told(job.name)
            tried[kind] = forecast(job)
        hours.append((tried[kind] if there is None else sum(there.seconds.values())) / 3600)
    return hours


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


@torch.no_grad()
def forecast(job: Job) -> float:
    """Seconds on one thread: training, calibration after each epoch, and every measurement."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return sum(_parts(job))
    finally:
        torch.set_num_threads(threads)


def _parts(job: Job) -> Iterator[float]:
    data, parts = data_for(job.recipe)
    still = job.recipe.changed("optimizer.learning_rate", 0.0)  # as slow as any, and cannot diverge
    trainer = Trainer(still, data, parts, device="cpu")
    with torch.enable_grad():
        _train(trainer)
        seconds = _train(trainer)
    yield seconds / STEPS * trainer.steps
    rows = torch.arange(min(IMAGES, len(parts.validation)))
    if trainer.learned.policy.adaptive and len(rows):
        start = time.process_time()
        trainer.learned.update(trainer.measured, batches(parts.validation, [rows]))
        share = len(parts.validation) / len(rows)
        yield (time.process_time() - start) * share * trainer.held_out
    prediction = _prediction(trainer)
    yield prediction * len(parts.validation) * trainer.held_out
    if job.recipe.training.give_back is None:
        yield prediction * (len(parts.validation) + max(VIEWS, len(parts.validation)))  # to fit T and TA
    yield prediction * sum(_predictions(each, len(parts.test)) for each in job.measured)


def _train(trainer: Trainer) -> float:
    """Seconds of some steps; an epoch that has fewer is trained again."""
    done, start = 0, time.process_time()
    while done < STEPS:
        done += sum(1 for _ in islice(trainer.epoch(lambda step: False), STEPS - done))
        trainer.state.batch = 0
    return time.process_time() - start


def _prediction(trainer: Trainer) -> float:
    """Seconds for one image."""
    images = torch.rand(IMAGES, *trainer.parts.train.shape)
    with eval_mode(trainer.measured):
        trainer.measured(images)
        start = time.process_time()
        trainer.measured(images)
    return (time.process_time() - start) / IMAGES


def _predictions(measurement: Measurement, test: int) -> float:
    """How many predictions an evaluation is worth; a step of an attack counts for three."""
    request, total = measurement.request(), 0.0
    for each in request.conditions:
        attack = 3 * request.attack.steps * request.attack.restarts
        cost = attack if each.attacks else 1 if each.source is None else CORRUPTING
        total += cost * min(measurement.images or test, test)
    return total
