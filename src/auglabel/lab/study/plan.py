"""The plan of a study, before its first test image is looked at: rows, seeds, choices, claims and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.errors import UserError
from auglabel.lab.study.claims import LEVEL, claims
from auglabel.lab.study.gpu_cost import FRACTION, run_flops, show_gpus
from auglabel.lab.study.row import FIRST_SEED, StudyRow
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.executor import Executor
from auglabel.lab.sweep.forecast import forecast
from auglabel.lab.sweep.forecast import unit as timed_unit
from auglabel.lab.sweep.job import Job
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
FAST_NETWORK = (
    "chosen with one-hot labels on validation images of seed 100, before the labels of this study were "
    "compared: a network and epochs at which a run of CIFAR-100 takes about 12 core-minutes; batches of 64 "
    "at rate 0.1, whose accuracy was 59.3 % with all images and 54.2 % with a quarter, where batches of 256 "
    "at rate 0.2 had 58.6 and 53.7 %; with a quarter they end over-confident by 4.3 and 2.4 points"
)
PLANS = {"cpu": "plan.yaml", "fast": "plan-fast.yaml"}  # of what is run here, written before
Cost = tuple[int, int, float]  # runs, those of them that are there, core-hours or EFLOP of all


def rules_of(study: Study) -> dict[str, str]:
    """How hyper-parameters are chosen, and what is the same at all scales."""
    seeds = " and ".join(map(str, study.choosing.seeds))
    offered = (
        "alpha is auto; a row of label smoothing without values has the paper's rho, or with a quarter of "
        "the images that of the contest"
        if study.scale == "fast"
        else "label smoothing and AutoLabel have as many values to choose from"
    )
    return {
        "hyper-parameters": f"what is chosen has the value of lowest NLL on {study.choosing.words} after the "
        f"last epoch, mean over runs with seed {seeds}, which are not reported; {offered}; a row that "
        "changes another takes its value; all else is the recipe's",
        **({"network and epochs": FAST_NETWORK} if study.scale == "fast" else {}),
        **RULES,
    }


def make_plan(
    study: Study,
    names: Sequence[str],
    out: Path | None,
    executor: Executor,
    console: Console,
    fraction: float = FRACTION,
) -> None:
    """Print what would be run and what it would cost; write it into the folder `out`, if one is given.

    `fraction` is that of a GPU's peak which runs of the paper's size reach. A plan that is there
    stays: it is worth something only if it does not change when results are known.
    """
    rows = [row for row in study.rows(names) if study.scale == "paper" or not study.lacks_data(row)]
    costs = _show_costs(study, rows, executor, console) if rows else {}
    if not rows:
        console.print("No run is needed.")
    elif study.scale == "paper":
        left = [job for job in _jobs(study, rows) if study.results.read(job) is None]
        show_gpus(left, fraction, console)
        missing = sorted({row.data for row in rows} - set(study.roots))
        if missing:
            console.print(
                f"To run it, give {' and '.join(f'--{data} DIR' for data in missing)}.", markup=False
            )
    if out is None or study.scale not in PLANS:
        return
    path = out / PLANS[study.scale]
    if path.exists():
        console.print(f"{path} was written before, and stays.", markup=False, soft_wrap=True)
        return
    out.mkdir(parents=True, exist_ok=True)
    write_plan(path, study, rows, costs)
    console.print(f"wrote {path}", markup=False, soft_wrap=True)


def _show_costs(
    study: Study, rows: Sequence[StudyRow], executor: Executor, console: Console
) -> dict[str, Cost]:
    """Print what each row takes, and all together."""
    tried = {} if study.scale == "paper" else _tried(study, rows, executor, console)
    costs = costs_of(study, rows, tried)
    cost = unit(study).replace("_", "-")
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("row", overflow="fold")
    for title in ("runs", "there", cost):
        table.add_column(f" {title}", justify="right")
    for row in rows:
        runs, there, hours = costs[row.name]
        table.add_row(row.name, str(runs), str(there), f"{hours:.2f}")
    console.print(table)
    runs, there, hours = (sum(column) for column in zip(*costs.values(), strict=True))
    left = sum(hours * (1 - there / runs) for runs, there, hours in costs.values() if runs)
    words = f"{runs} runs, {there} of them there; {hours:.1f} {cost}, about {left:.1f} of them left"
    if study.scale in PLANS and executor.capacity is not None:
        words += f": {left / executor.capacity:.1f} hours with {executor.capacity} workers"
    console.print(f"{words}.", markup=False, soft_wrap=True)
    return costs


def _tried(study: Study, rows: Sequence[StudyRow], executor: Executor, console: Console) -> dict[str, float]:
    """Hours of every run by its stem, from a few steps of each kind."""
    jobs = _jobs(study, rows)
    with console.status("trying each row for a moment") as status:
        told = forecast(jobs, study.results, executor.forecast, lambda job: status.update(f"trying {job}"))
    if told.troubles:
        raise UserError(told.troubles[0])
    if told.rough:
        line = f"Rough, or unknown (nan): timing stopped after {executor.forecast:g} s (--forecast)."
        console.print(line, markup=False, soft_wrap=True)
    return {job.stem: hours for job, hours in zip(jobs, told.hours, strict=True)}


def costs_of(study: Study, rows: Sequence[StudyRow], hours: Mapping[str, float]) -> dict[str, Cost]:
    """What each row takes, the runs that choose its option among them, each run once; `hours` by stem."""
    found, met = {}, set()
    for row in rows:
        jobs = [job for job in _jobs(study, [row]) if job.stem not in met]
        met |= {job.stem for job in jobs}
        there = sum(study.results.read(job) is not None for job in jobs)
        if study.scale == "paper":
            each = [run_flops(job) / 1e18 for job in jobs]
        else:
            each = [hours[job.stem] for job in jobs]
        found[row.name] = len(jobs), there, sum(each)
    return found


def _jobs(study: Study, rows: Sequence[StudyRow]) -> list[Job]:
    """The runs that choose the option of each row, then those reported, each once."""
    choosing = [job for row in rows for jobs in study.tuning(row).values() for job in jobs]
    reported = [job for row in rows for job in study.planned(row)]
    return list({job.stem: job for job in (*choosing, *reported)}.values())


def unit(study: Study) -> str:
    """What costs are counted in: 10^18 floating-point operations, or hours tried here."""
    return "EFLOP" if study.scale == "paper" else timed_unit().lower().replace("-", "_")


def write_plan(path: Path, study: Study, rows: Sequence[StudyRow], costs: dict[str, Cost]) -> None:
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


def _about(study: Study, row: StudyRow, cost: Cost) -> dict[str, object]:
    choice = {"chosen": row.tuned, "from": list(row.values)} if row.values else {}
    choice |= {"chosen": row.tuned, "as_in": row.like} if row.like else {}
    return {
        "row": row.name,
        "recipe": row.recipe,
        **({"words": " ".join(row.words)} if row.words else {}),
        "seeds": study.seeds or row.seeds,
        **choice,
        "measured": digest_words(study.measured(row)),
        unit(study): round(cost[2], 2),
    }
