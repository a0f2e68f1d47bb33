"""AutoLabel in timm's training loop: the three lines marked "# +" are all that it takes.

One of them stands where timm's `Mixup` is made. timm's loaders hand over normalised images, so it is told
mean and std.
"""

from __future__ import annotations

import torch
from PIL import Image
from timm import create_model
from timm.data import create_loader
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from torch import Tensor, nn
from torch.utils.data import Dataset

from auglabel.data.embedded import Split, load_embedded
from auglabel.integrations.timm import AugMix, TimmMixup  # +

MEAN, STD = (0.286,), (0.353,)


class Pictures(Dataset[tuple[Tensor, int]]):
    """PIL images, as timm's loaders take them; they set `transform`."""

    transform = staticmethod(lambda picture: picture)

    def __init__(self, split: Split) -> None:
        self.images, self.labels = split

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return self.transform(Image.fromarray(self.images[row, 0].numpy())), int(self.labels[row])


def main(epochs: int = 3, rows: int = 3000, model_name: str = "test_resnet") -> Tensor:
    """Train; the label confidence of each bucket."""
    train, validation, _ = load_embedded()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = create_model(model_name, num_classes=10, in_chans=1).to(device)
    shared = {"input_size": (1, 28, 28), "mean": MEAN, "std": STD, "num_workers": 0, "device": device}
    shared |= {"use_prefetcher": False, "crop_pct": 1.0, "persistent_workers": False}
    first = Split(train.images[:rows], train.labels[:rows])
    loader_train = create_loader(Pictures(first), batch_size=64, is_training=True, no_aug=True, **shared)
    loader_eval = create_loader(Pictures(validation), batch_size=250, **shared)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=3e-3)
    loss_fn = SoftTargetCrossEntropy()
    mixup_fn = TimmMixup(AugMix(), num_classes=10, epochs=epochs, mean=MEAN, std=STD)  # +

    for epoch in range(epochs):
        train_one_epoch(model, loader_train, optimizer, loss_fn, mixup_fn, device)
        mixup_fn.update(model, loader_eval)  # +
        table = mixup_fn.learned.table
        print(f"epoch {epoch + 1}: label confidence {table.mean():.3f}, lowest {table.min():.3f}")
    return table


def train_one_epoch(
    model: nn.Module,
    loader: torch.utils.data.DataLoader[tuple[Tensor, Tensor]],
    optimizer: torch.optim.Optimizer,
    loss_fn: nn.Module,
    mixup_fn: nn.Module,
    device: torch.device,
) -> None:
    """The heart of timm's own."""
    model.train()
    for images, labels in loader:
        images, targets = mixup_fn(images.to(device), labels.to(device))
        loss = loss_fn(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
