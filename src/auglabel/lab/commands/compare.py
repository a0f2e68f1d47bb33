"""`auglabel compare`: which labels should I use? Trains each kind with some seeds, and says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import recipe_first
from auglabel.lab.commands.sweep import tell_cost
from auglabel.lab.compare.candidates import of_file, usual
from auglabel.lab.compare.contest import Contest
from auglabel.lab.compare.outcome import tell
from auglabel.lab.paper.claim_verdicts import require_scipy
from auglabel.lab.recipe.options import flags, pairs
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.files import locked
from auglabel.lab.sweep.executor import Executor, require_done
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.util.checks import require_whole


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
    """Say what is to be done, do what is not there yet, and say what came out."""
    name, words = recipe_first(words, "auglabel compare folder --data.root pictures")
    options, words = flags(CompareOptions, words)
    executor, words = flags(Executor, words)
    executor.require()
    _require_free(words, own="labels" if options.methods is None else "")
    require_scipy()
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
        tell(contest, out, console)
    require_done(failed, len(contest.planned))


def _require_free(words: Sequence[str], own: str) -> None:
    """Refuse options that every method sets by itself."""
    for key, _ in pairs(words):
        if key == "seed":
            raise UserError("--seed: a comparison has several, which --seeds and --first_seed say.")
        if own and key.partition(".")[0] == own:
            raise UserError(
                f"--{key}: a comparison chooses labels itself; --methods FILE names those of yours."
            )
