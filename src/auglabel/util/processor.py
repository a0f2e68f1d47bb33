"""The processor or GPU by its name, and by what tells its generation apart where the name does not."""

from __future__ import annotations

import contextlib
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

CPUINFO = Path("proc/cpuinfo")


def processor_name(root: Path = Path("/")) -> str:
    """`root` is where /proc is."""
    return read_fields(root / CPUINFO).get("model name") or _name_elsewhere()


def processor_kind(device: torch.device | None = None, root: Path = Path("/")) -> str:
    """The GPU's name; of a CPU family, model and the widest instructions that torch uses, too.

    Times compare within a kind.
    """
    import torch  # here, since doctor names the processor where torch is broken

    if device is not None and device.type in ("cuda", "xpu"):
        return str(torch.get_device_module(device).get_device_name(device))
    found = read_fields(root / CPUINFO)
    place = [
        f"{part} {found[key]}" for part, key in (("family", "cpu family"), ("model", "model")) if key in found
    ]
    return ", ".join([processor_name(root), *place, torch.backends.cpu.get_cpu_capability()])


def read_fields(path: Path) -> dict[str, str]:
    """The `name: value` lines of a file of /proc, the first of each name; none where there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = [line.partition(":") for line in text.splitlines()]
    return {name.strip(): value.strip() for name, _, value in reversed(lines)}


def _name_elsewhere() -> str:
    name = ""
    if platform.system() == "Darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            name = subprocess.check_output(["sysctl", "-n", "machdep.cpu.brand_string"], text=True, timeout=5)
    return name.strip() or platform.processor() or platform.machine()
