"""Lightning: a callback that moves each training batch and learns its labels.

    from auglabel.integrations.lightning import LightningCallback, AugMix
    trainer = Trainer(callbacks=[LightningCallback(AugMix(), num_classes=10)])

The module's `training_step` gets soft targets (B, K) in the place of labels, which `F.cross_entropy` takes;
`validation_step` and `test_step` get what they always got. The module's `forward` gives logits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.randaug import RandAug
from auglabel.augment_and_label import AugmentAndLabel
from auglabel.errors import UserError, UserTypeError
from auglabel.integrations.common import UpdateLog, learned_for, own_share
from auglabel.util.checks import kind_of
from auglabel.util.extras import extra_module

extra_module("lightning.pytorch", "auglabel.integrations.lightning needs Lightning", "lightning")
from lightning.pytorch import LightningModule, Trainer  # noqa: E402
from lightning.pytorch.callbacks import Callback  # noqa: E402

__all__ = ["AugMix", "AugmentAndLabel", "LightningCallback", "RandAug"]

Key: TypeAlias = int | str


class LightningCallback(Callback):
    """Replaces training batches on the device, and updates the labels at the end of each training epoch.

    The update uses `loader`, or else the trainer's validation loader; every rank measures its own share. It
    comes before the epoch's checkpoint, which holds the labels' state. `keys` says where images and labels
    are in a batch: (0, 1) in a list, or names such as ("image", "label") in a dictionary. `mean` and `std`
    are for images that are normalised already. Each update is logged as `auglabel/label_confidence`, the mean
    of the table, `auglabel/gap` and `auglabel/share_of_time`. Other options are those of `AugmentAndLabel`,
    which may come instead of an augmentation.
    """

    def __init__(
        self,
        augment: Augmentation | AugmentAndLabel,
        num_classes: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        loader: Iterable[Any] | None = None,
        keys: tuple[Key, Key] = (0, 1),
        **options: Any,
    ) -> None:
        self.learned = learned_for(augment, num_classes, alpha, mean, std, options)
        self.loader, self.keys = loader, keys
        self.epoch = -1  # the last whose update is done

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == "fit":
            self.log_of_updates = UpdateLog()
            self.epoch = -1  # a checkpoint, if there is one, is loaded after this

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.learned.to(pl_module.device)
        if trainer.max_epochs is not None and trainer.max_epochs > 0:
            self.learned.expect(trainer.max_epochs)
        if self.learned.policy.adaptive:
            if self.loader is None and trainer.val_dataloaders is None and trainer.enable_validation:
                trainer.validating = True  # the first validation may come later than the first update
                trainer.fit_loop.epoch_loop.val_loop.setup_data()
                trainer.training = True
            self._loader(trainer)  # says so if there is none

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        images, labels = self._parts(batch)
        if not isinstance(batch, list | dict):
            raise UserTypeError(
                "LightningCallback puts images and labels back into the batch, which must be a list or a "
                f"dictionary, got a {type(batch).__name__}: let the loader's collate_fn return a list."
            )
        moved = self.learned(images, labels, pl_module)
        for key, part in zip(self.keys, moved, strict=True):
            batch[key] = part  # type: ignore[index]

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """After an epoch's last batch: before validation, whose loader is free now, and the checkpoint."""
        if trainer.is_last_batch:
            self._update(trainer, pl_module)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._update(trainer, pl_module)

    def _update(self, trainer: Trainer, module: LightningModule) -> None:
        if self.epoch == trainer.current_epoch or not self.learned.policy.adaptive:
            return
        self.epoch = trainer.current_epoch
        with torch.inference_mode(False), trainer.precision_plugin.forward_context():
            values = self.log_of_updates.update(self.learned, module, self._validation(trainer, module))
        several = trainer.world_size > 1
        module.log_dict(values, on_step=False, on_epoch=True, batch_size=1, sync_dist=several)

    def _validation(self, trainer: Trainer, module: LightningModule) -> Iterator[tuple[Tensor, Tensor]]:
        """This rank's (images, labels) of the validation set, none of them twice, as the module gets them."""

        def handed(batch: Any) -> tuple[Tensor, Tensor]:
            batch = trainer.precision_plugin.convert_input(batch)
            batch = module._on_before_batch_transfer(batch, dataloader_idx=0)
            return self._parts(trainer.strategy.batch_to_device(batch, module.device, dataloader_idx=0))

        loader = self._loader(trainer)
        limit = trainer.num_val_batches[0] if self.loader is None else None
        stop = limit if isinstance(limit, int) else None  # infinity: all
        return own_share(loader, map(handed, itertools.islice(loader, stop)))

    def _loader(self, trainer: Trainer) -> Iterable[Any]:
        loader: Any = trainer.val_dataloaders if self.loader is None else self.loader
        if isinstance(loader, list | tuple) and len(loader) == 1:
            (loader,) = loader
        if loader is None or isinstance(loader, list | tuple | dict):
            there = "the trainer has none" if loader is None else f"there are {len(loader)}"
            raise UserError(
                f"LightningCallback learns from one validation loader, but {there}: "
                "pass LightningCallback(..., loader=val_loader)."
            )
        found: Iterable[Any] = loader
        return found

    def _parts(self, batch: Any) -> tuple[Tensor, Tensor]:
        try:
            images, labels = (batch[key] for key in self.keys)
        except (KeyError, IndexError, TypeError):
            has = list(batch) if isinstance(batch, dict) else kind_of(batch)
            raise UserError(
                f"a batch must hold images and labels at keys {self.keys}, got {has}: "
                'pass LightningCallback(..., keys=("image", "label")) with the right names.'
            ) from None
        return images, labels

    def state_dict(self) -> dict[str, Any]:
        return {"learned": self.learned.state_dict(), "epoch": self.epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.learned.load_state_dict(state_dict["learned"])
        self.epoch = state_dict["epoch"]
