"""Hugging Face's Trainer: a collator, a loss and a callback, which one object has.

    labels = TransformersCallback(
        AugMix(), num_classes, validation=eval_dataset, mean=MEAN, std=STD
    )
    trainer = Trainer(
        ...,
        train_dataset=labels.training(train_dataset),
        data_collator=labels.collate,
        compute_loss_func=labels.loss,
        callbacks=[labels],
    )

Training images are moved as their batch is put together, in the loader's workers if there are any. What
decides their targets travels in the place of the labels, (B, 6), so that the loss looks up the newest table.
An image without a label (`ignore_index`) has a row of -100, which neither the loss nor Trainer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.randaug import RandAug
from auglabel.augment_and_label import AugmentAndLabel, some_label
from auglabel.errors import UserError, UserTypeError
from auglabel.integrations.common import Batch, UpdateLog, learned_for
from auglabel.util.checks import kind_of
from auglabel.util.extras import extra_module
from auglabel.util.inference import unwrapped
from auglabel.util.ranks import rank_and_world
from auglabel.view import View

extra_module("transformers", "auglabel.integrations.transformers needs Transformers", "transformers")
from transformers import TrainerCallback, default_data_collator  # noqa: E402

__all__ = ["AugMix", "AugmentAndLabel", "RandAug", "TransformersCallback"]

STATE = "auglabel"  # under this name the state is in a checkpoint's trainer_state.json
ENDLESS = 10**6  # epochs: what Trainer has for data of unknown length is more
NOBODY = -1  # the partner of an image that none was mixed into
UNKNOWN = -1  # the visible share where the augmentation does not say it
UNLABELLED = -100  # what Trainer does not count


class TrainingLabel(int):
    """The label of an image that is to be moved."""


class TrainingSet(Dataset[dict[str, Any]]):
    """A data set whose labels say that they are for training: one collator serves evaluation, too."""

    def __init__(self, dataset: Any, label: str) -> None:
        self.dataset, self.label = dataset, label

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> dict[str, Any]:
        example = dict(self.dataset[row])
        if self.label not in example:
            raise KeyError(f'an example must have a label "{self.label}", but it has: {", ".join(example)}.')
        return example | {self.label: TrainingLabel(example[self.label])}


class TransformersCallback(TrainerCallback):
    """Moves training batches, gives their loss, and updates the labels at the end of each epoch.

    `validation` is the data set to learn from; each process measures its own share of it. The update comes
    before the epoch's checkpoint, whose trainer_state.json holds the labels' state: `resume_from_checkpoint`
    goes on with it. `mean` and `std` are those of the image processor, whose images are normalised; examples
    have `pixel_values` and `labels` unless `keys` says otherwise. Each update is in the trainer's
    `log_history` as `auglabel/label_confidence`, the mean of the table, `auglabel/gap` and
    `auglabel/share_of_time`, and in what callbacks after this one log. Other options are those of
    `AugmentAndLabel`.
    """

    def __init__(
        self,
        augment: Augmentation | AugmentAndLabel,
        num_classes: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        validation: Any,
        batch_size: int = 64,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        keys: tuple[str, str] = ("pixel_values", "labels"),
        collator: Callable[[list[Any]], Mapping[str, Any]] = default_data_collator,
        **options: Any,
    ) -> None:
        self.learned = learned_for(augment, num_classes, alpha, mean, std, options, sees=True)
        self.log_of_updates, self.unlogged = UpdateLog(), dict[str, float]()
        self.validation, self.batch_size, self.keys, self.collator = validation, batch_size, keys, collator

    def training(self, dataset: Any) -> TrainingSet:
        """The same examples, marked as training examples, which `collate` augments."""
        return TrainingSet(dataset, self.keys[1])

    def collate(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch; if of training examples, with images moved and, for labels, rows that decide targets."""
        image, label = self.keys
        batch = dict(self.collator(examples))
        if any(isinstance(example.get(label), TrainingLabel) for example in examples):
            name = self._labels_in(batch)
            view = self.learned.augment(batch[image], batch[name])
            batch |= {image: view.images, name: rows_of(view, self.learned.ignore_index)}
        return batch

    def _labels_in(self, batch: Mapping[str, Any]) -> str:
        """Where a batch has its labels: collators turn an example's "label" into "labels"."""
        return self.keys[1] if self.keys[1] in batch else "labels"

    def loss(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """Cross-entropy against the targets of the rows, or against plain labels; for `compute_loss_func`."""
        logits = logits_of(outputs)
        self.learned.to(logits.device)
        ignored = self.learned.ignore_index
        if ignored is not None:
            known = labels[:, 0] != UNLABELLED if labels.dim() == 2 else labels != ignored
            if not known.any():  # a mean over none is no number
                return logits.sum() * 0
            logits, labels = logits[known], labels[known]
        targets = labels
        if labels.dim() == 2:
            view = view_of(labels, logits)
            targets = self.learned.policy(view)
            self.learned.policy.see(logits.detach(), view.labels)
        if num_items_in_batch is None:
            return F.cross_entropy(logits, targets)
        each = labels[:1].numel()  # Trainer counts numbers, of which a row has six
        return F.cross_entropy(logits, targets, reduction="sum") * each / num_items_in_batch

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if 0 < state.num_train_epochs < ENDLESS:
            self.learned.expect(state.num_train_epochs)
        self.log_of_updates = UpdateLog()
        found = state.stateful_callbacks.get(STATE)
        if found is not None:
            found, ours = {"frozen": False, **found}, self.learned.state_dict()  # older ones have no "frozen"
            if found.keys() != ours.keys():
                raise UserError(
                    f"the checkpoint's labels have {', '.join(found)}, but ours have {', '.join(ours)}."
                )
            dtypes = {name: value.dtype for name, value in ours.items()}
            values = {name: torch.tensor(value, dtype=dtypes[name]) for name, value in found.items()}
            self.learned.load_state_dict(values)
        self._record(state)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Update the labels; Trainer evaluates and saves after this."""
        if self.learned.policy.adaptive:
            model = Logits(others["model"], self.keys[0])
            self.unlogged = self.log_of_updates.update(self.learned, model, self._share())
            state.log_history.append({**self.unlogged, "epoch": state.epoch, "step": state.global_step})
            self._record(state)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
        """Add what the last update said, for the callbacks that come after this one."""
        if logs is not None:
            logs.update(self.unlogged)
            self.unlogged = {}

    def _record(self, state: Any) -> None:
        """Store the state as plain numbers, which JSON keeps exactly."""
        kept = {name: value.tolist() for name, value in self.learned.state_dict().items()}
        state.stateful_callbacks[STATE] = kept

    def _share(self) -> Iterator[Batch]:
        """This process's (images, labels) of the validation set."""
        rank, world = rank_and_world()
        rows = Subset(self.validation, range(rank, len(self.validation), world))
        for batch in DataLoader(rows, self.batch_size, collate_fn=self.collate):
            yield batch[self.keys[0]], batch[self._labels_in(batch)]


class Logits(nn.Module):
    """Wraps a Transformers model so that it takes images and returns logits."""

    def __init__(self, model: nn.Module, image: str) -> None:
        super().__init__()
        self.model, self.image = unwrapped(model), image

    def forward(self, images: Tensor) -> Tensor:
        return logits_of(self.model(**{self.image: images}))


def logits_of(outputs: Any) -> Tensor:
    found = outputs.get("logits") if isinstance(outputs, Mapping) else outputs
    if not isinstance(found, Tensor):
        raise UserTypeError(f"the model must give logits, got {kind_of(outputs)}.")
    return found


def rows_of(view: View, ignored: int | None = None) -> Tensor:
    """Label, bucket, strength, partner, share and visible share of each image, (B, 6) float64."""
    if ignored is not None:
        known, view = some_label(view, ignored)
        return rows_of(view).where(known[:, None], UNLABELLED)
    partner = torch.full_like(view.labels, NOBODY) if view.partner is None else view.partner
    share = torch.zeros_like(view.strength) if view.share is None else view.share
    visible = torch.full_like(view.strength, UNKNOWN) if view.visible is None else view.visible
    parts = (view.labels, view.bucket, view.strength, partner, share, visible)
    return torch.stack([part.double() for part in parts], dim=1)


def view_of(rows: Tensor, images: Tensor) -> View:
    """The view that `rows_of` encoded; `images` may be any tensor of that length."""
    label, bucket, strength, partner, share, visible = rows.unbind(dim=1)
    mixed = bool((partner != NOBODY).any())
    return View(
        images,
        label.long(),
        bucket.long(),
        strength.float(),
        partner.long() if mixed else None,
        share.float() if mixed else None,
        visible=None if bool((visible == UNKNOWN).any()) else visible.float(),
    )
