"""One random stream per purpose, so that none shifts another."""

import hashlib

import torch


def seed_for(seed: int, purpose: str, number: int = 0, rank: int = 0) -> int:
    """A seed of its own for each purpose, number (of an epoch or a step) and rank."""
    words = f"{seed}/{purpose}/{number}" + (f"/{rank}" if rank else "")
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big") >> 1


def generator_for(seed: int, purpose: str, number: int = 0, rank: int = 0) -> torch.Generator:
    """A CPU generator started from `seed_for`."""
    return torch.Generator().manual_seed(seed_for(seed, purpose, number, rank))
