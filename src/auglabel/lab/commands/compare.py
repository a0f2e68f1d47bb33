"""`auglabel compare`: which labels should I use? Trains each kind with some seeds, and says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.commands.sweep import tell_cost
from auglabel.lab.compare.candidates import of_file, usual
from auglabel.lab.compare.contest import Contest
from auglabel.lab.methods.verdict import SHOWN, Verdict
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.report.report import ReportOptions, report
from auglabel.lab.runs.files import locked
from auglabel.lab.runs.metric_list import METRICS
from auglabel.lab.sweep.executor import Executor, require_done
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.util.checks import require_whole

SIGNS = {"best": "*", "equal": "=", "": " "}
TEMPERATURES = "T, TA: at the temperature of lowest NLL on clean, on augmented validation images"


@dataclass(frozen=True)
class CompareOptions:
    """Which methods, how often, and what is measured"""

    methods: str | None = None
    """YAML file of methods with their options; one-hot, label smoothing and AutoLabel if not given"""
    seeds: int = 3
    """runs of each method"""
    first_seed: int = 0
    """the others follow it"""
    corrupted: bool = True
    """measure on corrupted test images, too"""
    images: int = 1000
    """how many test images are corrupted"""
    plan: bool = False
    """say what there is to do and what it will cost, and stop"""
    out: str | None = None
    """directory of the results, the runs and the page; compare/RECIPE if not given"""

    def __post_init__(self) -> None:
        require_whole("seeds", self.seeds, 1)
        require_whole("first_seed", self.first_seed, 0)
        require_whole("images", self.images, 1)

    @property
    def measured(self) -> tuple[Measurement, ...]:
        clean = (Measurement("clean"),)
        return (*clean, Measurement("corrupted", images=self.images)) if self.corrupted else clean


USAGE, OPTIONS, TAKES_RECIPE = "RECIPE", (CompareOptions, Executor), True


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    if name is None:
        raise UserError("which recipe? It comes first: auglabel compare folder --data.root pictures.")
    options, rest = flags(CompareOptions, rest)
    executor, rest = flags(Executor, rest)
    compare(name, rest, options, executor)


def compare(name: str, words: Sequence[str], options: CompareOptions, executor: Executor) -> None:
    """Say what is to be done, do what is not there yet, and say what came out."""
    executor.require()
    shared = Shared(name, tuple(words), options.measured)
    out = Path(options.out or f"compare/{shared.name}")
    candidates = (
        usual(read_recipe(name, words)) if options.methods is None else of_file(Path(options.methods))
    )
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    contest = Contest(shared, candidates, seeds, Results(out / "results", out / "runs"))
    console = Console(file=sys.stdout, highlight=False, emoji=False)
    waiting = [job for job in contest.planned if contest.results.read(job) is None]
    console.print(f"{len(contest.planned)} runs, {len(waiting)} of them to do.", markup=False)
    tell_cost([[job] for job in waiting], contest.results, executor, console)
    if options.plan:
        return
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, f"another comparison is under way in {out}: wait for it, or name another --out."):
        failed = contest.run(executor, console)
        _tell(contest, out, console)
    require_done(failed, len(contest.planned))


def _tell(contest: Contest, out: Path, console: Console) -> None:
    """What was chosen, the table and the verdict, and all of it as a page."""
    titles: dict[str, str] = {}
    for candidate in contest.candidates:
        value = contest.chosen(candidate)
        if value:
            console.print(
                f"{candidate.name}: {candidate.option} {value[0]} has the lowest NLL on augmented validation "
                f"images, of {', '.join(candidate.values)}.",
                markup=False,
                soft_wrap=True,
            )
        runs = [contest.results.run(job) for job in contest.jobs(candidate)]
        titles |= {str(run.path): candidate.name for run in runs if run.model_file.is_file()}
    if (verdict := contest.verdict()) is not None:
        show(verdict, console)
    if titles:
        _write_page(titles, out, console)


def show(verdict: Verdict, console: Console) -> None:
    """Print the small table, clean images first, and the sentences."""
    caption = "mean ± standard deviation over seeds; * best, = not told apart from it"
    table = Table(box=box.SIMPLE_HEAD, padding=0, caption=f"{caption}\n{TEMPERATURES}")
    for title in ("images", "labels"):
        table.add_column(title, overflow="fold")
    for metric in SHOWN:
        table.add_column(f" {METRICS[metric].heading}", justify="right", no_wrap=True)
    for place in dict.fromkeys(column.place for column in verdict.columns):
        table.add_section()
        for number, (title, cells) in enumerate(verdict.rows):
            there = zip(verdict.columns, cells, strict=True)
            marked = {c.metric: f"{cell.text}{SIGNS[cell.mark]}" for c, cell in there if c.place == place}
            images = str(place[0]) if number == 0 else ""
            table.add_row(images, title, *(marked.get(metric, "-") for metric in SHOWN))
    console.print(table)
    for sentence in verdict.sentences:
        console.print(sentence, markup=False, soft_wrap=True)


def _write_page(titles: dict[str, str], out: Path, console: Console) -> None:
    options = ReportOptions(out=str(out / "compare.html"), title="Which labels should I use?")
    try:
        path = report(list(titles), options, [], console, titles)
    except ImportError as missing:
        console.print(f"No page was written: {missing}", markup=False, soft_wrap=True)
    else:
        console.print(f"All of it as a page, to open in a browser: {path}", markup=False, soft_wrap=True)
