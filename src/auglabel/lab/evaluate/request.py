"""`auglabel eval`: measure a network as asked, print what came out and write it down."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from auglabel import __version__
from auglabel.errors import UserError
from auglabel.lab.evaluate.conditions import Condition, conditions
from auglabel.lab.evaluate.corrupted import CorruptedImages, overlaps
from auglabel.lab.evaluate.evaluate import Evaluation, evaluate
from auglabel.lab.evaluate.network import LoadedNetwork
from auglabel.lab.evaluate.options import Attack, Corruptions, EvalOptions
from auglabel.lab.evaluate.predict import Fitted, Predictor, fit_temperatures
from auglabel.lab.evaluate.results import as_csv, as_json, as_tables
from auglabel.lab.runs.evaluations import CORRUPTED_FROM
from auglabel.lab.runs.records import SplitRows, require_untested
from auglabel.util.atomic_write import write_text
from auglabel.util.checksummed_json import write_checksummed


@dataclass(frozen=True)
class EvalRequest:
    """What to measure, with the options of what it names; all of it is there, or this raises.

    `cache` is a folder for corrupted images, which other networks measured on the same test images share.
    """

    options: EvalOptions
    attack: Attack = field(default_factory=Attack)
    corruptions: Corruptions = field(default_factory=Corruptions)
    cache: Path | None = None

    def __post_init__(self) -> None:
        _ = self.conditions

    @cached_property
    def images(self) -> CorruptedImages:
        return CorruptedImages(self.corruptions, self.cache)

    @cached_property
    def conditions(self) -> list[Condition]:
        return conditions(self.options.names, self.attack, self.images)

    @property
    def corrupted(self) -> list[str]:
        """The corruptions among the conditions."""
        return list(dict.fromkeys(each.on for each in self.conditions if each.source is not None))

    @property
    def attacks(self) -> bool:
        return any(each.attacks for each in self.conditions)

    @property
    def file_name(self) -> str:
        """What was measured, so that another measurement does not take its place."""
        options = self.options
        words = [word.replace(":", ".") for word in options.names]
        words += self.corruptions.file_words if self.corrupted else []
        words += [f"epsilon{self.attack.epsilon:g}"] if self.attacks else []
        words += [] if options.images is None else [f"{options.images}images"]
        words += [] if options.temperature == "both" else [f"temperature_{Path(options.temperature).name}"]
        return "-".join([*words, *(["best"] if options.checkpoint == "best" else [])])


def fit(network: LoadedNetwork, options: EvalOptions) -> Fitted:
    """The temperatures that the options ask for; TA needs the augmentation of a run."""
    recipe = network.recipe
    if network.saw_validation:
        return Fitted(notes=["No temperature was fitted: the run was trained on its validation images too."])
    return fit_temperatures(
        Predictor(network.model, recipe.training.seed, options.batch_size, _workers(network, options)),
        network.parts.validation,
        None if options.temperature == "clean" else network.augment,
        clean=options.temperature != "augmented",
        bins=recipe.calibrate.bins,
    )


def _workers(network: LoadedNetwork, options: EvalOptions) -> int:
    if options.workers is not None:
        return options.workers
    return 2 if network.parts.test.streams else 0


def taken_from(first: LoadedNetwork, network: LoadedNetwork) -> Fitted:
    """The temperatures of another run, for one that has no images to fit them on."""
    if first.data.checksum != network.data.checksum:
        raise UserError(f"{first.title} was trained on other images, so its temperature is not for this run.")
    labelled = SplitRows.of(first.parts).labelled(first.recipe.split["validation_from"], first.data)
    require_untested(first.title, labelled, network.data, network.parts)
    fitted = fit(first, EvalOptions())
    if not fitted.scalings:
        raise UserError(f"{first.title} has no temperature to take. {' '.join(fitted.notes)}")
    count = len(first.parts.validation)
    told = f"The temperatures are those of {first.title}, fitted on its {count:,} validation images."
    return Fitted(fitted.scalings, notes=[*fitted.notes, told])


def measure_network(
    network: LoadedNetwork, request: EvalRequest, fitted: Fitted | None = None
) -> dict[str, Any]:
    """Measure a network, print the tables and write the results; what is written.

    `fitted` are the temperatures, where they are known already.
    """
    options, recipe, parts = request.options, network.recipe, network.parts
    out = Path(options.out) if options.out else network.folder
    out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False, emoji=False)
    with console.status("measuring") as status:
        evaluation = evaluate(
            network.model,
            parts.test,
            parts.validation,
            request.conditions,
            seed=recipe.training.seed,
            images=options.images,
            batch_size=options.batch_size,
            resamples=options.resamples,
            bins=recipe.calibrate.bins,
            workers=_workers(network, options),
            data=network.data,
            fitted=fitted or fit(network, options),
            told=lambda line: status.update(f"measuring {line}"),
        )
    about = _about(network, request)
    evaluation.notes.extend([*network.notes, *overlaps(network.operations, request.corrupted)])
    if about["corruptions"] is not None:
        evaluation.notes.append(f"{CORRUPTED_FROM}{about['corruptions']['from']}.")
    return _kept(evaluation, about, network.title, out / request.file_name, console)


def _about(network: LoadedNetwork, request: EvalRequest) -> dict[str, Any]:
    """What was measured, and how."""
    data, corrupted = network.data, None
    if request.corrupted:
        corrupted = request.images.about(request.corrupted, network.parts.test.shape)
    return {
        "auglabel": __version__,
        **network.about,
        "data": {"name": data.name, "checksum": data.checksum, "notes": list(data.notes)},
        "seed": network.recipe.training.seed,
        "resamples": request.options.resamples,
        "batch_size": request.options.batch_size,
        "temperature_from": request.options.temperature_from,
        "attack": vars(request.attack) if request.attacks else None,
        "corruptions": corrupted,
    }


def _kept(
    evaluation: Evaluation, about: dict[str, Any], title: str, path: Path, console: Console
) -> dict[str, Any]:
    """Print the evaluation, and write it as JSON and CSV; what the JSON holds."""
    for table in as_tables(evaluation, title):
        console.print(table)
    for note in evaluation.notes:
        console.print(note, markup=False)
    found = as_json(evaluation, about)
    if told := found["diagnosis"]:
        console.print(f"On clean test images: {told}", markup=False, soft_wrap=True)
    write_checksummed(path.with_name(f"{path.name}.json"), found)
    write_text(path.with_name(f"{path.name}.csv"), as_csv(evaluation))
    console.print(f"wrote {path}.json and .csv", markup=False, soft_wrap=True)
    return found
