"""Write results/reliability/licences.json: what auglabel's extras install, and under which licence.

python scripts/licences.py

Read off the installed packages, so it wants an environment with all of them: pip install -e '.[all,timm]'.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterable
from pathlib import Path

import tomllib
from packaging.requirements import Requirement

from auglabel.util.atomic_write import write_text

ROOT = Path(__file__).parents[1]
FILE = ROOT / "results" / "reliability" / "licences.json"
OURS = {"dev", "docs", "all"}  # extras that are for us, or that name others
SHORT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def wanted() -> dict[str, set[str]]:
    """Every package that pyproject.toml names, and the extras asking for it; none if it is always there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, set[str]] = {plain(Requirement(line).name): set() for line in project["dependencies"]}
    for extra, lines in project["optional-dependencies"].items():
        for line in lines if extra not in OURS else ():
            found.setdefault(plain(Requirement(line).name), set()).add(extra)
    return found


def behind(names: Iterable[str]) -> set[str]:
    """What those ask for in turn, as far as it is installed."""
    seen, waiting = set(names), list(names)
    while waiting:
        for line in _requires(waiting.pop()):
            need = Requirement(line)
            name = plain(need.name)
            wants = need.marker is None or need.marker.evaluate({"extra": ""})
            if name not in seen and wants:
                seen.add(name)
                waiting.append(name)
    return {name for name in seen - set(names) if _there(name)}


def _requires(name: str) -> list[str]:
    return (importlib.metadata.requires(name) or []) if _there(name) else []


def _there(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def licence(name: str) -> str:
    """As the package states it, in few words."""
    about = importlib.metadata.metadata(name)
    if stated := about.get("License-Expression"):
        return str(stated)
    classified = [
        each.rpartition("::")[2].strip()
        for each in about.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    words = classified or [about.get("License") or ""]
    return ", ".join(SHORT.get(each, each) for each in words if len(each) < 50) or "see the package"


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    asked = wanted()
    missing = [name for name in asked if not _there(name)]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}. pip install -e '.[all,timm]'.")

    def told(name: str) -> dict[str, str]:
        version = importlib.metadata.version(name).partition("+")[0]
        return {"name": name, "version": version, "licence": licence(name)}

    named = [{**told(name), "extras": sorted(asked[name])} for name in sorted(asked)]
    found = {"named": named, "behind": [told(name) for name in sorted(behind(asked))]}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    write_text(FILE, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
