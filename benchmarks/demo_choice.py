"""Choose the demo's rho and alpha on validation data, on a seed that the demo does not report.

Trains once per candidate and prints, as JSON, accuracy, ECE and NLL on the clean validation images and
on their transformed views; the smallest NLL of the two together is the choice. No test image is read.
"""

import json
import sys

import torch

from auglabel import AutoLabel, Calibration, LabelSmoothing, OneHot, RandAug, calibrate
from auglabel.data.embedded import CLASSES, load_embedded
from auglabel.lab.demo import batches, train

SEED, EPOCHS = 1000, 40


def validated(policy) -> dict[str, float]:
    augment = RandAug()
    model, _ = train(policy, augment, SEED, EPOCHS)
    validation = load_embedded().validation
    clean = Calibration()
    with torch.no_grad():
        clean.update_logits(model.eval()(validation.images), validation.labels)
    moved = calibrate(
        model, augment, batches(validation, 250), visits=16, generator=torch.Generator().manual_seed(0)
    )
    total = Calibration(1)
    total.sums = moved.sums.sum(dim=1, keepdim=True)
    nll = (clean.nll + total.nll).item() / 2
    return {
        "accuracy": clean.accuracy.item(),
        "ece": clean.ece.item(),
        "nll": clean.nll.item(),
        "view_accuracy": total.accuracy.item(),
        "view_ece": moved.ece.mean().item(),
        "view_nll": total.nll.item(),
        "choice": nll,
    }


def main() -> None:
    torch.set_num_threads(1)
    candidates = {"one-hot": OneHot(len(CLASSES))}
    candidates |= {f"rho {rho}": LabelSmoothing(len(CLASSES), rho) for rho in (0.01, 0.02, 0.05, 0.1, 0.2)}
    candidates |= {
        f"alpha {alpha}": AutoLabel(len(CLASSES), 82, alpha) for alpha in (0.02, 0.05, 0.1, 0.2, 0.5)
    }
    for name, policy in candidates.items():
        print(json.dumps({"candidate": name, "seed": SEED, **validated(policy)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
