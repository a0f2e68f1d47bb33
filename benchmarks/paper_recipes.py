"""Take the recipes of the paper's rows a few steps with their full networks, on random images.

Each recipe is built and takes one step of two images. One recipe for each path through the code then takes
three steps of four images, measures its first and its last bucket, moves its labels by them, is saved, and
takes a fourth step. A trainer made anew and restored from that file takes the fourth step too, and must end
with the same weights, momenta, running statistics, table and loss, to the bit. Prints a JSON line for each
and one at the end; the exit code is 1 if a step failed, a loss was no number, AutoLabel's labels stayed or a
resumed step differed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from auglabel.data.folder import folder
from auglabel.data.source import DataSet, InMemory, Source, Subset
from auglabel.data.split import Parts
from auglabel.lab.process.memory import keep_memory
from auglabel.lab.recipe.read import read_recipe, recipe_names
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.trainer import Trainer
from auglabel.measure import measure
from auglabel.view import View

SHAPES = {"cifar10": (10, 32), "cifar100": (100, 32), "imagenet": (1000, 224)}  # classes, pixels
PATHS = (
    "cifar100-vanilla",
    "cifar100-randaug",
    "cifar100-randaug_ls",
    "cifar100-randaug_autolabel",
    "cifar100-augmix_autolabel",
    "cifar10-at-0.03",
    "cifar10-at_multi-0.03",
    "cifar10-ccat-0.03",
    "cifar10-at_autolabel-0.03",
    "cifar10-mixup-1",
    "cifar10-mixup_autolabel-1",
    "imagenet-randaug_autolabel",
)
FILES = tempfile.TemporaryDirectory()
CLOCKS = ("training", "calibrating", "cpu")  # what two equal runs need not share


def trainer_for(recipe: Recipe, images: int, batch: int) -> Trainer:
    """A trainer of the recipe with another batch size, on random images; 8 of them validate.

    Those of ImageNet's size are JPEG files, which two workers decode as the recipe says.
    """
    recipe = replace(recipe, training=replace(recipe.training, batch_size=batch))
    classes, side = SHAPES[recipe.data.name]
    generator, count = torch.Generator().manual_seed(0), images + 8
    pixels = torch.randint(256, (count, 3, side, side), dtype=torch.uint8, generator=generator)
    source: Source = InMemory(pixels, torch.randint(classes, (count,), generator=generator))
    if recipe.data.name == "imagenet":
        source = files_of(pixels, recipe.data.options["decode"])
    names = tuple(str(number) for number in range(classes))
    data = DataSet("random", names, source, None, (0.5,) * 3, (0.25,) * 3, "")
    train, validation, test = torch.arange(count).split([images, 8, 0])
    parts = Parts(Subset(source, train), Subset(source, validation), Subset(source, test))
    return Trainer(recipe, data, parts, device="cpu", workers=2)


def files_of(pixels: Tensor, decode: Any) -> Source:
    """The same images as JPEG files in two classes, in a folder that stays until the end."""
    place = Path(tempfile.mkdtemp(dir=FILES.name))
    for row, image in enumerate(pixels):
        path = place / "ab"[row % 2] / f"{row:03}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).resize((500, 375)).save(path, quality=90)
    return folder(place, size=pixels.shape[-1], train_crop="random_resized", decode=decode).train


def advance(trainer: Trainer, until: int) -> list[float]:
    """Train until that step; the mean loss of each step."""
    losses = []
    for images in trainer.epoch(lambda step: step >= until):
        losses.append(float(trainer.recent[-1]) / images)
    return losses


def one_step(recipe: Recipe) -> dict[str, Any]:
    start = time.perf_counter()
    trainer = trainer_for(recipe, images=2, batch=2)
    built = time.perf_counter()
    (loss,) = advance(trainer, 1)
    trainer.look()
    return {
        "what": "one step of 2 images",
        "parameters": sum(parameter.numel() for parameter in trainer.plain.parameters()),
        "loss": loss,
        "seconds": {"building": round(built - start, 2), "step": round(time.perf_counter() - built, 2)},
        "fine": math.isfinite(loss),
    }


def resumed(recipe: Recipe) -> dict[str, Any]:
    start = time.perf_counter()
    whole = trainer_for(recipe, images=16, batch=4)
    losses = advance(whole, 3)
    buckets = calibrate_ends(whole)
    table = whole.table()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint.safetensors"
        save_checkpoint(file, *checkpoint_of(whole))
        size = file.stat().st_size
        again = trainer_for(recipe, images=16, batch=4)
        restore(again, load_checkpoint(file), str(file))
    ours, theirs = advance(whole, 4), advance(again, 4)
    equal = ours == theirs and same(checkpoint_of(whole), checkpoint_of(again))
    moved = None if table is None else bool((table < 1).any())
    return {
        "what": "3 steps of 4 images, two buckets, saved, resumed",
        "losses": losses + ours,
        "buckets": buckets,
        **({} if moved is None else {"labels_moved": moved}),
        "checkpoint_megabytes": round(size / 1e6),
        "equal_to_the_bit": equal,
        "seconds": round(time.perf_counter() - start, 2),
        "fine": equal and moved is not False and all(math.isfinite(loss) for loss in losses + ours),
    }


def calibrate_ends(trainer: Trainer) -> list[int]:
    """Measure the first and the last bucket on the validation images, and move the labels by them."""
    count = len(trainer.learned.augment.grid)
    ends = sorted({0, count - 1})
    generator = generator_for(trainer.seed, "calibrate", 0)

    def views() -> Iterator[View]:
        for images, labels in trainer.validation_batches():
            for end in ends:
                bucket = torch.full_like(labels, end)
                yield trainer.learned.augment(
                    images, labels, trainer.plain, bucket=bucket, generator=generator
                )

    seen = measure(trainer.plain, views(), groups=count, bins=trainer.recipe.calibrate.bins)
    if trainer.learned.policy.adaptive:
        trainer.learned.policy.update(seen)
    return [end for end in range(count) if seen.count[end]]


def same(one: Checkpoint, other: Checkpoint) -> bool:
    """All tensors and facts equal, but for the seconds spent."""
    facts = [{k: v for k, v in each.facts.items() if k not in CLOCKS} for each in (one, other)]
    return (
        facts[0] == facts[1]
        and one.tensors.keys() == other.tensors.keys()
        and all(torch.equal(tensor, other.tensors[name]) for name, tensor in one.tensors.items())
    )


def tried(name: str, check: Callable[[Recipe], dict[str, Any]]) -> dict[str, Any]:
    """What a check found, or what stopped it."""
    try:
        return check(read_recipe(f"paper/{name}", ["--data.root=nowhere"]))
    except Exception as error:
        traceback.print_exc()
        return {"what": check.__name__, "error": f"{type(error).__name__}: {error}", "fine": False}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [name.removeprefix("paper/") for name in recipe_names() if name.startswith("paper/")]
    parser.add_argument("--only", choices=names, metavar="NAME", help="one recipe, such as cifar10-at-0.03")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_memory()
    chosen = [asked.only] if asked.only else names
    start, wrong = time.perf_counter(), []
    for check, among in ((one_step, chosen), (resumed, [name for name in PATHS if name in chosen])):
        for name in among:
            found = tried(name, check)
            print(json.dumps({"recipe": name, **found}), flush=True)
            wrong += [] if found["fine"] else [name]
    seconds = round(time.perf_counter() - start)
    print(json.dumps({"recipes": len(chosen), "threads": asked.threads, "seconds": seconds, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
