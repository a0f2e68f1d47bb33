"""AutoLabel in Lightning: the two lines marked "# +" are all that it takes."""

from __future__ import annotations

import logging

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from auglabel.data.embedded import load_embedded
from auglabel.integrations.lightning import AugMix, LightningCallback  # +
from auglabel.models.small import SmallNet


class Classifier(LightningModule):
    """As anyone would write it; `training_step` gets soft targets, which cross_entropy takes as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.net = SmallNet(num_classes=10, mean=[0.286], std=[0.353])

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        images, labels = batch
        return F.cross_entropy(self(images), labels)

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        images, labels = batch
        self.log("accuracy", (self(images).argmax(dim=1) == labels).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9, nesterov=True)


def main(epochs: int = 3, root: str = "runs/with_lightning") -> Tensor:
    """Train; the label confidence of each bucket."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    data = load_embedded()
    train_loader = DataLoader(TensorDataset(*data.train), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(*data.validation), batch_size=500)
    trainer = Trainer(
        max_epochs=epochs,
        default_root_dir=root,
        callbacks=[LightningCallback(AugMix(), num_classes=10)],  # +
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), train_loader, val_loader)
    callbacks = trainer.callbacks  # type: ignore[attr-defined]
    table: Tensor = next(each for each in callbacks if isinstance(each, LightningCallback)).learned.table
    print(f"accuracy {100 * trainer.callback_metrics['accuracy']:.1f} %")
    print(f"label confidence {table.mean():.3f}, lowest {table.min():.3f}")
    return table


if __name__ == "__main__":
    main()
