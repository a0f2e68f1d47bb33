"""What several integrations share: making and logging labels, and each rank's share of a loader."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from torch import Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.augment_and_label import AugmentAndLabel
from auglabel.errors import UserError, UserTypeError
from auglabel.labels import LabelPolicy, TablePolicy
from auglabel.measure import Batches, pair
from auglabel.util.ranks import rank_and_world

Batch = tuple[Tensor, Tensor]


class UpdateLog:
    """Updates labels, and says what a training log should have of that: see `update`."""

    def __init__(self) -> None:
        self.start, self.measuring = time.perf_counter(), 0.0

    def update(self, learned: AugmentAndLabel, model: nn.Module, loader: Batches) -> dict[str, float]:
        """Mean label confidence after the update, the gap it saw, and the share of the time that went to it.

        The gap is confidence less accuracy on the augmented validation images: above 0, over-confident.
        """
        start = time.perf_counter()
        seen = learned.update(model, loader)
        now = time.perf_counter()
        self.measuring += now - start
        if seen is None:
            return {}
        count, confidence, correct = seen.sums[:3].sum(dim=(1, 2)).tolist()
        values = {"auglabel/gap": (confidence - correct) / count}
        values["auglabel/share_of_time"] = self.measuring / (now - self.start)
        if isinstance(learned.policy, TablePolicy):
            values["auglabel/label_confidence"] = learned.table.mean().item()
        return values


def learned_for(
    augment: Augmentation | AugmentAndLabel,
    num_classes: int | None,
    alpha: float | Literal["auto"],
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    options: dict[str, Any],
    sees: bool = False,
) -> AugmentAndLabel:
    """`augment`, or an AugmentAndLabel made of it; `mean` and `std` are of normalised images.

    `sees` says that the integration hands predictions on training batches to `policy.see`.
    """
    if not isinstance(augment, AugmentAndLabel):
        augment = AugmentAndLabel(augment, num_classes, alpha, mean=mean, std=std, **options)
    elif num_classes is not None or alpha != "auto" or mean is not None or std is not None or options:
        raise UserTypeError("an AugmentAndLabel comes with its options; give them where it is made.")
    _require_possible(augment.policy, sees)
    return augment


def _require_possible(policy: LabelPolicy, sees: bool) -> None:
    blind = not sees and type(policy).see is not LabelPolicy.see
    if blind or policy.needs_prediction:
        images = "clean images" if policy.needs_prediction else "training images"
        raise UserError(
            f"{type(policy).__name__} needs predictions on {images}, which this integration does not have: "
            "take AutoLabel, or write the loop with AugmentAndLabel."
        )


def own_share(loader: object, batches: Iterable[Batch]) -> Iterator[Batch]:
    """This rank's share of the `batches` of `loader`; no image is in two shares or in one twice.

    Rank r of w takes images r, r + w, ...: out of all, or, where a distributed sampler deals them out,
    without those that it repeats at the end so that every rank gets equally many.
    """
    rank, world = rank_and_world()
    if world == 1:
        yield from batches
    elif hasattr(getattr(loader, "sampler", None), "num_replicas"):
        yield from _first(batches, len(range(rank, len(loader.dataset), world)))  # type: ignore[attr-defined]
    else:
        start = 0
        for images, labels in map(pair, batches):
            rows = slice((rank - start) % world, None, world)
            start += len(labels)
            if len(labels[rows]):
                yield images[rows], labels[rows]


def _first(batches: Iterable[Batch], count: int) -> Iterator[Batch]:
    for images, labels in map(pair, batches):
        if count <= 0:
            return
        yield images[:count], labels[:count]
        count -= len(labels)
