"""`auglabel report`: read runs, draw their page, and on request figures and tables for a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from rich.console import Console

from auglabel.errors import UserError
from auglabel.lab.methods.methods import TrainedRun, by_data, methods_of, read_run
from auglabel.lab.pictures.show import sheet_of
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.options import pairs
from auglabel.lab.recipe.read import NAMED, read_recipe
from auglabel.lab.recipe.recipe import ELSEWHERE, flat
from auglabel.lab.report.page import Picture, Section, parts_of, picture_of, render
from auglabel.lab.runs.run import Run
from auglabel.util.atomic_write import write_bytes, write_text
from auglabel.util.checks import shown

LARGEST = 3_000_000  # bytes of a page; beyond that pictures are left out
TILE = 48  # pixels of an image on a contact sheet
LEFT_OUT = "Some pictures were left out to keep the page small."


@dataclass(frozen=True)
class ReportOptions:
    """Where the page goes, and what else is written"""

    out: str = "report.html"
    """the page"""
    pdf: str | None = None
    """folder for every figure as PDF and the tables as LaTeX, the paper's numbers beside ours"""
    title: str = "Runs compared"
    """of the page"""

    def __post_init__(self) -> None:
        if Path(self.out).suffix.lower() not in (".html", ".htm") or Path(self.out).is_dir():
            raise UserError(f"--out must be an .html file, got {self.out}.")
        if self.pdf is not None and (self.pdf == "true" or Path(self.pdf).is_file()):
            raise UserError(f"--pdf must be a folder for the figures, got {self.pdf}.")


def report(
    names: Sequence[str],
    options: ReportOptions,
    words: Sequence[str],
    console: Console,
    titles: Mapping[str, str] | None = None,
) -> Path:
    """Write the page of these runs; `words` may say where their data are now, and allow own parts by name.

    `titles` gives runs, by their path, the name of their method instead of one made of its recipe.
    """
    load_altair()
    if others := [key for key, _ in pairs(words) if key not in (*ELSEWHERE, *NAMED)]:
        raise UserError(
            f'a report has no option "{others[0]}": beside its own it takes --data.root or --data.path, '
            "for images that lie elsewhere now, and names of your own parts: --augment module:function."
        )
    where = [f"--{key}={value}" for key, value in pairs(words) if key in ELSEWHERE]
    typed = [value for key, value in pairs(words) if key in NAMED and ":" in value]
    runs, notes = [], []
    for name in dict.fromkeys(str(Path(name)) for name in names):
        run, remarks = read_run(Path(name), (titles or {}).get(name))
        runs.append(run)
        notes += remarks
    pictures, missing = _pictures_of(runs, where, typed)
    return write_report(runs, pictures, [*notes, *missing], options, console)


def report_if_possible(
    names: Sequence[str], out: Path, title: str, console: Console, titles: Mapping[str, str] | None = None
) -> None:
    """The same at the end of another command, which goes without where nothing can draw charts."""
    try:
        path = report(names, ReportOptions(out=str(out), title=title), [], console, titles)
    except ImportError as missing:
        console.print(f"No page was written: {missing}", markup=False, soft_wrap=True)
    else:
        console.print(f"All of it as a page, to open in a browser: {path}", markup=False, soft_wrap=True)


def write_report(
    runs: Sequence[TrainedRun],
    pictures: Sequence[tuple[str, Picture]],
    notes: Sequence[str],
    options: ReportOptions,
    console: Console,
) -> Path:
    """Write the page, and on request its figures and tables."""
    parts, notes = parts_of(runs, pictures), list(notes)
    out, page = Path(options.out), render(options.title, parts, notes)
    shown = len(pictures)
    while len(page.encode()) > LARGEST and pictures:
        pictures = pictures[:-1]
        parts = parts_of(runs, pictures)
        page = render(options.title, parts, [*notes, LEFT_OUT])
    for note in [*notes, *([LEFT_OUT] if len(pictures) < shown else [])]:
        console.print(note, markup=False, soft_wrap=True)
    if options.pdf is not None:
        folder = Path(options.pdf)
        for place, part in enumerate(parts):
            _write_figures(part, folder if len(parts) == 1 else folder / f"{place + 1}")
        console.print(f"wrote figures and tables into {folder}", markup=False, soft_wrap=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, page)
    return out


def _write_figures(part: Section, folder: Path) -> None:
    """Write NAME.pdf of every figure, table.tex and cost.tex."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    for figure in part.figures:
        spec = figure.alone()
        write_bytes(folder / f"{figure.name}.pdf", vl_convert.vegalite_to_pdf(spec))
    told = "mean and standard deviation over seeds; the paper's in parentheses"
    write_text(folder / "table.tex", f"% {part.name}: {told}\n{part.table.latex()}\n")
    write_text(folder / "cost.tex", f"% {part.name}: one run\n{part.costs.latex()}\n")


def _pictures_of(
    runs: Sequence[TrainedRun], where: Sequence[str], typed: Sequence[str]
) -> tuple[list[tuple[str, Picture]], list[str]]:
    """The contact sheet of each method whose labels learn, and a note for each that cannot be drawn."""
    pictures, notes = [], []
    for method in (method for group in by_data(runs) for method in methods_of(group)):
        run = method.first
        if not run.history:
            continue
        try:
            pictures.append((run.name, picture_of(method.title, _sheet_of_run(run, where, typed))))
        except (UserError, OSError, ImportError) as error:
            notes.append(f"There are no pictures of {run.name}: {error}")
        except Exception as error:
            if not any(value in typed for value in flat(run.recipe).values()):
                raise  # it has no part of the user's own
            notes.append(f"There are no pictures of {run.name}: {type(error).__name__}: {shown(error)}")
    return pictures, notes


def _sheet_of_run(trained: TrainedRun, where: Sequence[str], typed: Sequence[str]) -> Image.Image:
    """The contact sheet of a run; its network is needed only where the augmentation may use it."""
    run = Run(Path(trained.name))
    recipe = read_recipe(str(run.recipe_file), where, typed=typed)
    data, parts = data_for(recipe)
    run.require_data(data, parts)
    used = recipe.augment.name == "adversarial" or ":" in recipe.augment.name
    model = run.network(recipe, data)[0] if used else None
    return sheet_of(recipe, data, parts, model, trained.history[-1], tile=TILE)
