"""`auglabel eval`: measure a run, or a network that no run here trained."""

from __future__ import annotations

from pathlib import Path

from auglabel.errors import UserError
from auglabel.lab.commands.arguments import name_first
from auglabel.lab.evaluate.conditions import Attack
from auglabel.lab.evaluate.corrupted import Corruptions
from auglabel.lab.evaluate.measured import Measured, asked_for, evaluate_network, evaluate_run
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.run import Run

USAGE, OPTIONS = "RUN", (Measured, Attack, Corruptions)


def run(words: list[str]) -> None:
    name, rest = name_first(words)
    how, rest = flags(Measured, rest)
    attack, rest = flags(Attack, rest)
    corruptions, rest = flags(Corruptions, rest)
    asked = asked_for(how, attack, corruptions)
    if name is not None and Run(Path(name)).exists():
        evaluate_run(Run(Path(name)), asked, rest)
    elif name is not None:
        raise FileNotFoundError(f"{name} is not a run: it has no recipe.yaml.")
    elif how.weights is None:
        raise UserError("what to measure? Give a run, or --model NAME --weights FILE.safetensors and --data.")
    else:
        evaluate_network(read_recipe(None, rest), asked)
