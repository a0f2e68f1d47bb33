"""Keep the memory of one batch for the next."""

import ctypes
import sys


def keep_memory() -> None:
    """Stop glibc from handing every large temporary back to the system, to be cleared again next step."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(mmap_threshold, 1 << 30)
    mallopt(trim_threshold, 1 << 30)
