"""Run directories that no training made, for tests of what is done with runs."""

import json
from collections.abc import Sequence
from pathlib import Path

from auglabel.augment.randaug import RandAug
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.evaluations import EVALUATION_FORMAT
from auglabel.lab.runs.records import RUN_FORMAT

CHECKSUM = "6be0ac8de95845466400a8d46266eb3a62128379acc2c485403a71d691210b58"  # of the embedded images
METRICS = ("accuracy", "confidence", "ece", "debiased_ece", "max_ce", "nll", "brier")


def make_run(
    path: Path,
    regime: str = "randaug",
    seed: int = 0,
    *,
    words: Sequence[str] = (),
    epochs: int = 3,
    of: int | None = None,
    checksum: str = CHECKSUM,
    name: str = "embedded",
    evaluation: dict | None = None,
    **facts,
) -> Path:
    """A run of the embedded recipe after `epochs` of `of`; labels are those of `labels_after`."""
    recipe = read_recipe(
        "embedded", [f"--regime={regime}", f"--seed={seed}", f"--epochs={of or epochs}", *words]
    )
    path.mkdir(parents=True)
    (path / "recipe.yaml").write_text(recipe.as_yaml())
    about = {
        "format": RUN_FORMAT,
        "versions": {"auglabel": "0.1.0", "torch": "2"},
        "seed": seed,
        "data": {"name": name, "checksum": checksum, "notes": [], "images": {"train": 1000, "test": 10}},
        "parameters": 1234,
        "processes": 1,
        "device": "cpu",
        "threads": 1,
    }
    (path / "run.json").write_text(json.dumps(about | facts))
    seconds = {"calibrating": 0.5, "validating": 0.25}
    lines = [
        {
            "epoch": epoch,
            "loss": 2.0 / epoch,
            "validation": {"nll": 1.0 / epoch, "ece": 0.1, "accuracy": 0.5},
            "seconds": seconds,
            "images_per_second": 500.0,
            "cpu_seconds": 5.0 * epoch,
        }
        for epoch in range(1, epochs + 1)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if "autolabel" in regime:
        tables = [{"epoch": epoch, "confidence": labels_after(epoch)} for epoch in range(1, epochs + 1)]
        (path / "tables.jsonl").write_text("".join(json.dumps(line) + "\n" for line in tables))
    if evaluation is not None:
        write_evaluation(path, evaluation | {"epoch": evaluation.get("epoch", epochs)}, checksum)
    return path


def labels_after(epoch: int) -> dict[str, list[float]]:
    grid = RandAug().grid
    return {
        kind: [max(0.0, 1 - 0.01 * epoch * level / 10) for level in range(1, levels + 1)]
        for kind, levels in zip(grid.kinds, grid.levels, strict=True)
    }


def write_evaluation(run: Path, evaluation: dict, checksum: str = CHECKSUM, stem: str = "clean") -> Path:
    plain = {
        "format": EVALUATION_FORMAT,
        "checkpoint": "last",
        "data": {"checksum": checksum},
        "attack": None,
        "corruptions": None,
        "notes": [],
        "temperatures": {"T": 2.0},
    }
    (run / "eval").mkdir(exist_ok=True)
    file = run / "eval" / f"{stem}.json"
    file.write_text(json.dumps(plain | evaluation))
    return file


def figures(accuracy: float, ece: float, nll: float = 1.0) -> dict:
    values = dict.fromkeys(METRICS, 0.5) | {"accuracy": accuracy, "ece": ece, "nll": nll}
    return {name: {"value": value, "low": None, "high": None} for name, value in values.items()}


def row(accuracy: float, ece: float, on: str = "clean", severity: int | None = None, bins=None) -> dict:
    """Bins: two of them, 6 predictions of confidence 0.4 of which 3 are right, 4 of 0.9, of which 3 are."""
    bins = bins or {"count": [6.0, 4.0], "confidence": [2.4, 3.6], "correct": [3.0, 3.0]}
    scaled = figures(accuracy, ece / 2)
    return {
        "on": on,
        "severity": severity,
        "count": 10,
        "figures": figures(accuracy, ece),
        "scaled": {"T": scaled},
        "bins": bins,
    }


def evaluation(accuracy: float, ece: float) -> dict:
    return {"rows": [row(accuracy, ece)], "means": []}


def corrupted(eces: dict[tuple[str, int], float]) -> dict:
    rows = [row(0.5, ece, on, severity) for (on, severity), ece in eces.items()]
    mean = sum(eces.values()) / len(eces)
    plain = {name: figure["value"] for name, figure in figures(0.5, mean).items()}
    return {
        "rows": rows,
        "means": [{"on": "corrupted", "pairs": len(rows), "figures": plain, "scaled": {"T": plain}}],
        "corruptions": {
            "from": "made here",
            "names": list(dict.fromkeys(name for name, _ in eces)),
            "severities": sorted({severity for _, severity in eces}),
        },
    }
