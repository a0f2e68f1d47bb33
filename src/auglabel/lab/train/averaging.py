"""An average of the weights over the steps of training."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Averaged(AveragedModel):
    """AveragedModel, buffers included, for which no accelerator waits."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model, use_buffers=True)
        self.move: Any = get_ema_multi_avg_fn(decay)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """As the base does it, but for a copy of the number of steps to the device, which would wait."""
        own, new = (chain(net.parameters(), net.buffers()) for net in (self.module, model))
        pairs = list(zip(own, new, strict=True))
        for floating in (True, False):
            some = [pair for pair in pairs if pair[0].is_floating_point() == floating]
            if self.n_averaged == 0:
                for average, value in some:
                    average.copy_(value)
            elif some:
                self.move(*map(list, zip(*some, strict=True)), None)
        self.n_averaged += 1


def averaged(model: nn.Module, decay: float) -> Averaged | None:
    """The average of a network that is about to be trained; None for a decay of 0."""
    return Averaged(model, decay) if decay else None
