"""`auglabel reproduce`: a table or figure of the paper, ours beside theirs."""

from __future__ import annotations

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.paper.reproduce import Reproduce, reproduce
from auglabel.lab.paper.study import NAMES
from auglabel.lab.recipe.options import flags
from auglabel.lab.sweep.executor import Executor

USAGE, OPTIONS = "NAME", (Reproduce, Executor)


def run(words: list[str]) -> int:
    name, rest = name_first(words)
    if name is None:
        raise UserError(f"which table or figure? auglabel reproduce NAME, of {', '.join(NAMES)}, or all.")
    options, rest = flags(Reproduce, rest)
    executor, rest = flags(Executor, rest)
    return reproduce(name, options, executor, Console(highlight=False, emoji=False), rest)
