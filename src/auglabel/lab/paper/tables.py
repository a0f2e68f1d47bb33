"""The paper's tables from the results that are there: ours, with the spread over seeds, beside theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.mixing import Mixup
from auglabel.augment.randaug import RandAug
from auglabel.lab.paper.page import NOT_RUN, Block, Page, Record, name_of
from auglabel.lab.paper.published import published
from auglabel.lab.paper.readings import reading
from auglabel.lab.paper.rows import CPU, TUNING_SEED, Row, rows_of, title_of
from auglabel.lab.paper.study import Study, nll

CALIBRATION = ("accuracy", "caccuracy", "ece", "cece")
BESIDE = ("debiased_ece", "cdebiased_ece", "nll", "cnll", "brier", "cbrier")
DATA = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet": "ImageNet", "fashion": "Fashion-MNIST"}
METRICS = {
    "table2": CALIBRATION,
    "table3": CALIBRATION,
    "table4": ("accuracy", "adversarial_accuracy", "delta"),
    "table5": ("accuracy", "ece"),
    "table6": ("caccuracy", "cece"),
    "ablations": CALIBRATION,
}
POOLED = (
    "AutoLabel learns by its pooled rule, the default here, unless a row says that it has the paper's full "
    "calibration."
)
Found = Mapping[str, dict[int, dict[str, Any]]]  # results by the row's name and seed
NAMED_OTHERWISE = {"clean_accuracy": "accuracy"}  # in the paper's Table 4


def table(name: str, study: Study) -> Page:
    """A table by its name."""
    return table1() if name == "table1" else _table(name, study)


# Title, augmentation, what its kinds are, and its strength.
DISTANCES: list[tuple[str, Augmentation, str, str]] = [
    ("RandAug", RandAug(), "operation", "magnitude, 1 to 10"),
    ("AugMix", AugMix(), "chain depth", "1 - lambda, lambda the weight of the original"),
    ("Adversarial", Adversarial(), "-", "epsilon / epsilon_max"),
    ("mixup", Mixup(), "-", "2 min(gamma, 1 - gamma)"),
]


def table1() -> Page:
    """What sets an augmentation's distance, out of the grids themselves."""
    body = []
    for title, augment, kind, strength in DISTANCES:
        grid = augment.grid
        kinds = ", ".join(grid.kinds) if len(grid.kinds) > 1 else "-"
        levels = " + ".join(map(str, grid.levels))
        body.append([title, kind, kinds, strength, f"{levels} = {len(grid)}" if "+" in levels else levels])
    head = ["augmentation", "kind", "kinds", "strength", "buckets"]
    note = (
        "The paper's table names operation and magnitude, chain depth and mixing weight, and the norm "
        "epsilon; mixup's distance, min(gamma, 1 - gamma), is in its appendix. Made from the grids in use."
    )
    return Page("table1", "what sets the distance of each augmentation", [Block("", head, body)], [], [note])


def _table(name: str, study: Study) -> Page:
    rows = rows_of(name, study.scale)
    found = {row.name: study.found(row) for row in rows}
    printed = _printed(name)
    lines = [(row, row.title + _place(row), printed.pop(_key(row), {})) for row in rows]
    blocks, records = [], []
    for title, metrics in _blocks(name):
        body = []
        for row, method, theirs in lines:
            mine = [_record(row, method, metric, found, theirs.get(metric)) for metric in metrics]
            if all(not record.values for record in mine) and title:
                continue
            records += mine
            body.append([DATA[row.data], method, str(len(found[row.name])), *(each.shown() for each in mine)])
        if not title:  # what the paper has and this scale has not
            for (data, method), theirs in printed.items():
                more = [Record(data, method, metric, [], [], paper=theirs.get(metric)) for metric in metrics]
                records += more
                body.append([DATA[data], method, "0", *(each.shown() for each in more)])
        if body:
            blocks.append(Block(title, ["data", "method", "seeds", *map(name_of, metrics)], body))
    return Page(name, _title(name), blocks, records, notes_of(study, rows, found))


