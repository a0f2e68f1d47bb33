"""Read pickled arrays without letting the file run code: an allow-list of three names, all of numpy."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

RECONSTRUCT = np.empty(0).__reduce__()[0]  # what numpy pickles an array as
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,  # before numpy 2
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _Refused(Exception):
    """Names what a pickle asked for."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Refused(f"{module}.{name}")
        return ALLOWED[module, name]


def unpickle(content: bytes, path: str) -> Any:
    """Plain values and arrays, strings of Python 2 as bytes; a pickle that asks for more is refused."""
    try:
        return _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except _Refused as error:
        raise ValueError(
            f"{path} is refused: its pickle asks for {error}, which could run code and which the official "
            "file never does. Fetch that one."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise ValueError(f"{path} is damaged: its pickle cannot be read ({error}). Fetch it again.") from None
