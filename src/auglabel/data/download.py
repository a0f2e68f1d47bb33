"""Fetch a file from its official address: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from auglabel.errors import UserError
from auglabel.util.atomic_write import write_atomically


def fetched(address: str, target: Path, expected: str) -> Path:
    """`target`, downloaded from `address`, once its MD5 is `expected`."""

    def fetch(partial: Path) -> None:
        with urllib.request.urlopen(address, timeout=60) as source, partial.open("wb") as file:
            while block := source.read(1 << 20):
                file.write(block)
        found = md5(blocks(partial))
        if found != expected:
            raise OSError(f"expected MD5 {expected}, found {found}")

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, fetch)
    except (OSError, http.client.HTTPException) as error:
        raise OSError(
            f"{address} could not be fetched ({getattr(error, 'reason', None) or error}): "
            f"fetch it where there is a network and put it into {target.parent}."
        ) from None
    return target


def blocks(path: Path) -> Iterable[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def md5(content: Iterable[bytes]) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for block in content:
        digest.update(block)
    return digest.hexdigest()


def require_md5(path: str, found: str, expected: str) -> None:
    if found != expected:
        raise UserError(
            f"{path} is not the official file: expected MD5 {expected}, found {found}. Fetch it again, "
            "or accept it with --data.verify false."
        )
