"""Beyond pictures: time series with noise as the distance. Only the augmentation is new.

Four kinds of waves, 64 readings each, are told apart by a small network that trains on copies with noise of
random strength. One-hot labels make it over-confident on noisy series; AutoLabel learns how sure a label
should be at each strength.
"""

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from auglabel import Augmentation, AutoLabel, Distance, DistanceGrid, OneHot, Pool, View, calibrate


class Noise(Augmentation):
    """Gaussian noise with a standard deviation of up to `most`."""

    def __init__(self, most: float = 3.0, levels: int = 10) -> None:
        self.most, self.grid = most, DistanceGrid((levels,))

    def require(self, images: Tensor) -> None:
        if images.dim() != 2:
            raise ValueError(f"series must have shape (B, T), got {tuple(images.shape)}.")

    def apply(
        self,
        images: Tensor,
        labels: Tensor,
        distance: Distance,
        model: nn.Module | None,
        generator: Generator | None,
    ) -> View:
        source = images.device if generator is None else generator.device  # where numbers are drawn
        noise = torch.randn(images.shape, device=source, generator=generator)
        noisy = images + self.most * distance.strength[:, None] * noise.to(images.device)
        return View(noisy, labels, distance.bucket, distance.strength)


def waves(count: int, seed: int) -> TensorDataset:
    """Sines, squares, triangles and saw teeth of random pitch and phase."""
    generator = Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=generator)
    pitch, phase = torch.rand(2, count, 1, generator=generator)
    turn = ((2 + 2 * pitch) * torch.linspace(0, 1, 64) + phase) % 1
    sine = torch.sin(2 * math.pi * turn)
    shapes = torch.stack([sine, sine.sign(), 1 - 4 * (turn - 0.5).abs(), 2 * turn - 1])
    return TensorDataset(shapes[labels, torch.arange(count)], labels)


def main(epochs: int = 100) -> dict[str, Tensor]:
    """Train with both kinds of labels; the over-confidence at each strength of noise on fresh series."""
    train, validation, test = waves(400, 0), waves(1000, 1), waves(2000, 2)
    augment, found = Noise(), {}
    for policy in (OneHot(num_classes=4), AutoLabel(4, len(augment.grid), alpha=0.1)):
        torch.manual_seed(0)
        hidden = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
        model = nn.Sequential(*hidden, nn.Linear(128, 4))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        pool = Pool(augment.grid)
        for epoch in range(epochs):
            for series, labels in DataLoader(train, batch_size=50, shuffle=True):
                view = augment(series, labels, model)
                loss = F.cross_entropy(model(view.images), policy(view))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if policy.adaptive:
                loader = DataLoader(validation, batch_size=500)
                policy.update(pool(calibrate(model, augment, loader, visits=2, turn=epoch), policy.table))
        seen = calibrate(model, augment, DataLoader(test, batch_size=500))
        found[type(policy).__name__] = seen.confidence - seen.accuracy
        told = " ".join(f"{100 * gap:+.0f}" for gap in found[type(policy).__name__].tolist())
        print(f"{type(policy).__name__:9} confidence - accuracy, points, faint to full noise: {told}")
    return found


if __name__ == "__main__":
    main()
