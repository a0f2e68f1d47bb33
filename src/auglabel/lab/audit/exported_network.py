"""Networks that bring their own code: TorchScript and exported programs."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from auglabel.data.source import DataSet
from auglabel.errors import UserError
from auglabel.lab.recipe.build import require_predictions
from auglabel.util.checks import shown


def load_program(path: Path, data: DataSet) -> nn.Module:
    """A network that brings its own code, which the user has asked to run."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        network = _exported(path) if path.suffix == ".pt2" else _scripted(path)
    except (RuntimeError, ValueError, OSError, KeyError) as error:
        why = str(error).split("\n", 1)[0]
        raise UserError(f"{path} is neither TorchScript nor an exported program (.pt2): {why}") from None
    require_predictions(str(path), network, data)
    return network


def _scripted(path: Path) -> nn.Module:
    """TorchScript, in evaluation mode however it was saved."""
    network: nn.Module = torch.jit.load(path, map_location="cpu")
    return network.eval()


def _exported(path: Path) -> nn.Module:
    program = torch.export.load(path)
    for node in program.graph.nodes:
        if node.name in program.graph_signature.user_inputs:
            shape = getattr(node.meta.get("val"), "shape", ())
            fixed = shape[0] if shape and isinstance(shape[0], int) else None
            return _Exported(program.module(), fixed)
    return _Exported(program.module(), None)


class _Exported(nn.Module):
    """An exported program; one for `fixed` images at a time gets its batches in parts, the last filled up."""

    def __init__(self, program: nn.Module, fixed: int | None) -> None:
        super().__init__()
        self.program, self.fixed = program, fixed

    def train(self, mode: bool = True) -> _Exported:
        """An exported program has no modes."""
        return self

    def forward(self, images: Tensor) -> Tensor:
        try:
            if self.fixed is None:
                logits: Tensor = self.program(images)
                return logits
            return torch.cat([self._part(some, self.fixed) for some in images.split(self.fixed)])
        except AssertionError as error:  # a guard of the program's
            raise UserError(
                f"the program does not take images of shape {tuple(images.shape)}: {shown(error)}. Export it "
                "for batches of any size, or see --batch_size."
            ) from None

    def _part(self, images: Tensor, fixed: int) -> Tensor:
        filling = images[-1:].expand(fixed - len(images), *images.shape[1:])
        logits: Tensor = self.program(torch.cat([images, filling]))[: len(images)]
        return logits
