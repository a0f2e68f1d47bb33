"""Run the tests as other processors would: under each instruction set in turn, with a summary at the end.

    OMP_NUM_THREADS=1 python benchmarks/instruction_sets.py -n 2 tests/test_measure.py ...

Words go to pytest; without any, all tests run. torch's own kernels obey ATEN_CPU_CAPABILITY, those of oneDNN
ONEDNN_MAX_CPU_ISA; a set that this processor does not have means the widest that it has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

SETTINGS = (
    ("ATEN_CPU_CAPABILITY", "default"),
    ("ATEN_CPU_CAPABILITY", "avx2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE"),
)


def main(words: list[str]) -> int:
    """How many settings failed."""
    told = []
    for variable, value in SETTINGS:
        print(f"== {variable}={value}", flush=True)
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], env=os.environ | {variable: value}, check=False
        )
        minutes = (time.monotonic() - start) / 60
        told.append((f"{variable}={value}", done.returncode, minutes))
    for name, code, minutes in told:
        print(f"{name:34} {'passed' if code == 0 else f'failed, exit code {code}'} ({minutes:.1f} min)")
    return sum(code != 0 for _, code, _ in told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
