"""The rows of `fast`: CIFAR-100, a quarter of it and all, in minutes per run, and 10,000 images for attacks.

Every row is `fast-cifar100` or `fast-cifar10` with a regime and a few words. Those of CIFAR-100 have a
narrower network than the recipe, at half its operations per image, and batches of 64: 12 epochs with all
images, 48 with a quarter. AutoLabel finds its step by itself (alpha auto). Label smoothing has the paper's
rho with all images and in Table 3, the contest's with a quarter, and one that is chosen in Table 4.
What each row costs: results/plan-fast.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    title_of,
    variant,
)
from auglabel.lab.sweep.measurement import Measurement

SEEDS = 4
FEW_HELD = 250  # of 250, 500 and 1,000 images held out the contest could not tell which is best
RHO_OF_FEW = 0.05  # with a quarter of the images: what the contest chose with RandAug, on unreported seeds
# By the radius of adversarial training: Table 3 has the paper's rho, Table 4 its values to choose from.
RHO_OF_RADIUS: dict[float, tuple[float, ...]] = {0.01: (), 0.03: (0.1, 0.2, 0.3)}
IMAGES, EPOCHS = 45000, 12
NARROW = (  # of CIFAR-100
    *("--model.widths=[32,96,192]", "--model.stem=16", f"--epochs={EPOCHS}"),
    *("--batch_size=64", "--optimizer.learning_rate=0.1"),
)
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
    words = (f"--regime={regime}", *(NARROW if data == "cifar100" else ()), *words)
    words += () if radius is None else (f"--augment.epsilon_max={radius}",)
    words += () if beta is None else (f"--augment.beta={beta}",)
    suffix = f"-{method_of(regime, radius, beta)}"
    return StudyRow(f"fast-{data}", title_of(regime), SEEDS, words, suffix, radius=radius, beta=beta, **more)


def _augmented(base: str) -> list[StudyRow]:
    """Three kinds of labels."""
    return [
        _row("cifar100", base, scaled=("T", "TA")),
        _row("cifar100", f"{base}_ls", scaled=("T",)),
        _row("cifar100", f"{base}_autolabel"),
    ]


def _exact(learned: StudyRow) -> StudyRow:
    """The paper's full calibration, with one seed."""
    title = f"{learned.title}, full calibration"
    return variant(learned, ["--calibrate.rule=exact"], "-exact", title=title, seeds=1, extra=True)


def _with_images(rows: Sequence[StudyRow], images: int) -> list[StudyRow]:
    """Fewer training images and about as many steps: each image is seen more often.

    With a quarter of them, one-hot labels are over-confident, as they are not with all images in 12 epochs:
    what AutoLabel is for can be seen.
    """
    words, suffix = fewer(images)
    words += [f"--epochs={round(EPOCHS * IMAGES / images)}"]
    rho = [f"--labels.rho={RHO_OF_FEW}"]
    return [
        changed(row, [*words, *(rho if "_ls" in row.suffix else [])], suffix, images=images) for row in rows
    ]


