"""Audit a network: that of a run, one with weights, or a program, on any labelled images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.progress import Progress, TaskID
from torch import nn

from auglabel import __version__
from auglabel.augment.base import Augmentation
from auglabel.data.source import DataSet, Source, Subset
from auglabel.data.split import Parts
from auglabel.errors import UserError
from auglabel.lab.audit.audit import Audit, as_json, audit_of
from auglabel.lab.audit.audit_sheet import audit_sheet
from auglabel.lab.audit.exported_network import load_program
from auglabel.lab.evaluate.evaluate import some_rows
from auglabel.lab.evaluate.network import load_into, on_device
from auglabel.lab.parts.catalogue import augmentation_for
from auglabel.lab.pictures.show import write_picture
from auglabel.lab.pictures.terminal import heat_map
from auglabel.lab.process.bar import bar_of
from auglabel.lab.recipe.build import data_for, model_for
from auglabel.lab.recipe.options import pairs
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.lab.runs.checkpoint import load_weights
from auglabel.lab.runs.run import Run
from auglabel.lab.train import feed
from auglabel.measure import every_bucket, measure
from auglabel.util.checks import require_whole
from auglabel.util.checksummed_json import write_checksummed
from auglabel.view import View

Part = Literal["validation", "test", "all"]


@dataclass(frozen=True)
class AuditOptions:
    """Which network, if it is not a run's, and which images"""

    weights: str | None = None
    """safetensors or .pth file with the weights of --model"""
    program: str | None = None
    """TorchScript, or an exported program (.pt2), that takes pixels in [0, 1]"""
    part: Part | None = None
    """images to use; if not given a run's validation images, and for others the test images, or all"""
    images: int | None = None
    """how many of them, drawn once; all if not given"""
    batch_size: int = 250
    """images at a time"""
    out: str | None = None
    """JSON file, which training takes as a label table; RUN/audit.json or audit.json if not given; the
    picture lies beside it, as PNG"""

    def __post_init__(self) -> None:
        require_whole("batch_size", self.batch_size, 1)
        if self.images is not None:
            require_whole("images", self.images, 1)
        if self.weights is not None and self.program is not None:
            raise UserError("weights go with --model; a --program has its own.")
        if self.out is not None and Path(self.out).suffix.lower() == ".png":
            raise UserError(f"--out must be a JSON file, got {self.out}: the picture is written beside it.")


def audit_network(
    name: str | None, options: AuditOptions, words: Sequence[str], console: Console
) -> list[Path]:
    """Audit the network of a run or from elsewhere; print what came out and write it, as JSON and PNG."""
    run = None if name is None else Run(Path(name))
    if run is not None:
        run.require()
    recipe = read_recipe(None if run is None else str(run.recipe_file), words)
    augment = _augmentation(recipe, words)
    data, parts = data_for(recipe)
    model, about = _network(run, options, recipe, data, parts)
    source, part = _images(run, options, data, parts, recipe.training.seed)
    model, seed = on_device(model), recipe.training.seed
    audit = _asked(model, augment, source, options.batch_size, seed, len(data.classes), console)
    _show(audit, console)
    out = Path(options.out) if options.out else (run.path if run else Path()) / "audit.json"
    facts = {
        "auglabel": __version__,
        **about,
        "augment": {"name": recipe.augment.name, **recipe.augment.options},
        "data": {"name": data.name, "checksum": data.checksum, "part": part, "images": len(source)},
        "seed": seed,
    }
    write_checksummed(out, as_json(audit, facts))
    if source.shape[0] not in (1, 3):
        return [out]  # there are no pictures of other channels
    sheet = audit_sheet(audit, augment, source, data.classes, model, seed)
    return [out, write_picture(sheet, out.with_suffix(".png"))]


def _augmentation(recipe: Recipe, words: Sequence[str]) -> Augmentation:
    """The one asked for, or the run's own; RandAug for a run that was trained without one."""
    augment = augmentation_for(recipe.augment.name, **recipe.augment.options)
    asked = any(key.startswith(("augment", "regime")) for key, _ in pairs(words))
    return augmentation_for("randaug") if len(augment.grid) == 1 and not asked else augment


def _network(
    run: Run | None, options: AuditOptions, recipe: Recipe, data: DataSet, parts: Parts
) -> tuple[nn.Module, dict[str, Any]]:
    if run is not None:
        run.require_data(data, parts)
        model, weights = run.network(recipe, data)
        if weights.saw_validation(recipe) and options.part in (None, "validation"):
            raise UserError(
                f"{run.path} was trained on its validation images too: audit it with --part test."
            )
        return model, {"run": str(run.path), **weights.about}
    if options.program is not None:
        return load_program(Path(options.program), data), {"program": options.program}
    model = model_for(recipe, data)
    if options.weights is None and not recipe.model.options.get("pretrained"):
        raise UserError(
            "which network? Give a run, or --model NAME with --weights FILE.safetensors or with "
            "--model.pretrained true, or --program FILE; and --data."
        )
    if options.weights is not None:
        load_into(model, load_weights(Path(options.weights)), options.weights)
    return model, {"model": recipe.model.name, "weights": options.weights}


def _images(
    run: Run | None, options: AuditOptions, data: DataSet, parts: Parts, seed: int
) -> tuple[Source, str]:
    """The images of a part, or some of them, and which part."""
    part: Part = options.part or (
        "validation" if run is not None else "test" if data.test is not None else "all"
    )
    everything = Subset(data.train, torch.arange(len(data.train)))
    chosen = {"validation": parts.validation, "test": parts.test, "all": everything}[part]
    if len(chosen) == 0:
        raise UserError(f"there are no {part} images to audit on: see --part.")
    return Subset(chosen, some_rows(len(chosen), options.images, seed)), part


def _asked(
    model: nn.Module,
    augment: Augmentation,
    source: Source,
    batch_size: int,
    seed: int,
    classes: int,
    console: Console,
) -> Audit:
    rows, buckets = feed.in_turn(source, batch_size), len(augment.grid)
    loader, generator = feed.batches(source, rows), generator_for(seed, "audit")
    views = every_bucket(model, augment, loader, clean=True, generator=generator)
    with bar_of("predictions", console) as bar:
        task = bar.add_task("asking the network", total=len(source) * (buckets + 1))
        seen, clean = measure(model, _counted(views, bar, task), groups=buckets + 1).parted(buckets)
    return audit_of(clean, seen, augment.grid, classes)


def _counted(views: Iterator[View], bar: Progress, task: TaskID) -> Iterator[View]:
    """The views, each counted once the network has seen it."""
    for view in views:
        yield view
        bar.advance(task, len(view))


def _show(audit: Audit, console: Console) -> None:
    grid, clean = audit.grid, audit.clean
    low, high = clean.interval
    console.print(
        f"As they are: accuracy {clean.accuracy:.1%} ({low:.1%} to {high:.1%}), confidence "
        f"{clean.confidence:.1%}, ECE {clean.ece:.1%}, {clean.count:,} images.",
        markup=False,
        soft_wrap=True,
    )
    for title, values in (
        ("Accuracy, %: the lowest label that AutoLabel's rule allows", [b.accuracy for b in audit.buckets]),
        ("Label confidence that this network calls for, %", [audit.label(b) for b in audit.buckets]),
    ):
        console.print(heat_map(grid.kinds, grid.levels, values, title))
    for sentence in audit.sentences():
        console.print(sentence, markup=False, soft_wrap=True)
