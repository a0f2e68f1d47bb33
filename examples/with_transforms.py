"""Transforms of other libraries: three of albumentations as one augmentation, whose labels are learned."""

from __future__ import annotations

import albumentations as A
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from auglabel import AugmentAndLabel
from auglabel.data.embedded import load_embedded
from auglabel.integrations.transforms import AlbumentationsTransforms
from auglabel.models.small import SmallNet


def main(epochs: int = 3, rows: int = 1000) -> Tensor:
    """Train; the label confidence of each bucket."""
    data = load_embedded()
    train_loader = DataLoader(TensorDataset(data.train.images[:rows], data.train.labels[:rows]), 50, True)
    val_loader = DataLoader(TensorDataset(*data.validation), batch_size=500)
    model = SmallNet(num_classes=10, mean=[0.286], std=[0.353])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    # From a strength, in (0, 1], to a transform of that strength; p=1, since the bucket says it was applied.
    augment = AlbumentationsTransforms(
        {
            "noise": lambda strength: A.GaussNoise(std_range=(strength / 2, strength / 2), p=1),
            "rotate": lambda strength: A.Rotate(limit=(-90 * strength, 90 * strength), p=1),
            "downscale": lambda strength: A.Downscale(
                scale_range=(1 - 0.9 * strength, 1 - 0.9 * strength), p=1
            ),
        },
        levels=5,
    )
    learned = AugmentAndLabel(augment, num_classes=10, alpha=0.1)

    for _ in range(epochs):
        model.train()
        for images, labels in train_loader:
            moved, targets = learned(images, labels)
            loss = F.cross_entropy(model(moved), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        learned.update(model, val_loader)
    for kind, row in zip(augment.grid.kinds, learned.table.split(5), strict=True):
        print(f"{kind:9} label confidence, weak to strong: {' '.join(f'{c:.3f}' for c in row.tolist())}")
    return learned.table


if __name__ == "__main__":
    main()
