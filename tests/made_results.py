"""Results that no run made, for tests of what is done with results."""

import json
import random
from collections.abc import Callable

from auglabel.corrupt import SEVERITIES, SUITES
from auglabel.lab.paper.study import Study
from auglabel.lab.recipe.catalogue import AUGMENTATIONS
from auglabel.lab.sweep.job import Job
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import COLUMNS, FORMAT, label_spread
from auglabel.pooling import RULE

Value = Callable[[Job, str, str, int | None], float]  # job, metric, condition, severity


def some_value(job: Job, metric: str, on: str, severity: int | None) -> float:
    """Between 0.1 and 0.9, the same for the same question."""
    return random.Random(f"{job.stem} {metric} {on} {severity}").uniform(0.1, 0.9)


def make_result(
    study: Study, job: Job, value: Value = some_value, nll: float = 1.0, augmented_nll: float | None = None
) -> None:
    """Write what `Results.perform` would have written."""
    study.results.path.mkdir(parents=True, exist_ok=True)
    grid = AUGMENTATIONS[job.recipe.augment.name](**job.recipe.augment.options).grid
    learned = {
        kind: [1 - 0.01 * n for n in range(levels)]
        for kind, levels in zip(grid.kinds, grid.levels, strict=True)
    }
    labels = learned if job.recipe.labels.name.startswith("autolabel") else None
    result = {
        "format": FORMAT,
        "name": job.name,
        "digest": job.digest,
        "recipe": job.plain,
        "measured": [each.as_dict() for each in job.measured],
        "seed": job.recipe.training.seed,
        "versions": {"pooled_rule": RULE},
        "data": {"images": job.recipe.split},
        "seconds": {"training": 50.0, "measuring": 30.0},
        "validation": {"nll": nll, "ece": 0.1},
        "validation_augmented": {"nll": nll if augmented_nll is None else augmented_nll, "ece": 0.1},
        "temperatures": {"T": 1.5, "TA": 2.0},
        "labelled_images": 1500,
        "labels": labels,
        "label_spread": label_spread(labels),
        "evaluations": [_evaluation(job, each, value) for each in job.measured],
        "views": _views(job) if job.views is not None else None,
    }
    study.results.file(job).write_text(json.dumps(result))


def _evaluation(job: Job, measurement: Measurement, value: Value) -> dict[str, object]:
    cells = [(measurement.on, None)]
    if measurement.on == "corrupted":
        cells = [(name, severity) for name in SUITES["paper"] for severity in SEVERITIES]
    return {
        "columns": list(COLUMNS),
        "rows": [
            [name, severity, 1000, *(value(job, metric, name, severity) for metric in COLUMNS[3:])]
            for name, severity in cells
        ],
    }


def _views(job: Job) -> dict[str, object]:
    assert job.views is not None
    grid = AUGMENTATIONS[job.views.name](**job.views.options).grid
    falling = {
        kind: [0.9 - 0.05 * n for n in range(levels)]
        for kind, levels in zip(grid.kinds, grid.levels, strict=True)
    }
    return {kind: {"count": [100] * len(v), "accuracy": v, "ece": v} for kind, v in falling.items()}
