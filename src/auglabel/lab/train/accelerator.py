"""Device, precision and processes of a run, as Hugging Face's accelerate keeps them."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs

from auglabel.lab.recipe.recipe import Recipe
from auglabel.util import cpu

PRECISION = {"float32": "no", "bf16": "bf16", "fp16": "fp16"}


def accelerator_for(recipe: Recipe, device: str) -> Accelerator:
    AcceleratorState._reset_state()  # a run before this one may have had another precision
    torch.backends.cudnn.deterministic = recipe.engine.deterministic
    torch.backends.cudnn.benchmark = not recipe.engine.deterministic  # tries algorithms on the first batches
    # left to itself, accelerate takes several CPU processes for one
    on_cpu = device == "cpu" or not (torch.cuda.is_available() or torch.xpu.is_available())
    if on_cpu and recipe.engine.precision == "bf16":
        cpu.require_bfloat16()
    try:
        return Accelerator(
            cpu=on_cpu,
            mixed_precision=PRECISION[recipe.engine.precision],
            # running statistics meet at the end of an epoch alone: see `Trainer._agree`
            kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
        )
    except dist.DistError as error:
        place = f"{os.environ.get('MASTER_ADDR')} port {os.environ.get('MASTER_PORT')}"
        why = str(error).split("\n", 1)[0]
        raise OSError(f"the training processes could not meet at {place}: {why}") from None
