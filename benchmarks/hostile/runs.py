"""Run directories, as report, inspect and train --resume read them."""

from __future__ import annotations

import functools
import io
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from safetensors.torch import load

from auglabel import RandAug
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.lab.methods.methods import read_run
from auglabel.lab.pictures.history_chart import history_chart
from auglabel.lab.pictures.terminal import heat_map, summary
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.yamlfile import with_checksum
from auglabel.lab.report.page import parts_of
from auglabel.lab.runs.evaluations import EVALUATION_FORMAT
from auglabel.lab.runs.files import read_lines
from auglabel.lab.runs.label_tables import read_history
from auglabel.lab.runs.records import RUN_FORMAT, SplitRows
from auglabel.lab.runs.run import Run
from auglabel.lab.share.card import measured
from auglabel.lab.sweep.result import KEPT
from auglabel.lab.train.saving import checkpoint_of, restore
from auglabel.lab.train.train import facts_of, labels_of
from auglabel.lab.train.trainer import Trainer
from hostile.recipes import recipe_cases
from hostile.spoil import Draw, Files, as_json, json_cases, line_cases, spoil_tree, with_files
from hostile.tables import spoil_file
from hostile.tensors import a_checkpoint, safetensors_cases


@functools.cache
def a_run() -> Files:
    recipe = read_recipe("embedded", ["--regime=randaug_autolabel", "--epochs=2", "--m_max=2", "--alpha=0.1"])
    grid = RandAug(m_max=2).grid
    data = {"name": "embedded", "checksum": "abc", "notes": [], "images": {"train": 100, "test": 10}}
    about = {"format": RUN_FORMAT, "versions": {"auglabel": "0"}, "seed": 0, "data": data, "parameters": 12}
    epochs = [
        {
            **{"epoch": n, "loss": 2.0, "validation": {"nll": 1.0, "ece": 0.1, "accuracy": 0.5, "count": 9}},
            **{"seconds": {"calibrating": 0.5, "validating": 0.2}, "images_per_second": 500.0},
        }
        for n in (1, 2)
    ]
    tables = [
        {"epoch": n, "confidence": {k: [0.9] * m for k, m in zip(grid.kinds, grid.levels, strict=True)}}
        for n in (1, 2)
    ]
    return {
        "recipe.yaml": with_checksum(recipe.as_yaml()).encode(),
        "run.json": as_json(about),
        "metrics.jsonl": b"".join(as_json(line) + b"\n" for line in epochs),
        "tables.jsonl": b"".join(as_json(line) + b"\n" for line in tables),
        "eval/clean.json": as_json(an_evaluation()),
    }


def an_evaluation() -> dict[str, Any]:
    figures = {name: {"value": 0.5, "low": None, "high": 0.6} for name in (*KEPT, "max_ce")}
    bins = {"count": [6.0, 4.0], "confidence": [2.4, 3.6], "correct": [3.0, 3.0]}
    rows = [
        {"on": on, "severity": s, "count": 10, "figures": figures, "scaled": {"T": figures}, "bins": bins}
        for on, s in (("clean", None), ("fog", 1), ("fog", 2))
    ]
    means = [{"on": "corrupted", "pairs": 2, "figures": dict.fromkeys(KEPT, 0.5), "scaled": {}}]
    about = {
        "checkpoint": "last",
        "epoch": 2,
        "data": {"checksum": "abc"},
        "attack": None,
        "corruptions": None,
    }
    return {
        "format": EVALUATION_FORMAT,
        **about,
        "temperatures": {"T": 1.5},
        "notes": [],
        "rows": rows,
        "means": means,
    }


def read_report(place: Path) -> object:
    """As `auglabel report` does, up to the page."""
    run, _ = read_run(place)
    for part in parts_of([run]):
        json.dumps(
            [part.table.body, part.costs.body, [figure.records for figure in part.figures]], allow_nan=False
        )
    return measured(Run(place))


