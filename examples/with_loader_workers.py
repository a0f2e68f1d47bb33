"""Images moved in a loader's worker processes: buckets travel with them, and targets are made at home."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from auglabel import AugmentAndLabel, AugMix
from auglabel.data.embedded import load_embedded
from auglabel.integrations.loader import MovedSet, views
from auglabel.models.small import SmallNet


def main(epochs: int = 3, workers: int = 2, rows: int = 1000) -> Tensor:
    """Train; the label confidence of each bucket, which is the same with any number of workers."""
    torch.manual_seed(0)
    data = load_embedded()
    learned = AugmentAndLabel(AugMix(), num_classes=10, alpha=0.02)
    moved = MovedSet(TensorDataset(data.train.images[:rows], data.train.labels[:rows]), learned.augment)
    order = torch.Generator().manual_seed(0)
    train_loader = DataLoader(moved, batch_size=50, shuffle=True, num_workers=workers, generator=order)
    val_loader = DataLoader(TensorDataset(*data.validation), batch_size=500)
    model = SmallNet(num_classes=10, mean=[0.286], std=[0.353])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    for epoch in range(epochs):
        model.train()
        for view in views(train_loader, epoch):
            loss = F.cross_entropy(model(view.images), learned.policy(view))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        learned.update(model, val_loader)
        table = learned.table
        print(f"epoch {epoch + 1}: label confidence {table.mean():.3f}, lowest {table.min():.3f}")
    return learned.table


if __name__ == "__main__":
    main()
