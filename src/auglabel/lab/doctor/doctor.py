"""All facts that `auglabel doctor` tells, gathered with the standard library alone."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from auglabel import __version__
from auglabel.lab.doctor import packages, text
from auglabel.lab.doctor.files import describe_cache, describe_data, describe_place, private
from auglabel.lab.doctor.hardware import VARIABLES, describe_cpu, describe_memory
from auglabel.lab.doctor.probe import PRECISIONS
from auglabel.lab.doctor.problems import find_problems
from auglabel.lab.doctor.tries import Outcome, try_each


def gather(root: str | None = None) -> dict[str, Any]:
    """All facts, the problems that they show first."""
    needed = packages.requirements()
    modules = {each.package: packages.module_of(each.package) for each in needed}
    imports = {package: f"import {module}" for package, module in modules.items() if module is not None}
    cpu = describe_cpu()  # its load is that of others now
    tried = _without_paths(try_each(["torch", *(f"train {each}" for each in PRECISIONS), *imports.values()]))
    torch = tried["torch"].result or {}
    versions = {name: packages.version_of(name) for name in ("torch", "numpy", "accelerate")}
    versions["torch"] = torch.get("version") or versions["torch"]
    facts = {
        "versions": {"auglabel": __version__, "Python": platform.python_version(), **versions},
        "system": platform.platform(),
        "extras": packages.describe_extras(needed),
        "packages": packages.describe_packages(needed, {each: tried[task] for each, task in imports.items()}),
        "cpu": cpu,
        "memory": describe_memory(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "torch": {
            "error": tried["torch"].error or tried["torch"].death,
            **{name: torch.get(name) for name in ("instructions", "threads", "trial")},
        },
        "gpus": torch.get("gpus", []),
        "precisions": {name: _precision(tried[f"train {name}"]) for name in PRECISIONS},
        "cache": describe_cache(),
        "folder": describe_place(Path()),
        "data": describe_data(root),
    }
    problems = [problem._asdict() for problem in find_problems(facts, needed)]
    told = {"fastest": text.fastest(facts["precisions"]), "verdict": text.verdict(facts["precisions"])}
    return {"problems": problems, **facts, **told}


def _precision(tried: Outcome) -> dict[str, Any]:
    return {"images_per_second": tried.result, "error": tried.error, "death": tried.death}


def _without_paths(tried: dict[str, Outcome]) -> dict[str, Outcome]:
    return {
        task: outcome._replace(error=outcome.error and private(outcome.error)[:300].rstrip("."))
        for task, outcome in tried.items()
    }
