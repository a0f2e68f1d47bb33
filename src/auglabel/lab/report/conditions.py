"""What the runs of one data set were measured on, and what each method reached there."""

from __future__ import annotations

import inspect
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from auglabel.corrupt import SEVERITIES, SUITES
from auglabel.lab.evaluate.results import IN_PERCENT
from auglabel.lab.paper.published import published
from auglabel.lab.recipe.catalogue import AUGMENTATIONS, REGIMES, Regime
from auglabel.lab.recipe.recipe import flat, listed
from auglabel.lab.report.subject import Method, Subject

METRICS = {  # as people write them; those at a fitted temperature end in T or TA
    "accuracy": "accuracy",
    "ece": "ECE",
    "debiased_ece": "debiased ECE",
    "nll": "NLL",
    "brier": "Brier",
    "aurc": "AURC",
    "ece T": "ECE at T",
    "nll T": "NLL at T",
    "ece TA": "ECE at TA",
    "nll TA": "NLL at TA",
}
PERCENT = tuple(name for name in METRICS if name.partition(" ")[0] in IN_PERCENT)
Place = tuple[str, int | None]  # what was measured, and its severity
OVERALL: Place = ("corrupted", None)  # the mean over all pairs of corruption and severity


class Cell(NamedTuple):
    """A metric of a method: one value per seed."""

    values: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def sd(self) -> float:
        """Over seeds; 0 if there is one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0


@dataclass
class Condition:
    """Images that several methods were measured on, in the same way."""

    title: str
    detail: str  # what else there is to say
    rows: dict[Place, dict[str, dict[int, Mapping[str, Any]]]] = field(default_factory=dict)
    # rows[place][method's title][seed]: what eval wrote
    whole: bool = False  # all of the paper's corruptions, at all five severities

    def named(self, place: Place) -> str:
        """A place in words."""
        name = place[0] if place[1] is None else f"{place[0]} {place[1]}"
        pairs = [
            row["pairs"] for rows in self.rows[place].values() for row in rows.values() if "pairs" in row
        ]
        return f"{name}{f', mean of {pairs[0]}' if pairs else ''}, {self.title}"

    def cell(self, place: Place, method: str, metric: str) -> Cell | None:
        """None where some seed has no such figure."""
        rows = self.rows.get(place, {}).get(method, {})
        values = [_value(rows[seed], metric) for seed in sorted(rows)]
        known = [value for value in values if value is not None]
        return Cell(known) if known and len(known) == len(values) else None

    def mean(self, places: Sequence[Place], method: str, metric: str) -> Cell | None:
        """The mean over places, of each seed that was measured at all of them."""
        rows = [self.rows.get(place, {}).get(method, {}) for place in places]
        seeds = sorted(set.intersection(*map(set, rows))) if rows else []
        each = [[_value(row[seed], metric) for row in rows] for seed in seeds]
        known = [[value for value in values if value is not None] for values in each]
        if not each or [len(values) for values in known] != [len(places)] * len(each):
            return None
        return Cell([statistics.fmean(values) for values in known])

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(method for rows in self.rows.values() for method in rows))

    def graded(self) -> dict[str, list[int]]:
        """The severities of each corruption."""
        found: dict[str, list[int]] = {}
        for name, severity in self.rows:
            if severity is not None:
                found.setdefault(name, []).append(severity)
        return {name: sorted(some) for name, some in found.items()}

    def plain(self) -> list[Place]:
        """The places without a severity; the mean over all last."""
        return [place for place in self.rows if place[1] is None]

    def bins(self, place: Place, method: str) -> dict[str, list[float]] | None:
        """What reliability diagrams are drawn from, summed over seeds (and, for the mean, over pairs)."""
        places = [each for each in self.rows if each[1] is not None] if place == OVERALL else [place]
        rows = [row for each in places for row in self.rows.get(each, {}).get(method, {}).values()]
        if not rows or not all(row.get("bins") for row in rows):
            return None
        names = ("count", "confidence", "correct")
        if len({len(row["bins"]["count"]) for row in rows}) > 1:
            return None
        return {
            name: [sum(part) for part in zip(*(row["bins"][name] for row in rows), strict=True)]
            for name in names
        }


def _value(row: Mapping[str, Any], metric: str) -> float | None:
    name, _, at = metric.partition(" ")
    found = (row["scaled"].get(at, {}) if at else row["figures"]).get(name)
    value = found["value"] if isinstance(found, dict) else found  # means have no interval
    return None if value is None else float(value)


def conditions_of(methods: Sequence[Method]) -> list[Condition]:
    """Measurements of the same images in the same way, together, whichever call of `eval` made them."""
    groups: dict[tuple[str, ...], Condition] = {}
    for method in methods:
        for subject in method.subjects:
            for evaluation in subject.evaluations.values():
                for place, row, key in _measured(evaluation, subject):
                    if key not in groups:
                        details = ", ".join(word for word in key[1:-1] if word)
                        groups[key] = Condition(key[0], details, whole=_whole(evaluation, subject))
                    seeds = groups[key].rows.setdefault(place, {}).setdefault(method.title, {})
                    before = seeds.get(subject.seed)  # the same measured twice counts once
                    seeds[subject.seed] = row if before is None else _joined(before, row)
    return _told_apart(list(groups.values()))


def _joined(before: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row measured twice: as it was first, with the temperatures of both."""
    return {**before, "scaled": {**row["scaled"], **before["scaled"]}}


