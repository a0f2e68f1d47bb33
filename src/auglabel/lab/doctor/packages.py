"""Which packages there are, by what the metadata of auglabel says that it and its extras need."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any, NamedTuple

from auglabel.lab.doctor.tries import Outcome

FOR_CONTRIBUTORS = ("dev", "docs")


class Requirement(NamedTuple):
    package: str
    minimum: str | None
    extra: str | None


def requirements() -> list[Requirement]:
    """Everything that auglabel or one of its extras needs; nothing if auglabel is not installed.

    Without the extra that is made of others, and those for contributors.
    """
    try:
        lines = metadata.requires("auglabel") or []
    except metadata.PackageNotFoundError:
        return []
    found = [_requirement(line) for line in lines]
    left_out = [each for each in found if each.package == "auglabel" or each.extra in FOR_CONTRIBUTORS]
    return [each for each in found if each not in left_out]


def _requirement(line: str) -> Requirement:
    what, _, marker = line.partition(";")
    package = re.match(r"[\w.-]+", what)
    minimum = re.search(r">=\s*([\w.]+)", what)
    extra = re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", marker)
    assert package, line
    return Requirement(package[0], minimum and minimum[1], extra and extra[1])


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def describe_extras(needed: list[Requirement]) -> dict[str, Any]:
    """Each extra with the versions of its packages, those that are missing, and how to install it."""
    extras: dict[str, dict[str, str | None]] = {}
    for each in needed:
        if each.extra is not None:
            extras.setdefault(each.extra, {})[each.package] = version_of(each.package)
    return {
        extra: {
            "packages": packages,
            "missing": [package for package, version in packages.items() if version is None],
            "install": f"pip install 'auglabel[{extra}]'",
        }
        for extra, packages in extras.items()
    }


def importable(needed: list[Requirement]) -> dict[str, str]:
    """The module to import of each package that is installed, as far as its list of files tells."""
    found = {each.package: module_of(each.package) for each in needed}
    return {package: module for package, module in found.items() if module is not None}


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


def describe_packages(needed: list[Requirement], tried: dict[str, Outcome]) -> dict[str, Any]:
    """Each installed package: its version, whether that is too old, and why it cannot be imported if so."""
    found: dict[str, Any] = {}
    for each in needed:
        version = version_of(each.package)
        if version is not None:
            outcome = tried.get(each.package, Outcome())
            old = each.minimum is not None and _numbers(version) < _numbers(each.minimum)
            found[each.package] = {
                "version": version,
                "needed": each.minimum if old else None,
                "error": outcome.error or outcome.death,
            }
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]
