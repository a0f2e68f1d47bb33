"""Send each epoch's numbers to TensorBoard, Weights & Biases or MLflow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate import tracking

from auglabel.errors import UserError
from auglabel.lab.recipe.recipe import Recipe, flat
from auglabel.lab.runs.run import Run
from auglabel.util.checks import entry

TRACKERS: dict[str, Any] = {
    "tensorboard": tracking.TensorBoardTracker,
    "wandb": tracking.WandBTracker,
    "mlflow": tracking.MLflowTracker,
    "none": None,
}
INSTALLED = {
    "tensorboard": tracking.is_tensorboard_available,
    "wandb": tracking.is_wandb_available,
    "mlflow": tracking.is_mlflow_available,
}


@contextmanager
def trackers_for(names: Sequence[str], run: Run, recipe: Recipe) -> Iterator[list[Any]]:
    """Trackers that are told the recipe; each has log(values, step)."""
    started = [_tracker(name, run) for name in names if name != "none"]
    plain = {
        key: value for key, value in flat(recipe.as_dict()).items() if isinstance(value, int | float | str)
    }
    for tracker in started:
        if hasattr(tracker, "start"):
            tracker.start()
        if not isinstance(tracker, tracking.TensorBoardTracker):  # it would leave a file per start
            tracker.store_init_configuration(plain)
    try:
        yield started
    finally:
        for tracker in started:
            tracker.finish()


def require_trackers(names: Sequence[str]) -> None:
    """Trackers that are known and installed."""
    for name in names:
        entry("tracker", TRACKERS, name)
        if name in INSTALLED and not INSTALLED[name]():
            raise UserError(f"--tracker {name} needs {name}, which is not installed: pip install {name}.")


def _tracker(name: str, run: Run) -> Any:
    if name == "wandb":
        return TRACKERS[name]("auglabel", name=run.path.name, dir=str(run.path))
    if name == "mlflow":
        return TRACKERS[name]("auglabel", logging_dir=str(run.path / name), run_name=run.path.name)
    return TRACKERS[name](".", logging_dir=str(run.path / name))
