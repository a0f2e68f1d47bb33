"""What came out of a contest, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from auglabel.lab.compare.contest import Contest
from auglabel.lab.methods.verdict import SHOWN, Verdict
from auglabel.lab.report.report import report_if_possible
from auglabel.lab.runs.metric_list import METRICS

SIGNS = {"best": "*", "equal": "=", "": " "}
TITLE = "Which labels should I use?"
TEMPERATURES = "T, TA: at the temperature of lowest NLL on clean, on augmented validation images"


def tell(contest: Contest, out: Path, console: Console) -> None:
    """What was chosen, the table and the verdict, and all of it as a page."""
    for candidate in contest.candidates:
        value = contest.chosen(candidate)
        if value:
            console.print(
                f"{candidate.name}: {candidate.option} {value[0]} has the lowest NLL on augmented validation "
                f"images, of {', '.join(candidate.values)}.",
                markup=False,
                soft_wrap=True,
            )
    if (verdict := contest.verdict()) is not None:
        show(verdict, console)
    if titles := contest.trained():
        report_if_possible(list(titles), out / "compare.html", TITLE, console, titles)


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
