"""`auglabel predict`: class and calibrated probabilities of pictures, by the network of a run."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from auglabel import __version__
from auglabel.data.files import find_images
from auglabel.data.source import DataSet, InMemory
from auglabel.errors import UserError
from auglabel.lab.commands.arguments import names_first
from auglabel.lab.evaluate.network import on_device
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.records import DataFacts
from auglabel.lab.runs.run import Run, Weights
from auglabel.lab.share.card import temperature_of
from auglabel.lab.share.inputs import Input, input_of
from auglabel.util.atomic_write import write_text
from auglabel.util.checks import require_whole
from auglabel.util.inference import eval_mode, model_input


@dataclass(frozen=True)
class PredictOptions:
    """Which weights, and where the predictions go"""

    checkpoint: Literal["last", "best"] = "last"
    """which weights of the run; the best had the lowest validation NLL"""
    out: str | None = None
    """file to write; printed if not given"""
    json: bool = False
    """one JSON object instead of CSV"""
    batch_size: int = 64
    """images at a time"""

    def __post_init__(self) -> None:
        require_whole("batch_size", self.batch_size, 1)


USAGE, OPTIONS = "RUN IMAGES...", (PredictOptions,)


@dataclass(frozen=True)
class Predicted:
    """The probabilities of each picture that could be read, and why the others could not."""

    classes: Sequence[str]
    probs: dict[str, list[float]]  # by file
    unread: dict[str, str]

    def rows(self) -> Iterator[tuple[str, str, float, list[float]]]:
        """File, class, confidence and all probabilities."""
        for file, probs in self.probs.items():
            top = max(probs)
            yield file, self.classes[probs.index(top)], top, probs


def run(words: list[str]) -> int:
    (name, *places), rest = names_first(words) if words and not words[0].startswith("-") else ([""], words)
    options, rest = flags(PredictOptions, rest)
    if not name or not places:
        raise UserError(
            "which run, and which pictures? auglabel predict runs/NAME IMAGES..., files or folders."
        )
    trained = Run(Path(name))
    model, facts, takes, weights = _network(trained, trained.recipe_with(rest, "used"), options.checkpoint)
    temperature = temperature_of(trained, weights.checkpoint, weights.epoch)
    files, unread = _files(places)
    found = _predicted(model, takes, files, temperature or 1.0, options.batch_size)
    predicted = Predicted(facts.classes or [], *found)
    predicted.unread.update(unread)
    _tell(name, temperature, predicted.unread)
    told = {"auglabel": __version__, "run": name, **weights.about, "temperature": temperature}
    text = _as_json(predicted, told) if options.json else _as_csv(predicted)
    if options.out:
        write_text(Path(options.out), text)
    else:
        print(text, end="")
    return 1 if predicted.unread else 0


def _network(trained: Run, recipe: Recipe, checkpoint: str) -> tuple[nn.Module, DataFacts, Input, Weights]:
    """The network, its classes, and how its pictures are decoded: from what the run recorded, if it did."""
    facts = trained.facts()
    if facts is None:
        raise UserError(f"{trained.path} has no run.json, which says what it was trained on.")
    known = facts.data
    takes = input_of(recipe.as_dict(), known)
    if takes is None or not (known.classes and known.mean and known.std):
        data, parts = data_for(recipe)  # an older run: its data say it
        trained.require_data(data, parts)
        known = DataFacts.of(data, parts)
        takes = input_of(recipe.as_dict(), known)
    assert takes
    assert known.classes
    assert known.mean
    assert known.std
    shape = (0, takes.channels, takes.height, takes.width)
    none = InMemory(torch.empty(shape, dtype=torch.uint8), torch.empty(0, dtype=torch.int64))
    numbers = tuple(known.mean), tuple(known.std)
    like = DataSet(known.name, tuple(known.classes), none, None, *numbers, known.checksum)
    model, weights = trained.network(recipe, like, checkpoint)
    return on_device(model), known, takes, weights


def _files(places: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Every picture of files and folders, once, and a sentence for each place that has none."""
    files, unread = dict[str, None](), {}
    for place in places:
        path = Path(place)
        if path.is_dir():
            found = find_images(path)
            files.update(dict.fromkeys(str(path / name) for name in found.names))
            if not found.names:
                unread[place] = f"{place} holds no pictures."
        elif path.is_file():
            files[place] = None
        else:
            unread[place] = f"{place} does not exist."
    return list(files), unread


@torch.no_grad()
def _predicted(
    model: nn.Module, takes: Input, files: Sequence[str], temperature: float, batch_size: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    probs: dict[str, list[float]] = {}
    unread: dict[str, str] = {}
    for start in range(0, len(files), batch_size):
        pictures: dict[str, Tensor] = {}
        for file in files[start : start + batch_size]:
            try:
                pictures[file] = takes.prepare(file)
            except (UserError, OSError) as error:
                unread[file] = str(error) if file in str(error) else f"{file}: {error}"
        if pictures:
            images = model_input(torch.stack([*pictures.values()]).to(device), model)
            with eval_mode(model):
                logits = model(images).double().cpu()
            probs |= zip(pictures, (logits / temperature).softmax(dim=1).tolist(), strict=True)
    return probs, unread


def _tell(name: str, temperature: float | None, unread: dict[str, str]) -> None:
    """What a reader of the predictions should know, beside them."""
    told = f"probabilities are at the temperature {temperature or 1:.4g}, fitted on validation images."
    if temperature is None:
        told = f"probabilities are as trained: no temperature was fitted, which auglabel eval {name} does."
    for line in [told, *unread.values()]:
        print(f"auglabel: {line}", file=sys.stderr)


def _as_csv(predicted: Predicted) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "class", "confidence", *(f"p_{name}" for name in predicted.classes)])
    for file, name, confidence, probs in predicted.rows():
        writer.writerow([file, name, *(f"{value:.6g}" for value in (confidence, *probs))])
    return text.getvalue()


def _as_json(predicted: Predicted, about: dict[str, Any]) -> str:
    images = [
        {
            "file": file,
            "class": name,
            "confidence": confidence,
            "probabilities": dict(zip(predicted.classes, probs, strict=True)),
        }
        for file, name, confidence, probs in predicted.rows()
    ]
    return json.dumps({**about, "images": images, "unread": predicted.unread}, indent=1) + "\n"
