"""`auglabel preview` and `auglabel inspect`: pictures of what an augmentation does and labels become."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from rich.console import Console
from torch import nn

from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import augmentation_for
from auglabel.lab.pictures.contact_sheet import contact_sheet
from auglabel.lab.pictures.history_chart import history_chart
from auglabel.lab.pictures.terminal import ASCII_BARS, BARS, heat_map, summary
from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.label_tables import LabelTable
from auglabel.lab.runs.run import Run
from auglabel.util.atomic_write import write_atomically

SHOWN = 64  # training images to choose from


def preview_recipe(name: str | None, words: Sequence[str], out: str | None) -> Path:
    """A contact sheet of a recipe's augmentation, with the confidences of a run if `name` is one."""
    recipe = read_recipe(name, words)
    run = Run(Path(name)) if name is not None and Run(Path(name)).exists() else None
    data, parts = data_for(recipe)
    learned = None
    if run is None:
        model = model_for(recipe, data)
    else:
        model, _ = run.network(recipe, data)
        learned = run.history()[-1] if run.tables_file.exists() else None
    sheet = sheet_of(recipe, data, parts, model, learned)
    return write_picture(
        sheet, Path(out) if out else run.path / "preview.png" if run else Path("preview.png")
    )


def sheet_of(
    recipe: Recipe,
    data: DataSet,
    parts: Parts,
    model: nn.Module | None,
    learned: LabelTable | None,
    tile: int = 64,
) -> Image.Image:
    """The contact sheet of a recipe's augmentation on its training images, with the labels learned."""
    augment, table = augmentation_for(recipe.augment.name, **recipe.augment.options), None
    if learned is not None:
        if learned.levels != dict(zip(augment.grid.kinds, augment.grid.levels, strict=True)):
            raise UserError("its labels are for other distances than its augmentation has now.")
        table = torch.tensor([value for kind in augment.grid.kinds for value in learned.confidence[kind]])
    rows = torch.arange(min(SHOWN, len(parts.train)))
    return contact_sheet(
        augment,
        parts.train.fetch(rows),
        parts.train.labels[rows],
        data.classes,
        table=table,
        model=model,
        seed=recipe.training.seed,
        tile=tile,
    )


def inspect_run(run: Run, out: str | None, console: Console) -> Path:
    """Print how a run's labels moved, and draw it."""
    run.require()
    if not run.tables_file.exists():
        raise UserError(f"{run.path} has no table yet: its labels do not learn, or no epoch is done.")
    history = run.history()
    epoch, last = history[-1]
    table = [value for row in last.values() for value in row]
    levels = list(history[-1].levels.values())
    console.print(heat_map(list(last), levels, table, f"Label confidence after epoch {epoch}, %"))
    console.print(summary(history, ASCII_BARS if console.options.ascii_only else BARS))
    return write_picture(history_chart(history), Path(out) if out else run.path / "inspect.png")


def write_picture(picture: Image.Image, path: Path) -> Path:
    """Write a PNG; returns where."""
    if path.suffix.lower() != ".png":
        raise UserError(f"--out must be a .png file, got {path}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda partial: picture.save(partial, "PNG"))
    return path
