"""Which packages there are, by what the metadata of auglabel says that it and its extras need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from auglabel.lab.doctor.tries import Outcome

NOT_TOLD = ("all", "dev", "docs")  # that made of the others, and those for contributors


class Requirement(NamedTuple):
    package: str
    minimum: str | None
    extra: str | None


def requirements() -> list[Requirement]:
    """Everything that auglabel or one of its extras needs; nothing if auglabel is not installed."""
    try:
        lines = metadata.requires("auglabel") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for line in lines:
        package = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        minimum = re.search(r">=\s*([\w.]+)", line.partition(";")[0])
        extra = re.search(r";.*extra\s*==\s*['\"]([\w.-]+)['\"]", line)
        found.append(Requirement(package, minimum and minimum[1], extra and extra[1]))
    return [each for each in found if each.package != "auglabel" and each.extra not in NOT_TOLD]


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def describe_extras(needed: Sequence[Requirement]) -> dict[str, Any]:
    """Each extra with the versions of its packages, those that are missing, and how to install it."""
    extras: dict[str, Any] = {}
    for each in needed:
        if each.extra is not None:
            install = f"pip install 'auglabel[{each.extra}]'"
            about = extras.setdefault(each.extra, {"packages": {}, "missing": [], "install": install})
            about["packages"][each.package] = version_of(each.package)
            about["missing"] += [] if about["packages"][each.package] else [each.package]
    return extras


def module_of(package: str) -> str | None:
    """The module named like the package, or else its first public one; pillow's is PIL."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    code = [file.parts for file in files if file.suffix in (".py", ".so", ".pyd")]
    tops = {parts[0] if len(parts) > 1 else parts[0].partition(".")[0] for parts in code}
    names = sorted(name for name in tops if name.isidentifier() and not name.startswith("_"))
    same = package.replace("-", "_").lower()
    return same if same in names else next(iter(names), None)


def describe_packages(needed: Sequence[Requirement], tried: Mapping[str, Outcome]) -> dict[str, Any]:
    """Each installed package: its version, whether that is too old, and why it cannot be imported if so."""
    found: dict[str, Any] = {}
    for package, minimum, _ in needed:
        if (version := version_of(package)) is not None:
            old = minimum is not None and _numbers(version) < _numbers(minimum)
            error = (package in tried and (tried[package].error or tried[package].death)) or None
            found[package] = {"version": version, "needed": minimum if old else None, "error": error}
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]
