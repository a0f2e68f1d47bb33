"""Our corruptions beside imagecorruptions-imaug's, with ImageNet's figures: pixels, and a network's accuracy.

`change` compares the pictures: pixel by pixel where nothing is random, else the mean, the variance and the
power spectrum of the change, each with the standard error of the difference over pictures. `accuracy` trains
a small network on CIFAR-10 at the given size and tests it on both. Results go to --out, one JSON line per
type and severity; what is there is not done again. The summary is printed.

Elastic differs by definition, and so is left out of the largest differences: theirs has no affine part and
other figures. Frost is laid over from the peer's photographs, of which it takes six and we, as the published
code does, five: `--five` keeps it to the five, too.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from corrupt_peer import Peer
from PIL import Image
from torch import Tensor, nn

from auglabel.augment.clean import crop_and_flip
from auglabel.corrupt import SUITES, corrupt
from auglabel.models.small import SmallNet

FIXED = (
    "contrast",
    "brightness",
    "saturate",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
)
ELSEWHERE = "elastic_transform"  # another definition there
BANDS = 6  # of equal ratio, from 1 cycle per picture to half a cycle per pixel
SEED, BATCH = 0, 64
Cell = dict[str, Any]


def folder(where: Path, count: int | None = None) -> tuple[Tensor, Tensor]:
    """Pictures (N, 3, H, W) uint8 and labels of a folder of class folders, `count` in all, of every class."""
    classes = sorted(path for path in where.iterdir() if path.is_dir())
    each = None if count is None else math.ceil(count / len(classes))
    files = [(file, label) for label, path in enumerate(classes) for file in sorted(path.iterdir())[:each]]
    pixels = np.stack([np.array(Image.open(file).convert("RGB")) for file, _ in files])
    order = torch.randperm(len(files), generator=torch.Generator().manual_seed(SEED))[:count]
    labels = torch.tensor([label for _, label in files])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2)[order], labels[order]


def resized(images: Tensor, size: int) -> Tensor:
    """Bicubic, as bytes."""
    options = {"mode": "bicubic", "align_corners": False, "antialias": True}
    large = [F.interpolate(some.float(), (size, size), **options) for some in images.split(BATCH)]
    return torch.cat([some.round().clamp(0, 255).to(torch.uint8) for some in large])


# The change of the pictures.


def change(clean: Tensor, ours: Tensor, peer: Tensor, name: str) -> Cell:
    if name in FIXED:
        apart = (ours.int() - peer.int()).abs().double()
        shares = {f"above_{level}": (apart > level).double().mean().item() for level in (0, 1, 4)}
        return {"largest": apart.max().item(), "mean": apart.mean().item(), **shares}
    left, right = (((made.double() - clean) / 255) for made in (ours, peer))
    facts = {"mean": mean_of, "variance": variance_of}
    found = {what: compared(of(left), of(right)) for what, of in facts.items()}
    bands = [compared(*pair) for pair in zip(spectrum(left).T, spectrum(right).T, strict=True)]
    return {**found, "decibels": bands}


def mean_of(change: Tensor) -> Tensor:
    return change.mean(dim=(1, 2, 3))


def variance_of(change: Tensor) -> Tensor:
    return change.var(dim=(1, 2, 3))


def spectrum(change: Tensor) -> Tensor:
    """Decibels (N, bands) of the power of the change, over the noise that rounding to bytes makes."""
    side = change.shape[-1]
    power = torch.fft.fft2(change, norm="ortho").abs().square().mean(dim=1)
    frequency = torch.fft.fftfreq(side, dtype=torch.float64)
    radius = torch.hypot(frequency[:, None], frequency)
    edges = torch.logspace(math.log10(1 / side), math.log10(0.5), BANDS + 1, dtype=torch.float64)
    band = torch.bucketize(radius, edges * (1 - 1e-9), right=True) - 1  # -1: the mean
    means = [power[:, band == number].mean(dim=1) for number in range(BANDS)]
    return 10 * (1 + torch.stack(means, dim=1) * (12 * 255**2)).log10()


def compared(left: Tensor, right: Tensor) -> dict[str, float]:
    """Means over pictures, ours and the peer's; their difference, and the standard error of it."""
    apart = left - right
    facts = {"ours": left.mean(), "peer": right.mean(), "difference": apart.mean()}
    error = apart.std() / math.sqrt(len(apart))
    return {name: value.item() for name, value in {**facts, "error": error}.items()}


def changes_summary(cells: list[Cell]) -> dict[str, Any]:
    """The worst severity of each type: of those without draws in levels, else in standard errors too."""
    summary: dict[str, Any] = {}
    for cell in cells:
        kept = summary.setdefault(cell["name"], {})
        for what, value in worst(cell).items():
            kept[what] = max(kept.get(what, 0), round(value, 4))
    return summary


def worst(cell: Cell) -> dict[str, float]:
    if cell["name"] in FIXED:
        return {what: cell[what] for what in ("largest", "mean", "above_1")}
    mean, variance, bands = cell["mean"], cell["variance"], cell["decibels"]
    return {
        "mean, levels": 255 * abs(mean["difference"]),
        "mean, errors": in_errors(mean),
        "variance, part": abs(variance["difference"]) / variance["peer"],
        "variance, errors": in_errors(variance),
        "spectrum, decibels": max(abs(band["difference"]) for band in bands),
        "spectrum, errors": max(in_errors(band) for band in bands),
    }


