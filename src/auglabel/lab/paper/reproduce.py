"""`auglabel reproduce`: the runs behind a table or figure, then the table or figure itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.checks import entry, require_whole
from auglabel.lab.job import Job, Results
from auglabel.lab.paper.plan import Cost, costs_of, unit, write_plan
from auglabel.lab.paper.rows import Row, Scale
from auglabel.lab.paper.study import NAMES, Study, in_order
from auglabel.lab.sweep import Crew, run_all
from auglabel.lab.workers import cores


@dataclass(frozen=True)
class Reproduce:
    """At which size, with which data, and what to do"""

    scale: Scale = "cpu"
    """cpu: recipes that a laptop finishes; paper: those of the paper, for GPUs"""
    seeds: int | None = None
    """runs per row; as many as each row has if not given"""
    plan: bool = False
    """print what would be run and what it would cost, write OUT/plan.yaml, and stop"""
    assemble: bool = False
    """run nothing; make tables and figures of the results that are there"""
    cifar10: str | None = None
    """where CIFAR-10 lies"""
    cifar100: str | None = None
    """where CIFAR-100 lies"""
    imagenet: str | None = None
    """where ImageNet lies"""
    out: str = "results"
    """directory of the results; the runs themselves go into runs/"""

    def __post_init__(self) -> None:
        if self.seeds is not None:
            require_whole("seeds", self.seeds, 1)

    def study(self) -> Study:
        roots = {"cifar10": self.cifar10, "cifar100": self.cifar100, "imagenet": self.imagenet}
        results = Results(Path(self.out) / self.scale / "runs", Path("runs") / self.scale)
        return Study(self.scale, results, {k: v for k, v in roots.items() if v is not None}, self.seeds)


def reproduce(name: str, how: Reproduce, crew: Crew, console: Console) -> int:
    """Run what is not there yet, then write the table or figure, or all of them; the exit code."""
    names = list(NAMES) if name == "all" else [_known(name)]
    study = how.study()
    rows = study.rows(names)
    failed: list[str] = []
    if not how.assemble:
        if not (how.plan and how.scale == "paper"):  # whose cost is in its recipes
            study.require_data(rows)
        if how.plan:
            _show_plan(study, rows, Path(how.out) / "plan.yaml", crew, console)
            return 0
        tuning = [(row, job) for row in rows for job in study.tuning(row).values()]
        failed = _run(study, in_order(tuning), crew, console)
        reported = [(row, job) for row in rows for job in study.jobs(row)]
        failed += _run(study, in_order(reported), crew, console)
    from auglabel.lab.paper.assemble import assemble

    assemble(names, study, Path(how.out) / how.scale, console)
    if failed:
        console.print(f"{len(failed)} runs failed; the same command tries them again:", markup=False)
        for line in failed:
            console.print(line, markup=False, soft_wrap=True)
    return 1 if failed else 0


def _known(name: str) -> str:
    entry("table or figure", dict.fromkeys([*NAMES, "all"]), name)
    return name


def _run(study: Study, jobs: Sequence[Job], crew: Crew, console: Console) -> list[str]:
    for job in jobs:
        for other in study.results.others(job):
            line = f"{other} is of another version of this recipe, and is left alone."
            console.print(line, markup=False, soft_wrap=True)
    return run_all(jobs, study.results, crew, console)


def _show_plan(study: Study, rows: Sequence[Row], path: Path, crew: Crew, console: Console) -> None:
    with console.status("trying each row for a moment") as status:
        costs = costs_of(study, rows, lambda job: status.update(f"trying {job}"))
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("row", overflow="fold")
    cost = unit(study).replace("_", "-")
    for title in ("runs", "there", cost):
        table.add_column(f" {title}", justify="right")
    for row in rows:
        runs, there, hours = costs[row.name]
        table.add_row(row.name, str(runs), str(there), f"{hours:.2f}")
    console.print(table)
    runs, there, hours = (sum(column) for column in zip(*costs.values(), strict=True))
    workers = crew.workers or cores()
    left = hours - sum(_spent(cost) for cost in costs.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_plan(path, study, rows, costs)
    console.print(
        f"{runs} runs, {there} of them there; {hours:.1f} {cost}, {left:.1f} of them left: "
        f"{left / workers:.1f} hours with {workers} workers. Wrote {path}.",
        markup=False,
        soft_wrap=True,
    )


def _spent(cost: Cost) -> float:
    """About as much of a row's core-hours as of its runs."""
    runs, there, hours = cost
    return hours * there / runs
