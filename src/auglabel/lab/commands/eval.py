"""`auglabel eval`: measure a run, or a network that no run here trained."""

from __future__ import annotations

from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.evaluate.network import LoadedNetwork, network_of_run, network_of_weights
from auglabel.lab.evaluate.options import Attack, Corruptions, EvalOptions
from auglabel.lab.evaluate.request import EvalRequest, measure_network, taken_from
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.run import Run

USAGE, OPTIONS = "RUN", (EvalOptions, Attack, Corruptions)


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    options, rest = flags(EvalOptions, rest)
    attack, rest = flags(Attack, rest)
    corruptions, rest = flags(Corruptions, rest)
    request = EvalRequest(options, attack, corruptions)
    network, fitted = _network(None if name is None else Run(Path(name)), options, rest), None
    if options.temperature_from is not None:
        fitted = taken_from(network_of_run(Run(Path(options.temperature_from)), rest), network)
    measure_network(network, request, fitted)


def _network(run: Run | None, options: EvalOptions, words: list[str]) -> LoadedNetwork:
    if run is not None:
        run.require()
        if options.weights is not None:
            raise UserError(f"--weights go with --model, but {run.path} is a run, which has its own.")
        return network_of_run(run, words, options.checkpoint)
    if options.weights is None:
        raise UserError("what to measure? Give a run, or --model NAME --weights FILE.safetensors and --data.")
    recipe = read_recipe(None, words)
    if options.temperature not in ("both", "clean"):
        raise UserError(f"--temperature {options.temperature} goes with a run, not with --model.")
    return network_of_weights(recipe, options.weights)
