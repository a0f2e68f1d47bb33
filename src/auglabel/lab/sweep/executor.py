"""Many jobs: what they will cost, and doing them on all cores of this machine or on a Ray cluster."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.process.bar import bar_of, followed
from auglabel.lab.process.slots import each_in_slots, gpus
from auglabel.lab.process.workers import cores, each
from auglabel.lab.sweep.job import Job, Results
from auglabel.util.checks import require_number, require_whole

Engine = Literal["local", "ray"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Executor:
    """Who does the work"""

    engine: Engine = "local"
    """local: processes here, of one thread each or with a GPU each; ray: tasks on a Ray cluster"""
    workers: int | None = None
    """how many at a time; if not given one per GPU, or else per core; more than that share GPUs"""
    gpus_per_run: int = 1
    """GPUs that train one run together, a process on each; the number of workers follows"""
    loader_workers: int | None = None
    """processes of each run that decode images ahead, for data that do not fit in memory; 2 if not given"""
    address: str | None = None
    """ray: HOST:PORT of the head node; a Ray of its own on this machine if not given"""

    forecast: float = 60.0
    """seconds at most for timing a few steps beforehand, to say what the runs will cost; 0 says nothing"""

    def __post_init__(self) -> None:
        require_number("forecast", self.forecast, 0)
        if self.engine not in ("local", "ray"):
            raise UserError(f"engine must be local or ray, got {self.engine!r}.")
        if self.workers is not None:
            require_whole("workers", self.workers, 1)
        require_whole("gpus_per_run", self.gpus_per_run, 1)
        if self.loader_workers is not None:
            require_whole("loader_workers", self.loader_workers, 0)
        if self.address is not None and self.engine != "ray":
            raise UserError("address goes with --engine ray.")

    @property
    def capacity(self) -> int | None:
        """How many work at a time; None where a cluster decides."""
        if self.workers is not None or self.address is not None:
            return self.workers
        return len(self.slots) or cores()

    @property
    def slots(self) -> list[str]:
        """The GPUs of each that works here, as CUDA_VISIBLE_DEVICES takes them; none without GPUs."""
        found, size = gpus(), self.gpus_per_run
        groups = [",".join(found[at : at + size]) for at in range(0, len(found) - size + 1, size)]
        return [groups[n % len(groups)] for n in range(self.workers or len(groups))] if groups else []

    @property
    def per_run(self) -> dict[str, Any]:
        """What each run is given, as `attempt` takes it."""
        return {"processes": self.gpus_per_run, "loader_workers": self.loader_workers}

    def require(self) -> None:
        """Say now, not when the work begins, that GPUs or Ray are missing, or that Ray does not answer."""
        if self.gpus_per_run > 1 and self.address is None and not self.slots:
            raise UserError(f"gpus_per_run is {self.gpus_per_run}, but this machine has {len(gpus())} GPUs.")
        if self.engine == "ray":
            from auglabel.lab.sweep.ray_engine import require_ray

            require_ray(self.address)

    def each(
        self, do: Callable[[Item], str | None], work: Sequence[Item]
    ) -> Generator[tuple[Item, str | None], None, None]:
        if self.engine == "local" and self.slots:
            return each_in_slots(do, work, self.slots)
        if self.engine == "local":
            assert self.capacity is not None
            return each(do, work, self.capacity)
        from auglabel.lab.sweep.ray_engine import each_on_ray

        return each_on_ray(do, work, self.capacity, self.address, self.gpus_per_run)


def run_all(jobs: Sequence[Job], results: Results, executor: Executor, console: Console) -> list[str]:
    """Do every job whose result is not there; a sentence for each that failed. The others go on."""
    waiting = [job for job in jobs if results.read(job) is None]
    console.file = console.file  # a job done in this process takes what is printed into its log meanwhile
    bar = bar_of("epochs", console)
    task = bar.add_task("", total=sum(job.recipe.training.epochs for job in waiting))
    with followed(bar, task, partial(_far, waiting, results)):
        do = partial(attempt, results, **executor.per_run)
        return go_through(waiting, do, executor, console, lambda job: job.stem)


def go_through(
    work: Sequence[Item],
    do: Callable[[Item], str | None],
    executor: Executor,
    console: Console,
    name: Callable[[Item], str],
) -> list[str]:
    """A line for each piece of work as it is done, by its name then; a sentence for each that failed."""
    failed: list[str] = []
    if not work:
        return failed
    start = time.perf_counter()
    with contextlib.closing(executor.each(do, work)) as done:
        for number, (item, trouble) in enumerate(done, start=1):
            minutes = (time.perf_counter() - start) / 60
            named, told = name(item), "done" if trouble is None else trouble
            console.print(
                f"{number}/{len(work)} {named}: {told} ({minutes:.1f} min)", markup=False, soft_wrap=True
            )
            if trouble is not None:
                failed.append(f"{named}: {trouble}")
    return failed


def require_done(failed: Sequence[str], count: int) -> None:
    """Raise if any of `count` runs has failed."""
    if failed:
        names = ", ".join(line.partition(": ")[0] for line in failed)
        raise OSError(
            f"{len(failed)} of {count} runs failed: {names}. The others are there, why is said above, "
            "and the same command tries again."
        )


def attempt(results: Results, job: Job, processes: int = 1, loader_workers: int | None = None) -> str | None:
    """Perform a job, one thread per process; what went wrong, if anything; a defect's traceback is logged."""
    torch.set_num_threads(1)
    try:
        results.perform(job, processes, loader_workers)
    except (UserError, OSError, ImportError) as error:
        return str(error)
    except Exception as error:  # a network of the user's own may fail in any way; the others go on
        with results.log(job).open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
        return f"{type(error).__name__}: {' '.join(str(error).split())} (more in {results.log(job)})"
    return None


def _far(jobs: Sequence[Job], results: Results) -> dict[str, Any]:
    """How many epochs there are behind the runs, wherever they are done, and in words how many runs."""
    done = [_epochs(job, results) for job in jobs]
    under_way = sum(0 < count < job.recipe.training.epochs for count, job in zip(done, jobs, strict=True))
    ready = sum(results.file(job).is_file() for job in jobs)
    return {"completed": sum(done), "description": f"{ready}/{len(jobs)} runs done, {under_way} training"}


def _epochs(job: Job, results: Results) -> int:
    """How many a run has behind it."""
    if results.file(job).is_file():
        return job.recipe.training.epochs
    try:
        return results.run(job).metrics_file.read_bytes().count(b"\n")
    except OSError:
        return 0
