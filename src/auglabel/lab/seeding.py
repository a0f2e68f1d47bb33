"""One random stream per purpose, so that none shifts another."""

import hashlib

import torch


def generator_for(seed: int, purpose: str, epoch: int = 0) -> torch.Generator:
    """A CPU generator of its own for each (seed, purpose, epoch)."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{epoch}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
