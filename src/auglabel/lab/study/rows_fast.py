"""The rows of `fast`: all of CIFAR-100 with a network that takes minutes, and 10,000 images for attacks.

Every row is `fast-cifar100` or `fast-cifar10` with a regime and a few words. What each costs, and what was
left out for it: results/plan-fast.yaml.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.study.row import (
    ATTACKS,
    FIVE,
    MEASURED,
    VARIANT,
    StudyRow,
    by_name,
    changed,
    fewer,
    method_of,
    named,
    title_of,
    tuned_of,
    variant,
)
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
# An attack of ten steps costs eleven times a plain one: fewer images, a narrower network, smaller batches.
SMALLER = (
    *("--split.train=9000", "--split.validation=1000", "--batch_size=128"),
    *("--model.widths=[24,48,96]", "--optimizer.learning_rate=0.1"),
)


def _row(
    data: str,
    regime: str,
    words: tuple[str, ...] = (),
    radius: float | None = None,
    beta: float | None = None,
    **more: Any,
) -> StudyRow:
    """A regime, at a radius or beta where it has one; more words are written behind it."""
    tuned = tuned_of(regime)
    words = (f"--regime={regime}", *words)
    words += () if radius is None else (f"--augment.epsilon_max={radius}",)
    words += () if beta is None else (f"--augment.beta={beta}",)
    more = {"tuned": tuned, "values": VALUES.get(tuned, ()), "radius": radius, "beta": beta, **more}
    suffix = f"-{method_of(regime, radius, beta)}"
    return StudyRow(f"fast-{data}", title_of(regime), SEEDS, words, suffix, **more)


def _augmented(base: str) -> list[StudyRow]:
    """Three kinds of labels, and what the distances are worth; RandAug with mild distortions too."""
    plain = _row("cifar100", base, scaled=("T", "TA"))
    smooth = _row("cifar100", f"{base}_ls", scaled=("T",))
    learned = _row("cifar100", f"{base}_autolabel")
    title = learned.title
    single, shuffled = ((VARIANT, f"--labels.from_buckets={which}") for which in ("all", "shuffled"))
    everything = ("--split.train=50000", "--split.validation=0")
    mild = ("--augment.magnitudes=mild",)
    exact = ("--calibrate.rule=exact",)
    rows = [
        plain,
        smooth,
        learned,
        variant(learned, single, "-single", title=f"{title}, one label for all distances"),
        variant(learned, shuffled, "-shuffled", title=f"{title}, shuffled buckets"),
    ]
    if base == "augmix":
        return rows
    more = [
        variant(learned, exact, "-exact", title=f"{title}, the paper's rule", seeds=1),
        variant(plain, everything, "-all", title=f"{plain.title}, trained on validation images too"),
        *(variant(row, mild, "-mild", title=f"{row.title}, mild", seeds=MILD_SEEDS) for row in rows[:3]),
    ]
    return [*rows, *(replace(row, extra=True) for row in more)]


def _figure3() -> list[StudyRow]:
    """Magnitudes up to 2, where claims look, with all seeds; 4, 6, 8 with one; up to 10 is Table 2.

    All ten operations: of the paper's five none translates, which is where `wide` differs from `mild`.
    """
    two = named(TABLE2, "randaug", "randaug_autolabel")
    points = [
        variant(
            *(row, [f"--augment.m_max={most}"], f"-max{most}"),
            magnitude=most,
            seeds=SEEDS if most == 2 else 1,
        )
        for most in (2, 4, 6, 8)
        for row in two
    ]
    return [*points, *two]


def _figure6() -> list[StudyRow]:
    """A quarter of the training images, with as many steps; Table 2 has all of them.

    Rows with a quarter of the images choose rho and alpha anew: one-hot labels are over-confident there,
    where each image is seen four times as often, and are not with all images.
    """
    three = named(TABLE2, "randaug", "randaug_ls", "randaug_autolabel")
    images = IMAGES // 4
    words, suffix = fewer(images)
    words += [f"--epochs={EPOCHS * IMAGES // images}"]
    return [*(changed(row, words, suffix, images=images) for row in three), *three]


def _mixup() -> list[StudyRow]:
    """Vanilla, which is also measured on the views of Figure 2, and mixup."""
    views = Choice("randaug", {"operations": list(FIVE), "magnitudes": "wide"})
    return [
        _row("cifar100", "vanilla", views=views, scaled=("T",)),
        *(_row("cifar100", "mixup", beta=beta, scaled=("T",)) for beta in (0.2, 1)),
        _row("cifar100", "mixup_autolabel", beta=1),
    ]


def _adversarial(radius: float) -> list[StudyRow]:
    """Vanilla, and five kinds of training at a radius."""
    on = (*MEASURED, ATTACK)
    rows = [_row("cifar10", "vanilla", SMALLER, measured=on, scaled=("T",))]
    for regime in ATTACKS:
        values = ATTACKED[radius].get(tuned_of(regime), ())
        rows.append(_row("cifar10", regime, SMALLER, radius=radius, measured=on, values=values))
    return rows


TABLE2 = [*_augmented("randaug"), *_augmented("augmix")]
FAST = by_name(  # no ablations: those worth their cost at this size are rows of Table 2
    "cifar100",
    [row for radius in ATTACKED for row in _adversarial(radius)],
    table2=TABLE2,
    table3=_adversarial(0.01),
    table4=_adversarial(0.03),
    table5=_mixup(),
    table6=[row for row in _mixup() if row.beta == 1],
    figure3=_figure3(),
    figure6=_figure6(),
)
# In which order they are run: what rests on the same choices together, what costs most last.
STAGES = (
    ("table2", "figure1", "figure5"),
    ("table5", "table6", "figure2"),
    ("figure3", "figure6"),
    ("table3", "table4", "figure7"),
)
