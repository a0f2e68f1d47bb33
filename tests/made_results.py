"""Results that no run made, for tests of what is done with results."""

import random
from collections.abc import Callable

from auglabel.corrupt import SEVERITIES, SUITES
from auglabel.lab.parts.catalogue import AUGMENTATIONS
from auglabel.lab.runs.evaluations import MeasuredRow
from auglabel.lab.runs.records import DataFacts
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.job import Job
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import KEPT, KindReadings, Result, ResultEvaluation
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
    split = job.recipe.split
    images = {name: split[name] if isinstance(split[name], int) else 0 for name in ("train", "validation")}
    result = Result(
        name=job.name,
        digest=job.digest,
        recipe=job.plain,
        measured=[each.as_dict() for each in job.measured],
        versions={"pooled_rule": RULE},
        seed=job.recipe.training.seed,
        parameters=1000,
        data=DataFacts(job.recipe.data.name, "0" * 64, images=images),
        labelled_images=sum(images.values()),
        validation={"nll": nll, "ece": 0.1},
        labels=learned if job.recipe.labels.name.startswith("autolabel") else None,
        seconds={"training": 50.0, "measuring": 30.0},
        temperatures={"T": 1.5, "TA": 2.0},
        evaluations=[_evaluation(job, each, value) for each in job.measured],
        views=_views(job) if job.views is not None else None,
        validation_augmented={"nll": nll if augmented_nll is None else augmented_nll, "ece": 0.1},
    )
    result.write(study.results.file(job))


def _evaluation(job: Job, measurement: Measurement, value: Value) -> ResultEvaluation:
    cells: list[tuple[str, int | None]] = [(measurement.on, None)]
    if measurement.on == "corrupted":
        cells = [(name, severity) for name in SUITES["paper"] for severity in SEVERITIES]
    rows = [
        MeasuredRow(
            name,
            severity,
            1000,
            {metric: value(job, metric, name, severity) for metric in KEPT},
            {at: {m: value(job, f"{m} {at}", name, severity) for m in KEPT} for at in ("T", "TA")},
        )
        for name, severity in cells
    ]
    return ResultEvaluation([], rows)


def _views(job: Job) -> dict[str, KindReadings]:
    assert job.views is not None
    grid = AUGMENTATIONS[job.views.name](**job.views.options).grid
    falling = {
        kind: [0.9 - 0.05 * n for n in range(levels)]
        for kind, levels in zip(grid.kinds, grid.levels, strict=True)
    }
    return {kind: KindReadings([100] * len(v), v, v) for kind, v in falling.items()}
