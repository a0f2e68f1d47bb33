"""Results of sweeps."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.study.readings import reading
from auglabel.lab.sweep.grid import Point
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import COLUMNS
from auglabel.lab.sweep.result import FORMAT as RESULT
from auglabel.lab.sweep.summary import summary_of
from hostile.spoil import Files, as_json


@functools.cache
def a_job() -> Job:
    recipe = read_recipe("embedded", ["--regime=randaug_autolabel", "--epochs=2", "--m_max=2", "--alpha=0.1"])
    return Job("one", recipe, (Measurement("clean"),))


def a_result() -> dict[str, Any]:
    job = a_job()
    rows = [["clean", None, 10, *([0.5] * (len(COLUMNS) - 3))]]
    evaluation = {"columns": list(COLUMNS), "rows": rows}
    return {
        **{"format": RESULT, "name": job.name, "digest": job.digest, "recipe": job.plain, "seed": 0},
        **{"versions": {"torch": "2"}, "parameters": 5},
        "data": {"name": "x", "checksum": "0", "images": {"train": 10, "validation": 10, "test": 10}},
        **{"measured": [{"on": "clean"}], "seconds": {"training": 5.0, "measuring": 3.0}},
        **{"validation": {"nll": 1.0, "accuracy": 0.5, "ece": 0.1}, "labels": {"rotate": [1.0, 0.9]}},
        **{"validation_augmented": {"nll": 1.0}, "temperatures": {"T": 1.5}, "labelled_images": 20},
        "label_spread": {"mean": 0.95, "lowest": 0.9, "highest": 1.0},
        **{
            "evaluations": [evaluation],
            "views": {"rotate": {"accuracy": [0.9, 0.8], "count": [3, 3], "ece": [0.1, 0.2]}},
        },
    }


def result_files() -> list[Files]:
    return [{f"{a_job().stem}.json": as_json(a_result())}]


def read_result(place: Path) -> object:
    """As sweeps and the paper's tables do."""
    results = Results(place, place)
    result = results.read(a_job())
    assert result is not None
    for metric in ("ece", "gap", "ece T", "cece", "label_fall", "view_fall:rotate"):
        reading(result, metric)
    return summary_of([(Point("one", {}), [a_job()])], results, ["clean"])
