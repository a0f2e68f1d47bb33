"""`auglabel report`: one page that compares runs."""

from __future__ import annotations

from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import names_first
from auglabel.lab.recipe.options import flags
from auglabel.lab.report.report import ReportOptions, report

USAGE, OPTIONS = "RUN...", (ReportOptions,)


def run(words: list[str]) -> None:
    names, rest = names_first(words)
    options, rest = flags(ReportOptions, rest)
    if not names:
        raise UserError("which runs? They come first: auglabel report runs/one runs/other.")
    print(f"wrote {report(names, options, rest, Console(highlight=False, emoji=False))}")
