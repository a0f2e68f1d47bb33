"""Microseconds per picture of our corruptions and of imagecorruptions-imaug's, and the memory ours take.

Ours work on batches, as one would call them; the peer works on one picture at a time, so it gets fewer.
Both have the same pictures, severities and number of threads, and take turns, type by type and round by
round; a figure is the median over the rounds of the mean over the five severities. Each (type, severity) is
called once before, which compiles the peer's loops and fills our tables. The peer has ImageNet's figures
alone, so these are compared at both sizes; ours with CIFAR's are timed at 32 pixels besides.

Prints JSON. The peer is in an environment of its own: see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from corrupt_peer import Peer
from PIL import Image
from torch import Tensor

from auglabel.corrupt import SUITES, corrupt

SEVERITIES = (1, 2, 3, 4, 5)


def pictures(folder: Path, count: int, size: int) -> Tensor:
    """Pictures from anywhere under `folder`, (count, 3, size, size) uint8; few files come several times."""
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
    if not files:
        raise FileNotFoundError(f"--data should have .png or .jpg pictures, but {folder} has none.")
    chosen = [files[number * len(files) // count] for number in range(count)]
    resized = (
        Image.open(file).convert("RGB").resize((size, size), Image.Resampling.BICUBIC) for file in chosen
    )
    return torch.from_numpy(np.stack([np.array(image) for image in resized])).permute(0, 3, 1, 2).contiguous()


def set_threads(threads: int) -> None:
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)


class Ours:
    """Our side, told what to time as the peer is."""

    def __init__(self, images: Tensor, batch: int, parameters: str, frost: str) -> None:
        self.batches, self.count = images.split(batch), len(images)
        self.options = {"parameters": parameters, "frost": frost}

    def seconds(self, name: str, severity: int) -> float:
        start = time.perf_counter()
        for number, images in enumerate(self.batches):
            rows = range(number * len(self.batches[0]), number * len(self.batches[0]) + len(images))
            corrupt(images, name, severity, index=rows, **self.options)
        return time.perf_counter() - start

    def warm_up(self, name: str) -> None:
        for severity in SEVERITIES:
            corrupt(self.batches[0][:2], name, severity, **self.options)


def race(name: str, ours: dict[str, Ours], peer: Peer, peer_images: int, rounds: int) -> dict[str, float]:
    """Microseconds per picture of each of `ours` and of the peer."""
    taken: dict[str, list[float]] = {who: [] for who in (*ours, "peer")}
    for each in ours.values():
        each.warm_up(name)
    for severity in SEVERITIES:
        peer.seconds(name, severity, 1)
    for _ in range(rounds):
        for who, each in ours.items():
            spent = sum(each.seconds(name, severity) for severity in SEVERITIES)
            taken[who].append(spent / (len(SEVERITIES) * each.count))
        spent = sum(peer.seconds(name, severity, peer_images) for severity in SEVERITIES)
        taken["peer"].append(spent / (len(SEVERITIES) * peer_images))
    return {who: 1e6 * statistics.median(seconds) for who, seconds in taken.items()}


def compare(size: int, peer: Peer, peer_images: int, asked: argparse.Namespace) -> dict[str, Any]:
    images = pictures(asked.data, asked.images, size)
    peer.load(images[:: max(1, len(images) // peer_images)].permute(0, 2, 3, 1).numpy())
    kinds = {"ours": "imagenet"} | ({"ours_cifar": "cifar"} if size < 64 else {})
    ours = {who: Ours(images, asked.batch, figures, peer.about["frost"]) for who, figures in kinds.items()}
    types = {}
    for name in asked.only:
        types[name] = race(name, ours, peer, peer_images, asked.rounds)
        print(size, name, *(f"{who} {spent:,.0f}" for who, spent in types[name].items()), file=sys.stderr)
    total = {who: sum(each[who] for each in types.values()) for who in (*ours, "peer")}
    return {name: row(spent) for name, spent in {**types, "total": total}.items()}


def row(spent: dict[str, float]) -> dict[str, float]:
    figures = {f"{who}_us": float(f"{value:.4g}") for who, value in spent.items()}
    return {**figures, "ratio": round(spent["peer"] / spent["ours"], 1)}


def memory(names: Sequence[str], data: Path, images: int, frost: str, threads: int) -> dict[str, Any]:
    """MB that a call on so many pictures of 224 pixels takes beyond its output and the work on a single one.

    Each type gets a new process.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pictures.npy")
        np.save(file, pictures(data, images, 224).numpy())
        grown = {}
        for name in names:
            with context.Pool(1) as pool:
                grown[name] = pool.apply(growth, (name, str(file), frost, threads))
    output = images * 3 * 224 * 224 / 2**20
    return {"images": images, "output_mb": round(output), "beyond_mb": grown, "most_mb": max(grown.values())}


def growth(name: str, file: str, frost: str, threads: int) -> float:
    set_threads(threads)
    images = torch.from_numpy(np.load(file))
    options = {"parameters": "imagenet", "frost": frost}
    corrupt(images[:1], name, 5, **options)
    before = peak()
    corrupt(images, name, 5, **options)
    return round(peak() - before - images.numel() / 2**20, 1)


def peak() -> float:
    """MB of memory this process has had at most. getrusage's figure would begin with the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="python with imagecorruptions-imaug")
    parser.add_argument("--data", type=Path, required=True, help="folder of pictures")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=250, help="pictures of one of our calls")
    parser.add_argument("--sizes", type=int, nargs="*", default=[32, 224])
    parser.add_argument("--peer-images", type=int, nargs="*", default=[20, 4], help="for each size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=SUITES["all"], help="some of the corruptions")
    asked = parser.parse_args()
    set_threads(asked.threads)
    peer = Peer(asked.peer, asked.threads)
    settings = {
        name: getattr(asked, name) for name in ("images", "batch", "rounds", "threads", "peer_images")
    }
    result: dict[str, Any] = {**settings, "torch": torch.__version__, "peer": peer.about["versions"]}
    for size, count in zip(asked.sizes, asked.peer_images, strict=True):
        result[str(size)] = compare(size, peer, count, asked)
    result["memory"] = memory(asked.only, asked.data, asked.images, peer.about["frost"], asked.threads)
    peer.stop()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    sys.exit(main())
