"""`auglabel reproduce`: the runs behind a table or figure of the paper, then the table or figure itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.recipe.options import flags
from auglabel.lab.study.gpu_cost import FRACTION
from auglabel.lab.study.plan import make_plan
from auglabel.lab.study.row import NAMES, Scale
from auglabel.lab.study.run_options import COPIES, keep_options, options_of
from auglabel.lab.study.run_rows import run_rows
from auglabel.lab.study.study import MOST_SEEDS, Study
from auglabel.lab.sweep.executor import Executor
from auglabel.lab.sweep.job import Results
from auglabel.util.checks import entry, require_number, require_whole


@dataclass(frozen=True)
class Reproduce:
    """At which size, with which data, and what to do"""

    scale: Scale = "cpu"
    """cpu: a laptop finishes all in a night; fast: all of CIFAR-100, minutes per run; paper: for GPUs"""
    seeds: int | None = None
    """runs per row; as many as each row has if not given"""
    plan: bool = False
    """print what would be run and what it would cost, and stop; for all a plan is written into OUT too"""
    fraction: float = FRACTION
    """of a GPU's peak that training reaches: what the plan of the scale paper assumes"""
    assemble: bool = False
    """run nothing; make tables and figures of the results that are there"""
    cifar10: str | None = None
    """where CIFAR-10 lies"""
    cifar100: str | None = None
    """where CIFAR-100 lies"""
    imagenet: str | None = None
    """where ImageNet lies"""
    copies: str | None = None
    """folder that holds CIFAR-10-C, CIFAR-100-C, ImageNet-C: measure on these, not on images made here"""
    out: str = "results"
    """directory of the results; the runs themselves go into runs/"""

    def __post_init__(self) -> None:
        if self.seeds is not None:
            require_whole("seeds", self.seeds, 1, MOST_SEEDS)
        require_number("fraction", self.fraction, 1e-3, 1)

    @property
    def folder(self) -> Path:
        return Path(self.out) / self.scale

    def study(self, words: Sequence[str] = ()) -> Study:
        """`words` are options of the recipe for every run."""
        roots = {"cifar10": self.cifar10, "cifar100": self.cifar100, "imagenet": self.imagenet}
        there = {name: root for name, root in roots.items() if root is not None}
        results = Results(self.folder / "runs", Path("runs") / self.scale)
        given = [*words, *([] if self.copies is None else [f"{COPIES}{self.copies}"])]
        return Study(self.scale, results, there, self.seeds, words=options_of(self.folder, given))


USAGE, OPTIONS = "NAME", (Reproduce, Executor)


def run(words: list[str]) -> int:
    name, rest = name_first(words)
    if name is None:
        raise UserError(f"which table or figure? auglabel reproduce NAME, of {', '.join(NAMES)}, or all.")
    options, rest = flags(Reproduce, rest)
    executor, rest = flags(Executor, rest)
    return reproduce(name, options, executor, Console(highlight=False, emoji=False), rest)


def reproduce(
    name: str, how: Reproduce, executor: Executor, console: Console, words: Sequence[str] = ()
) -> int:
    """Run what is not there yet, then write the table or figure, or all of them; the exit code."""
    study = how.study(words)
    entry("table or figure", dict.fromkeys([*NAMES, "all"]), name)
    names = study.names() if name == "all" else [name]
    failed: list[str] = []
    left_out = ""
    if not how.assemble:
        if not (how.plan and how.scale == "paper"):  # whose cost is counted
            left_out = study.require_data(study.rows(names))
        if left_out:
            console.print(f"Left out, without images: {left_out}.", markup=False, soft_wrap=True)
        if how.plan:
            out = Path(how.out) if name == "all" and not left_out else None
            make_plan(study, names, out, executor, console, how.fraction)
            return 0
        study.require_copies(study.rows(names))
        executor.require()
        keep_options(how.folder, study.words)
        failed = run_rows(study, names, executor, console)
    from auglabel.lab.paper.assemble import assemble

    assemble(names, study, how.folder, console)
    if failed:
        console.print(f"{len(failed)} runs failed; the same command tries them again:", markup=False)
        for line in failed:
            console.print(line, markup=False, soft_wrap=True)
    return 1 if failed else 0
