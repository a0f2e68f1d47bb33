"""Write tables, figures and verdicts from the results that are there."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console

from auglabel.augment.augmix import AugMix
from auglabel.data.embedded import embedded
from auglabel.lab.paper.charts import write_chart
from auglabel.lab.paper.choices import choices
from auglabel.lab.paper.comparison import comparison
from auglabel.lab.paper.figures import figure
from auglabel.lab.paper.overview import write_overview
from auglabel.lab.paper.page import Page
from auglabel.lab.paper.tables import table
from auglabel.lab.paper.verdict_page import write_verdicts
from auglabel.lab.pictures.contact_sheet import contact_sheet
from auglabel.lab.pictures.vega import write_svg
from auglabel.lab.study.published import published
from auglabel.lab.study.rows import MADE, rows_of
from auglabel.lab.study.study import Study
from auglabel.util.atomic_write import write_atomically
from auglabel.util.resources import resource_folder

SHOWN = 64  # images to choose the pictures of Figure 1 from


def assemble(names: Sequence[str], study: Study, folder: Path, console: Console) -> None:
    """Each of `names` as Markdown, LaTeX, CSV, JSON and a chart, and the claims that rest on them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        page = page_of(name, study)
        drawn = _draw(page, study, folder)
        page.write(folder, drawn)
        console.print(page.markdown(chart=False), markup=False, soft_wrap=True)
    if study.scale in MADE and len(names) > 1:
        choices(study).write(folder, chart=False)
        if study.scale == "fast":
            write_overview(page_of("table2", study), folder)
            comparison(study).write(folder, chart=False)
        write_verdicts(study, folder, console)
    console.print(f"wrote {', '.join(names)} into {folder}", markup=False, soft_wrap=True)


def page_of(name: str, study: Study) -> Page:
    if name == "figure4":
        return Page(name, str(published()[name]["title"]), [], [], ["Drawn; no run is behind it."])
    return figure(name, study) if name.startswith("figure") else table(name, study)


def _draw(page: Page, study: Study, folder: Path) -> bool:
    if page.name == "figure4":
        drawing = resource_folder("lab/paper") / "figure4.svg"
        write_svg(drawing.read_text(encoding="utf-8"), folder / page.name)
        return True
    drawn = write_chart(page, folder)
    if page.name == "figure1" and drawn:
        _draw_views(page, study, folder)
    return drawn


def _draw_views(page: Page, study: Study, folder: Path) -> None:
    """Pictures of every AugMix bucket, out of the embedded images, with the labels learned for it."""
    learned = [statistics.fmean(record.values) for record in page.records if record.values]
    source = embedded().train
    rows = torch.arange(SHOWN)
    (row,) = rows_of(page.name, study.scale)
    augment = AugMix(**study.planned(row)[0].recipe.augment.options)
    sheet = contact_sheet(
        augment, source.fetch(rows), source.labels[rows], embedded().classes, table=torch.tensor(learned)
    )
    write_atomically(folder / "figure1_images.png", lambda partial: sheet.save(partial, format="PNG"))
