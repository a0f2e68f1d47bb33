"""Choose the demo's rho and alpha on validation data, on a seed that the demo does not report.

Trains once per candidate and prints, as JSON, accuracy, ECE and NLL on the clean validation images and
on their transformed views; the smallest NLL of the two together is the choice. No test image is read.
"""

import json
import sys

import torch

from auglabel import Calibration, calibrate
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.train.trainer import Trainer

SEED, EPOCHS = 1000, 40
CANDIDATES = {"one-hot": ["--regime=randaug"]}
CANDIDATES |= {f"rho {rho}": ["--regime=randaug_ls", f"--rho={rho}"] for rho in (0.01, 0.02, 0.05, 0.1, 0.2)}
CANDIDATES |= {f"alpha {alpha}": [f"--alpha={alpha}"] for alpha in (0.02, 0.05, 0.1, 0.2, 0.5)}


def validated(words: list[str]) -> dict[str, float]:
    recipe = read_recipe("embedded", [*words, f"--seed={SEED}", f"--epochs={EPOCHS}"])
    trainer = Trainer(recipe, *data_for(recipe), device="cpu")
    for _ in range(EPOCHS):
        for _ in trainer.epoch(lambda step: False):
            pass
        trainer.end_epoch()
    clean = trainer.measure_validation()
    generator = torch.Generator().manual_seed(0)
    loader = trainer.validation_batches()
    moved = calibrate(trainer.measured, trainer.learned.augment, loader, visits=16, generator=generator)
    total = Calibration(1)
    total.sums = moved.sums.sum(dim=1, keepdim=True)
    return {
        "accuracy": clean["accuracy"],
        "ece": clean["ece"],
        "nll": clean["nll"],
        "view_accuracy": total.accuracy.item(),
        "view_ece": moved.ece.mean().item(),
        "view_nll": total.nll.item(),
        "choice": (clean["nll"] + total.nll.item()) / 2,
    }


def main() -> None:
    torch.set_num_threads(1)
    for name, words in CANDIDATES.items():
        print(json.dumps({"candidate": name, "seed": SEED, **validated(words)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
