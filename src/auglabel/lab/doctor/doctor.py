"""All facts that `auglabel doctor` tells, gathered with the standard library alone."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from auglabel import __version__
from auglabel.lab.doctor import files as doctor_files
from auglabel.lab.doctor import hardware as doctor_machine
from auglabel.lab.doctor import packages as doctor_packages
from auglabel.lab.doctor import text as doctor_text
from auglabel.lab.doctor.files import private
from auglabel.lab.doctor.probe import PRECISIONS
from auglabel.lab.doctor.problems import find_problems
from auglabel.lab.doctor.tries import Outcome, try_each


def gather(root: str | None = None) -> dict[str, Any]:
    """All facts, the problems that they show first."""
    needed = doctor_packages.requirements()
    modules = doctor_packages.importable(needed)
    cpu = doctor_machine.describe_cpu()  # its load is that of others now
    tasks = ["torch", *(f"train {name}" for name in PRECISIONS)]
    tried = _without_paths(try_each([*tasks, *(f"import {module}" for module in modules.values())]))
    imports = {package: tried[f"import {module}"] for package, module in modules.items()}
    torch = tried["torch"].result or {}
    facts = {
        "versions": _versions(torch),
        "system": platform.platform(),
        "extras": doctor_packages.describe_extras(needed),
        "packages": doctor_packages.describe_packages(needed, imports),
        "cpu": cpu,
        "memory": doctor_machine.describe_memory(),
        "variables": doctor_machine.variables(),
        "torch": {
            "error": tried["torch"].error or tried["torch"].death,
            "instructions": torch.get("instructions"),
            "threads": torch.get("threads"),
            "trial": torch.get("trial"),
        },
        "gpus": torch.get("gpus", []),
        "precisions": {name: _precision(tried[f"train {name}"]) for name in PRECISIONS},
        "cache": doctor_files.describe_cache(),
        "folder": doctor_files.describe_place(Path()),
        "data": doctor_files.describe_data(root),
    }
    problems = [problem._asdict() for problem in find_problems(facts, needed)]
    precisions = facts["precisions"]
    last = {"fastest": doctor_text.fastest(precisions), "verdict": doctor_text.verdict(precisions)}
    return {"problems": problems, **facts, **last}


def _versions(torch: dict[str, Any]) -> dict[str, str | None]:
    return {
        "auglabel": __version__,
        "Python": platform.python_version(),
        "torch": torch.get("version") or doctor_packages.version_of("torch"),
        "numpy": doctor_packages.version_of("numpy"),
        "accelerate": doctor_packages.version_of("accelerate"),
    }


def _precision(tried: Outcome) -> dict[str, Any]:
    return {"images_per_second": tried.result, "error": tried.error, "death": tried.death}


def _without_paths(tried: dict[str, Outcome]) -> dict[str, Outcome]:
    return {
        task: outcome._replace(error=outcome.error and private(outcome.error)[:300].rstrip("."))
        for task, outcome in tried.items()
    }
