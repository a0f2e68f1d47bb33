"""How many images to hold out, and what giving them back is worth, at equal labelled images in all.

    holdout.py OUT --root CIFAR100 --train 12500 --epochs 64 --seeds 0 1 > holdout.jsonl

Trains `fast-cifar100` with RandAug for every hold-out: one-hot labels, whose temperature is fitted on the
hold-out, AutoLabel, and AutoLabel that gives the hold-out back. `--train` counts all labelled images, with
the hold-out. Prints a JSON line per run, and at the end one per hold-out and method with the mean over seeds:
accuracy, ECE, NLL and AURC, clean and corrupted, as trained and at T and TA; seconds of training, calibration
and validation; these together, and the number of images trained on, over those of the one-hot run of the same
hold-out and seed. Times want a machine with nothing else to do. The same command goes on where it was
stopped. Other options go to the recipe: --engine.precision bf16.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.runs.records import seconds_by_part
from auglabel.lab.runs.run import Run
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import Result, ResultEvaluation

METRICS = ("accuracy", "ece", "nll", "aurc")
METHODS = {
    "one-hot": ["--regime=randaug"],
    "AutoLabel": ["--regime=randaug_autolabel"],
    "AutoLabel, given back": ["--regime=randaug_autolabel"],
}


def job_of(method: str, held_out: int, seed: int, options: argparse.Namespace, words: Sequence[str]) -> Job:
    words = [*METHODS[method], f"--seed={seed}", f"--epochs={options.epochs}", *words]
    words += [f"--split.train={options.train - held_out}", f"--split.validation={held_out}"]
    words += [f"--give_back={options.give_back}"] if method.endswith("back") else []
    words += [f"--data.root={options.root}"] if options.root else []
    corrupted = Measurement("corrupted", suite=options.suite, images=options.images)
    name = f"{method.replace(', ', '-').replace(' ', '-')}-{held_out}-{seed}"
    return Job(name, read_recipe(options.recipe, words), (Measurement(), corrupted))


def trained_images(recipe: Recipe) -> int:
    """How many images a run trains on, over all epochs."""
    training, held_out = recipe.training, recipe.training.held_out_epochs
    train, back = recipe.split["train"], recipe.split["validation"]
    return int(training.epochs * train + (training.epochs - held_out) * back)


def line_of(job: Job, result: Result, one_hot: Job, results: Results) -> dict[str, Any]:
    """What a run says, beside the one-hot run of the same hold-out."""
    seconds, theirs = (seconds_of(results.run(each)) for each in (job, one_hot))
    return {
        "labelled_images": result.labelled_images,
        **{
            name: readings(evaluation)
            for name, evaluation in zip(("clean", "corrupted"), result.evaluations, strict=True)
        },
        "temperatures": dict(result.temperatures),
        "label_spread": result.label_spread,
        "seconds": seconds,
        "seconds over one-hot": round(sum(seconds.values()) / sum(theirs.values()), 4),
        "training images over one-hot": trained_images(job.recipe) / trained_images(one_hot.recipe),
    }


def seconds_of(run: Run) -> dict[str, float]:
    facts = run.facts()
    assert facts is not None
    return {part: round(each, 3) for part, each in seconds_by_part(facts, run.epochs()).items()}


def readings(evaluation: ResultEvaluation) -> dict[str, float]:
    """The mean over rows of each metric, as trained and at each temperature that was fitted."""
    found = {}
    for name in (f"{metric}{at}" for at in ("", " T", " TA") for metric in METRICS):
        values = [row.value(name) for row in evaluation.rows]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            found[name] = round(statistics.fmean(known), 6)
    return found


def lines(options: argparse.Namespace, words: Sequence[str]) -> Iterator[dict[str, Any]]:
    results = Results(options.out / "results", options.out / "runs")
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for seed in options.seeds:
        for held_out in options.hold_outs:
            jobs = {method: job_of(method, held_out, seed, options, words) for method in METHODS}
            done = {method: results.perform(job) for method, job in jobs.items()}
            for method, job in jobs.items():
                line = line_of(job, done[method], jobs["one-hot"], results)
                found.setdefault((held_out, method), []).append(line)
                yield {"hold_out": held_out, "labels": method, "seed": seed, **line}
    for (held_out, method), some in found.items():
        yield {"hold_out": held_out, "labels": method, "seeds": len(some), **mean_of(some)}


def mean_of(values: Sequence[Any]) -> Any:
    """Numbers by their mean, objects entry by entry; None where one has none."""
    if isinstance(values[0], dict):
        shared = [key for key in values[0] if all(key in value for value in values)]
        return {key: mean_of([value[key] for value in values]) for key in shared}
    return None if None in values else round(statistics.fmean(values), 6)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("out", type=Path, help="folder of results and runs")
    parser.add_argument("--root", help="where the data lie")
    parser.add_argument("--recipe", default="fast-cifar100")
    parser.add_argument("--train", type=int, default=6000, help="labelled images in all")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--hold_outs", type=int, nargs="+", default=[250, 500, 1000, 5000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--give_back", type=float, default=0.7)
    parser.add_argument("--images", type=int, default=500, help="corrupted test images")
    parser.add_argument("--suite", default="paper", help="of corruptions")
    options, rest = parser.parse_known_args(words)
    for line in lines(options, rest):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