def _few_held_out() -> list[StudyRow]:
    """As many labelled images as a quarter and its 5,000 held out, but only 250 of them are held out.

    A temperature needs them to the end. Soft labels, learned or not, train on them, too, in the last third
    of the epochs.
    """
    words = [f"--split.validation={FEW_HELD}"]
    plain, *soft = _with_images(RANDAUG, IMAGES // 4 + 5000 - FEW_HELD)
    given = [*words, "--give_back=0.7"]
    return [
        changed(plain, words, "", extra=True),
        *(changed(row, given, "", extra=True, scaled=(), title=f"{row.title}, given back") for row in soft),
    ]


def _mild() -> list[StudyRow]:
    """Magnitudes that leave most of the image in it; no claim looks at them."""
    return [
        changed(row, ["--augment.magnitudes=mild"], "-mild", title=f"{row.title}, mild", seeds=2, extra=True)
        for row in (QUARTER[0], QUARTER[-1], WITHOUT_DISTANCES[0])
    ]


def _without_distances(learned: StudyRow) -> list[StudyRow]:
    """AutoLabel without distances, which shows what they are worth."""
    single = ("all", "-single", f"{learned.title}, one label for all distances")
    shuffled = ("shuffled", "-shuffled", f"{learned.title}, shuffled buckets")
    return [
        variant(learned, [VARIANT, f"--labels.from_buckets={which}"], suffix, title=title, extra=True)
        for which, suffix, title in (single, shuffled)
    ]


def _figure3() -> list[StudyRow]:
    """Magnitudes up to 2, where claims look, with all seeds; 4, 6, 8 with one; up to 10 is Table 2.

    A quarter of the images, and all ten operations: of the paper's five none translates, which is where
    `wide` differs from `mild`.
    """
    two = [row for row in QUARTER if row.title in ("RandAug", "RandAug + AutoLabel")]
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


def _mixup() -> list[StudyRow]:
    """Vanilla, which is also measured on the views of Figure 2, and mixup, with a quarter of the images."""
    views = Choice("randaug", {"operations": list(FIVE), "magnitudes": "wide"})
    rows = [
        _row("cifar100", "vanilla", views=views, scaled=("T",)),
        *(_row("cifar100", "mixup", beta=beta, scaled=("T",)) for beta in (0.2, 1)),
        _row("cifar100", "mixup_autolabel", beta=1),
    ]
    return _with_images(rows, IMAGES // 4)


def _adversarial(radius: float) -> list[StudyRow]:
    """Vanilla, and five kinds of training at a radius."""
    on = (*MEASURED, ATTACK)
    rows = [_row("cifar10", "vanilla", SMALLER, measured=on, scaled=("T",))]
    for regime in ATTACKS:
        values = RHO_OF_RADIUS[radius] if regime == "at_ls" else ()
        tuned = "rho" if values else ""
        rows.append(_row("cifar10", regime, SMALLER, radius, measured=on, tuned=tuned, values=values))
    return rows


RANDAUG = _augmented("randaug")
QUARTER, QUARTER_AUGMIX = (_with_images(rows, IMAGES // 4) for rows in (RANDAUG, _augmented("augmix")))
RANDAUG_ALL = [*RANDAUG, _exact(RANDAUG[-1])]
WITHOUT_DISTANCES = _without_distances(QUARTER[-1])
FEW_HELD_OUT, MILD = _few_held_out(), _mild()
MIXUP = _mixup()
ATTACKED = [row for radius in RHO_OF_RADIUS for row in _adversarial(radius)]
FAST = by_name(  # no ablations: those worth their cost at this size are rows of Table 2
    "cifar100",
    ATTACKED,
    table2=[*QUARTER, *WITHOUT_DISTANCES, *QUARTER_AUGMIX, *MILD, *FEW_HELD_OUT, *RANDAUG_ALL],
    table3=_adversarial(0.01),
    table4=_adversarial(0.03),
    table5=MIXUP,
    table6=[row for row in MIXUP if row.beta == 1],
    figure1=QUARTER_AUGMIX[-1:],
    figure2=MIXUP[:1],
    figure3=_figure3(),
    figure5=[QUARTER_AUGMIX[0], QUARTER_AUGMIX[-1]],
    figure6=[*QUARTER, *RANDAUG],
)
# In which order they are run: first where one-hot labels are over-confident, which shows the most.
STAGES = (
    *(QUARTER, WITHOUT_DISTANCES, QUARTER_AUGMIX, RANDAUG_ALL, MIXUP, FEW_HELD_OUT),
    *(_figure3(), MILD, ATTACKED),
)
# What is compared with what: the first row of each, at a temperature, is the reference.
SETTINGS = {
    "RandAug, a quarter of the images": [*QUARTER, *WITHOUT_DISTANCES],
    "AugMix, a quarter of the images": QUARTER_AUGMIX,
    "RandAug, all images": RANDAUG_ALL,
    "RandAug, few held out": FEW_HELD_OUT,
    "RandAug with mild magnitudes, a quarter of the images": MILD,
    "mixup, a quarter of the images": [MIXUP[2], MIXUP[1], MIXUP[3], MIXUP[0]],
}
