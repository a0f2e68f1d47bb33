"""Write src/auglabel/recipes/paper: a recipe for every row that the paper's tables 2 to 6 print.

    python scripts/paper_recipes.py

Each lies on top of cifar10, cifar100 or imagenet and says what the row has of its own. The header has the
paper's numbers, and hours that are arithmetic, not measured: a training image costs three forward passes
(backward is two), and each step of an attack two, which differentiates to the pixels alone; AutoLabel's exact
calibration is a forward pass per bucket, validation image and epoch, after an attack where images are
attacked. Evaluation is not counted.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from auglabel.lab.recipe.catalogue import AUGMENTATIONS, regime
from auglabel.lab.recipe.read import RECIPES, read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.util.atomic_write import write_text

FOLDER = RECIPES / "paper"
PUBLISHED = RECIPES.parent / "lab" / "paper" / "published.yaml"
TABLES = ("table2", "table3", "table4", "table5", "table6")
WIDTH = 110
DATA = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet": "ImageNet"}
IMAGES = {"cifar10": (50_000, 10_000), "cifar100": (50_000, 10_000), "imagenet": (1_281_167, 50_000)}
MODEL = {"wide_resnet": "Wide ResNet-28-10", "resnet": "ResNet-50"}
GMACS = {"wide_resnet": 5.25, "resnet": 4.1}  # of one forward pass: 32 and 224 pixels
TFLOPS = 40.0  # per second
TRAINING, ATTACK = 3, 2  # forward passes that a training step costs, and a step of an attack
METHODS = {
    "vanilla": "no augmentation but crops and flips, one-hot labels",
    "randaug": "RandAug, one-hot labels",
    "randaug_ls": "RandAug, label smoothing",
    "randaug_autolabel": "RandAug, AutoLabel",
    "augmix": "AugMix, one-hot labels",
    "augmix_ls": "AugMix, label smoothing",
    "augmix_autolabel": "AugMix, AutoLabel",
    "at": "adversarial training at epsilon {epsilon_max}, one-hot labels",
    "at_multi": "adversarial training at epsilons up to {epsilon_max}, one-hot labels",
    "at_ls": "adversarial training at epsilon {epsilon_max}, label smoothing",
    "ccat": "CCAT at epsilons up to {epsilon_max}, half of each batch clean",
    "at_autolabel": "adversarial training at epsilons up to {epsilon_max}, AutoLabel",
    "mixup": "mixup with beta {beta}, its own labels",
    "mixup_autolabel": "mixup with beta {beta}, AutoLabel",
}
FIGURES = {
    "accuracy": "accuracy",
    "caccuracy": "cAccuracy",
    "ece": "ECE",
    "cece": "cECE",
    "clean_accuracy": "clean accuracy",
    "adversarial_accuracy": "adversarial accuracy",
    "delta": "Delta",
}

Row = Mapping[str, Any]
Options = dict[str, dict[str, Any]]  # by section


def texts() -> dict[str, str]:
    """The text of every recipe, by the file's name without .yaml."""
    published = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    rows: dict[str, dict[str, Row]] = {}  # by name, then table
    options: dict[str, Options] = {}
    for table in TABLES:
        for row in published[table]["rows"]:
            own = options_of(row, published[table]["settings"])
            name = "-".join(map(str, [row["data"], row["method"], *own.get("augment", {}).values()]))
            rows.setdefault(name, {})[table] = row
            options[name] = own
    return {name: text(published, rows[name], options[name]) for name in rows}


def options_of(row: Row, settings: Row) -> Options:
    """What sets a row apart from others of its method."""
    method, own = regime(row["method"]), Options()
    if method.augment == "adversarial":
        own["augment"] = {"epsilon_max": row.get("epsilon_max", settings["epsilon_max"])}
    if method.augment == "mixup":
        own["augment"] = {"beta": row["beta"]}
    if method.labels == "label_smoothing" and "rho_swept" in settings:
        own["labels"] = {"rho": min(settings["rho_swept"])}
    return own


