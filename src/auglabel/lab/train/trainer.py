"""The training loop: a step is decided by the weights, the seed and the step's number alone.

Nothing random is carried from one step to the next, so a run that stops anywhere goes on bit for bit from
its last checkpoint, with any number of worker processes.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor, nn

from auglabel.augment.clean import Clean, crop_and_flip
from auglabel.by_class import AutoLabelByClass
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import loss_function
from auglabel.lab.parts.schedules import SCHEDULES
from auglabel.lab.recipe.build import highest_rate, model_for, optimizer_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.seeding import generator_for, seed_for
from auglabel.lab.runs.records import Epoch, TrainingState
from auglabel.lab.train import feed
from auglabel.lab.train.accelerator import accelerator_for
from auglabel.lab.train.averaging import averaged
from auglabel.lab.train.learned import Replay, learned_for, require_untested_replay
from auglabel.labels import TablePolicy
from auglabel.measure import measure
from auglabel.self_distilled import with_prediction
from auglabel.util.randomness import to_device
from auglabel.view import View

LOOK = 10  # steps between looks at the losses: each look makes an accelerator wait
LOWER = "Try a lower --optimizer.learning_rate or --optimizer.clip 1."


class Diverged(UserError):
    """The loss is no longer a number."""


class Trainer:
    """One run: its network, labels, optimiser and place. `epoch` trains, `end_epoch` moves the labels."""

    def __init__(
        self, recipe: Recipe, data: DataSet, parts: Parts, *, device: str = "auto", workers: int = 0
    ):
        if len(parts.train) < 2:
            raise UserError(f"training needs at least 2 images, but the split leaves {len(parts.train)}.")
        self.recipe, self.parts = recipe, parts
        self.seed = recipe.training.seed
        self.accelerator = accelerator_for(recipe, device)
        self.rank, self.world = self.accelerator.process_index, self.accelerator.num_processes
        self.device = self.accelerator.device
        self.state = TrainingState()
        self.prepare = Clean(**recipe.prepare)
        self.loss = loss_function(recipe.training.loss, recipe.training.gamma)
        self.learned = learned_for(recipe, len(data.classes)).to(self.device)
        require_untested_replay(recipe, data, parts)
        if self.learned.policy.adaptive and len(parts.validation) == 0:
            raise UserError(
                f"{recipe.labels.name} learns from validation images, but --split.validation is 0."
            )
        if recipe.training.give_back is not None and len(parts.validation) == 0:
            raise UserError("give_back needs validation images to train on, but --split.validation is 0.")
        self.plain = model_for(recipe, data).to(self.device)
        self.optimizer = optimizer_for(recipe, self.plain)  # not wrapped: accelerate's wrapper costs 2 %
        self.average = averaged(self.plain, recipe.training.ema)
        if self.learned.policy.needs_prediction and self.average is None:
            raise UserError(f"{recipe.labels.name} takes targets from averaged weights: add --ema 0.99.")
        if recipe.engine.compile:
            self.plain.compile()
        with warnings.catch_warnings():  # older torch lacks the new name of what `accelerator_for` asks for
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            self.model = self.accelerator.prepare(self.plain)
        epochs, self.held_out = recipe.training.epochs, recipe.training.held_out_epochs
        self.trained_on = [parts.train, parts.train if self.held_out == epochs else parts.joined()]
        self.feeds = [feed.Feed(source, workers) for source in self.trained_on]
        self.validation = feed.Feed(parts.validation, workers)
        self.lengths = [len(self._order(0)), len(self._order(epochs - 1))]  # of such epochs, in steps
        self.steps = self._steps_before(epochs)
        self.recent: list[Tensor] = []

    @property
    def step(self) -> int:
        """Number of steps finished."""
        return self._steps_before(self.state.epoch) + self.state.batch

    @property
    def per_epoch(self) -> int:
        """Number of steps of the epoch under way."""
        return self.steps_in(self.state.epoch)

    def steps_in(self, epoch: int) -> int:
        return self.lengths[epoch >= self.held_out]

    def _steps_before(self, epoch: int) -> int:
        held_out = min(epoch, self.held_out)
        return held_out * self.lengths[0] + (epoch - held_out) * self.lengths[1]

    @property
    def gives_back(self) -> bool:
        """Whether the epoch under way trains on the validation images: they then measure nothing."""
        return self.recipe.training.give_back is not None and self.state.epoch >= self.held_out

    @property
    def measured(self) -> nn.Module:
        """The network that is measured and kept: the averaged one, if there is one."""
        return self.plain if self.average is None else self.average.module

    def epoch(self, stop: Callable[[int], bool]) -> Iterator[int]:
        """Train to the end of the epoch, or until `stop(step)`; yields the images of each step."""
        order, number = self._order(self.state.epoch), self.state.epoch
        shares = [rows[self.rank :: self.world] for rows in order[self.state.batch :]]
        draw = seed_for(self.seed, "crop", number)
        if self.gives_back:  # worker processes of the other feeds, if there are any, would idle to the end
            self.feeds[0], self.validation = self.feeds[1], feed.Feed(self.parts.validation)
        loaded = self.feeds[self.gives_back].batches(shares, draw)
        self.model.train()
        for rows in order[self.state.batch :]:
            if stop(self.step):
                return
            start, busy = time.perf_counter(), time.process_time()
            images, labels = next(loaded)
            self._step(to_device(images, self.device), to_device(labels, self.device), len(rows))
            self.state.batch += 1
            if len(self.recent) >= LOOK:
                self.look()  # waits for an accelerator: part of the training
            self.state.training += time.perf_counter() - start
            self.state.cpu += time.process_time() - busy
            yield len(rows)

    def _order(self, epoch: int) -> list[Tensor]:
        generator = generator_for(self.seed, "order", epoch)
        size = self.recipe.training.batch_size
        return feed.shuffled(len(self.trained_on[epoch >= self.held_out]), size, generator, self.world)

    def _step(self, images: Tensor, labels: Tensor, whole: int) -> None:
        """One step on this rank's part of a batch of `whole` images."""
        self._reseed(seed_for(self.seed, "network", self.step, self.rank))  # for dropout and the like
        generator = generator_for(self.seed, "augment", self.step, self.rank)
        images = crop_and_flip(images, self.prepare.pad, self.prepare.flip, generator)

        def augmented() -> View:
            return self.learned.augment(images, labels, self.plain, dtype=torch.float32, generator=generator)

        view = augmented()
        if self.learned.policy.needs_prediction:
            view = with_prediction(view, images, self.measured)
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(self.step)
        with self.accelerator.autocast():
            loss = self.loss(self.model, images, view, self.learned.policy, augmented)
        weight = len(images) * self.world / whole  # ranks are averaged; a larger share counts for more
        self.optimizer.zero_grad()
        self.accelerator.backward(loss * weight if self.world > 1 else loss)
        self._move()
        if self.average is not None:
            self.average.update_parameters(self.plain)
        self.recent.append(loss.detach() * len(images))
        self.state.images += len(images)

    def _rate(self, step: int) -> float:
        """The learning rate of a step."""
        part = SCHEDULES[self.recipe.schedule.name](step, self.steps, **self.recipe.schedule.options)
        return highest_rate(self.recipe) * part

    def _reseed(self, seed: int) -> None:
        """torch.manual_seed, without the stack trace that it keeps for devices not yet in use."""
        torch.default_generator.manual_seed(seed)
        if self.device.type != "cpu":
            torch.manual_seed(seed)

    def _move(self) -> None:
        """One step of the optimiser, on gradients clipped if the recipe says so."""
        scaler, clip = self.accelerator.scaler, self.recipe.optimizer.clip
        if scaler is not None:
            scaler.unscale_(self.optimizer)
        if clip is not None:
            nn.utils.clip_grad_norm_(self.plain.parameters(), clip)
        if scaler is None:
            self.optimizer.step()
        else:
            scaler.step(self.optimizer)
            scaler.update()

    def look(self) -> None:
        """Add up the losses of the last steps; stop if one of them, or a weight, is no number."""
        if not self.recent:
            return
        sound = torch.stack([parameter.isfinite().all() for parameter in self.plain.parameters()]).all()
        seen = torch.cat([torch.stack(self.recent).double(), sound.double()[None]]).cpu()  # waits once
        losses = seen[:-1]
        first = self.step - len(losses)
        self.recent = []
        if not losses.isfinite().all():
            step = first + int((~losses.isfinite()).nonzero()[0]) + 1
            raise Diverged(f"the loss is {losses[step - first - 1]:g} at step {step}. {LOWER}")
        for loss in losses.tolist():
            self.state.loss += loss
        if not seen[-1]:
            raise Diverged(f"a weight is no longer a number after step {self.step}. {LOWER}")

    @torch.no_grad()
    def end_epoch(self) -> Epoch:
        """Update the labels and measure the validation images; returns the epoch's record."""
        start, busy = time.perf_counter(), time.process_time()
        self.look()
        self.state.training += time.perf_counter() - start
        self._agree()
        calibrating = self._update_labels()
        start = time.perf_counter()
        seen = self.measure_validation()
        validating = time.perf_counter() - start
        self.state.calibrating += calibrating
        self.state.cpu += time.process_time() - busy
        loss, images, cpu = self.total(self.state.loss, self.state.images, self.state.cpu)
        record = Epoch(
            epoch=self.state.epoch + 1,
            step=self.step,
            learning_rate=self._rate(self.step - 1),
            loss=loss / images,
            images=int(images),
            validation=seen,
            confidence=self._spread(),
            seconds={"calibrating": calibrating, "validating": validating},
            cpu_seconds=None if math.isnan(cpu) else cpu,
        )
        self.state = replace(self.state, epoch=self.state.epoch + 1, batch=0, loss=0.0, images=0)
        return record

    def _update_labels(self) -> float:
        """Learn from this rank's part of the validation images; returns the seconds that took."""
        policy = self.learned.policy
        if isinstance(policy, Replay):
            policy.go_to(self.state.epoch + 1)
        if not policy.adaptive or self.gives_back:
            return 0.0
        start = time.perf_counter()
        generator = generator_for(self.seed, "calibrate", self.state.epoch, self.rank)
        self.learned.update(self.measured, self.validation_batches(), generator=generator)
        return time.perf_counter() - start

    def validation_batches(self) -> Iterator[feed.Batch]:
        rows = feed.in_turn(self.parts.validation, self.recipe.calibrate.batch_size, self.rank, self.world)
        return self.validation.batches(rows)

    def measure_validation(self) -> dict[str, float]:
        """Accuracy and calibration on the validation images as they are; nothing if none are held out."""
        if len(self.parts.validation) == 0 or self.gives_back:
            return {}
        seen = measure(self.measured, self._validation_views(), bins=self.recipe.calibrate.bins)
        names = ("accuracy", "confidence", "ece", "debiased_ece", "nll", "brier")
        return {"count": int(seen.count), **{name: float(getattr(seen, name)) for name in names}}

    def _validation_views(self) -> Iterator[View]:
        for images, labels in self.validation_batches():
            images, labels = to_device(images, self.device), to_device(labels, self.device)
            yield View(images, labels, torch.zeros_like(labels), torch.zeros(len(labels), device=self.device))

    def table(self) -> Tensor | None:
        """The label confidence per bucket, where the policy has one."""
        return self.learned.table.detach().cpu() if isinstance(self.learned.policy, TablePolicy) else None

    def _spread(self) -> dict[str, float]:
        table = self.table()
        if table is None:
            return {}
        return {"mean": table.mean().item(), "lowest": table.min().item(), "highest": table.max().item()}

    def total(self, *values: float) -> list[float]:
        """Each value summed over ranks."""
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        return list(self.accelerator.reduce(total, "sum").tolist())

    def statistics(self) -> dict[str, Tensor]:
        """Running statistics of networks and labels, which differ between ranks during an epoch."""
        modules = {"model": self.plain} | ({} if self.average is None else {"average": self.average})
        found = {
            f"{part}.{name}": buffer
            for part, module in modules.items()
            for name, buffer in module.named_buffers()
            if buffer.is_floating_point()
        }
        if isinstance(policy := self.learned.policy, AutoLabelByClass):
            found |= {"policy.sums": policy.sums, "policy.count": policy.count}
        return found

    def _agree(self) -> None:
        """Average the running statistics over ranks, so that all measure the same network."""
        if self.world > 1:
            for buffer in self.statistics().values():
                dist.all_reduce(buffer)
                buffer /= self.world
