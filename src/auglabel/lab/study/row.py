"""A row of a table: a recipe, what is changed in it, how often it is run, and what of it is measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement

Scale = Literal["paper", "cpu", "fast"]

NAMES = (
    *(f"table{number}" for number in range(1, 7)),
    *(f"figure{number}" for number in range(1, 8)),
    "ablations",
)
FIRST_SEED = 20  # those before have been looked at while the method was built
CORRUPTED = Measurement("corrupted", suite="paper", images=1000)
CLEAN = Measurement("clean")
MEASURED = (CLEAN, CORRUPTED)
FIVE = ("rotate", "posterize", "solarize", "shear_x", "shear_y")  # operations of Figures 2 and 3
ATTACKS = ("at", "ccat", "at_ls", "at_multi", "at_autolabel")  # regimes of Tables 3 and 4, beside vanilla
VARIANT = "--labels=autolabel_variant"
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
class StudyRow:
    """A recipe, what is changed in it, how often it is run, and what of it is measured.

    `cpu/cifar10-randaug_ls` is called cifar10-randaug_ls; `fast-cifar100` with the suffix "-randaug_ls" is
    called cifar100-randaug_ls.
    """

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
    extra: bool = False  # not in the paper: run last
    scaled: tuple[str, ...] = ()  # "T", "TA": lines of their own for its runs at a fitted temperature
    radius: float | None = None  # epsilon_max of adversarial training
    beta: float | None = None  # of mixup
    magnitude: int = 10  # the largest of training
    images: float | None = None  # of training, or their share, where that is not all

    @property
    def name(self) -> str:
        return re.sub(r"^(cpu/|paper/|fast-)", "", self.recipe) + self.suffix

    @property
    def data(self) -> str:
        return self.name.partition("-")[0]

    @property
    def method(self) -> str:
        return self.name.partition("-")[2]


def title_of(regime: str) -> str:
    for end, words in (("_ls", " + label smoothing"), ("_autolabel", " + AutoLabel")):
        if regime.endswith(end):
            return TITLES[regime.removesuffix(end)] + words
    return TITLES[regime]


def tuned_of(regime: str) -> str:
    """What a regime has to choose: label smoothing rho, AutoLabel alpha, the others nothing."""
    return "rho" if regime.endswith("_ls") else "alpha" if regime.endswith("_autolabel") else ""


def method_of(regime: str, radius: float | None = None, beta: float | None = None) -> str:
    """The name of a regime at a radius or beta: at_ls-0.03."""
    return regime + "".join(f"-{value:g}" for value in (radius, beta) if value is not None)


def changed(row: StudyRow, words: Sequence[str], suffix: str, **more: Any) -> StudyRow:
    """A row with more words, and what else they change of it."""
    return replace(row, words=(*row.words, *words), suffix=row.suffix + suffix, **more)


def variant(row: StudyRow, words: Sequence[str], suffix: str, **more: Any) -> StudyRow:
    """A changed row that takes the choice of `row`, and has no lines at a temperature."""
    like = row.name if row.tuned else ""
    return changed(row, words, suffix, like=like, values=(), measured=MEASURED, scaled=(), **more)


def fewer(images: float) -> tuple[list[str], str]:
    """The words and suffix of so many training images, or that share of them."""
    return [f"--split.train={images:g}"], f"-train{images:g}"


def five(most: int) -> tuple[list[str], str]:
    """The words and suffix of five operations with magnitudes up to `most`."""
    return [f"--augment.operations=[{','.join(FIVE)}]", f"--augment.m_max={most}"], f"-five-{most}"


def named(rows: Sequence[StudyRow], *methods: str, data: str = "") -> list[StudyRow]:
    """The rows of these methods, of one data set or of all."""
    return [row for row in rows if row.method in methods and data in ("", row.data)]


def by_name(data: str, attacked: Sequence[StudyRow], **rows: list[StudyRow]) -> dict[str, list[StudyRow]]:
    """The rows of every table and figure; Figures 1, 2, 5 and 7 draw rows of the tables.

    `data` is the data set of Figures 1 and 2; `attacked` are rows of Figure 7 and others. What `rows` has
    of those figures goes before.
    """
    drawn = {
        "figure1": named(rows["table2"], "augmix_autolabel", data=data),
        "figure2": named(rows["table5"], "vanilla", data=data),
        "figure5": named(rows["table2"], "augmix", "augmix_autolabel"),
        "figure7": [row for row in attacked if row.method.startswith(("at-", "at_multi-", "at_autolabel-"))],
    }
    return {name: (drawn | rows).get(name, []) for name in NAMES}
