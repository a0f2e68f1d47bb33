"""A network's predictions under a condition, each made once, and the temperatures fitted to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.calibration import Calibration
from auglabel.data.source import Source
from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Condition
from auglabel.lab.evaluate.corrupted import Made
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.evaluations import TA, T
from auglabel.lab.train import feed
from auglabel.scaling import TemperatureScaling
from auglabel.util.inference import eval_mode, model_input
from auglabel.util.randomness import to_device

BLOCK = 250  # rows that share a random stream
VIEWS = 5000  # of augmented validation images, at least
MOST_PASSES = 20  # over the validation images, to see that many


@dataclass(frozen=True)
class Predictor:
    """A network, and how it is asked. The seed, the condition and the pass decide what is drawn.

    Workers stay from one condition to the next where these corrupt the same images.
    """

    model: nn.Module
    seed: int = 0
    batch_size: int = 250
    workers: int = 0
    _feeds: dict[bool, feed.Feed] = field(default_factory=dict)  # the last one, by whether it changes images

    def logits(self, source: Source, rows: Tensor, condition: Condition, turn: int = 0) -> Tensor:
        """Logits (N, K), on the CPU, on `rows` of `source` under a condition; `turn` counts passes."""
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        together = self.batch_size if condition.attacks else BLOCK
        purpose, blocks = f"{condition.on}/{condition.severity}", rows.split(BLOCK)
        found: list[Tensor] = []
        for number, block in enumerate(self._batches(source, blocks)):
            generator = generator_for(self.seed, purpose, turn * len(blocks) + number)
            images, labels = (to_device(part, device).split(together) for part in block)
            for some, classes in zip(images, labels, strict=True):
                moved = model_input(some, self.model)
                if condition.move is not None:
                    moved = condition.move(self.model, moved, classes, generator)
                with eval_mode(self.model), torch.no_grad():
                    found += [self.model(batch).float().cpu() for batch in moved.split(self.batch_size)]
        return torch.cat(found)

    def _batches(self, source: Source, rows: Sequence[Tensor]) -> Iterator[feed.Batch]:
        plain, change = (source.source, source.change) if isinstance(source, Made) else (source, None)
        changes = change is not None
        if changes not in self._feeds or self._feeds[changes].source is not plain:
            self._feeds[changes] = feed.Feed(plain, self.workers, changes)
        return self._feeds[changes].batches(rows, change=change)


@dataclass(frozen=True)
class Fitted:
    """Temperatures by their name, T and TA, and what was seen of the augmented validation images."""

    scalings: dict[str, TemperatureScaling] = field(default_factory=dict)
    augmented: Calibration | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def temperatures(self) -> dict[str, float]:
        return {name: float(scaling.temperature) for name, scaling in self.scalings.items()}


def fit_temperatures(
    predictor: Predictor,
    validation: Source,
    augment: Augmentation | None,
    *,
    clean: bool = True,
    bins: int = 15,
) -> Fitted:
    """T if `clean`, and TA if there is an augmentation: on its own draws, at least 5,000 views of them.

    Each validation image is drawn once per pass; the views are the same for every network of that seed.
    """
    if len(validation) == 0:
        return Fitted(notes=["There are no validation images, so no temperature was fitted."])
    asked = {T: (Condition("clean"), 1)} if clean else {}
    if augment is not None:
        passes = min(MOST_PASSES, math.ceil(VIEWS / len(validation)))

        def augmented(model: nn.Module, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
            return augment(images, labels, model, generator=generator).images

        asked[TA] = (Condition("augmented", augmented, attacks=True), passes)
    rows, fitted, seen = torch.arange(len(validation)), Fitted(), None
    for name, (condition, passes) in asked.items():
        turns = [predictor.logits(validation, rows, condition, turn) for turn in range(passes)]
        logits, labels = torch.cat(turns), validation.labels.repeat(passes)
        if name == TA:
            seen = Calibration(bins=bins)
            seen.update_logits(logits.double(), labels)
        try:
            fitted.scalings[name] = TemperatureScaling().fit(logits, labels)
        except UserError as error:
            fitted.notes.append(f"No temperature {name} was fitted: {error}")
    return Fitted(fitted.scalings, seen, fitted.notes)
