"""A shared run's model card: YAML in front for machines, then words for people."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml
from torch import Tensor

from auglabel.augment.base import Augmentation
from auglabel.lab.runs.evaluations import MeasuredRun, evaluations_of
from auglabel.lab.runs.metric_list import METRICS
from auglabel.lab.runs.run import Run
from auglabel.lab.share.inputs import Input
from auglabel.models.by_name import MODELS
from auglabel.util.checks import shown

TOLD = ("accuracy", "ece", "nll", "brier", "aurc")


class MetricOfImages(NamedTuple):
    """A number, and the images it is of."""

    images: str
    name: str
    value: float


def measured(run: Run) -> list[MetricOfImages]:
    """The last epoch's on the validation images, and what `auglabel eval` found on most clean test images."""
    found = []
    for epoch in run.epochs()[-1:]:
        found += _metrics(f"{epoch.validation.get('count')} validation images", epoch.validation)
    rows = [row for evaluation in _evaluations(run) for row in evaluation.rows if row.on == "clean"]
    for row in sorted(rows, key=lambda row: -row.count)[:1]:
        found += _metrics(f"{row.count} test images", row.values)
    return found


def temperature_of(run: Run, checkpoint: str = "last", epoch: int | None = None) -> float | None:
    """What `auglabel eval` fitted on clean validation images, or took from another run, for these weights."""
    epoch = len(run.epochs()) if epoch is None else epoch  # a later one has other weights
    for evaluation in _evaluations(run, checkpoint):
        if epoch == evaluation.epoch and (found := evaluation.temperatures.get("T")) is not None:
            return found
    return None


def _evaluations(run: Run, checkpoint: str = "last") -> list[MeasuredRun]:
    """Those of the run's last weights, which are the ones that are shared, or of its best."""
    facts, epochs = run.facts(), run.epochs()
    if facts is None or not epochs:
        return []
    found, _ = evaluations_of(run, epochs[-1].epoch, facts.data.checksum)
    return [each for each in found.values() if each.checkpoint == checkpoint]


def _metrics(images: str, values: Mapping[str, float | None]) -> list[MetricOfImages]:
    named = [(name, values.get(name)) for name in TOLD]
    return [MetricOfImages(images, name, value) for name, value in named if value is not None]


def card(
    name: str,
    config: Mapping[str, Any],
    augment: Augmentation,
    table: Tensor | None,
    metrics: Sequence[MetricOfImages],
) -> str:
    """The model card: YAML in front for machines, then for people."""
    front = {
        "library_name": "auglabel",
        "pipeline_tag": "image-classification",
        "tags": ["image-classification", "calibration", "autolabel"],
        "model-index": [{"name": name, "results": [_results(config, metrics)]}] if metrics else [],
    }
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=110)
    parts = [f"# {_plain(name)}", _about(config), _takes(config)]
    parts += [_figures(metrics), _labels(augment, table), _use(config)]
    return f"---\n{head}---\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def _plain(name: str) -> str:
    """A name as text: neither Markdown nor HTML."""
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", html.escape(shown(name), quote=False))


def _code(name: str) -> str:
    """A name as code."""
    return f"`{shown(name).replace('`', ' ')}`"


def _results(config: Mapping[str, Any], metrics: Sequence[MetricOfImages]) -> dict[str, Any]:
    found = [
        {"type": m.name, "name": f"{METRICS[m.name].title}, {m.images}", "value": m.value} for m in metrics
    ]
    dataset = {"name": config["data"]["name"], "type": config["data"]["name"]}
    return {"task": {"type": "image-classification"}, "dataset": dataset, "metrics": found}


def _about(config: Mapping[str, Any]) -> str:
    data, labels, epochs = config["data"], config["labels"]["name"], config["epochs"]
    joined = ""
    if config["give_back"]:
        count = data["images"].get("validation")
        joined = f", joined by {count} validation images after {config['give_back']:.0%} of the epochs,"
    return (
        f"{_code(config['model']['name'])} for {len(config['id2label'])} classes, trained for {epochs} "
        f"epoch{'' if epochs == 1 else 's'} on {data['images']['train']} images of {_plain(data['name'])}"
        f"{joined} with the augmentation `{config['augment']['name']}` and the labels `{labels}`, "
        f"by auglabel {config['auglabel_version']}. "
        "It takes pixels in [0, 1], or bytes; normalisation is its first layer."
    )


def _takes(config: Mapping[str, Any]) -> str:
    """The size of the images, how they were brought to it, and the temperature."""
    taken, temperature = Input.from_json(config["input"]), config["temperature"]
    return "\n".join(
        [
            "## Input",
            "",
            f"It was trained on {taken}." if taken else "The size of its images was not recorded.",
            f"Divide its logits by the temperature {temperature:.4g}, fitted on validation images."
            if temperature
            else "No temperature was fitted: "
            + (
                "the validation images were trained on, too."
                if config["give_back"]
                else "`auglabel eval` before `auglabel share` does that."
            ),
        ]
    )


def _figures(metrics: Sequence[MetricOfImages]) -> str:
    if not metrics:
        return ""
    rows = [f"| {m.images} | {METRICS[m.name].title} | {m.value:.4f} |" for m in metrics]
    head = ["## Metrics", "", "| images | metric | value |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(
        [*head, "Learned labels come from the validation images; the test images were only measured."]
    )


def _labels(augment: Augmentation, table: Tensor | None) -> str:
    if table is None:
        return ""
    grid = augment.grid
    rows = [
        f"| {kind} | {' '.join(f'{value:.3f}' for value in part.tolist())} |"
        for kind, part in zip(grid.kinds, table.split(list(grid.levels)), strict=True)
    ]
    return "\n".join(
        [
            "## How confident labels became",
            "",
            f"{table.mean():.3f} on average, {table.min():.3f} at the lowest; `labels.json` has all.",
            "",
            "| kind | label confidence, weak to strong |",
            "| --- | --- |",
            *rows,
        ]
    )


def _use(config: Mapping[str, Any]) -> str:
    if config["model"]["name"] not in MODELS:
        how = (
            f"The network is {_code(config['model']['name'])}: build it from there, and load the weights "
            "with `safetensors.torch.load_file`."
        )
        return f"## Use\n\n{how}"
    code = [
        "from pathlib import Path",
        "from auglabel.lab.share.sharing import load_shared",
        "",
        'shared = load_shared(Path("this-folder"))',
        "# images: (B, C, H, W) in [0, 1] or bytes, of the size above; shared.prepare(file) gives one",
        "probabilities = shared.probabilities(images)  # at the temperature above",
    ]
    return "\n".join(["## Use", "", "```python", *code, "```"])
