"""The paper's tables from the results that are there: ours, with the spread over seeds, beside theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.mixing import Mixup
from auglabel.augment.randaug import RandAug
from auglabel.lab.paper.page import Block, Page, Record, name_of
from auglabel.lab.runs.evaluations import CORRUPTED_FROM
from auglabel.lab.study.published import published
from auglabel.lab.study.readings import reading
from auglabel.lab.study.row import StudyRow, title_of
from auglabel.lab.study.rows import rows_of
from auglabel.lab.study.run_options import recipe_words
from auglabel.lab.study.study import Found, Study

CALIBRATION = ("accuracy", "caccuracy", "ece", "cece")
BESIDE = ("debiased_ece", "cdebiased_ece", "nll", "cnll", "brier", "cbrier", "aurc", "caurc")
SCALABLE = ("ece", "cece", "gap", "cgap", *BESIDE)  # what a temperature changes
DATA = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet": "ImageNet", "fashion": "Fashion-MNIST"}
COLUMNS = {  # of each table
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
TEMPERATURES = (
    "+ T: the same runs at the temperature of lowest NLL on clean validation images, + TA: on augmented "
    "ones. A difference in NLL that is left then is not one of calibration."
)
LABELLED = (
    "Images: trained on + held out. AutoLabel uses the images held out after each epoch, a temperature uses "
    "them once, label smoothing where rho is chosen; the other rows do without them."
)
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


@dataclass(frozen=True)
class TableLine:
    """A line of a table: a row's runs as they were trained, or at a fitted temperature."""

    row: StudyRow
    method: str
    paper: Mapping[str, float]
    temperature: str = ""  # "T": fitted on clean, "TA": on augmented validation images

    def metric(self, name: str) -> str:
        return f"{name} {self.temperature}" if self.temperature and name in SCALABLE else name


def lines_of(
    rows: Sequence[StudyRow],
    printed: dict[tuple[str, str], dict[str, float]] | None = None,
    scaled: bool = True,
) -> list[TableLine]:
    """The lines of these rows, with those at a temperature; what is shown of `printed` is taken out of it."""
    found = []
    for row in rows:
        method = row.title + place_of(row)
        found.append(TableLine(row, method, {} if printed is None else printed.pop((row.data, method), {})))
        found += [TableLine(row, f"{method} + {end}", {}, end) for end in row.scaled if scaled]
    return found


def _table(name: str, study: Study) -> Page:
    rows = rows_of(name, study.scale)
    found = study.found(rows)
    printed = _printed(name)
    lines = lines_of(rows, printed, scaled=name != "table4")
    blocks, records = [], []
    for title, metrics in _blocks(name, study, found):
        body = []
        for line in lines:
            mine = [_record(line, metric, found) for metric in metrics]
            twice = line.temperature and " T" in metrics[0]
            if title and (twice or not any(record.values for record in mine)):
                continue
            records += mine
            body.append([*_about(line, study, found), *(each.shown() for each in mine)])
        if not title and study.scale != "fast":  # what the paper has and this scale has not
            for (data, method), theirs in printed.items():
                more = [Record(data, method, metric, [], [], paper=theirs.get(metric)) for metric in metrics]
                records += more
                body.append([DATA[data], method, "0", *(each.shown() for each in more)])
        if body:
            images = ["images"] if study.scale == "fast" else []
            blocks.append(Block(title, ["data", "method", "seeds", *images, *map(name_of, metrics)], body))
    notes = notes_of(study, rows, found)
    if study.scale == "fast":
        notes.append(LABELLED)
    if study.scale == "fast" and printed:
        left_out = dict.fromkeys(f"{DATA[data]} {method}" for data, method in printed)
        notes.append(f"Rows of the paper that this scale leaves out: {'; '.join(left_out)}.")
    title = published().get(name, {}).get("title", "our readings of the paper, one at a time")
    return Page(name, title, blocks, records, notes)


def _about(line: TableLine, study: Study, found: Found) -> list[str]:
    """Data, method, seeds, and at `fast` how many labelled images the row used: trained on + held out."""
    results = found[line.row.name]
    about = [DATA[line.row.data], line.method, str(len(results))]
    if study.scale != "fast":
        return about
    images = [result.data.images for result in results.values()]
    return [*about, f"{images[0]['train']:,} + {images[0]['validation']:,}" if images else ""]


def _blocks(name: str, study: Study, found: Found) -> list[tuple[str, tuple[str, ...]]]:
    """The paper's columns; what stands beside every ECE; the same at a fitted temperature."""
    main = COLUMNS[name]
    if study.scale == "fast" and name in ("table3", "table4"):
        main = (*main, "label_mean")
    if name == "table4":
        return [("", main)]
    clean = tuple(each for each in main if each in CALIBRATION and "ece" in each)
    beside = BESIDE if len(clean) > 1 else tuple(m for m in BESIDE if m.startswith("c") == (name == "table6"))
    blocks = [("Beside them", beside), *_scaled(study, (*clean, *beside))]
    there = [result for results in found.values() for result in results.values()]
    measured = [
        (title, tuple(m for m in metrics if any(reading(result, m) is not None for result in there)))
        for title, metrics in blocks
    ]
    return [("", main), *((title, metrics) for title, metrics in measured if metrics)]