def in_errors(found: dict[str, float]) -> float:
    return abs(found["difference"]) / max(found["error"], 1e-12)


# A network's accuracy.


def network(size: int) -> nn.Module:
    """The small network behind a first layer that takes `size` / 32 pixels a side together."""
    torch.manual_seed(SEED)
    model, patch = SmallNet(10), size // 32
    first = (nn.Conv2d(3, 16, patch, patch, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
    second = (nn.Conv2d(16, 24, 4, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU(inplace=True))
    model.stem = nn.Sequential(*first, *second)
    return model


def train(model: nn.Module, images: Tensor, labels: Tensor, size: int, epochs: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    steps = epochs * math.ceil(len(labels) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, steps, pct_start=0.2, cycle_momentum=False)
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        for rows in torch.randperm(len(labels)).split(BATCH):
            some = resized(crop_and_flip(images[rows], pad=2, flip=True), size)
            loss = F.cross_entropy(model(some.float() / 255), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        spent = time.perf_counter() - start
        print(f"epoch {epoch + 1}/{epochs}: {total / len(labels):.3f}, {spent:.1f} s", file=sys.stderr)


def trained(file: Path, size: int, data: Path, epochs: int) -> nn.Module:
    """The network in `file`, or a new one that goes there."""
    model = network(size)
    if file.exists():
        model.load_state_dict(torch.load(file, weights_only=True))
    else:
        train(model, *folder(data), size, epochs)
        torch.save(model.state_dict(), file)
    return model.eval()


@torch.no_grad()
def right(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Whether each picture is classified correctly: (N,), 0 or 100, so that means are percentages."""
    scores = torch.cat([model(some.float() / 255) for some in images.split(BATCH)])
    return (scores.argmax(dim=1) == labels).double() * 100


def accuracy(
    clean: Tensor, ours: Tensor, peer: Tensor, name: str, *, model: nn.Module, labels: Tensor
) -> Cell:
    return compared(right(model, ours, labels), right(model, peer, labels))


def accuracy_summary(cells: list[Cell]) -> dict[str, Any]:
    """Percent: ours, the peer's, and the standard error of the difference, by type and severity."""
    alike = [cell for cell in cells if cell["name"] != ELSEWHERE]
    drawn = [in_errors(cell) for cell in alike if cell["name"] not in FIXED]
    table: dict[str, list[str]] = {}
    for cell in cells:
        table.setdefault(cell["name"], []).append("{ours:.1f} {peer:.1f} ({error:.1f})".format(**cell))
    return {
        "largest": max(alike, key=lambda cell: abs(cell["difference"]), default=None),
        "beyond_3": [cell for cell in alike if abs(cell["difference"]) > 3],
        "of_random_types": {
            "root_mean_square_in_errors": math.sqrt(np.mean(np.square(drawn))) if drawn else None,
            "largest_in_errors": max(drawn, default=None),  # of 50 by chance: about 2.5
        },
        "table": table,
    }


# Both parts.


def run(asked: argparse.Namespace, clean: Tensor, measure: Callable[..., Cell]) -> list[Cell]:
    """A cell per type and severity, those that the file has as they are there."""
    about = {"part": asked.part, "size": asked.size, "images": len(clean), "five": asked.five}
    wanted = [{**about, "name": name, "severity": s} for name in asked.only for s in range(1, 6)]
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    found = {key(cell): cell for cell in map(json.loads, lines)}
    if missing := [cell for cell in wanted if key(cell) not in found]:
        peer = Peer(asked.peer)
        peer.load(clean.permute(0, 2, 3, 1).numpy())
        options = {"seed": SEED, "parameters": "imagenet", "frost": peer.about["frost"]}
        for cell in missing:
            name, severity = cell["name"], cell["severity"]
            ours = corrupt(clean, name, severity, **options)
            theirs = torch.from_numpy(peer.corrupted(name, severity, len(clean), SEED, asked.five))
            cell |= measure(clean, ours, theirs.permute(0, 3, 1, 2), name)
            with asked.out.open("a") as file:
                print(json.dumps(cell), file=file)
            print(json.dumps(cell), file=sys.stderr)
            found[key(cell)] = cell
        peer.stop()
    return [found[key(cell)] for cell in wanted]


def key(cell: Cell) -> tuple[object, ...]:
    return tuple(cell[part] for part in ("part", "size", "images", "five", "name", "severity"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["change", "accuracy"])
    parser.add_argument("--peer", required=True, help="python with imagecorruptions-imaug")
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and test/ of CIFAR-10")
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines; weights go beside it")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--five", action="store_true", help="keep the peer to five frost photographs")
    parser.add_argument("--only", nargs="*", default=SUITES["all"], help="some of the corruptions")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = folder(asked.data / "test", asked.images)
    clean = resized(images, asked.size)
    if asked.part == "change":
        print(json.dumps(changes_summary(run(asked, clean, change)), indent=2))
        return
    weights = asked.out.with_suffix(f".{asked.size}.pt")
    model = trained(weights, asked.size, asked.data / "train", asked.epochs)
    about = {"size": asked.size, "images": len(clean), "clean": right(model, clean, labels).mean().item()}
    print(json.dumps(about), file=sys.stderr)
    cells = run(asked, clean, functools.partial(accuracy, model=model, labels=labels))
    print(json.dumps(about | accuracy_summary(cells), indent=2))


if __name__ == "__main__":
    sys.exit(main())
