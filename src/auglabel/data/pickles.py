"""Read pickled arrays without letting the file run code, or take memory and time that it only asks for.

A pickle is a program for a small machine. Ours knows the operations that make plain values, runs no class or
function but three stand-ins for what numpy writes, and has no keys but words: numpy itself never sees a state
from the file, only bytes that are there.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from auglabel.errors import UserError
from auglabel.util.checks import shown

BYTES = ("u1", b"u1", "uint8", b"uint8")  # what a dtype of bytes is called
WORDS = (bytes, str)


class _ForbiddenName(Exception):
    """Names what a pickle asked for."""


class _Dtype:
    """Stands for numpy.dtype, of which bytes are enough."""

    def __init__(self, name: Any = None, *options: Any) -> None:
        if not (isinstance(name, WORDS) and name in BYTES):
            raise UserError("it holds an array of something else than bytes")

    def __setstate__(self, state: Any) -> None:
        """Byte order and layout: a byte has neither."""


class _Array:
    """Stands for numpy.ndarray, with what has been read of it."""

    pixels: npt.NDArray[np.uint8] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = (
            state if isinstance(state, tuple) and len(state) == 5 else [None] * 5
        )
        if not isinstance(kind, _Dtype) or not isinstance(content, bytes) or not isinstance(shape, tuple):
            raise UserError("it holds an array in no form of numpy's")
        if not all(type(size) is int and size >= 0 for size in shape) or math.prod(shape) != len(content):
            raise UserError("it holds an array whose shape does not fit its bytes")
        self.pixels = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


def _reconstruct(*words: Any) -> _Array:
    return _Array()


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,  # before numpy 2
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}
OPERATIONS = (  # words and numbers, lists, tuples and dicts; memory; the stand-ins
    *("PROTO", "FRAME", "STOP", "POP", "POP_MARK", "DUP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "INT"),
    *("BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("EMPTY_LIST", "APPEND", "APPENDS", "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET"),
    *("BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
)
_Machine: Any = pickle._Unpickler  # in Python: that in C trusts a file's sizes


class _Unpickler(_Machine):  # type: ignore[misc]
    dispatch: dict[int, Any] = {  # noqa: RUF012
        code: _Machine.dispatch[code] for code in (getattr(pickle, name)[0] for name in OPERATIONS)
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _ForbiddenName(f"{module}.{name}")
        return ALLOWED[module, name]

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append(_keyed(items))

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1].update(_keyed([key, value]))

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.stack[-1].update(_keyed(items))

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(made, _Array | _Dtype):
            raise UserError("it changes something that is no array")
        made.__setstate__(state)

    dispatch |= {
        pickle.DICT[0]: load_dict,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.BUILD[0]: load_build,
    }


def _keyed(items: list[Any]) -> dict[Any, Any]:
    """Keys are words: hashing anything else could take for ever."""
    if not all(isinstance(key, WORDS) for key in items[::2]):
        raise UserError("it has a key that is not a word")
    return dict(zip(items[::2], items[1::2], strict=True))


def unpickle(content: bytes, path: str) -> Any:
    """Plain values and arrays of bytes, strings of Python 2 as bytes; what asks for more is refused."""
    try:
        return _read(_Unpickler(io.BytesIO(content), encoding="bytes").load())
    except _ForbiddenName as error:
        raise UserError(
            f"{path} is refused: its pickle asks for {shown(error)}, which could run code and which the "
            "official file never does. Fetch that one."
        ) from None
    except KeyError as error:  # an operation that is not in our list
        raise UserError(
            f"{path} is refused: its pickle has the operation {shown(error)}, which the official file never "
            "has. Fetch that one."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise UserError(
            f"{path} is damaged: its pickle cannot be read ({shown(error)}). Fetch it again."
        ) from None


def _read(value: Any) -> Any:
    """Replace each `_Array` by its numpy array, in `value` itself and among the values of a dict."""
    if isinstance(value, dict):
        return {key: _read(each) if isinstance(each, _Array) else each for key, each in value.items()}
    return value.pixels if isinstance(value, _Array) else value