def _scaled(study: Study, metrics: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """A block per temperature; at `fast` one for both, with ECE and NLL alone."""
    if study.scale == "fast":
        few = [metric for metric in metrics if metric in ("ece", "cece", "nll", "cnll")]
        title = "At a temperature fitted on clean (T) or augmented (TA) validation images"
        return [(title, tuple(f"{metric} {end}" for metric in few for end in ("T", "TA")))]
    return [
        (f"At the temperature of lowest NLL on {on} validation images", tuple(f"{m} {end}" for m in metrics))
        for end, on in (("T", "clean"), ("TA", "augmented"))
    ]


def _record(line: TableLine, metric: str, found: Found) -> Record:
    row = line.row
    by_seed = {seed: _value(row, seed, line.metric(metric), found) for seed in found[row.name]}
    paper = line.paper.get(metric)
    return Record.of(row.data, line.method, metric, by_seed, paper=paper, ran=bool(by_seed))


def _value(row: StudyRow, seed: int, metric: str, found: Found) -> float | None:
    """A metric of one run, None if it was not measured; Delta needs the vanilla run of the same seed."""
    if metric != "delta":
        return reading(found[row.name][seed], metric)
    vanilla = found.get(f"{row.data}-vanilla_at", found.get(f"{row.data}-vanilla", {})).get(seed)
    if vanilla is None or row.method.startswith("vanilla"):
        return None
    ours = reading(found[row.name][seed], "both_accuracies")
    clean, attacked = (reading(vanilla, each) for each in ("accuracy", "adversarial_accuracy"))
    return None if ours is None or clean is None or attacked is None else ours - clean - attacked


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


def place_of(row: StudyRow) -> str:
    """The radius, beta or images of a row, as the table names them; table 3 has one radius for all."""
    images = "" if row.images is None else f", {row.images:,.0f} training images"
    return _where(None if row.radius == 0.01 else row.radius, row.beta) + images


def _where(epsilon_max: float | None, beta: float | None) -> str:
    return f", epsilon_max {epsilon_max:g}" if epsilon_max else f", beta {beta:g}" if beta else ""


def notes_of(study: Study, rows: Sequence[StudyRow], found: Found) -> list[str]:
    """What the numbers are, what was chosen, and what is missing from what was `found`."""
    aurc = ", AURC times 1,000" if study.scale == "fast" else ""
    notes = [
        f"Mean ± standard deviation over seeds; all but NLL and Brier in percent{aurc}. In parentheses what "
        f"the paper printed, for its own networks and training. {_sizes(rows, found)}".strip()
    ]
    if study.scale != "paper" and any("_autolabel" in row.method for row in rows):
        notes.append(POOLED)
    if any(row.scaled for row in rows):
        notes.append(TEMPERATURES)
    fixed = [row for row in rows if row.method.partition("-")[0].endswith("_ls") and not row.values]
    if study.scale == "fast" and fixed:
        told = ", ".join(f"{row.title}{place_of(row)} {_rho(row, study):g}" for row in fixed)
        notes.append(f"Label smoothing's rho, where it is not chosen: {told}.")
    if options := recipe_words(study.words):
        notes.append(f"All runs with {' '.join(options)}.")
    notes += _corrupted(rows, found)
    chosen = [_chosen(row, study) for row in rows if row.values and study.chosen(row) is not None]
    if chosen:
        seeds = "a seed that is" if len(study.choosing.seeds) == 1 else "seeds that are"
        notes.append(f"Chosen on validation images of {seeds} not reported: {', '.join(chosen)}.")
    if changed := [row.name for row in rows if row.like]:
        notes.append(f"With the value of the row that they change: {', '.join(changed)}.")
    if short := [row.name for row in rows if len(found[row.name]) < (study.seeds or row.seeds)]:
        notes.append(f"Not run, or not with all seeds: {', '.join(short)}.")
    return notes


def _rho(row: StudyRow, study: Study) -> float:
    return float(study.planned(row)[0].recipe.labels.options["rho"])


def _chosen(row: StudyRow, study: Study) -> str:
    """At `fast`, where an end of the list was the best that was offered, it says so."""
    value = study.chosen(row)
    end = study.scale == "fast" and value in (row.values[0], row.values[-1])
    return f"{row.name} {row.tuned} {value:g}{' (an end of the range)' if end else ''}"


def _corrupted(rows: Sequence[StudyRow], found: Found) -> list[str]:
    """Which data sets were measured on corrupted copies, and whose copies these were."""
    told = {
        f"{DATA[row.data]} on copies. {note}"
        for row in rows
        for result in found[row.name].values()
        if any(isinstance(asked, dict) and asked.get("copies") for asked in result.measured)
        for note in (note for evaluation in result.evaluations for note in evaluation.notes)
        if note.startswith(CORRUPTED_FROM)
    }
    return sorted(told)


def _sizes(rows: Sequence[StudyRow], found: Found) -> str:
    """How many images each ECE is of: it depends on them."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for result in found[row.name].values():
            for line in (line for evaluation in result.evaluations for line in evaluation.rows):
                kind = "clean" if line.severity is None else "each corruption and severity"
                kind = "attacked" if line.on == "pgd" else kind
                counts.setdefault(DATA[row.data], {})[kind] = line.count
    told = [
        f"{data} {', '.join(f'{kind} {count:,}' for kind, count in kinds.items())}"
        for data, kinds in counts.items()
    ]
    return f"Test images, which ECE depends on: {'; '.join(told)}." if told else ""
