"""The rows at CPU size: each has a recipe of its own, but for those that change a few words of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.study.row import (
    ATTACKS,
    CLEAN,
    FIVE,
    MEASURED,
    VARIANT,
    StudyRow,
    by_name,
    fewer,
    five,
    method_of,
    named,
    title_of,
    tuned_of,
    variant,
)
from auglabel.lab.sweep.measurement import Measurement

VALUES = {"rho": (0.01, 0.02, 0.05, 0.1, 0.2), "alpha": (0.02, 0.05, 0.1, 0.2, 0.5)}  # to choose from
FEWER = {"rho": (0.02, 0.05, 0.1), "alpha": (0.02, 0.1, 0.5)}  # where a run takes longer
AUGMENTED = tuple(replace(each, augmented=True) for each in MEASURED)
AUGMENTATIONS = ("randaug", "augmix")


def _row(
    regime: str,
    data: str = "cifar10",
    seeds: int = 3,
    radius: float | None = None,
    beta: float | None = None,
    **more: Any,
) -> StudyRow:
    """A row of the CPU scale; label smoothing and AutoLabel have their option chosen on validation data."""
    tuned = tuned_of(regime)
    more = {"tuned": tuned, "values": VALUES.get(tuned, ()), "radius": radius, "beta": beta, **more}
    return StudyRow(f"cpu/{data}-{method_of(regime, radius, beta)}", title_of(regime), seeds, **more)


def _table2() -> list[StudyRow]:
    methods = [f"{base}{end}" for base in AUGMENTATIONS for end in ("", "_ls", "_autolabel")]
    ten = [_row(m, seeds=5, measured=MEASURED if "_" in m else AUGMENTED) for m in methods]
    hundred = [_row(method, "cifar100", values=FEWER.get(tuned_of(method), ())) for method in methods]
    return [*ten, *_extra(), *hundred]


def _extra() -> list[StudyRow]:
    """What an expert asks of Table 2."""
    randaug, augmix, randaug_learned, augmix_learned = (
        _row(f"{base}{end}", seeds=5, extra=True) for end in ("", "_autolabel") for base in AUGMENTATIONS
    )
    everything = ["--split.train=3000", "--split.validation=0"]
    single, shuffled = ([VARIANT, f"--labels.from_buckets={which}"] for which in ("all", "shuffled"))
    chains, exact = (["--augment.chains=3"], "-chains3"), (["--calibrate.rule=exact"], "-exact")
    smooth = [_row(f"{base}_ls", seeds=5, extra=True, tuned="") for base in AUGMENTATIONS]
    return [
        variant(randaug, everything, "-all", title="RandAug, trained on validation images too"),
        variant(randaug_learned, single, "-single", title="RandAug + AutoLabel, one bucket"),
        variant(randaug_learned, shuffled, "-shuffled", title="RandAug + AutoLabel, shuffled buckets"),
        *(variant(row, *chains, title=f"{row.title}, three chains") for row in (augmix, augmix_learned)),
        *(
            variant(row, *exact, title=f"{row.title}, the paper's full calibration")
            for row in (augmix_learned, randaug_learned)
        ),
        *(  # asked for when the others had been seen
            variant(row, ["--labels.rho=0.05"], "-rho0.05", title=f"{row.title}, rho 0.05 (added later)")
            for row in smooth
        ),
    ]


def _adversarial(data: str, radii: Sequence[float], pgd: float) -> list[StudyRow]:
    """Six methods, vanilla once; rho and alpha are chosen at the data set's smallest radius."""
    on = (*(MEASURED if data == "cifar10" else (CLEAN,)), Measurement("pgd", images=1000, epsilon=pgd))
    values, smallest = (FEWER, 0.01) if data == "cifar10" else (VALUES, 0.1)
    rows = [_row("vanilla_at", data, measured=on)]
    for radius in radii:
        for regime in ATTACKS:
            row = _row(regime, data, radius=radius, measured=on, values=values.get(tuned_of(regime), ()))
            if row.tuned and radius != smallest:
                row = replace(row, values=(), like=f"{data}-{regime}-{smallest}")
            rows.append(row)
    return rows


def _mixup() -> list[StudyRow]:
    """Vanilla, which is also measured on the views of Figure 2, and mixup."""
    return [
        _row("vanilla", views=Choice("randaug", {"operations": list(FIVE)})),
        *(_row("mixup", beta=beta) for beta in (0.2, 1)),
        _row("mixup_autolabel", beta=1),
    ]


def _figure3() -> list[StudyRow]:
    """Five operations, and magnitudes up to 2, 6 and 10."""
    two = named(_table2(), "randaug", "randaug_autolabel", data="cifar10")
    return [variant(row, *five(most), magnitude=most, seeds=3) for most in (2, 6, 10) for row in two]


def _figure6() -> list[StudyRow]:
    """Fewer training images; all else as in Table 2, whose rows are the third point."""
    methods = [f"{base}{end}" for base in AUGMENTATIONS for end in ("", "_autolabel")]
    four = named(_table2(), *methods, data="cifar10")
    points = [variant(row, *fewer(size), images=size, seeds=3) for size in (500, 1000) for row in four]
    return [*points, *four]


def _ablations() -> list[StudyRow]:
    """Our readings of the paper, on AugMix, one at a time."""
    changes = {
        "-printed": ("validation distances as printed", [VARIANT, "--labels.from_buckets=previous"]),
        "-delayed": ("labels move after epoch 11 for the first time", [VARIANT, "--labels.start=10"]),
        "-1level": ("3 buckets instead of 15", ["--augment.levels=1"]),
        "-20levels": ("60 buckets", ["--augment.levels=20"]),
        "-250validation": ("250 validation images, other training images", ["--split.validation=250"]),
        "-4000validation": ("4,000 validation images, other training images", ["--split.validation=4000"]),
    }
    reference = named(_table2(), "augmix_autolabel", data="cifar10")
    row = _row("augmix_autolabel", extra=True)
    rows = [variant(row, words, suffix, title=title) for suffix, (title, words) in changes.items()]
    return [*reference, *rows]


_ATTACKED = [*_adversarial("fashion", (0.1, 0.3), 0.1), *_adversarial("cifar10", (0.03, 0.05, 0.1), 0.03)]
CPU = by_name(
    "cifar10",
    _ATTACKED,
    table2=_table2(),
    table3=_adversarial("cifar10", (0.01,), 0.03),
    table4=_ATTACKED,
    table5=_mixup(),
    table6=[row for row in _mixup() if row.beta == 1],
    figure3=_figure3(),
    figure6=_figure6(),
    ablations=_ablations(),
)
