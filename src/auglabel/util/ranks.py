"""The processes of distributed training."""

import torch.distributed as dist


def distributed() -> bool:
    """Whether a process group of torch.distributed is in use."""
    return dist.is_available() and dist.is_initialized()


def rank_and_world() -> tuple[int, int]:
    """This process's rank and the number of processes: (0, 1) without torch.distributed."""
    return (dist.get_rank(), dist.get_world_size()) if distributed() else (0, 1)
