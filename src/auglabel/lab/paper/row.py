"""A row of a table: a recipe, what is changed in it, how often it is run, and what of it is measured."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.measurement import Measurement

Scale = Literal["paper", "cpu", "fast"]

FIRST_SEED = 20  # those before have been looked at while the method was built
CORRUPTED = Measurement("corrupted", suite="paper", images=1000)
CLEAN = Measurement("clean")
MEASURED = (CLEAN, CORRUPTED)
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

    @property
    def name(self) -> str:
        return re.sub(r"^(cpu/|paper/|fast-)", "", self.recipe) + self.suffix

    @property
    def data(self) -> str:
        return self.name.partition("-")[0]

    @property
    def method(self) -> str:
        return self.name.partition("-")[2]

    def number(self, before: str, otherwise: float | None = None) -> float | None:
        """The last number in the name that follows `before`: a size, a magnitude."""
        found = re.findall(rf"-{before}([\d.]+)$", self.name)
        return float(found[-1]) if found else otherwise

    @property
    def place(self) -> float | None:
        """The radius or beta that follows the method's name, if one does."""
        found = re.match(r"\w+-(?:at|ccat|mixup)\w*-([\d.]+)", self.name)
        return float(found[1]) if found else None


def title_of(method: str) -> str:
    for end, words in (("_ls", " + label smoothing"), ("_autolabel", " + AutoLabel")):
        if method.endswith(end):
            return TITLES[method.removesuffix(end)] + words
    return TITLES[method]


def tuned_of(regime: str) -> str:
    """What a regime has to choose: label smoothing rho, AutoLabel alpha, the others nothing."""
    return "rho" if regime.endswith("_ls") else "alpha" if regime.endswith("_autolabel") else ""


def fewer(row: Row, images: float) -> Row:
    """A row with so many training images, or that share of them."""
    return changed(row, (f"--split.train={images:g}",), f"-train{images:g}")


def five(row: Row, most: int) -> Row:
    """A row with five operations, and magnitudes up to `most`."""
    words = (f"--augment.operations=[{','.join(FIVE)}]", f"--augment.m_max={most}")
    return changed(row, words, f"-five-{most}")


def changed(row: Row, words: tuple[str, ...], suffix: str) -> Row:
    return replace(row, words=(*row.words, *words), suffix=row.suffix + suffix)


def point(row: Row, of: Row, seeds: int) -> Row:
    """A point of a figure: `of` changed, whose choice it takes."""
    return replace(
        row, seeds=seeds, like=of.name if of.tuned else "", values=(), measured=MEASURED, scaled=()
    )
