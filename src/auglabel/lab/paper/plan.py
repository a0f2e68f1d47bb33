"""The plan of a study, before its first test image is looked at: rows, seeds, choices, claims and cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from auglabel.lab.paper.row import FIRST_SEED, Row
from auglabel.lab.paper.study import Study
from auglabel.lab.paper.verdicts import LEVEL, claims
from auglabel.lab.recipe import row_recipes
from auglabel.lab.sweep.forecast import core_hours
from auglabel.lab.sweep.measurement import digest_words
from auglabel.util.atomic_write import write_text

RULES = {
    "seeds": f"from {FIRST_SEED} on, since those below have been looked at while the method was built; "
    "methods share split, first weights, order and views by seed",
    "metrics": "ECE with 15 equal-width bins; clean: all test images; corrupted: 1,000 of them, the mean "
    "over 17 types and 5 severities; attacked: 1,000; weights of the last epoch",
    "verdict": f"paired two-sided t interval over seeds; Holm over the claims of one table or figure at "
    f"{LEVEL}; a claim holds if all its parts do and is reversed if one is",
}
Cost = tuple[int, int, float]  # runs, those of them that are there, core-hours of all


def rules_of(study: Study) -> dict[str, str]:
    """How hyper-parameters are chosen, and what is the same at all scales."""
    seeds = " and ".join(map(str, study.choosing.seeds))
    return {
        "hyper-parameters": f"rho and alpha have the value of lowest NLL on {study.choosing.words} after the "
        f"last epoch, mean over runs with seed {seeds}, which are not reported; label smoothing and "
        "AutoLabel have as many values to choose from; a row that changes another takes its value; all else "
        "is the recipe's",
        **RULES,
    }


def costs_of(study: Study, rows: Sequence[Row], told: Callable[[str], None]) -> dict[str, Cost]:
    """What each row takes, the runs that choose its option among them, each run once."""
    found, met = {}, set()
    tried: dict[str, float] = {}
    for row in rows:
        choosing = (job for some in study.tuning(row).values() for job in some)
        jobs = [job for job in (*choosing, *study.planned(row)) if job.stem not in met]
        met |= {job.stem for job in jobs}
        there = sum(study.results.read(job) is not None for job in jobs)
        if study.scale == "paper":
            each = [gpu_hours(row)] * len(jobs)
        else:
            each = core_hours(jobs, study.results, told, tried)
        found[row.name] = len(jobs), there, sum(each)
    return found


def unit(study: Study) -> str:
    """What costs are counted in: GPU hours as recipes/rows.yaml estimates them, or core-hours tried here."""
    return "gpu_hours" if study.scale == "paper" else "core_hours"


def write_plan(path: Path, study: Study, rows: Sequence[Row], costs: dict[str, Cost]) -> None:
    """All of it as YAML, the claims in full."""
    about = {
        "scale": study.scale,
        "rules": rules_of(study),
        **({"options": " ".join(study.words)} if study.words else {}),
        unit(study): round(sum(cost for *_, cost in costs.values()), 1),
        "rows": [_about(study, row, costs[row.name]) for row in rows],
        "claims": claims(study.scale),
    }
    text = yaml.safe_dump(about, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
    write_text(path, text)


def _about(study: Study, row: Row, cost: Cost) -> dict[str, Any]:
    choice = {"chosen": row.tuned, "from": list(row.values)} if row.values else {}
    choice |= {"chosen": row.tuned, "as_in": row.like} if row.like else {}
    return {
        "row": row.name,
        "recipe": row.recipe,
        **({"words": " ".join(row.words)} if row.words else {}),
        "seeds": study.seeds or row.seeds,
        **choice,
        "measured": digest_words(row.measured),
        unit(study): round(cost[2], 2),
    }


def gpu_hours(row: Row) -> float:
    """What the table of recipes estimates for one run, or for its share of the training images."""
    share = re.search(r"--split\.train=(0\.\d+)", " ".join(row.words))
    return row_recipes.gpu_hours(row.recipe) * (float(share[1]) if share else 1)
