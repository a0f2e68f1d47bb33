"""PGD beside foolbox: the same network, images, steps and batches; seconds and adversarial accuracy.

Trains the small network on the embedded images, then attacks test images with 10 steps of epsilon/4 and
with 3 restarts of 50 steps of 2.5 epsilon/50, ours and foolbox's in turns, and prints JSON. Ratios are
our seconds over foolbox's: below 1 is faster.
"""

import argparse
import copy
import json
import statistics
import sys
import time

import foolbox
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.attack.pgd import pgd
from auglabel.data.embedded import load_embedded
from auglabel.models.small import SmallNet

EPSILON, EPOCHS, SIZE = 0.03, 12, 50


def network(seed: int = 0) -> nn.Module:
    data = load_embedded().train
    torch.manual_seed(seed)
    model = SmallNet(10, mean=(0.2860,), std=(0.3530,)).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)
    steps = EPOCHS * len(data.labels) // SIZE
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, steps, pct_start=0.2, cycle_momentum=False)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(data.labels)).split(SIZE):
            loss = F.cross_entropy(model(data.images[rows]), data.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def ours(model: nn.Module, steps: int, share: float, restarts: int = 1, early_stop: bool = False):
    def attack(images: Tensor, labels: Tensor) -> Tensor:
        options = {"steps": steps, "step": share * EPSILON, "restarts": restarts, "early_stop": early_stop}
        return pgd(model, images, labels, EPSILON, **options)

    return attack


def theirs(model: nn.Module, steps: int, share: float, restarts: int = 1):
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    single = foolbox.attacks.LinfPGD(rel_stepsize=share, steps=steps)

    def attack(images: Tensor, labels: Tensor) -> Tensor:
        if restarts == 1:  # run skips the look at the result that calling makes: ours makes none either
            return single.run(wrapped, images, foolbox.Misclassification(labels), epsilon=EPSILON)
        return single.repeat(restarts)(wrapped, images, labels, epsilons=EPSILON)[1]

    return attack


def frozen(model: nn.Module) -> nn.Module:
    """A copy whose weights ask for no gradients, which foolbox would compute with the images'."""
    return copy.deepcopy(model).requires_grad_(False)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).double().mean().item()


def race(model, attacks, images, labels, batch, rounds):
    """Medians of the seconds over interleaved rounds, after a batch to warm up, and mean accuracies."""
    seconds = {name: [] for name in attacks}
    reached = {name: [] for name in attacks}
    for attack in attacks.values():
        attack(images[:batch], labels[:batch])
    for turn in range(rounds):
        for name, attack in attacks.items():
            torch.manual_seed(turn)
            start = time.perf_counter()
            pairs = zip(images.split(batch), labels.split(batch), strict=True)
            moved = torch.cat([attack(*pair) for pair in pairs])
            seconds[name].append(time.perf_counter() - start)
            reached[name].append(accuracy(model, moved, labels))
    base = statistics.median(seconds["foolbox"])
    return {
        name: {
            "seconds": round_to(statistics.median(times)),
            "ratio": round_to(statistics.median(times) / base),
            "adversarial_accuracy": round(statistics.mean(reached[name]), 4),
        }
        for name, times in seconds.items()
    }


def round_to(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=250)
    parser.add_argument("--batch", type=int, default=250, help="images attacked at a time, on both sides")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    start = time.perf_counter()
    model = network()
    trained = time.perf_counter() - start
    test = load_embedded().test
    images, labels = test.images[: options.images].float() / 255, test.labels[: options.images]
    about = {
        **vars(options),
        "epsilon": EPSILON,
        "clean_accuracy": accuracy(model, images, labels),
        "training_seconds": round_to(trained),
        "torch": torch.__version__,
        "foolbox": foolbox.__version__,
    }
    ten, fifty = (10, 0.25), (50, 2.5 / 50)
    races = {
        "PGD-10": {
            "ours": ours(model, *ten),
            "foolbox": theirs(model, *ten),
            "foolbox, frozen": theirs(frozen(model), *ten),  # spared the gradients of the weights, as ours is
        },
        "PGD-50x3": {
            "ours": ours(model, *fifty, restarts=3),
            "foolbox": theirs(model, *fifty, restarts=3),
            "foolbox, frozen": theirs(frozen(model), *fifty, restarts=3),
            "ours, early stop": ours(model, *fifty, restarts=3, early_stop=True),
        },
    }
    results = {
        name: race(model, attacks, images, labels, options.batch, options.rounds)
        for name, attacks in races.items()
    }
    print(json.dumps(about | results, indent=2))


if __name__ == "__main__":
    sys.exit(main())
