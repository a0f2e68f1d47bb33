"""Measure a model on views: the numbers that steer training and those in the results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Generator, Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.calibration import Calibration
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import as_labels, kind_of, require_whole
from auglabel.util.inference import eval_mode, model_input, unwrapped
from auglabel.util.randomness import to_device
from auglabel.util.ranks import distributed, rank_and_world
from auglabel.view import View

GOLDEN = (math.sqrt(5) - 1) / 2
Batches = Iterable[tuple[Tensor, Tensor]]


@torch.no_grad()
def measure(model: nn.Module, views: Iterable[View], groups: int = 1, bins: int = 15) -> Calibration:
    """Add the model's predictions on `views` into one table, grouped by bucket, summed over ranks.

    The model is called with floating point in [0, 1], also where the views are bytes, and gives logits. It is
    in evaluation mode meanwhile, and left as it was; a distributed one is measured without its wrapper.
    """
    model = unwrapped(model)
    seen = Calibration(groups, bins)
    with eval_mode(model):
        for view in views:
            seen.update_logits(model(model_input(view.images, model)), view.labels, view.bucket)
    return seen.summed_over_ranks() if distributed() else seen


def calibrate(
    model: nn.Module,
    augment: Augmentation,
    loader: Batches,
    *,
    visits: int | None = None,
    turn: int = 0,
    bins: int = 15,
    generator: Generator | None = None,
) -> Calibration:
    """Calibration of `model` on every bucket of `augment`, over the validation set.

    `loader` yields (images, labels) and nothing else; under several ranks, each rank's own share. The paper
    measures every image in every bucket; see `every_bucket` for the cheaper `visits`.
    """
    views = every_bucket(model, augment, loader, visits=visits, turn=turn, generator=generator)
    seen = measure(model, views, groups=len(augment.grid), bins=bins)
    if not seen.count.any():
        raise UserError("calibrate needs validation images, but the loader gave none.")
    return seen


@torch.no_grad()
def every_bucket(
    model: nn.Module,
    augment: Augmentation,
    loader: Batches,
    *,
    visits: int | None = None,
    turn: int = 0,
    clean: bool = False,
    generator: Generator | None = None,
) -> Iterator[View]:
    """Views of the loader's images inside the buckets of `augment`, on the model's device.

    Each image visits all buckets, or `visits` of them in rotation. Successive images take successive places
    of a round through all buckets, in which neighbouring levels lie apart and so get other images. In each
    turn buckets get equally many, give or take one; with `turn` counted up (once an epoch) all move on, until
    each image has been everywhere. Under several ranks, rank r of w is taken to hold images r, r + w, ... of
    the set. With `clean` each image is also seen as it is, in a bucket after the last. Lazy: one view is
    alive at a time.
    """
    buckets = len(augment.grid)
    visits = buckets if visits is None else visits
    require_whole("visits", visits, 1, buckets)
    require_whole("turn", turn, 0)
    model = unwrapped(model)
    device = _device(model)
    place, ranks = rank_and_world()
    step, start = (round_step(buckets), round_start(turn, buckets)) if visits < buckets else (1, 0)
    for images, labels in map(pair, loader):
        images, labels = to_device(images, device), to_device(as_labels(labels), device)
        first = start + visits * (place + ranks * torch.arange(len(images)))
        for visit in range(visits):
            bucket = step * (first + visit) % buckets
            yield augment(images, labels, model, bucket=bucket, generator=generator)
        if clean:
            nothing = torch.zeros(len(images), device=device)
            yield View(images, labels, torch.full_like(labels, buckets), nothing)
        place += ranks * len(images)


def pair(batch: object) -> tuple[Tensor, Tensor]:
    """Check that a batch is (images, labels) and nothing else; returns the two."""
    if isinstance(batch, tuple | list) and [isinstance(part, Tensor) for part in batch] == [True, True]:
        return batch[0], batch[1]
    picked = "batch[0], batch[1]"
    if isinstance(batch, Mapping):
        came, picked = f"a dictionary of {', '.join(map(str, batch))}", 'batch["image"], batch["label"]'
    elif isinstance(batch, tuple | list):
        came = f"a {type(batch).__name__} of {', '.join(type(part).__name__ for part in batch[:9])}"
    else:
        came = kind_of(batch)
    raise UserTypeError(
        f"the loader must yield two tensors, (images, labels), got {came}. "
        f"Pick the two, by the names or places that they have: (({picked}) for batch in loader)."
    )


def round_step(buckets: int) -> int:
    """Step between successive buckets of a round: nearest to the golden ratio, and coprime to `buckets`."""
    steps = (step for step in range(1, buckets + 1) if math.gcd(step, buckets) == 1)
    return min(steps, key=lambda step: abs(step - GOLDEN * buckets))


def round_start(turn: int, buckets: int) -> int:
    """Position in the round at which a turn begins; golden-ratio steps spread the turns evenly."""
    return int(turn * GOLDEN % 1 * buckets)


def turns_to_see_all(buckets: int, images: int, visits: int) -> int:
    """Number of turns of `every_bucket` until each bucket has been visited by an image."""
    require_whole("buckets", buckets, 1)
    require_whole("images", images, 1)
    require_whole("visits", visits, 1)
    window = torch.arange(min(images * visits, buckets))
    unseen = torch.ones(buckets, dtype=torch.bool)
    turns = 0
    while unseen.any():
        unseen[(round_start(turns, buckets) + window) % buckets] = False  # places, each a bucket of its own
        turns += 1
    return turns


def _device(model: nn.Module) -> torch.device:
    return next(itertools.chain(model.parameters(), model.buffers(), [torch.empty(0)])).device
