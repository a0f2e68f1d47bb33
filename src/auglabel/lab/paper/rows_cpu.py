"""The rows at CPU size: each has a recipe of its own, but for those that change a few words of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from auglabel.lab.paper.row import (
    CLEAN,
    FIVE,
    MEASURED,
    ROBUST,
    Row,
    fewer,
    five,
    point,
    title_of,
    tuned_of,
)
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement

VALUES = {"rho": (0.01, 0.02, 0.05, 0.1, 0.2), "alpha": (0.02, 0.05, 0.1, 0.2, 0.5)}  # to choose from
FEWER = {"rho": (0.02, 0.05, 0.1), "alpha": (0.02, 0.1, 0.5)}  # where a run takes longer
AUGMENTED = tuple(replace(each, augmented=True) for each in MEASURED)


def _row(method: str, data: str, seeds: int, words: Sequence[str] = (), suffix: str = "", **more: Any) -> Row:
    """A row of the CPU scale; label smoothing and AutoLabel have their option chosen on validation data."""
    plain = method.partition("-")[0]
    tuned = tuned_of(plain)
    row = Row(f"cpu/{data}-{method}", title_of(plain), seeds, tuple(words), suffix, tuned)
    if tuned and suffix:
        row = replace(row, like=f"{data}-{method}")
    elif tuned:
        row = replace(row, values=VALUES[tuned])
    return replace(row, **more)


def _table2() -> list[Row]:
    methods = [f"{base}{end}" for base in ("randaug", "augmix") for end in ("", "_ls", "_autolabel")]
    ten = [_row(m, "cifar10", 5, measured=MEASURED if "_" in m else AUGMENTED) for m in methods]
    hundred = [_row(method, "cifar100", 3) for method in methods]
    return [*ten, *_extra(), *(replace(row, values=FEWER.get(row.tuned, ())) for row in hundred)]


def _extra() -> list[Row]:
    """What an expert asks of Table 2."""
    variant = "--labels=autolabel_variant"
    chains = ["--augment.chains=3"]
    rows = [
        _row("randaug", "cifar10", 5, ["--split.train=3000", "--split.validation=0"], "-all"),
        _row("randaug_autolabel", "cifar10", 5, [variant, "--labels.from_buckets=all"], "-single"),
        _row("randaug_autolabel", "cifar10", 5, [variant, "--labels.from_buckets=shuffled"], "-shuffled"),
        _row("augmix", "cifar10", 5, chains, "-chains3"),
        _row("augmix_autolabel", "cifar10", 5, chains, "-chains3"),
        _row("augmix_autolabel", "cifar10", 5, ["--calibrate.rule=exact"], "-exact"),
        _row("randaug_autolabel", "cifar10", 5, ["--calibrate.rule=exact"], "-exact"),
        *(
            replace(_row(method, "cifar10", 5, ["--labels.rho=0.05"], "-rho0.05"), tuned="", like="")
            for method in ("randaug_ls", "augmix_ls")  # asked for when the others had been seen
        ),
    ]
    words = {
        "-all": "RandAug, trained on validation images too",
        "-single": "RandAug + AutoLabel, one bucket",
        "-shuffled": "RandAug + AutoLabel, shuffled buckets",
        "-chains3": ", three chains",
        "-exact": ", the paper's full calibration",
        "-rho0.05": ", rho 0.05 (added later)",
    }
    titles = {r: words[r.suffix] for r in rows}
    return [
        replace(row, title=row.title + title if title.startswith(",") else title, extra=True)
        for row, title in titles.items()
    ]


def _adversarial(data: str, radii: Sequence[float], pgd: float) -> list[Row]:
    """Six methods, vanilla once; rho and alpha are chosen at the data set's smallest radius."""
    on = (*(MEASURED if data == "cifar10" else (CLEAN,)), Measurement("pgd", images=1000, epsilon=pgd))
    values, smallest = (FEWER, 0.01) if data == "cifar10" else (VALUES, 0.1)
    rows = [_row("vanilla_at", data, 3, measured=on)]
    for radius in radii:
        for method in ("at", "ccat", "at_ls", "at_multi", "at_autolabel"):
            row = _row(f"{method}-{radius}", data, 3, measured=on)
            if row.tuned and radius == smallest:
                row = replace(row, values=values[row.tuned])
            elif row.tuned:
                row = replace(row, values=(), like=f"{data}-{method}-{smallest}")
            rows.append(row)
    return rows


def _mixup() -> list[Row]:
    """Vanilla, which is also measured on the views of Figure 2, and mixup."""
    vanilla = _row("vanilla", "cifar10", 3, views=Choice("randaug", {"operations": list(FIVE)}))
    others = ("mixup-0.2", "mixup-1", "mixup_autolabel-1")
    return [vanilla, *(_row(method, "cifar10", 3) for method in others)]


def _figure3() -> list[Row]:
    """Five operations, and magnitudes up to 2, 6 and 10."""
    two = [row for row in _table2() if row.name in ("cifar10-randaug", "cifar10-randaug_autolabel")]
    return [point(five(row, most), row, 3) for most in (2, 6, 10) for row in two]


def _figure6() -> list[Row]:
    """Fewer training images; all else as in Table 2, whose rows are the third point."""
    names = {f"cifar10-{method}{end}" for method in ("randaug", "augmix") for end in ("", "_autolabel")}
    four = [row for row in _table2() if row.name in names]
    return [*(point(fewer(row, size), row, 3) for size in (500, 1000) for row in four), *four]


def _ablations() -> list[Row]:
    """Our readings of the paper, on AugMix, one at a time."""
    variant = "--labels=autolabel_variant"
    changed = {
        "-printed": ("validation distances as printed", [variant, "--labels.from_buckets=previous"]),
        "-unclipped": ("labels may fall below the accuracy", [variant, "--labels.floor=false"]),
        "-delayed": ("labels move after epoch 11 for the first time", [variant, "--labels.start=10"]),
        "-1level": ("3 buckets instead of 15", ["--augment.levels=1"]),
        "-20levels": ("60 buckets", ["--augment.levels=20"]),
        "-250validation": ("250 validation images, other training images", ["--split.validation=250"]),
        "-4000validation": ("4,000 validation images, other training images", ["--split.validation=4000"]),
    }
    (reference,) = (row for row in _table2() if row.name == "cifar10-augmix_autolabel")
    rows = [
        replace(_row("augmix_autolabel", "cifar10", 3, words, suffix), title=title, extra=True)
        for suffix, (title, words) in changed.items()
    ]
    return [reference, *rows]


CPU: dict[str, list[Row]] = {
    "table1": [],
    "table2": _table2(),
    "table3": _adversarial("cifar10", (0.01,), 0.03),
    "table4": [
        *_adversarial("fashion", (0.1, 0.3), 0.1),
        *_adversarial("cifar10", (0.03, 0.05, 0.1), 0.03),
    ],
    "table5": _mixup(),
    "table6": [row for row in _mixup() if row.name.endswith("-1")],
    "figure1": [row for row in _table2() if row.name == "cifar10-augmix_autolabel"],
    "figure2": _mixup()[:1],
    "figure3": _figure3(),
    "figure4": [],
    "figure5": [row for row in _table2() if row.method in ("augmix", "augmix_autolabel")],
    "figure6": _figure6(),
    "figure7": [
        row
        for row in (
            *_adversarial("fashion", (0.1, 0.3), 0.1),
            *_adversarial("cifar10", (0.03, 0.05, 0.1), 0.03),
        )
        if row.method.startswith(ROBUST)
    ],
    "ablations": _ablations(),
}
