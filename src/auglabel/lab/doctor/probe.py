"""What `auglabel doctor` tries in a process of its own, since it may end that process.

A program: its arguments are tasks, and each finished task is a line of JSON on standard output. A task is
"torch", "train PRECISION" or "import MODULE".
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Precision(NamedTuple):
    dtype: str
    channels_last: bool
    flags: str  # what makes `auglabel train` use it


PRECISIONS = {
    "float32": Precision("float32", False, "--channels_last false"),
    "float32 channels-last": Precision("float32", True, ""),
    "bf16 channels-last": Precision("bfloat16", True, "--precision bf16"),
    "fp16 channels-last": Precision("float16", True, "--precision fp16"),
}
DEFAULT = "float32 channels-last"
COUNTS = (2, 8, 64)  # images of a step: more only if the last step was not slow
SLOW = 0.5  # seconds
SECONDS, STEPS = 0.3, 3  # to time steps of the last count for, and how many at least


def describe_torch() -> dict[str, Any]:
    """What torch says of itself and of the machine."""
    import torch

    device = _device()
    trial = "a small network on one core" if device == "cpu" else "Wide ResNet-16-4 on a GPU"
    kind = None if device == "cpu" else getattr(torch, device)
    gpus = [] if kind is None else [kind.get_device_properties(n) for n in range(kind.device_count())]
    return {
        "version": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "gpus": [{"name": gpu.name, "memory": gpu.total_memory} for gpu in gpus],
        "trial": f"{trial}, {COUNTS[-1]} images of 32 x 32 a step",
    }


def images_per_second(name: str) -> float:
    """Images per second of a training step, on a CPU per core: the fastest of a few steps."""
    step = _training(PRECISIONS[name])
    for count in COUNTS[:-1]:
        seconds = step(count)
        if seconds > SLOW:  # the first step may be slow for other reasons
            seconds = step(count)
        if seconds > SLOW:
            return count / seconds
    times: list[float] = []
    while len(times) < STEPS or sum(times) < SECONDS:
        times.append(step(COUNTS[-1]))
    return COUNTS[-1] / min(times)


def _training(precision: Precision) -> Callable[[int], float]:
    """A function that trains on so many images and returns the seconds that it took."""
    import torch

    from auglabel.models.small import SmallNet
    from auglabel.models.wide_resnet import WideResNet

    device, dtype = _device(), getattr(torch, precision.dtype)
    # Of one thread the processor's time is known, however busy the machine is.
    clock = time.process_time if device == "cpu" else time.perf_counter
    torch.set_num_threads(1)
    order = torch.channels_last if precision.channels_last else torch.contiguous_format
    # that of the recipes for a CPU, or a smaller one of the kind that those for GPUs have
    model: Any = SmallNet(10) if device == "cpu" else WideResNet(10, depth=16, width=4)
    model.to(device).to(memory_format=order)
    images = torch.rand(COUNTS[-1], 3, 32, 32, device=device).contiguous(memory_format=order)
    labels = torch.arange(COUNTS[-1], device=device) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, enabled=dtype == torch.float16)

    def step(count: int) -> float:
        start = clock()
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            loss = torch.nn.functional.cross_entropy(model(images[:count]), labels[:count])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if not math.isfinite(loss.item()):  # which waits for the device
            raise ArithmeticError("the loss of a training step is not finite")
        return clock() - start

    return step


def _device() -> str:
    """Where `auglabel train` computes unless it is told otherwise."""
    import torch

    return next((kind for kind in ("cuda", "xpu") if getattr(torch, kind).is_available()), "cpu")


def do(task: str) -> Any:
    what, _, name = task.partition(" ")
    if what == "import":
        return importlib.import_module(name) is not None
    return describe_torch() if what == "torch" else images_per_second(name)


def main(tasks: list[str]) -> None:
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a task that dies leaves no file
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # some packages print when they are imported
    for task in tasks:
        try:
            line = {"task": task, "result": do(task)}
        except (Exception, SystemExit) as error:
            line = {"task": task, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(line), file=lines, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