def _blocks(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """The paper's columns; what stands beside every ECE; the same at a fitted temperature."""
    main = METRICS[name]
    if name == "table4":
        return [("", main)]
    clean = tuple(each for each in main if each in CALIBRATION and "ece" in each)
    beside = BESIDE if len(clean) > 1 else tuple(m for m in BESIDE if m.startswith("c") == (name == "table6"))
    scaled = [f"{metric} T" for metric in (*clean, *beside)]
    augmented = [f"{metric} TA" for metric in (*clean, *beside)]
    return [
        ("", main),
        ("Beside them", beside),
        ("At the temperature of lowest NLL on clean validation images", tuple(scaled)),
        ("At the temperature of lowest NLL on augmented validation images", tuple(augmented)),
    ]


def _record(row: Row, method: str, metric: str, found: Found, paper: float | None) -> Record:
    by_seed = {seed: _value(row, seed, metric, found) for seed in found[row.name]}
    there = {seed: value for seed, value in by_seed.items() if value is not None}
    return Record(row.data, method, metric, list(there), list(there.values()), paper=paper, ran=bool(by_seed))


def _value(row: Row, seed: int, metric: str, found: Found) -> float | None:
    """Of one run; Delta needs vanilla's of the same seed."""
    if metric != "delta":
        return reading(found[row.name][seed], metric)
    vanilla = found.get(f"{row.data}-vanilla_at", found.get(f"{row.data}-vanilla", {}))
    if seed not in vanilla or row.method.startswith("vanilla"):
        return None
    pairs = [reading(of, m) for of in (found[row.name][seed], vanilla[seed]) for m in METRICS["table4"][:2]]
    if any(value is None for value in pairs):
        return None
    mine, adversarial, theirs, others = (value for value in pairs if value is not None)
    return mine + adversarial - theirs - others


def _printed(name: str) -> dict[tuple[str, str], dict[str, float]]:
    """The published rows by data set and method, in percent."""
    lines = published().get(name, {}).get("rows", [])
    return {
        (line["data"], title_of(line["method"]) + _where(line.get("epsilon_max"), line.get("beta"))): {
            NAMED_OTHERWISE.get(key, key): value
            for key, value in line.items()
            if isinstance(value, int | float) and key not in ("epsilon_max", "beta")
        }
        for line in lines
    }


def _key(row: Row) -> tuple[str, str]:
    return row.data, row.title + _place(row)


def _place(row: Row) -> str:
    """The radius or beta of a row, as the table names it; table 3 has one radius for all."""
    _, _, place = row.recipe.partition("/")[2].partition("-")[2].partition("-")
    if not place or place == "0.01":
        return ""
    return _where(None, float(place)) if row.method.startswith("mixup") else _where(float(place), None)


def _where(epsilon_max: float | None, beta: float | None) -> str:
    return f", epsilon_max {epsilon_max:g}" if epsilon_max else f", beta {beta:g}" if beta else ""


def _title(name: str) -> str:
    return (
        "our readings of the paper, one at a time" if name == "ablations" else str(published()[name]["title"])
    )


def notes_of(study: Study, rows: Sequence[Row], found: Found) -> list[str]:
    """What the numbers are, what was chosen, and what is missing from what was `found`."""
    notes = [
        "Mean ± standard deviation over seeds; all but NLL and Brier in percent. In parentheses what the "
        f"paper printed, for its own networks and training. {_sizes(rows, found)}".strip()
    ]
    if study.scale == "cpu" and any(row.tuned == "alpha" for row in rows):
        notes.append(POOLED)
    chosen = [
        f"{row.name} {row.tuned} {study.chosen(row):g}" for row in rows if row.values and study.chosen(row)
    ]
    if chosen:
        notes.append(f"Chosen on validation images of a seed that is not reported: {', '.join(chosen)}.")
    if changed := [row.name for row in rows if row.like]:
        notes.append(f"With the value of the row that they change: {', '.join(changed)}.")
    if short := [row.name for row in rows if len(found[row.name]) < (study.seeds or row.seeds)]:
        notes.append(f"Not run, or not with all seeds: {', '.join(short)}.")
    return notes


def _sizes(rows: Sequence[Row], found: Found) -> str:
    """How many images each ECE is of: it depends on them."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for result in found[row.name].values():
            for evaluation in result["evaluations"]:
                for line in evaluation["rows"]:
                    kind = "clean" if line[1] is None else "each corruption and severity"
                    kind = "attacked" if line[0] == "pgd" else kind
                    counts.setdefault(DATA[row.data], {})[kind] = line[2]
    told = [
        f"{data} {', '.join(f'{kind} {count:,}' for kind, count in kinds.items())}"
        for data, kinds in counts.items()
    ]
    return f"Test images, which ECE depends on: {'; '.join(told)}." if told else ""


def choices(study: Study) -> Page:
    """Every value of rho and alpha that was tried, its validation NLL (the lowest was taken) and ECE."""
    body = []
    for row in study.rows(CPU):
        if row.values:
            found = {value: study.results.read(job) for value, job in study.tuning(row).items()}
            there = {value: result for value, result in found.items() if result is not None}
            tried = [f"{value:g}: {nll(result):.3f}" for value, result in there.items()]
            beside = [f"{value:g}: {100 * r['validation']['ece']:.1f}" for value, r in there.items()]
            chosen = study.chosen(row)
            taken = NOT_RUN if chosen is None else f"{chosen:g}"
            taken += " (end of the list)" if chosen in (row.values[0], row.values[-1]) else ""
            told = [", ".join(tried), taken, ", ".join(beside)]
            body.append([DATA[row.data], row.title + _place(row), row.tuned, *told])
    head = [
        "data",
        "method",
        "option",
        "value: NLL on clean validation images",
        "chosen",
        "value: ECE there, %",
    ]
    notes = [
        f"One run each with seed {TUNING_SEED}, which is not reported; no test image was looked at.",
        "NLL hardly differs between neighbouring values, and as much between two trainings with other seeds; "
        "their ECE does differ, and a choice by it would often have been another.",
    ]
    return Page("choices", "what rho and alpha were chosen from", [Block("", head, body)], [], notes)
