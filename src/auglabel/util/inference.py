"""Call a model for evaluation: eval mode, without its wrapper, with the input it takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside a DistributedDataParallel wrapper, whose forward would wait for the other ranks."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def model_input(images: Tensor, model: nn.Module) -> Tensor:
    """Images as `model` takes them: bytes become floats in [0, 1] in its dtype; others are unchanged.

    A model whose attribute `takes_bytes` is true gets bytes.
    """
    if images.dtype != torch.uint8 or images.dim() != 4 or getattr(model, "takes_bytes", False):
        return images
    values = chain(model.parameters(), model.buffers())
    dtype = next((value.dtype for value in values if value.is_floating_point()), torch.float32)
    return images.to(dtype) / 255


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Context in evaluation mode; afterwards every submodule has the mode it had before."""
    # frozen TorchScript has no mode
    training = [module for module in model.modules() if getattr(module, "training", False)]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
