"""What each table and figure rests on: its rows, each a recipe, at the paper's size and at CPU size.

A row's name is its recipe's: `paper/cifar100-randaug_ls` and `cpu/cifar10-randaug_ls` are the same method.
Rows beyond the paper's, and the points of figures, change a few words of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from auglabel.lab.paper.published import published
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement
from auglabel.util.checks import entry

Scale = Literal["paper", "cpu"]

TUNING_SEED = 100  # rho and alpha are chosen on it, and the pooled rule was; it is never reported
FIRST_SEED = 20  # those before have been looked at while the method was built
VALUES = {"rho": (0.01, 0.02, 0.05, 0.1, 0.2), "alpha": (0.02, 0.05, 0.1, 0.2, 0.5)}  # to choose from
FEWER = {"rho": (0.02, 0.05, 0.1), "alpha": (0.02, 0.1, 0.5)}  # where a run takes longer

CORRUPTED = Measurement("corrupted", suite="paper", images=1000)
CLEAN = Measurement("clean")
MEASURED = (CLEAN, CORRUPTED)
AUGMENTED = tuple(replace(each, augmented=True) for each in MEASURED)
FIVE = ("rotate", "posterize", "solarize", "shear_x", "shear_y")  # operations of Figures 2 and 3
ROBUST = ("at-", "at_multi-", "at_autolabel-")  # of Figure 7
TITLES = {
    "vanilla": "vanilla",
    "vanilla_at": "vanilla",
    "randaug": "RandAug",
    "augmix": "AugMix",
    "mixup": "mixup",
    "at": "AT",
    "at_multi": "AT + multiple epsilon",
    "ccat": "CCAT",
}


@dataclass(frozen=True)
class Row:
    """A recipe, what is changed in it, how often it is run, and what of it is measured."""

    recipe: str
    title: str
    seeds: int
    words: tuple[str, ...] = ()
    suffix: str = ""  # of the name, for what `words` change
    tuned: str = ""  # "rho" or "alpha", chosen on validation data
    values: tuple[float, ...] = ()  # to choose from
    like: str = ""  # or the row whose choice this one takes
    measured: tuple[Measurement, ...] = MEASURED
    views: Choice | None = None
    extra: bool = False  # not in the paper

    @property
    def name(self) -> str:
        return self.recipe.partition("/")[2] + self.suffix

    @property
    def data(self) -> str:
        return self.name.partition("-")[0]

    @property
    def method(self) -> str:
        return self.name.partition("-")[2]


def title_of(method: str) -> str:
    for end, words in (("_ls", " + label smoothing"), ("_autolabel", " + AutoLabel")):
        if method.endswith(end):
            return TITLES[method.removesuffix(end)] + words
    return TITLES[method]


def rows_of(name: str, scale: Scale) -> list[Row]:
    """The rows that a table or figure rests on; none for those that are drawn without a run."""
    if scale == "paper":
        return _paper_rows(name)
    return list(entry("table or figure", CPU, name))


def _paper_rows(name: str) -> list[Row]:
    """The published rows of a table, and what a figure draws of them or beside them."""
    if name in ("table1", "figure4", "ablations"):
        return []
    source = SOURCES.get(name, name)
    rows = [_paper_row(line, published()[source]) for line in published()[source]["rows"]]
    if name == "figure1":
        return [row for row in rows if row.name == "cifar100-augmix_autolabel"]
    if name == "figure2":
        return [row for row in rows if row.name == "cifar100-vanilla"]
    if name == "figure3":
        two = [row for row in rows if row.name in ("cifar100-randaug", "cifar100-randaug_autolabel")]
        return [replace(_five(row, most), seeds=5) for most in (2, 4, 6, 8, 10) for row in two]
    if name == "figure5":
        return [row for row in rows if row.method in ("augmix", "augmix_autolabel")]
    if name == "figure6":
        four = [row for row in rows if row.data == "imagenet" and not row.method.endswith("_ls")]
        return [*(_fewer(row, share) for share in (0.1, 0.25, 0.5) for row in four), *four]
    if name == "figure7":
        return [row for row in rows if row.method.startswith(ROBUST)]
    return rows


# Whose rows a figure draws; Table 6 is of Table 5's.
SOURCES = {
    "table6": "table5",
    "figure1": "table2",
    "figure2": "table5",
    "figure3": "table2",
    "figure5": "table2",
    "figure6": "table2",
    "figure7": "table4",
}


def _paper_row(line: Mapping[str, Any], about: Mapping[str, Any]) -> Row:
    """A published row; one run where the paper does not say how many it made."""
    method, data, seeds = line["method"], line["data"], about["seeds"] or 1
    place = line.get("epsilon_max") or line.get("beta")
    if method.startswith(("at", "ccat")) and place is None:
        place = about["settings"]["epsilon_max"]
    end = "" if place is None else f"-{place:g}"
    attacked = Measurement("pgd", epsilon=0.03)
    suite = "standard" if data == "imagenet" else "paper"  # 15 types there, 17 on CIFAR
    corrupted = Measurement("corrupted", suite=suite)
    row = Row(
        f"paper/{data}-{method}{end}",
        title_of(method),
        seeds[data] if isinstance(seeds, dict) else seeds,
        measured=(CLEAN, attacked if "clean_accuracy" in about["metrics"] else corrupted),
    )
    if method == "vanilla":  # the same runs in Tables 3, 4 and 5 and in Figure 2
        views = Choice("randaug", {"operations": list(FIVE)})
        row = replace(row, seeds=4, measured=(CLEAN, corrupted, attacked), views=views)
    return row


def _five(row: Row, most: int) -> Row:
    """A row with five operations, and magnitudes up to `most`."""
    words = (f"--augment.operations=[{','.join(FIVE)}]", f"--augment.m_max={most}")
    return replace(row, words=(*row.words, *words), suffix=f"-five-{most}")


def _fewer(row: Row, images: float) -> Row:
    """A row with so many training images, or that share of them."""
    return replace(row, words=(*row.words, f"--split.train={images:g}"), suffix=f"-train{images:g}")


def _row(method: str, data: str, seeds: int, words: Sequence[str] = (), suffix: str = "", **more: Any) -> Row:
    """A row of the CPU scale; label smoothing and AutoLabel have their option chosen on validation data."""
    plain = method.partition("-")[0]
    tuned = "rho" if plain.endswith("_ls") else "alpha" if plain.endswith("_autolabel") else ""
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
    return [_point(_five(row, most)) for most in (2, 6, 10) for row in two]


def _figure6() -> list[Row]:
    """Fewer training images; all else as in Table 2, whose rows are the third point."""
    names = {f"cifar10-{method}{end}" for method in ("randaug", "augmix") for end in ("", "_autolabel")}
    four = [row for row in _table2() if row.name in names]
    return [*(_point(_fewer(row, size)) for size in (500, 1000) for row in four), *four]


def _point(row: Row) -> Row:
    """A point of a figure: three seeds, and the choice of the row that it is made of."""
    like = row.name.removesuffix(row.suffix) if row.tuned else ""
    return replace(row, seeds=3, like=like, values=(), measured=MEASURED)


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


def row_named(name: str) -> Row:
    """A row of the CPU scale."""
    return {row.name: row for rows in CPU.values() for row in rows}[name]
