"""Train one run into its directory: progress, checkpoints, trackers, and a clean end whatever happens."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
import torch.distributed as dist

from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.lab.process.launch import stop_signals
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.recipe import Recipe, flat
from auglabel.lab.runs.checkpoint import save_weights
from auglabel.lab.runs.records import DataFacts, RunFacts, SplitRows, versions
from auglabel.lab.runs.run import Run
from auglabel.lab.train.learned import labelled_images
from auglabel.lab.train.progress import Progress
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.trackers import require_trackers, trackers_for
from auglabel.lab.train.trainer import LOOK, Diverged, Trainer
from auglabel.table_file import save_table
from auglabel.util.checks import require_number, require_whole, shown
from auglabel.util.processor import processor_kind

TOGETHER = 1.0  # seconds: a terminal and the launcher may both send a signal that was given once


@dataclass(frozen=True)
class TrainOptions:
    """What changes nothing in the results"""

    resume: bool = False
    """go on with the run in --out, from its last checkpoint, or begin it"""
    max_steps: int | None = None
    """stop after this step, with a checkpoint; --resume goes on"""
    keep: int = 2
    """checkpoints to keep, beside the best one"""
    save_minutes: float = 10.0
    """while it trains, save at least this often; every epoch is saved anyway"""
    tracker: tuple[str, ...] = ("tensorboard",)
    """where numbers go besides metrics.jsonl: tensorboard, wandb, mlflow, none"""
    device: Literal["auto", "cpu"] = "auto"
    """auto takes an accelerator if there is one"""
    workers: int = 2
    """processes that decode images ahead, for data that do not fit in memory"""

    def __post_init__(self) -> None:
        if self.max_steps is not None:
            require_whole("max_steps", self.max_steps, 1)
        require_whole("keep", self.keep, 1)
        require_number("save_minutes", self.save_minutes, 0)
        require_whole("workers", self.workers, 0)
        require_trackers(self.tracker)


def train(recipe: Recipe, out: Path, options: TrainOptions) -> Run:
    """Train `recipe` in the directory `out`, or go on there, and leave a run that `Run` can read.

    Ctrl-C, SIGTERM, SIGHUP and `max_steps` end it after the step under way, with a checkpoint of that step.
    """
    run, first = Run(out), int(os.environ.get("RANK", "0")) == 0
    keep_memory()
    run.require_free(recipe, options.resume)
    data, parts = data_for(recipe)
    with _others_may_end(run), ExitStack() as stack:
        trainer = Trainer(recipe, data, parts, device=options.device, workers=options.workers)
        if first:
            stack.enter_context(run.locked())
            run.require_free(recipe, options.resume)  # again: another process may have been here since
            run.begin(recipe)
            _record(run, recipe, data, parts, trainer)
        trainer.accelerator.wait_for_everyone()
        if (last := run.last(print if first else lambda line: None)) is not None:
            restore(trainer, last, str(run.checkpoints))
        if first:
            run.forget_after(trainer.state.epoch)
            if told := run.record_versions(trainer.state.epoch):
                print(told)
        progress = stack.enter_context(Progress(trainer, run, data.notes, shown=first))
        watchers = stack.enter_context(trackers_for(options.tracker if first else (), run, recipe))
        signals = stack.enter_context(_signals())
        saver = _Saver(trainer, run, options, first)
        try:
            _train(trainer, run, options.max_steps, signals, saver, progress, watchers, first)
        except Diverged as error:
            raise Diverged(f"{error} The last good checkpoint stays in {run.checkpoints}.") from None
        return run


@contextmanager
def _others_may_end(run: Run) -> Iterator[None]:
    """Processes lose each other when one of them is killed; gloo has no error of its own for it."""
    try:
        yield
    except RuntimeError as error:
        words = str(error)
        if not (isinstance(error, dist.DistError) or "gloo" in words or "by peer" in words):
            raise
        raise OSError(
            f"another process of this run has ended ({shown(words)}); what was saved is in "
            f"{run.checkpoints}, and --resume goes on with it."
        ) from None


class _Saver:
    """Writes checkpoints, on the first rank, and knows when one is due."""

    def __init__(self, trainer: Trainer, run: Run, options: TrainOptions, first: bool) -> None:
        self.trainer, self.run, self.options, self.first = trainer, run, options, first
        self.saved = time.monotonic()

    @property
    def due(self) -> bool:
        return time.monotonic() - self.saved > 60 * self.options.save_minutes

    def save(self, best: bool = False) -> None:
        checkpoint = checkpoint_of(self.trainer)
        if self.first:
            self.run.save(self.trainer.step, checkpoint, keep=self.options.keep, best=best)
        self.trainer.accelerator.wait_for_everyone()
        self.saved = time.monotonic()


def _train(
    trainer: Trainer,
    run: Run,
    max_steps: int | None,
    signals: list[float],
    saver: _Saver,
    progress: Progress,
    watchers: list[Any],
    first: bool,
) -> None:
    last = trainer.steps if max_steps is None else min(max_steps, trainer.steps)

    def stop(step: int) -> bool:
        return step >= last or _asked(trainer, step, bool(signals))

    while trainer.state.epoch < trainer.recipe.training.epochs:
        for images in trainer.epoch(stop):
            progress.step(images)
            if _asked(trainer, trainer.step, saver.due):
                saver.save()
        if trainer.state.batch < trainer.per_epoch:
            saver.save()
            progress.stopped(trainer.step, asked=trainer.step >= last)
            if trainer.step < last:
                raise KeyboardInterrupt
            return
        before, trained_on_all = trainer.state.best, trainer.gives_back
        record = trainer.end_epoch()
        share = trainer.state.calibration_share
        record = replace(record, images_per_second=progress.speed(), calibration_share=share)
        nll = record.validation.get("nll", math.inf)
        assert nll is not None  # as it may be in a file
        trainer.state.best = min(before, nll)
        if first:
            run.record_epoch(record, labels_of(trainer))
            for watcher in watchers:
                watcher.log(flat(record.as_json(), "/"), step=record.epoch)
        saver.save(best=nll < before or trained_on_all)
        progress.epoch(record)
    if first:
        _finish(trainer, run)
    progress.finished()


def _asked(trainer: Trainer, step: int, here: bool) -> bool:
    """Whether this rank, or with several any, wants something; several ask each other now and then."""
    if trainer.world == 1:
        return here
    return step % LOOK == 0 and trainer.total(float(here))[0] > 0


def _record(run: Run, recipe: Recipe, data: DataSet, parts: Parts, trainer: Trainer) -> None:
    """What the run works with; for one that goes on, see that its data are the same."""
    if run.facts_file.exists():
        run.require_data(data, parts)
        run.record_processor(processor_kind(trainer.device))
        return
    run.record_split(SplitRows.of(parts))
    run.record_facts(facts_of(recipe, data, parts, trainer))


def facts_of(recipe: Recipe, data: DataSet, parts: Parts, trainer: Trainer) -> RunFacts:
    """What a run is begun with."""
    return RunFacts(
        versions(),
        recipe.training.seed,
        DataFacts.of(data, parts),
        parameters=sum(p.numel() for p in trainer.plain.parameters()),
        measured="averaged weights" if trainer.average is not None else "weights",
        processes=trainer.world,
        device=str(trainer.device),
        threads=torch.get_num_threads(),
        labelled_images=labelled_images(recipe, data, parts),
        processor=processor_kind(trainer.device),
    )


def labels_of(trainer: Trainer) -> dict[str, list[float]] | None:
    """The confidence of every bucket, by kind; None if the labels do not learn."""
    table, grid = trainer.table(), trainer.learned.augment.grid
    if table is None:
        return None
    parts = zip(grid.kinds, table.double().split(list(grid.levels)), strict=True)
    return {kind: part.tolist() for kind, part in parts}


def _finish(trainer: Trainer, run: Run) -> None:
    """The weights alone, for use elsewhere, and the table that `labels: {name: table}` reads."""
    if (table := trainer.table()) is not None:
        save_table(run.table_file, table, trainer.learned.augment.grid)
    save_weights(run.model_file, trainer.measured.state_dict())  # last: it says that all is done


@contextmanager
def _signals() -> Iterator[list[float]]:
    """When a signal to stop came, instead of acting upon it; another one, later, interrupts at once."""
    got: list[float] = []

    def note(number: int, frame: FrameType | None) -> None:
        got.append(time.monotonic())
        if got[-1] - got[0] > TOGETHER:
            raise KeyboardInterrupt

    try:
        before = {number: signal.signal(number, note) for number in stop_signals()}
    except ValueError:  # not the main thread: signals go elsewhere
        before = {}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
