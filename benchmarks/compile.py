"""What torch.compile gains or costs on the CPU: a training step of a network, and augmentations.

    python benchmarks/compile.py [--recipe cpu-cifar100] [--batch 128] [--rounds 11] [--threads 1]

Each is compared with itself as it is, in turns, on random images of 32 pixels: images per second (medians
over rounds), seconds until the first result, and the largest difference of the result. Prints a JSON line for
each. The network is compiled as `--engine.compile true` does it; the difference is that of its logits.
Augmentations are compiled as `torch.compile(augment.__call__)`, with the same draws on both sides.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.augment.augmix import AugMix
from auglabel.augment.mixing import Mixup
from auglabel.augment.randaug import RandAug
from auglabel.data.source import DataSet, InMemory
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.build import model_for
from auglabel.lab.recipe.read import read_recipe

CLASSES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--recipe", default="cpu-cifar100", help="whose network to train")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_memory()
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(asked.batch, 3, 32, 32, generator=generator)
    labels = torch.randint(CLASSES, (asked.batch,), generator=generator)
    contenders = {asked.recipe: networks(asked.recipe, images, labels)}
    for augment in (RandAug(), AugMix(), Mixup()):
        plain = augment.__call__
        contenders[repr(augment)] = [
            partial(moved, call, images, labels) for call in (plain, torch.compile(plain))
        ]
    for name, (plain, compiled) in contenders.items():
        print(json.dumps({"what": name, **compared(plain, compiled, asked.batch, asked.rounds)}), flush=True)


def networks(recipe: str, images: Tensor, labels: Tensor) -> list[Callable[[], Tensor]]:
    """A training step of the recipe's network, as it is and compiled, from the same weights."""
    data = InMemory((images * 255).byte(), labels)
    about = DataSet("random", tuple(map(str, range(CLASSES))), data, None, (0.5,) * 3, (0.25,) * 3, "")
    plain, compiled = (model_for(read_recipe(recipe, ["--data.root=nowhere"]), about) for _ in range(2))
    compiled.compile()
    return [partial(trained, model, images, labels) for model in (plain, compiled)]


def trained(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The logits of a step that leaves the weights as they are."""
    model.zero_grad()
    logits: Tensor = model(images)
    F.cross_entropy(logits, labels).backward()
    return logits.detach()


def moved(call: Callable[..., object], images: Tensor, labels: Tensor) -> Tensor:
    view = call(images, labels, generator=torch.Generator().manual_seed(1))
    return view.images  # type: ignore[attr-defined,no-any-return]


def compared(
    plain: Callable[[], Tensor], compiled: Callable[[], Tensor], batch: int, rounds: int
) -> dict[str, object]:
    """Speed of both, in turns, after a first call of each, whose results are compared."""
    start = time.perf_counter()
    expected = plain()
    between = time.perf_counter()
    found = compiled()
    end = time.perf_counter()
    seconds: dict[str, list[float]] = {"plain": [], "compiled": []}
    for _ in range(rounds):
        for name, work in (("plain", plain), ("compiled", compiled)):
            before = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - before)
    ratios = [slow / quick for slow, quick in zip(*seconds.values(), strict=True)]
    return {
        "largest_difference": float((found - expected).abs().max()),
        "images_per_second": {name: round(batch / statistics.median(each)) for name, each in seconds.items()},
        "compiled_is_faster_by": round(statistics.median(ratios), 3),
        "seconds_to_first_result": {
            "plain": round(between - start, 2),
            "compiled": round(end - between, 2),
        },
    }


if __name__ == "__main__":
    main()
