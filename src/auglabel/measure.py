"""Measure a model on views: the numbers that steer training and those in the results."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import torch
from torch import Generator, Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.calibration import Calibration
from auglabel.checks import require_whole
from auglabel.modes import evaluating, unwrapped
from auglabel.view import View

Batches = Iterable[tuple[Tensor, Tensor]]


@torch.no_grad()
def measure(model: nn.Module, views: Iterable[View], groups: int = 1, bins: int = 15) -> Calibration:
    """Add the model's predictions on `views` into one table, grouped by bucket, summed over ranks.

    The model's outputs are logits. It is in evaluation mode meanwhile, and left as it was; a distributed
    one is measured without its wrapper.
    """
    model = unwrapped(model)
    seen = Calibration(groups, bins)
    with evaluating(model):
        for view in views:
            seen.update_logits(model(view.images), view.labels, view.bucket)
    return seen.summed_over_ranks()


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

    `loader` yields (images, labels); under several ranks, each rank's own share. The paper measures
    every image in every bucket; see `every_bucket` for the cheaper `visits`.
    """
    views = every_bucket(model, augment, loader, visits=visits, turn=turn, generator=generator)
    seen = measure(model, views, groups=len(augment.grid), bins=bins)
    if not seen.count.any():
        raise ValueError("calibrate needs validation images, but the loader gave none.")
    return seen


@torch.no_grad()
def every_bucket(
    model: nn.Module,
    augment: Augmentation,
    loader: Batches,
    *,
    visits: int | None = None,
    turn: int = 0,
    generator: Generator | None = None,
) -> Iterator[View]:
    """Views of the loader's images inside the buckets of `augment`, on the model's device.

    Each image visits all buckets, or `visits` of them: successive images take successive buckets,
    so buckets get equally many, and with `turn` counted up (once an epoch) each image moves on until
    it has been everywhere. Lazy: one view is alive at a time.
    """
    buckets = len(augment.grid)
    visits = buckets if visits is None else visits
    require_whole("visits", visits, 1, buckets)
    require_whole("turn", turn, 0)
    model = unwrapped(model)
    device = _device(model)
    start = turn * visits
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        first = start + visits * torch.arange(len(images), device=device)
        for visit in range(visits):
            yield augment(images, labels, model, bucket=(first + visit) % buckets, generator=generator)
        start += visits * len(images)


def _device(model: nn.Module) -> torch.device:
    return next(itertools.chain(model.parameters(), model.buffers(), [torch.empty(0)])).device
