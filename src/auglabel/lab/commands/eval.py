"""`auglabel eval`: measure a run, or a network that no run here trained."""

from __future__ import annotations

from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.evaluate.options import Attack, Corruptions, EvalOptions
from auglabel.lab.evaluate.request import EvalRequest, evaluate_network, evaluate_run
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
    if name is not None and Run(Path(name)).exists():
        evaluate_run(Run(Path(name)), request, rest)
    elif name is not None:
        raise FileNotFoundError(f"{name} is not a run: it has no recipe.yaml.")
    elif options.weights is None:
        raise UserError("what to measure? Give a run, or --model NAME --weights FILE.safetensors and --data.")
    else:
        evaluate_network(read_recipe(None, rest), request)