def _measured(
    evaluation: Mapping[str, Any], subject: Subject
) -> Iterator[tuple[Place, Mapping[str, Any], tuple[str, ...]]]:
    """Every row, and the mean over corruptions, with what says how it was measured: words, then the rest."""
    corruptions, attack = evaluation.get("corruptions"), evaluation.get("attack")
    rest = ["best checkpoint"] if evaluation["checkpoint"] == "best" else []
    split = str(flat(subject.recipe).get("split.test"))  # how many test images are cut off, if any
    for row in evaluation["rows"]:
        how, which = "", split
        if row["severity"] is not None:
            how, which = _origin(corruptions)
            which += split
        elif row["on"] != "clean" and attack is not None:
            how = ", ".join(f"{key} {value}" for key, value in attack.items() if value is not None)
        yield (row["on"], row["severity"]), row, (f"{row['count']:,} images", how, *rest, which)
    counts = [row["count"] for row in evaluation["rows"] if row["severity"] is not None]
    for mean in evaluation["means"][-1:]:
        how, which = _origin(corruptions)
        yield OVERALL, mean, (f"{max(counts):,} images", how, *rest, which + split)


def _origin(corruptions: Mapping[str, Any] | None) -> tuple[str, str]:
    """Of corrupted images: who made them and how many kinds, in words; and which, to the last one."""
    if corruptions is None:
        return "", ""
    names, severities = sorted(corruptions["names"]), corruptions["severities"]
    words = names[0] if len(names) == 1 else f"{len(names)} corruptions"
    return f"{corruptions['from']}, {words} at severities {severities}", json.dumps([names, severities])


def _whole(evaluation: Mapping[str, Any], subject: Subject) -> bool:
    """Whether these are the corruptions that the paper measured on."""
    corruptions = evaluation.get("corruptions")
    suite = "standard" if subject.recipe["data"]["name"] == "imagenet" else "paper"
    return corruptions is not None and (
        set(corruptions["names"]) == set(SUITES[suite]) and list(corruptions["severities"]) == [*SEVERITIES]
    )


def _told_apart(conditions: list[Condition]) -> list[Condition]:
    """Titles that are enough: where two share a place, they tell all."""
    plain = [condition.title for condition in conditions]
    for number, condition in enumerate(conditions):
        others = [c for c, title in zip(conditions, plain, strict=True) if title == plain[number]]
        if any(condition.rows.keys() & other.rows.keys() for other in others if other is not condition):
            twins = [other for other in others if other.detail == condition.detail]
            which = f" ({twins.index(condition) + 1})" if len(twins) > 1 else ""
            condition.title += f", {condition.detail}{which}"
    return conditions


def paper_value(method: Method, condition: Condition, place: Place, metric: str) -> float | None:
    """What the paper printed for this augmentation and kind of labels on these images, as a fraction."""
    if place == OVERALL and not condition.whole:
        return None
    metric = {OVERALL: f"c{metric}", ("clean", None): metric}.get(place, "")
    recipe = method.first.recipe
    data = {"CIFAR-10": "cifar10", "CIFAR-100": "cifar100"}.get(method.first.facts["data"]["name"])
    data = "imagenet" if recipe["data"]["name"] == "imagenet" else data
    options = recipe["augment"]
    for source in ("table2", "table3", "table5", "table6"):
        if source == "table3" and options.get("epsilon_max", 0.01) != 0.01:
            continue
        for row in published()[source]["rows"]:
            beta = row.get("beta")
            fits = row["method"] in _regimes(recipe) and row["data"] == data
            if fits and (beta is None or beta == options.get("beta")) and row.get(metric) is not None:
                return float(row[metric]) / 100
    return None


def _regimes(recipe: Mapping[str, Any]) -> list[str]:
    """The names that this way to train goes by: the augmentation as the paper has it, rho and alpha free."""
    names = [recipe["augment"]["name"], recipe["labels"]["name"], recipe["loss"]]
    return [
        name
        for name, regime in REGIMES.items()
        if [regime.augment, regime.labels, regime.loss] == names and _as_usual(recipe["augment"], regime)
    ]


def _as_usual(options: Mapping[str, Any], regime: Regime) -> bool:
    """But for the radius and beta, by which the paper's rows are told apart."""
    asked = inspect.signature(AUGMENTATIONS[regime.augment]).parameters
    usual = {name: each.default for name, each in asked.items()} | dict(regime.augment_options)
    return all(
        listed(options[name]) == listed(value)
        for name, value in usual.items()
        if name in options and name not in ("epsilon_max", "beta")
    )
