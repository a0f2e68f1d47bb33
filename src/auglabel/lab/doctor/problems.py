"""What is wrong in the facts that `auglabel doctor` has gathered: for each a sentence, and a way out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from auglabel.lab.doctor.packages import Requirement
from auglabel.lab.doctor.probe import PRECISIONS
from auglabel.util import cpu

LEAST_MEMORY, LEAST_DISK = 2e9, 1e9  # bytes


class Problem(NamedTuple):
    problem: str
    way_out: str


def find_problems(facts: dict[str, Any], needed: list[Requirement]) -> list[Problem]:
    """All of them, the gravest first."""
    checks = (_training(facts), _packages(facts, needed), _processor(facts), _files(facts), _data(facts))
    return [Problem(*each) for check in checks for each in check]


def _training(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if why := facts["torch"]["error"]:
        builds = "https://pytorch.org/get-started lists the builds for each system."
        yield (
            f"torch cannot be used: {why}.",
            f"Install it again: pip install --force-reinstall torch. {builds}",
        )
    for name, tried in facts["precisions"].items():
        flags, death = PRECISIONS[name].flags, tried["death"]
        if death == "dies with SIGILL" and facts["cpu"]["amx"] and "bf16" in name:
            amx = "the CPU announces AMX, but it does not work here"
            way_out = f"Set {cpu.VARIABLE}={cpu.LIMIT} in the environment, or train in float32."
            yield f"Training in {name} {death} (illegal instruction): {amx}.", way_out
        elif death:
            way_out = f"Do not train with {flags}." if flags else "Install another version of torch."
            yield f"Training in {name} {death}.", way_out
        elif tried["error"] and not why and name.startswith("float32"):
            yield f"Training in {name} fails: {tried['error']}.", "Install torch and auglabel again."


def _packages(facts: dict[str, Any], needed: list[Requirement]) -> Iterator[tuple[str, str]]:
    if not needed:
        way_out = "Install it: pip install auglabel, or pip install -e . in its source."
        yield "auglabel has no package metadata, so its extras are not known.", way_out
    for each in needed:
        if each.extra is None and each.package not in ("torch", *facts["packages"]):
            yield f"{each.package} is not installed.", f"pip install {each.package}"
    for name, package in facts["packages"].items():
        version, why, needs = package["version"], package["error"], package["needed"]
        if why and why != facts["torch"]["error"]:  # which has its own
            way_out = f"Install a version that fits the other packages, or remove it: pip uninstall {name}."
            yield f"{name} {version} is installed but cannot be imported: {why}.", way_out
        if needs:
            yield f"{name} {version} is older than auglabel needs.", f"pip install '{name}>={needs}'"


def _processor(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    variables, processor, torch = facts["variables"], facts["cpu"], facts["torch"]
    limit = variables.get(cpu.VARIABLE, "ALL")
    limited = "AMX" not in limit.upper() and limit.upper() not in ("ALL", "DEFAULT")
    if processor["amx"] and not processor["amx_hidden"] and limited:
        way_out = f"bf16 may be two to three times as fast with it: unset {cpu.VARIABLE}."
        yield f"The CPU has AMX, but oneDNN is kept from using it: {cpu.VARIABLE}={limit}.", way_out
    threads, usable = torch["threads"] or 0, processor["usable_cores"]
    set_by = next((name for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in variables), None)
    if 0 < threads < usable and (set_by or threads == 1):
        because = f" because {set_by}={variables[set_by]}" if set_by else ""
        way_out = f"unset {set_by}" if set_by else f"export OMP_NUM_THREADS={int(usable)}"
        yield f"torch uses {threads} of {usable:g} cores{because}.", f"For one run at a time: {way_out}."
    if threads > max(usable, 1):
        way_out = f"They wait for each other: export OMP_NUM_THREADS={max(int(usable), 1)}."
        yield f"torch uses {threads} threads, but this process may use {usable:g} cores.", way_out
    if not facts["gpus"] and not torch["error"] and shutil.which("nvidia-smi"):
        yield (
            f"There is an NVIDIA driver, but torch {facts['versions']['torch']} finds no GPU.",
            "See whether nvidia-smi lists one, whether CUDA_VISIBLE_DEVICES hides it, and whether this torch "
            "is a build for CUDA.",
        )


def _files(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    available, cache, folder = facts["memory"]["available"], facts["cache"], facts["folder"]
    if available is not None and available < LEAST_MEMORY:
        way_out = "End other programs, or use a smaller --batch_size and --data.memory_gb."
        yield f"Only {available / 1e9:.1f} GB of memory are available.", way_out
    if cache["path"] is None:
        way_out = "Set HOME, or AUGLABEL_CACHE to a directory."
        yield f"There is no place for the cache: {cache['error']}.", way_out
    elif not cache["writable"]:
        lost = f"The cache directory {cache['path']} cannot be written, so images are decoded in every run."
        yield lost, "Set AUGLABEL_CACHE to another directory."
    if not folder["writable"]:
        yield "The current folder cannot be written, so runs cannot go there.", "Give --out DIR."
    for what, place, way_out in (
        ("the cache", cache, "Delete old files in it, or set AUGLABEL_CACHE to a directory on another disk."),
        ("runs in the current folder", folder, "Make room, or give --out DIR on another disk."),
    ):
        if place["free"] is not None and place["free"] < LEAST_DISK:
            yield f"Only {place['free'] / 1e9:.1f} GB of disk are free for {what}.", way_out


def _data(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, data in facts["data"].items():
        if data.get("error") and not facts["torch"]["error"]:
            yield f"The {name} images cannot be read: {data['error']}", "Install auglabel again."
        if data.get("missing"):
            missing = f"{data['where']} lacks files of {name}: {', '.join(data['missing'])}."
            yield missing, f"Fetch {data['archive']} again; --data.download true does it."
