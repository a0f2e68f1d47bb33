"""What the training loop costs over a bare one: the same network, images, views and labels, step by step.

Three contenders take turns, a round each, in one process: the lab's loop; a hand-written PyTorch loop that
does the same work and nothing else; and that loop in plain NCHW. Data are in memory and random, so that
nothing but the step is timed. Prints JSON: medians over rounds of images per second, and the lab's time as
a ratio to the bare loop's, round by round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from auglabel.augment.clean import crop_and_flip
from auglabel.data.source import DataSet, InMemory, Subset
from auglabel.data.split import Parts
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.build import model_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.records import TrainingState
from auglabel.lab.train.trainer import Trainer

STEPS = 40  # of each contender in a round


def data_of(recipe: Recipe, classes: int) -> tuple[DataSet, Parts]:
    generator = torch.Generator().manual_seed(0)
    count = STEPS * recipe.training.batch_size
    images = torch.randint(256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    source = InMemory(images, torch.randint(classes, (count,), generator=generator))
    names = tuple(str(number) for number in range(classes))
    data = DataSet("random", names, source, None, (0.5,) * 3, (0.25,) * 3, "")
    rows = torch.arange(count)
    return data, Parts(Subset(source, rows), Subset(source, rows[:1]), Subset(source, rows[:1]))


def lab(recipe: Recipe, data: DataSet, parts: Parts) -> Callable[[], None]:
    trainer = Trainer(recipe, data, parts, device="cpu")

    def run() -> None:
        trainer.state = TrainingState()
        for _ in trainer.epoch(lambda step: False):
            pass

    return run


def bare(recipe: Recipe, data: DataSet, parts: Parts, channels_last: bool) -> Callable[[], None]:
    model = model_for(recipe, data)
    model.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)
    twin = Trainer(recipe, data, parts, device="cpu")  # for its augmentation and labels alone
    augment, policy = twin.learned.augment, twin.learned.policy
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    images, labels, flip = data.train.images, data.train.labels, recipe.prepare["flip"]

    def run() -> None:
        model.train()
        generator = torch.Generator().manual_seed(0)
        for rows in torch.randperm(len(labels), generator=generator).split(recipe.training.batch_size):
            batch = crop_and_flip(images[rows], recipe.prepare["pad"], flip, generator)
            view = augment(batch, labels[rows], dtype=torch.float32, generator=generator)
            loss = F.cross_entropy(model(view.images), policy(view))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", default="cpu-cifar10")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_memory()
    recipe = read_recipe(asked.recipe, ["--data.root=nowhere"])
    made = data_of(recipe, 10 if asked.recipe.endswith("cifar10") else 100)
    contenders = {
        "lab": lab(recipe, *made),
        "bare": bare(recipe, *made, channels_last=True),
        "bare, NCHW": bare(recipe, *made, channels_last=False),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(-2, asked.rounds):  # two to warm up
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if round_ >= 0:
                seconds[name].append(time.perf_counter() - start)
    images = STEPS * recipe.training.batch_size
    ratios = [ours / theirs for ours, theirs in zip(seconds["lab"], seconds["bare"], strict=True)]
    print(
        json.dumps(
            {
                "recipe": asked.recipe,
                "threads": asked.threads,
                "rounds": asked.rounds,
                "images_per_second": {n: round(images / statistics.median(s)) for n, s in seconds.items()},
                "lab_over_bare": round(statistics.median(ratios), 4),
                "lab_over_bare_quartiles": [round(q, 4) for q in statistics.quantiles(ratios, n=4)],
            }
        )
    )


if __name__ == "__main__":
    main()