def begun(folder: Path) -> tuple[Trainer, DataSet, Parts]:
    """Begin a run there, as `auglabel train` does, with a first checkpoint."""
    words = ["--regime=randaug_autolabel", "--m_max=2", "--alpha=0.1", "--split.train=40", "--epochs=2"]
    words += ["--split.validation=20", "--split.test=20", "--batch_size=20", "--model.widths=[4,4,4]"]
    recipe = read_recipe("embedded", words)
    data, parts = data_for(recipe)
    trainer, run = Trainer(recipe, data, parts, device="cpu"), Run(folder)
    run.begin(recipe)
    run.record_split(SplitRows.of(parts))
    run.record_facts(facts_of(recipe, data, parts, trainer))
    list(trainer.epoch(lambda step: False))
    run.record_epoch(trainer.end_epoch(), labels_of(trainer))
    run.save(trainer.step, checkpoint_of(trainer), keep=2, best=False)
    return trainer, data, parts


@functools.cache
def a_begun_run() -> tuple[Files, Trainer, DataSet, Parts]:
    with tempfile.TemporaryDirectory() as place:
        made = begun(Path(place))
        paths = [path for path in Path(place).rglob("*") if path.is_file()]
        return {str(path.relative_to(place)): path.read_bytes() for path in paths}, *made


def spoil_begun(draw: Draw, files: Files) -> Files:
    name = next(name for name in files if name.startswith("checkpoints/"))
    if draw.random() < 0.8:
        return spoil_file(draw, files)
    sound = a_begun_run()[0][name]  # the checksum will fit, but not what it is a checksum of
    tensors = load(sound)
    facts = json.loads(json.loads(sound[8 : 8 + struct.unpack("<Q", sound[:8])[0]])["__metadata__"]["facts"])
    if draw.random() < 0.5:
        return {**files, name: a_checkpoint(tensors, json.dumps(spoil_tree(draw, facts)))}
    one, other = draw.sample(sorted(tensors), 2)
    spoilt = draw.choice(
        (
            {one: tensors[other].clone()},
            {one: tensors[one].double()[None]},
            {f"{one}x": tensors[one].clone()},
        )
    )
    return {**files, name: a_checkpoint({**tensors, **spoilt}, json.dumps(facts))}


def read_resumed(place: Path) -> object:
    """As `auglabel train --resume` does, with the first step; nothing is written."""
    _, trainer, data, parts = a_begun_run()
    run = Run(place)
    run.require_free(trainer.recipe, resume=True)
    run.require_data(data, parts)
    if (last := run.last()) is not None:
        restore(trainer, last, str(run.checkpoints))
        next(trainer.epoch(lambda step: False), None)
    return run.epochs(), read_lines(run.tables_file)


def resumed_cases() -> dict[str, Callable[[], Files]]:
    run = a_begun_run()[0]
    cases = json_cases("run.json", json.loads(run["run.json"]), run)
    name = next(name for name in run if name.startswith("checkpoints/"))
    found = safetensors_cases(name)
    cases |= {f"checkpoint: {key}": functools.partial(with_files, run, make) for key, make in found.items()}
    found = safetensors_cases("split.safetensors")
    return cases | {f"split: {key}": functools.partial(with_files, run, make) for key, make in found.items()}


def read_inspected(place: Path) -> object:
    """As `auglabel inspect` does, but for writing the picture."""
    history = read_history(place / "tables.jsonl")
    epoch, last = history[-1]
    console = Console(file=io.StringIO(), width=80)
    table, levels = [value for row in last.values() for value in row], [len(row) for row in last.values()]
    console.print(heat_map(list(last), levels, table, f"after {epoch}"))
    console.print(summary(history))
    return history_chart(history)


def run_cases() -> dict[str, Callable[[], Files]]:
    run = a_run()
    cases: dict[str, Callable[[], Files]] = {}
    for name in ("run.json", "eval/clean.json"):
        found = json_cases(name, json.loads(run[name]), run)
        cases |= {f"{name}: {key}": make for key, make in found.items()}
    for name in ("metrics.jsonl", "tables.jsonl"):
        found = line_cases(name, json.loads(run[name].split(b"\n")[0]), run)
        cases |= {f"{name}: {key}": make for key, make in found.items()}
    page = json.loads(run["eval/clean.json"])
    page["rows"][0]["on"] = "</script><script>alert(1)</script>"
    cases["a script for a name"] = lambda: {**run, "eval/clean.json": as_json(page)}
    recipes = recipe_cases()
    cases |= {f"recipe: {key}": functools.partial(with_files, run, make) for key, make in recipes.items()}
    return cases
