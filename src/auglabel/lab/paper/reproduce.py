"""`auglabel reproduce`: the runs behind a table or figure, then the table or figure itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.lab.paper.passed import keep_options, options_of
from auglabel.lab.paper.plan import Cost, costs_of, unit, write_plan
from auglabel.lab.paper.row import Row, Scale
from auglabel.lab.paper.study import MOST_SEEDS, NAMES, Study, in_order
from auglabel.lab.runs.files import locked
from auglabel.lab.sweep.executor import Executor, run_all
from auglabel.lab.sweep.job import Job, Results
from auglabel.util.checks import entry, require_whole

PLANS = {"cpu": "plan.yaml", "fast": "plan-fast.yaml"}  # of what is run here, written before


@dataclass(frozen=True)
class Reproduce:
    """At which size, with which data, and what to do"""

    scale: Scale = "cpu"
    """cpu: a laptop finishes all in a night; fast: all of CIFAR-100, minutes per run; paper: for GPUs"""
    seeds: int | None = None
    """runs per row; as many as each row has if not given"""
    plan: bool = False
    """print what would be run and what it would cost, and stop; for all a plan is written into OUT too"""
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
            require_whole("seeds", self.seeds, 1, MOST_SEEDS)

    @property
    def folder(self) -> Path:
        return Path(self.out) / self.scale

    def study(self, words: Sequence[str] = ()) -> Study:
        """`words` are options of the recipe for every run."""
        roots = {"cifar10": self.cifar10, "cifar100": self.cifar100, "imagenet": self.imagenet}
        there = {name: root for name, root in roots.items() if root is not None}
        results = Results(self.folder / "runs", Path("runs") / self.scale)
        return Study(self.scale, results, there, self.seeds, words=options_of(self.folder, words))


def reproduce(
    name: str, how: Reproduce, executor: Executor, console: Console, words: Sequence[str] = ()
) -> int:
    """Run what is not there yet, then write the table or figure, or all of them; the exit code."""
    study = how.study(words)
    names = study.names() if name == "all" else [_known(name)]
    rows = study.rows(names)
    failed: list[str] = []
    if not how.assemble:
        if not (how.plan and how.scale == "paper"):  # whose cost is in recipes/rows.yaml
            study.require_data(rows)
        if how.plan:
            costs = _show_plan(study, rows, executor, console)
            if name == "all" and how.scale in PLANS:
                _write_plan(study, rows, costs, Path(how.out) / PLANS[how.scale], console)
            return 0
        executor.require()
        keep_options(how.folder, study.words)
        study.results.runs.mkdir(parents=True, exist_ok=True)
        with locked(study.results.runs, f"another process is at work in {study.results.runs}."):
            for stage in study.stages(names):
                failed += _run_stage(replace(study, failed=_stems(failed)), stage, executor, console)
    from auglabel.lab.paper.assemble import assemble

    assemble(names, study, how.folder, console)
    if failed:
        console.print(f"{len(failed)} runs failed; the same command tries them again:", markup=False)
        for line in failed:
            console.print(line, markup=False, soft_wrap=True)
    return 1 if failed else 0


def _run_stage(study: Study, rows: Sequence[Row], executor: Executor, console: Console) -> list[str]:
    """First the runs that choose, then those that are reported; a sentence for each that failed."""
    older = {row.name for row in rows if study.of_an_older_rule(row)}
    for name in sorted(older):
        line = f"{name} has results by an older form of the pooled rule, and gets no new ones beside them."
        console.print(f"{line} Another --out runs it anew.", markup=False, soft_wrap=True)
    rows = [row for row in rows if row.name not in older]
    tuning = [(row, job) for row in rows for jobs in study.tuning(row).values() for job in jobs]
    failed = _run(study, "to choose rho and alpha", in_order(tuning), executor, console)
    study = replace(study, failed=study.failed | _stems(failed))
    reported = [(row, job) for row in rows for job in study.jobs(row)]
    return failed + _run(study, "to report", in_order(reported), executor, console)


def _stems(failed: Sequence[str]) -> frozenset[str]:
    return frozenset(line.partition(": ")[0] for line in failed)


def _known(name: str) -> str:
    entry("table or figure", dict.fromkeys([*NAMES, "all"]), name)
    return name


def _run(study: Study, why: str, jobs: Sequence[Job], executor: Executor, console: Console) -> list[str]:
    study.require_same_images(jobs)
    there = sum(study.results.read(job) is not None for job in jobs)
    if jobs:
        console.print(f"{len(jobs)} runs {why}, {there} of them there.", markup=False)
    for job in jobs:
        for other in study.results.others(job):
            line = f"{other} is of another version of this recipe, and is left alone."
            console.print(line, markup=False, soft_wrap=True)
    return run_all(jobs, study.results, executor, console)


def _show_plan(study: Study, rows: Sequence[Row], executor: Executor, console: Console) -> dict[str, Cost]:
    """Print what each row takes, and all together."""
    if not rows:
        console.print("No run is needed.")
        return {}
    with console.status("trying each row for a moment") as status:
        costs = costs_of(study, rows, lambda job: status.update(f"trying {job}"))
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


def _write_plan(
    study: Study, rows: Sequence[Row], costs: dict[str, Cost], path: Path, console: Console
) -> None:
    """Once: a plan is worth something only if it does not change when results are known."""
    if path.exists():
        console.print(f"{path} was written before, and stays.", markup=False, soft_wrap=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_plan(path, study, rows, costs)
    console.print(f"wrote {path}", markup=False, soft_wrap=True)
