"""Keep bf16 from killing the process where the processor announces AMX but does not describe it.

Some virtual machines list `amx_tile` and `amx_bf16` but answer CPUID leaf 1D, the palette of tile shapes,
with zeros. oneDNN, which computes torch's bf16 layers, then meets an illegal instruction, and the process
ends by SIGILL. `guard` limits oneDNN to AVX-512 there. oneDNN reads the limit when it makes its first kernel,
so it must be set before the first layer is computed: `import auglabel` does that.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import platform
import signal
import sys
import time
from collections.abc import Callable

VARIABLE = "ONEDNN_MAX_CPU_ISA"
LIMIT = "AVX512_CORE_FP16"  # the widest instruction set below AMX
_CPUID = bytes.fromhex("5389f831c90fa25bc3")  # push rbx; mov eax, edi; xor ecx, ecx; cpuid; pop rbx; ret
PALETTES = 0x1D  # the leaf that describes them


def announces_amx() -> bool:
    """Whether the processor, as Linux describes it, has AMX for bf16."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return {"amx_tile", "amx_bf16"} <= set(flags.split())


def tile_palettes() -> int | None:
    """The number of tile palettes that the processor describes; None if it cannot be asked."""
    highest = _cpuid(0)
    if highest is None:
        return None
    return _cpuid(PALETTES) if highest >= PALETTES else 0  # a leaf beyond the highest answers with another's


def _cpuid(leaf: int) -> int | None:
    """What the processor answers in EAX; None on other processors, and where a program may not write code."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(_CPUID)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return int(ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(address)(leaf))


def hides_palette() -> bool:
    """Whether AMX is announced but cannot be used as oneDNN uses it."""
    return announces_amx() and tile_palettes() == 0


def guard() -> None:
    """Limit oneDNN where AMX cannot be used, unless the user has set a limit already."""
    if VARIABLE not in os.environ and hides_palette():
        os.environ[VARIABLE] = LIMIT


def require_bfloat16() -> None:
    """Refuse bf16 on a processor where it would end this process by a signal.

    The limit comes too late where a program has computed layers before it imported auglabel. A fork, which
    has oneDNN in the same state as this process, tries whether it did.
    """
    if announces_amx() and not tile_palettes() and not _survives(_compute_bfloat16):
        from auglabel.errors import UserError  # the package asks this module before any other

        raise UserError(
            "bf16 does not work in this process: the processor announces AMX but hides its tile palette, and "
            f"nothing keeps oneDNN from using it. Set {VARIABLE}={LIMIT} in the environment before "
            "Python starts, or import auglabel before the first layer is computed, or train in float32."
        )


def _survives(work: Callable[[], None], seconds: float = 30.0) -> bool:
    """Whether a fork of this process does the work and ends well."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()  # it would print a traceback of what is expected
            work()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _compute_bfloat16() -> None:
    """A layer large enough for oneDNN to take its AMX kernels."""
    import torch

    torch.set_num_threads(1)  # a fork has none of its parent's threads
    ones = torch.ones(64, 64, dtype=torch.bfloat16)
    torch.nn.functional.linear(ones, ones)
