"""What is wrong in the facts that `auglabel doctor` has gathered, each with a way out."""

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
    return [
        *_torch(facts),
        *_precisions(facts),
        *_installation(facts, needed),
        *_packages(facts),
        *_processor(facts),
        *_threads(facts),
        *_gpu(facts),
        *_space(facts),
        *_data(facts),
    ]


def _torch(facts: dict[str, Any]) -> Iterator[Problem]:
    if facts["torch"]["error"]:
        yield Problem(
            f"torch cannot be used: {facts['torch']['error']}.",
            "Install it again: pip install --force-reinstall torch. https://pytorch.org/get-started lists "
            "the builds for each system.",
        )


def _precisions(facts: dict[str, Any]) -> Iterator[Problem]:
    for name, tried in facts["precisions"].items():
        flags = PRECISIONS[name].flags
        if tried["death"] == "dies with SIGILL" and facts["cpu"]["amx"] and "bf16" in name:
            yield Problem(
                f"Training in {name} dies with SIGILL (illegal instruction): the CPU announces AMX, but it "
                "does not work here.",
                f"Set {cpu.VARIABLE}={cpu.LIMIT} in the environment, or train in float32.",
            )
        elif tried["death"]:
            way_out = f"Do not train with {flags}." if flags else "Install another version of torch."
            yield Problem(f"Training in {name} {tried['death']}.", way_out)
        elif tried["error"] and not facts["torch"]["error"] and name.startswith("float32"):
            yield Problem(f"Training in {name} fails: {tried['error']}.", "Install torch and auglabel again.")


def _installation(facts: dict[str, Any], needed: list[Requirement]) -> Iterator[Problem]:
    if not needed:
        yield Problem(
            "auglabel has no package metadata, so its extras are not known.",
            "Install it: pip install auglabel, or pip install -e . in its source.",
        )
    for each in needed:
        if each.extra is None and each.package not in ("torch", *facts["packages"]):
            yield Problem(f"{each.package} is not installed.", f"pip install {each.package}")


def _packages(facts: dict[str, Any]) -> Iterator[Problem]:
    for name, package in facts["packages"].items():
        if package["error"] and package["error"] != facts["torch"]["error"]:  # which has its own
            yield Problem(
                f"{name} {package['version']} is installed but cannot be imported: {package['error']}.",
                f"Install a version that fits the other packages, or remove it: pip uninstall {name}.",
            )
        if package["needed"]:
            yield Problem(
                f"{name} {package['version']} is older than auglabel needs.",
                f"pip install '{name}>={package['needed']}'",
            )


def _processor(facts: dict[str, Any]) -> Iterator[Problem]:
    limit = facts["variables"].get(cpu.VARIABLE, "ALL")
    limited = "AMX" not in limit.upper() and limit.upper() not in ("ALL", "DEFAULT")
    if facts["cpu"]["amx"] and not facts["cpu"]["amx_hidden"] and limited:
        yield Problem(
            f"The CPU has AMX, but oneDNN is kept from using it: {cpu.VARIABLE}={limit}.",
            f"bf16 may be two to three times as fast with it: unset {cpu.VARIABLE}.",
        )


def _threads(facts: dict[str, Any]) -> Iterator[Problem]:
    threads, usable = facts["torch"]["threads"], facts["cpu"]["usable_cores"]
    if threads is None:
        return
    set_by = [name for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in facts["variables"]]
    if threads < usable and (set_by or threads == 1):
        because = f" because {set_by[0]}={facts['variables'][set_by[0]]}" if set_by else ""
        way_out = f"unset {set_by[0]}" if set_by else f"export OMP_NUM_THREADS={int(usable)}"
        yield Problem(
            f"torch uses {threads} of {usable:g} cores{because}.", f"For one run at a time: {way_out}."
        )
    if threads > max(usable, 1):
        yield Problem(
            f"torch uses {threads} threads, but this process may use {usable:g} cores.",
            f"They wait for each other: export OMP_NUM_THREADS={max(int(usable), 1)}.",
        )


def _gpu(facts: dict[str, Any]) -> Iterator[Problem]:
    if not facts["gpus"] and not facts["torch"]["error"] and shutil.which("nvidia-smi"):
        yield Problem(
            f"There is an NVIDIA driver, but torch {facts['versions']['torch']} finds no GPU.",
            "See whether nvidia-smi lists one, whether CUDA_VISIBLE_DEVICES hides it, and whether this torch "
            "is a build for CUDA.",
        )


def _space(facts: dict[str, Any]) -> Iterator[Problem]:
    available, cache, folder = facts["memory"]["available"], facts["cache"], facts["folder"]
    if available is not None and available < LEAST_MEMORY:
        yield Problem(
            f"Only {available / 1e9:.1f} GB of memory are available.",
            "End other programs, or use a smaller --batch_size and --data.memory_gb.",
        )
    if cache["path"] is None:
        yield Problem(
            f"There is no place for the cache: {cache['error']}.",
            "Set HOME, or AUGLABEL_CACHE to a directory.",
        )
    elif not cache["writable"]:
        yield Problem(
            f"The cache directory {cache['path']} cannot be written, so images are decoded in every run.",
            "Set AUGLABEL_CACHE to another directory.",
        )
    if not folder["writable"]:
        yield Problem("The current folder cannot be written, so runs cannot go there.", "Give --out DIR.")
    for what, place, way_out in (
        ("the cache", cache, "Delete old files in it, or set AUGLABEL_CACHE to a directory on another disk."),
        ("runs in the current folder", folder, "Make room, or give --out DIR on another disk."),
    ):
        if place["free"] is not None and place["free"] < LEAST_DISK:
            yield Problem(f"Only {place['free'] / 1e9:.1f} GB of disk are free for {what}.", way_out)


def _data(facts: dict[str, Any]) -> Iterator[Problem]:
    for name, data in facts["data"].items():
        if data.get("error") and not facts["torch"]["error"]:
            yield Problem(f"The {name} images cannot be read: {data['error']}", "Install auglabel again.")
        if data.get("missing"):
            yield Problem(
                f"{data['where']} lacks files of {name}: {', '.join(data['missing'])}.",
                f"Fetch {data['archive']} again; --data.download true does it.",
            )
