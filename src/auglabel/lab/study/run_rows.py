"""Run the rows of tables and figures: first the runs that choose rho and alpha, then those reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from auglabel.lab.runs.files import locked
from auglabel.lab.study.row import StudyRow
from auglabel.lab.study.study import Study, in_order
from auglabel.lab.sweep.executor import Executor, run_all
from auglabel.lab.sweep.job import Job


def run_rows(study: Study, names: Sequence[str], executor: Executor, console: Console) -> list[str]:
    """Run what is not there yet of these tables and figures; a sentence for each run that failed."""
    failed: list[str] = []
    study.results.runs.mkdir(parents=True, exist_ok=True)
    with locked(study.results.runs, f"another process is at work in {study.results.runs}."):
        for stage in study.stages(names):
            failed += _run_stage(replace(study, failed=_stems(failed)), stage, executor, console)
    return failed


def _run_stage(study: Study, rows: Sequence[StudyRow], executor: Executor, console: Console) -> list[str]:
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
