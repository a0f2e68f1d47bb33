"""A device that is not there: tensors that say they are elsewhere, and a count of how often the host waits.

Numbers are computed on the CPU, so that a run gives the bits of a run on the CPU. As on a GPU, tensors of the
device and of the host do not mix, and what needs a value of the device on the host is counted: `.item()`,
`.cpu()`, `nonzero`, masks as indices, a copy to the device that is not asked not to block, and the like.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")  # the one name that needs no hardware
aten = torch.ops.aten
VALUES = {  # their results, or the sizes of these, depend on values
    *(aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten.bincount, aten.equal),
    *(aten.unique_consecutive, aten._unique2, aten.repeat_interleave),
}
INDEXING = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}


class Elsewhere(torch.Tensor):
    """A tensor of the device; `here` has its values."""

    @staticmethod
    def __new__(cls, here):
        layout = {"strides": here.stride(), "storage_offset": here.storage_offset(), "dtype": here.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, here.size(), **layout, device=DEVICE)

    def __init__(self, here):
        self.here = here

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError(f"{function} outside of StandIn")


class StandIn(TorchDispatchMode):
    """While it is active there is a device; `waits` lists what made the host wait for it."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        packet, given = function.overloadpacket, [t for t in tree_flatten((args, kwargs))[0] if _tensor(t)]
        far = [tensor for tensor in given if isinstance(tensor, Elsewhere)]
        there = bool(far)
        if packet is aten._to_copy and kwargs.get("device") is not None:
            there = torch.device(kwargs["device"]) == DEVICE
            self._copied(bool(far), there, bool(kwargs.get("non_blocking")))
        elif packet is aten.copy_:
            self._copied(
                isinstance(args[1], Elsewhere), isinstance(args[0], Elsewhere), len(args) > 2 and args[2]
            )
        elif far:
            self._used(packet, function, args, given)
        elif kwargs.get("device") is not None:
            there = torch.device(kwargs["device"]) == DEVICE
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu"
        inside = tree_map(lambda each: each.here if isinstance(each, Elsewhere) else each, (args, kwargs))
        result = function(*inside[0], **inside[1])
        if packet is aten._to_copy and given and result is inside[0][0]:
            result = result.clone()
        return tree_map(lambda each: Elsewhere(each) if there and _tensor(each) else each, result)

    def _copied(self, from_there, to_there, non_blocking):
        if from_there and not to_there:
            self.waits.append("a copy to the host")
        elif to_there and not from_there and not non_blocking:
            self.waits.append("a blocking copy from the host")

    def _used(self, packet, function, args, given):
        if packet in INDEXING:
            places = [each for each in args[1] if each is not None]
            self.waits += ["a mask as an index" for each in places if each.dtype in (torch.bool, torch.uint8)]
            self.waits += ["an index on the host" for each in places if not isinstance(each, Elsewhere)]
        elif any(tensor.dim() and not isinstance(tensor, Elsewhere) for tensor in given):
            raise RuntimeError(f"{function} mixes tensors of the device and of the host")
        if packet in VALUES:
            self.waits.append(str(packet))


def _tensor(value):
    return isinstance(value, torch.Tensor)


def accelerator():
    """What a Trainer asks of accelerate, for one process on the device."""
    return SimpleNamespace(
        device=DEVICE,
        process_index=0,
        num_processes=1,
        scaler=None,
        prepare=lambda model: model,
        autocast=nullcontext,
        backward=lambda loss: loss.backward(),
        reduce=lambda tensor, how: tensor,
    )
