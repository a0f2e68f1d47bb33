"""The rows of `fast`: all of CIFAR-100 with a network that takes minutes, and 10,000 images for attacks.

Every row is `fast-cifar100` or `fast-cifar10` with a regime and a few words. What each costs, and what was
left out for it: results/plan-fast.yaml.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from auglabel.lab.paper.row import (
    FIVE,
    MEASURED,
    ROBUST,
    Row,
    changed,
    fewer,
    point,
    title_of,
    tuned_of,
)
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement

SEEDS = 4
MILD_SEEDS = 2
VALUES = {"rho": (0.01, 0.05, 0.2), "alpha": (0.005, 0.05, 0.5)}
# By the radius of adversarial training: Table 3's, and Table 4's, whose rho is the paper's.
ATTACKED = {
    0.01: {"rho": (0.02, 0.05, 0.1), "alpha": (0.1, 0.3, 1.0)},
    0.03: {"rho": (0.1, 0.2, 0.3), "alpha": (0.1, 0.3, 1.0)},
}
IMAGES, EPOCHS = 45000, 16  # of fast-cifar100
ATTACK = Measurement("pgd", images=1000, epsilon=0.03)
VARIANT = "--labels=autolabel_variant"
# An attack of ten steps costs eleven times a plain one: fewer images, a narrower network, smaller batches.
SMALLER = (
    *("--split.train=9000", "--split.validation=1000", "--batch_size=128"),
    *("--model.widths=[24,48,96]", "--optimizer.learning_rate=0.1"),
)


def _row(data: str, method: str, words: tuple[str, ...] = (), **more: Any) -> Row:
    """A regime, with a radius or beta behind a dash where it has one."""
    regime = method.partition("-")[0]
    tuned = tuned_of(regime)
    words = (f"--regime={regime}", *words)
    row = Row(f"fast-{data}", title_of(regime), SEEDS, words, f"-{method}", tuned, VALUES.get(tuned, ()))
    return replace(row, **more)


def _change(row: Row, words: tuple[str, ...], suffix: str, title: str, **more: Any) -> Row:
    """A row beyond the paper's, which takes the choice of the one that it changes."""
    made = replace(changed(row, words, suffix), title=title, like=row.name if row.tuned else "", values=())
    return replace(made, **{"extra": True, "scaled": (), **more})


def _table2() -> list[Row]:
    return [row for base in ("randaug", "augmix") for row in _augmented(base)]


def _augmented(base: str) -> list[Row]:
    """Three kinds of labels, and what the distances are worth; RandAug with mild distortions too."""
    plain = _row("cifar100", base, scaled=("T", "TA"))
    smooth = _row("cifar100", f"{base}_ls", scaled=("T",))
    learned = _row("cifar100", f"{base}_autolabel")
    title = learned.title
    single = (VARIANT, "--labels.from_buckets=all")
    shuffled = (VARIANT, "--labels.from_buckets=shuffled")
    everything = ("--split.train=50000", "--split.validation=0")
    mild = ("--augment.magnitudes=mild",)
    rows = [
        plain,
        smooth,
        learned,
        _change(learned, single, "-single", f"{title}, one label for all distances", extra=False),
        _change(learned, shuffled, "-shuffled", f"{title}, shuffled buckets", extra=False),
    ]
    if base == "augmix":
        return rows
    return [
        *rows,
        _change(learned, ("--calibrate.rule=exact",), "-exact", f"{title}, the paper's rule", seeds=1),
        _change(plain, everything, "-all", f"{plain.title}, trained on validation images too"),
        *(_change(row, mild, "-mild", f"{row.title}, mild", seeds=MILD_SEEDS) for row in rows[:3]),
    ]


def _named(*names: str) -> list[Row]:
    return [row for row in _table2() if row.method in names]


def _figure3() -> list[Row]:
    """Magnitudes up to 2, where claims look, with all seeds; 4, 6, 8 with one; up to 10 is Table 2.

    All ten operations: of the paper's five none translates, which is where `wide` differs from `mild`.
    """
    two = _named("randaug", "randaug_autolabel")
    points = [
        point(changed(row, (f"--augment.m_max={most}",), f"-max{most}"), row, SEEDS if most == 2 else 1)
        for most in (2, 4, 6, 8)
        for row in two
    ]
    return [*points, *two]


def _figure6() -> list[Row]:
    """A quarter of the training images, with as many steps; Table 2 has all of them.

    A quarter has choices of its own: its images, seen four times as often, leave one-hot labels
    over-confident, which all of them do not.
    """
    three = _named("randaug", "randaug_ls", "randaug_autolabel")
    return [*(_as_many_steps(row, IMAGES // 4) for row in three), *three]


def _as_many_steps(row: Row, images: int) -> Row:
    """With fewer training images, each seen more often."""
    return changed(fewer(row, images), (f"--epochs={EPOCHS * IMAGES // images}",), "")


def _mixup() -> list[Row]:
    """Vanilla, which is also measured on the views of Figure 2, and mixup."""
    views = Choice("randaug", {"operations": list(FIVE), "magnitudes": "wide"})
    return [
        _row("cifar100", "vanilla", views=views, scaled=("T",)),
        _row("cifar100", "mixup-0.2", ("--augment.beta=0.2",), scaled=("T",)),
        _row("cifar100", "mixup-1", ("--augment.beta=1",), scaled=("T",)),
        _row("cifar100", "mixup_autolabel-1", ("--augment.beta=1",)),
    ]


def _adversarial(radius: float) -> list[Row]:
    """Vanilla, and five kinds of training at a radius."""
    words = (*SMALLER, f"--augment.epsilon_max={radius}")
    on = (*MEASURED, ATTACK)
    rows = [_row("cifar10", "vanilla", SMALLER, measured=on, scaled=("T",))]
    for regime in ("at", "ccat", "at_ls", "at_multi", "at_autolabel"):
        row = _row("cifar10", f"{regime}-{radius}", words, measured=on)
        rows.append(replace(row, values=ATTACKED[radius].get(row.tuned, ())))
    return rows


FAST: dict[str, list[Row]] = {
    "table1": [],
    "table2": _table2(),
    "table3": _adversarial(0.01),
    "table4": _adversarial(0.03),
    "table5": _mixup(),
    "table6": [row for row in _mixup() if row.name.endswith("-1")],
    "figure1": _named("augmix_autolabel"),
    "figure2": _mixup()[:1],
    "figure3": _figure3(),
    "figure4": [],
    "figure5": _named("augmix", "augmix_autolabel"),
    "figure6": _figure6(),
    "figure7": [row for radius in ATTACKED for row in _adversarial(radius) if row.method.startswith(ROBUST)],
    "ablations": [],  # those worth their cost at this size are rows of Table 2
}
# In which order they are run: what rests on the same choices together, what costs most last.
STAGES = (
    ("table2", "figure1", "figure5"),
    ("table5", "table6", "figure2"),
    ("figure3", "figure6"),
    ("table3", "table4", "figure7"),
)
