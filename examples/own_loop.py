"""AutoLabel in a plain PyTorch loop, on the embedded images."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from auglabel import AugmentAndLabel, AugMix
from auglabel.data.embedded import load_embedded
from auglabel.models.small import SmallNet


def main(epochs: int = 5) -> None:
    data = load_embedded()
    train_loader = DataLoader(TensorDataset(*data.train), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(*data.validation), batch_size=500)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = SmallNet(num_classes=10, mean=[0.286], std=[0.353]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    learned = AugmentAndLabel(AugMix(), num_classes=10, epochs=epochs).to(device)

    for epoch in range(epochs):
        model.train()
        for images, labels in train_loader:
            images, targets = learned(images.to(device), labels.to(device), model)
            loss = F.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        learned.update(model, val_loader)
        mean, lowest = learned.table.mean(), learned.table.min()
        print(f"epoch {epoch + 1}: label confidence {mean:.3f}, lowest {lowest:.3f}")


if __name__ == "__main__":
    main()
