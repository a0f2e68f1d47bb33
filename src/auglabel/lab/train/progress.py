"""What a run shows while it trains: a bar in a terminal, and a line per epoch anywhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from typing_extensions import Self

from auglabel.lab.process.bar import bar_of
from auglabel.lab.runs.diagnosis import diagnosis
from auglabel.lab.runs.records import Epoch
from auglabel.lab.runs.run import Run
from auglabel.lab.train.learned import Replay
from auglabel.lab.train.trainer import Trainer


class Progress:
    """Counts images and prints; with `shown` off it only counts."""

    def __init__(self, trainer: Trainer, run: Run, notes: Sequence[str], shown: bool) -> None:
        self.trainer, self.run = trainer, run
        self.console = Console(quiet=not shown, highlight=False)
        self.bar = bar_of("steps", self.console, shown)
        self.task = self.bar.add_task("", total=trainer.steps, completed=trainer.step)
        self.images, self.since = 0, trainer.state.training
        self.start = time.perf_counter()
        for note in notes:
            self.say(f"note: {note}")

    def __enter__(self) -> Self:
        trainer, parts = self.trainer, self.trainer.parts
        self.say(
            f"{len(parts.train):,} training, {len(parts.validation):,} validation and {len(parts.test):,} "
            f"test images; {sum(p.numel() for p in trainer.plain.parameters()):,} parameters; "
            f"{trainer.recipe.augment.name}, {trainer.recipe.labels.name}; into {self.run.path}"
        )
        if trainer.average is not None:
            self.say("Calibration, validation and the kept model use the averaged weights.")
        if (turns := trainer.learned.updates_to_see_all(len(parts.validation))) > 1:
            visits, buckets = trainer.learned.visits, len(trainer.learned.augment.grid)
            epochs = trainer.held_out
            self.say(
                f"{len(parts.validation):,} validation images each visit {visits} of {buckets:,} buckets an "
                f"epoch: all have been seen after {turns} epochs"
                + (f", and this run has {epochs}." if turns > epochs else ".")
            )
        if (epochs := trainer.recipe.training.epochs) > trainer.held_out:
            stay = (
                "" if isinstance(trainer.learned.policy, Replay) else ", and learned labels stay as they are"
            )
            self.say(
                f"From epoch {trainer.held_out + 1} of {epochs} on the {len(parts.validation):,} validation "
                f"images are trained on too{stay}. Nothing is measured on them any more: the best checkpoint "
                "is the last epoch's, and auglabel eval fits no temperature."
            )
        if trainer.step:
            self.say(f"going on from step {trainer.step:,} (epoch {trainer.state.epoch + 1})")
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def say(self, line: str) -> None:
        self.bar.console.print(line, markup=False, soft_wrap=True)

    def step(self, images: int) -> None:
        self.images += images
        self.bar.update(
            self.task,
            advance=1,
            description=f"epoch {self.trainer.state.epoch + 1}, {self.speed():,.0f} images/s",
        )

    def speed(self) -> float:
        """Training images a second, of this epoch, without calibration and the rest."""
        return self.images / max(self.trainer.state.training - self.since, 1e-9)

    def epoch(self, record: Epoch) -> None:
        """One line, and start counting anew."""
        words = [f"epoch {record.epoch}/{self.trainer.recipe.training.epochs}"]
        words.append(f"loss {record.loss:.3f}")
        if seen := record.validation:
            words.append(f"accuracy {seen['accuracy']:.1%}, ECE {seen['ece']:.1%}")
        if sure := record.confidence:
            words.append(f"labels {sure['mean']:.1%} ({sure['lowest']:.1%} to {sure['highest']:.1%})")
        words.append(f"{record.images_per_second:,.0f} images/s")
        if self.trainer.learned.policy.adaptive:
            words.append(f"calibration {record.calibration_share:.0%} of the time")
        self.say("  ".join(words))
        self.images, self.since = 0, self.trainer.state.training

    def stopped(self, step: int, asked: bool) -> None:
        why = "as --max-steps asked" if asked else "as you asked"
        self.say(
            f"stopped after step {step:,} of {self.trainer.steps:,}, {why}; --resume goes on from there."
        )

    def finished(self) -> None:
        state, seconds = self.trainer.state, time.perf_counter() - self.start
        share = state.calibration_share
        spent = f" {share:.0%} of the time went to calibration." if share else ""
        if not self.console.quiet:
            for record in self.run.epochs()[-1:]:
                if sentence := gap_sentence(record.validation):
                    self.say(sentence)
        self.say(f"done in {seconds:,.0f} s.{spent} Measure it: auglabel eval {self.run.path}")


def gap_sentence(seen: Mapping[str, float | None]) -> str:
    """The diagnosis on validation images; "" where none were measured."""
    count = int(seen.get("count") or 0)
    told = diagnosis(seen, count, None, "and auglabel eval fits a temperature")
    return told and f"On the {count:,} validation images: {told}"
