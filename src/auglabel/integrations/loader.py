"""Move images in a loader's worker processes; their buckets travel with them.

    loader = DataLoader(MovedSet(train_set, augment), batch_size=64, shuffle=True, num_workers=4)
    for view in views(loader, epoch):
        loss = F.cross_entropy(model(view.images), policy(view))

Workers never see the labels' table: targets are made from the buckets in the main process, by the newest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset

from auglabel.augment.base import Augmentation
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import kind_of, require_whole
from auglabel.view import View

Example = tuple[Tensor, ...]  # image, label, bucket, strength and, if the view has it, the visible share


class MovedSet(Dataset[Example]):
    """A data set of (image, label) with every image moved: (image, label, bucket, strength).

    The visible share follows where the augmentation says it, as `Erasing` does.
    How an image is moved is decided by `seed`, the epoch and its row: not by the batch, nor by which worker
    reads it. Augmentations that take a whole batch or the model, such as mixup and attacks, cannot work here.
    """

    def __init__(self, dataset: Any, augment: Augmentation, seed: int = 0) -> None:
        require_whole("seed", seed, 0)
        self.dataset, self.augment, self.seed = dataset, augment, seed
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # workers that stay see it change

    def set_epoch(self, epoch: int) -> None:
        """Draw anew; every epoch is the first until this is called."""
        require_whole("epoch", epoch, 0)
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> Example:
        image, label = self.dataset[row]
        if not isinstance(image, Tensor):
            raise UserTypeError(
                f"MovedSet takes images as tensors (C, H, W) in [0, 1] or bytes, got {kind_of(image)}."
            )
        words = f"{self.seed}/{int(self._epoch)}/{row}".encode()
        seed = int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "big") >> 1
        view = self.augment(image[None], torch.tensor([int(label)]), generator=Generator().manual_seed(seed))
        if view.partner is not None:
            raise UserError(
                f"{type(self.augment).__name__} mixes images of one batch, but MovedSet moves one at a time: "
                "move the loader's batches in your loop instead."
            )
        parts = (view.images, view.labels, view.bucket, view.strength, view.visible)
        return tuple(part[0] for part in parts if part is not None)


def views(loader: DataLoader[Example], epoch: int) -> Iterator[View]:
    """The loader's batches in that epoch, as views."""
    if not isinstance(loader.dataset, MovedSet):
        raise UserTypeError(f"views takes a loader of a MovedSet, got one of {kind_of(loader.dataset)}.")
    loader.dataset.set_epoch(epoch)
    for images, labels, bucket, strength, *visible in loader:
        yield View(images, labels, bucket, strength, visible=visible[0] if visible else None)