def text(published: Row, rows: Mapping[str, Row], options: Options) -> str:
    first = next(iter(rows.values()))
    data, method = first["data"], first["method"]
    recipe = chosen(data, method)
    said = METHODS[method].format(**options.get("augment", {}))
    labels = {**recipe.labels.options, **options.get("labels", {})}
    spent = f"{hours(recipe):.0f} hours of a GPU that does {TFLOPS:g} TFLOP/s"
    sentences = [
        f"{_numbered(list(rows))}: {DATA[data]}, {MODEL[recipe.model.name]}, {said}.",
        _printed(published, rows),
        *(_unprinted(published[table]["settings"], recipe.labels.name, labels) for table in rows),
        f"Estimated by arithmetic: {spent}; not run here.",
    ]
    header = ["\n".join(f"# {line}" for line in textwrap.wrap(each, WIDTH - 2)) for each in sentences if each]
    sections = [
        f"{section}: {{{', '.join(f'{key}: {value}' for key, value in own.items())}}}"
        for section, own in options.items()
    ]
    return "\n".join([*header, f"base: {data}", f"regime: {method}", *sections, ""])


@cache
def chosen(data: str, method: str) -> Recipe:
    """The recipe before a row's own options, which change none of the hours."""
    return read_recipe(data, ["--data.root=.", f"--regime={method}"])


def _numbered(tables: list[str]) -> str:
    """["table5", "table6"] as "Tables 5 and 6"."""
    *others, last = (table.removeprefix("table") for table in tables)
    return f"Tables {', '.join(others)} and {last}" if others else f"Table {last}"


def _printed(published: Row, rows: Mapping[str, Row]) -> str:
    """The paper's numbers, table by table."""
    parts = []
    for table, row in rows.items():
        seeds = published[table]["seeds"]
        seeds = seeds[row["data"]] if isinstance(seeds, dict) else seeds
        mean = f"mean of {seeds} seeds" if seeds else "seeds not stated"
        cells = [f"{FIGURES[key]} {row[key]}" for key in published[table]["metrics"] if row[key] is not None]
        where = f"{table.replace('table', 'table ')}, " if len(rows) > 1 else ""
        parts.append(f"{where}{mean}: {', '.join(cells)}{_slip(published[table]['rows'], row)}")
    return f"Paper{': ' if len(rows) > 1 else ', '}{'; '.join(parts)}."


def _slip(rows: list[Row], row: Row) -> str:
    """What Delta should have been, where the cells beside it give another."""
    if row.get("delta") is None:
        return ""
    (vanilla,) = (each for each in rows if (each["method"], each["data"]) == ("vanilla", row["data"]))
    sums = [each["clean_accuracy"] + each["adversarial_accuracy"] for each in (row, vanilla)]
    delta = round(sums[0] - sums[1], 1)
    return "" if delta == row["delta"] else f" ({delta} by its own cells)"


def _unprinted(settings: Row, policy: str, labels: Row) -> str:
    """What the paper chose and does not print, and what stands here instead."""
    if policy == "label_smoothing" and "rho_swept" in settings:
        *others, last = settings["rho_swept"]
        among = f"{', '.join(map(str, others))} and {last}"
        return f"rho, chosen from {among}, is not printed; {labels['rho']} here, the smallest of them."
    if policy == "autolabel" and "alpha_swept" in settings:
        low, high = settings["alpha_swept"]
        return f"alpha, chosen from {low} to {high}, is not printed; {labels['alpha']} here, as in table 3."
    return ""


def hours(recipe: Recipe) -> float:
    """Hours of training and calibration, by the arithmetic above."""
    trained, tested = IMAGES[recipe.data.name]
    validated = recipe.split["validation"]
    if recipe.split["validation_from"] == "test":
        validated = round(validated * tested)
    else:
        trained -= validated
    how = recipe.augment.options
    attack = ATTACK * how["steps"] if recipe.augment.name == "adversarial" else 0
    passes = trained * (TRAINING + attack * (1 - how.get("clean_share", 0)))
    if recipe.labels.name == "autolabel":
        passes += validated * len(AUGMENTATIONS[recipe.augment.name](**how).grid) * (1 + attack)
    flops: float = recipe.training.epochs * passes * 2 * GMACS[recipe.model.name] * 1e9
    return flops / (TFLOPS * 1e12) / 3600


def main() -> None:
    made = texts()
    FOLDER.mkdir(exist_ok=True)
    for name, content in made.items():
        write_text(FOLDER / f"{name}.yaml", content)
    for path in FOLDER.glob("*.yaml"):
        if path.stem not in made:
            path.unlink()
    print(f"{len(made)} recipes in {FOLDER}")


if __name__ == "__main__":
    main()
