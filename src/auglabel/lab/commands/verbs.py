"""What each command does with its words: flags of its own, the rest of them options of a recipe."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from rich.console import Console

from auglabel.corrupt import SUITES
from auglabel.errors import UserError
from auglabel.lab.commands.audited import Audited, audit_network
from auglabel.lab.commands.swept import Sweep, sweep_recipe
from auglabel.lab.copies.copies import Copies, corrupt_data
from auglabel.lab.evaluate.options import Attack, Corruptions, EvalOptions
from auglabel.lab.evaluate.request import EvalRequest, evaluate_network, evaluate_run
from auglabel.lab.paper.reproduce import Reproduce
from auglabel.lab.paper.study import NAMES
from auglabel.lab.recipe import options
from auglabel.lab.recipe import read as draft
from auglabel.lab.recipe.catalogue import AUGMENTATIONS, DATASETS, LABELS, LOSSES, REGIMES
from auglabel.lab.recipe.options import flags
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.schedules import SCHEDULES
from auglabel.lab.report.reported import Reported
from auglabel.lab.runs.run import Run
from auglabel.lab.sweep.sweep import Crew
from auglabel.lab.train.train import How
from auglabel.models.by_name import MODELS
from auglabel.util.checks import entry, require_whole


@dataclass(frozen=True)
class Where:
    """Where a run goes and who computes it"""

    out: str | None = None
    """directory of the run; runs/RECIPE-SEED if not given"""
    processes: int = 1
    """processes on this machine; for several machines use torchrun"""
    port: int | None = None
    """for --processes: where they meet; a free one if not given"""

    def __post_init__(self) -> None:
        require_whole("processes", self.processes, 1)


@dataclass(frozen=True)
class Shown:
    """Where the picture goes"""

    out: str | None = None
    """PNG file"""


@dataclass(frozen=True)
class DemoFlags:
    """How much to train"""

    seeds: int = 3
    """runs per kind of label"""
    epochs: int = 40
    """epochs per run"""

    def __post_init__(self) -> None:
        require_whole("seeds", self.seeds, 1)
        require_whole("epochs", self.epochs, 1)


def run(verb: str, words: Sequence[str]) -> int:
    """Do what `verb` says; the exit code."""
    if "--help" in words or "-h" in words:
        print(help_for(verb, [word for word in words if word not in ("--help", "-h")]))
        return 0
    result = VERBS[verb](list(words))
    return result if isinstance(result, int) else 0


def train(words: list[str]) -> int | None:
    name, rest = _named(words)
    where, rest = flags(Where, rest)
    how, rest = flags(How, rest)
    recipe = _recipe(name, rest, where.out if how.resume else None)
    out = Path(where.out or f"runs/{Path(name or 'run').stem}-{recipe.training.seed}")
    if where.processes > 1:
        from auglabel.lab.train.launch import launch

        return launch(words, where.processes, where.port)
    from auglabel.lab.train.train import train as train_run

    train_run(recipe, out, how)
    return None


def _recipe(name: str | None, words: list[str], begun: str | None) -> Recipe:
    """The recipe asked for; that of the run to go on with if none is."""
    if name is None and begun is not None and Run(Path(begun)).exists():
        name = begun
    if name is None and not words:
        raise UserError(
            "which recipe? Give a .yaml file or a name: auglabel train cpu-cifar10. auglabel list recipes."
        )
    return draft.read_recipe(name, words)


def evaluate(words: list[str]) -> dict[str, Any]:
    name, rest = _named(words)
    options, rest = flags(EvalOptions, rest)
    attack, rest = flags(Attack, rest)
    corruptions, rest = flags(Corruptions, rest)
    request = EvalRequest(options, attack, corruptions)
    if name is not None and Run(Path(name)).exists():
        return evaluate_run(Run(Path(name)), request, rest)
    if name is not None:
        raise FileNotFoundError(f"{name} is not a run: it has no recipe.yaml.")
    if options.weights is None:
        raise UserError("what to measure? Give a run, or --model NAME --weights FILE.safetensors and --data.")
    return evaluate_network(draft.read_recipe(None, rest), request)


def corrupt(words: list[str]) -> None:
    name, rest = _named(words)
    out, rest = _named(rest)
    if name is None or out is None:
        raise UserError(
            "which images, and where to? DATA (a data set, a recipe or a path) and OUT come first, options "
            "after them: auglabel corrupt cifar10 copies --data.root DIR."
        )
    how, rest = flags(Copies, rest)
    corrupt_data(name, rest, Path(out), how)


def preview(words: list[str]) -> None:
    from auglabel.lab.pictures.show import preview_recipe

    name, rest = _named(words)
    shown, rest = flags(Shown, rest)
    path = preview_recipe(name, rest, shown.out)
    print(f"wrote {path}")


def inspect(words: list[str]) -> None:
    from auglabel.lab.pictures.show import inspect_run

    name, rest = _named(words)
    shown, rest = flags(Shown, rest)
    _nothing_left(rest)
    if name is None:
        raise UserError("which run? auglabel inspect runs/NAME.")
    print(f"wrote {inspect_run(Run(Path(name)), shown.out, Console())}")


def demo(words: list[str]) -> None:
    from auglabel.lab.commands.demo_show import demo as show

    asked, rest = flags(DemoFlags, words)
    _nothing_left(rest)
    show(asked.seeds, asked.epochs)


def audit(words: list[str]) -> None:
    name, rest = _named(words)
    how, rest = flags(Audited, rest)
    path = audit_network(name, how, rest, Console(highlight=False, emoji=False))
    print(f"wrote {path}")


def report(words: list[str]) -> None:
    from auglabel.lab.report.reported import report as report_runs

    names = [*itertools.takewhile(lambda word: not word.startswith("-"), words)]
    how, rest = flags(Reported, words[len(names) :])
    if not names:
        raise UserError("which runs? They come first: auglabel report runs/one runs/other.")
    path = report_runs(names, how, rest, Console(highlight=False, emoji=False))
    print(f"wrote {path}")


def share(words: list[str]) -> None:
    from auglabel.lab.share.card import temperature_of
    from auglabel.lab.share.sharing import share_run

    name, rest = _named(words)
    folder, rest = _named(rest)
    if name is None or folder is None:
        raise UserError("which run, and where to? auglabel share runs/NAME shared/NAME.")
    run = Run(Path(name))
    print(f"wrote {share_run(run, Path(folder), rest)}")
    if temperature_of(run) is None:
        print(f"It has no fitted temperature: auglabel eval {name} fits one; share the run again then.")


def reproduce(words: list[str]) -> int:
    from auglabel.lab.paper.reproduce import reproduce as reproduce_name

    name, rest = _named(words)
    if name is None:
        raise UserError(f"which table or figure? auglabel reproduce NAME, of {', '.join(NAMES)}, or all.")
    how, rest = flags(Reproduce, rest)
    crew, rest = flags(Crew, rest)
    return reproduce_name(name, how, crew, Console(highlight=False, emoji=False), rest)


def sweep(words: list[str]) -> None:
    name, rest = _named(words)
    if name is None:
        raise UserError("which recipe? It comes first: auglabel sweep embedded --over alpha=0.02,0.05.")
    asked, rest = flags(Sweep, rest)
    crew, rest = flags(Crew, rest)
    sweep_recipe(name, rest, asked, crew)


def list_names(words: list[str]) -> None:
    name, rest = _named(words)
    _nothing_left(rest)
    chosen = [name] if name is not None else list(LISTS)
    for each in chosen:
        names = entry("list", LISTS, each)()
        print("\n".join(names) if name is not None else f"{each}: {', '.join(names)}")


LISTS: dict[str, Callable[[], list[str]]] = {
    "recipes": draft.recipe_names,
    "data": lambda: list(DATASETS),
    "models": lambda: [*MODELS, "timm:NAME", "torchvision:NAME", "module:function"],
    "augmentations": lambda: list(AUGMENTATIONS),
    "labels": lambda: list(LABELS),
    "losses": lambda: list(LOSSES),
    "schedules": lambda: list(SCHEDULES),
    "regimes": lambda: list(REGIMES),
    "corruptions": lambda: list(SUITES["all"]),
    "suites": lambda: list(SUITES),
}

VERBS: dict[str, Callable[[list[str]], object]] = {  # an exit code, if a whole number
    "demo": demo,
    "train": train,
    "eval": evaluate,
    "sweep": sweep,
    "corrupt": corrupt,
    "preview": preview,
    "inspect": inspect,
    "audit": audit,
    "report": report,
    "share": share,
    "reproduce": reproduce,
    "list": list_names,
}
FLAGS: dict[str, tuple[str, list[type]]] = {
    "demo": ("", [DemoFlags]),
    "train": ("[RECIPE]", [Where, How]),
    "eval": ("RUN", [EvalOptions, Attack, Corruptions]),
    "sweep": ("RECIPE", [Sweep, Crew]),
    "corrupt": ("DATA OUT [--data.root DIR]", [Copies]),
    "preview": ("[RECIPE or RUN]", [Shown]),
    "inspect": ("RUN", [Shown]),
    "audit": ("[RUN]", [Audited]),
    "report": ("RUN...", [Reported]),
    "share": ("RUN FOLDER", []),
    "reproduce": ("NAME", [Reproduce, Crew]),
    "list": (f"[{' | '.join(LISTS)}]", []),
}


def help_for(verb: str, words: Sequence[str]) -> str:
    """The verb's own flags, and for those that take a recipe its options."""
    what, kinds = FLAGS[verb]
    parser = ArgumentParser(exit_on_error=False, add_help=False)
    with options.explained_options():
        for kind in kinds:
            parser.add_class_arguments(kind)
    usage = f"usage: auglabel {verb} {what}".rstrip() + (" [--option value ...]" if kinds else "")
    text = f"{usage}\n\n{options.without_files(parser.format_help())}"
    if verb not in ("train", "sweep", "preview"):
        return text
    name, rest = _named(list(words))
    for kind in kinds:
        _, rest = flags(kind, rest)
    about = (
        "Options of the recipe; each may stand in its file too. --regime NAME sets augment, labels and loss."
    )
    return f"{text}\n{about}\n\n{draft.help_text(name, rest)}"


def _named(words: list[str]) -> tuple[str | None, list[str]]:
    """The name that comes first, if one does, and the rest."""
    return (words[0], words[1:]) if words and not words[0].startswith("-") else (None, words)


def _nothing_left(words: Sequence[Any]) -> None:
    if words:
        raise UserError(f'there is no option "{str(words[0]).partition("=")[0]}"; --help lists them.')
