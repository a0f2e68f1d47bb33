"""The processor, the memory and the limits that this process has, by the standard library alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auglabel.util import cpu
from auglabel.util.processor import processor_name, read_fields

VARIABLES = (  # those that decide what torch uses of the machine
    "ONEDNN_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)


def describe_cpu(root: Path = Path("/")) -> dict[str, Any]:
    """`root` is where /proc and /sys are."""
    return {
        "name": processor_name(root),
        "amx": cpu.announces_amx(),
        "amx_hidden": cpu.hides_palette(),
        "cores": os.cpu_count() or 1,
        "usable_cores": _usable_cores(root),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def describe_memory(root: Path = Path("/")) -> dict[str, int | None]:
    """Bytes, within the limit of the control group; None where the system does not tell."""
    facts = read_fields(root / "proc/meminfo")
    words = [facts.get(name, "").partition(" ")[0] for name in ("MemTotal", "MemAvailable")]
    total, available = (int(word) * 1024 if word.isdigit() else None for word in words)
    if total is None and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [int(words[0]) for words in _limits(root, "memory", "memory.max", "memory.limit_in_bytes")]
    sizes = {"total": total, "available": available}
    return {name: None if size is None else min([size, *limits]) for name, size in sizes.items()}


def _usable_cores(root: Path) -> float:
    """By the process's affinity and its control group's quota, which may be a part of a core."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores: list[float] = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    for quota, *rest in _limits(root, "cpu", "cpu.max", "cpu.cfs_quota_us"):
        period = rest[0] if rest else _text(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us")
        cores.append(round(int(quota) / int(period or 100_000), 1))
    return min(cores)


def _limits(root: Path, kind: str, name: str, old_name: str) -> Iterator[list[str]]:
    """The words of the limits that are set: version 2 of control groups, of this group and all; version 1."""
    groups = root / "sys/fs/cgroup"
    own = _text(root / "proc/self/cgroup").rpartition("0::/")[2].partition("\n")[0]
    for path in {groups / own / name, groups / name, groups / kind / old_name}:
        words = _text(path).split()
        if words and words[0].isdigit():  # not "max" or -1
            yield words


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
