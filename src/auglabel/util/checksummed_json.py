"""JSON files with a format and a checksum, so that a damaged one is never used.

A file without a checksum is taken as it is: people write label tables by hand.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from auglabel.errors import UserError
from auglabel.util.atomic_write import write_text
from auglabel.util.checks import kind_of, shown

LARGEST = 16 * 2**20  # bytes; no file of ours comes near
LARGEST_WHOLE = 2**53  # beyond it whole numbers are no longer exact in every language


class OtherFormat(UserError):
    """The file is intact, but of another format or version; `ours`: of a format of auglabel's."""

    def __init__(self, sentence: str, ours: bool) -> None:
        super().__init__(sentence)
        self.ours = ours


def write_checksummed(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` with its checksum, atomically."""
    write_text(path, json.dumps(with_checksum(value), indent=1) + "\n")


def with_checksum(value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `value` with its checksum added."""
    plain = {key: each for key, each in value.items() if key != "checksum"}
    return {**plain, "checksum": _checksum(plain)}


def read_checksummed(
    path: Path, *formats: str, what: str, otherwise: str = "", shape: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Read such a file and verify its checksum and format, one of `formats`; returns it without the checksum.

    Errors call the file `what` and end with `otherwise`, the way out; `mismatch` explains `shape`.
    """
    found = _read(path, what, otherwise)
    if found.get("format") not in formats:
        came = kind_of(found["format"]) if "format" in found else "none"
        raise OtherFormat(
            f'{path} is not {what}, or of another version: format "{formats[0]}" was expected, got {came}.'
            f"{otherwise and f' {otherwise}'}",
            ours=str(found.get("format")).startswith("auglabel "),
        )
    checksum = found.pop("checksum", None)
    if checksum is not None and checksum != _checksum(found):
        raise UserError(
            f"{path} is damaged: its checksum does not fit its content; remove that if you changed the file "
            f"yourself.{otherwise and f' {otherwise}'}"
        )
    if shape is not None and (wrong := mismatch(found, shape)):
        raise UserError(f"{path} is damaged or of another version: {wrong}.{otherwise and f' {otherwise}'}")
    return found


def mismatch(value: Any, shape: Any, at: str = "") -> str:
    """Where and how a JSON value differs from a shape, as a clause; "" if it does not.

    A shape is a type (a float is finite, a whole number will do); None; `math.inf` for any number; a list
    with the shape of each entry; a dict with those of its keys, "key?" for one that may be missing and ...
    for all others; or a tuple of shapes, one of which must fit.
    """
    if _is(value, shape):
        return ""
    if isinstance(shape, tuple):
        wrongs = [mismatch(value, each, at) for each in shape]
        return "" if "" in wrongs else wrongs[-1]
    if isinstance(shape, dict) and isinstance(value, dict):
        return next(filter(None, _key_mismatches(value, shape, at)), "")
    if isinstance(shape, list) and isinstance(value, list):
        each = shape[0]  # a number that fits, of which there are many, needs no place in words
        wrong = (mismatch(v, each, f"{at}.{n}") for n, v in enumerate(value) if not _is(v, each))
        return next(filter(None, wrong), "")
    return f"{shown(at.lstrip('.'))} must be {_named(shape)}, got {kind_of(value)}"


def _key_mismatches(value: dict[str, Any], shape: Mapping[Any, Any], at: str) -> Iterator[str]:
    for key, inner in shape.items():
        name = key.removesuffix("?") if key is not ... else key
        if key is ...:
            known = {str(each).removesuffix("?") for each in shape}
            yield from (mismatch(each, inner, f"{at}.{k}") for k, each in value.items() if k not in known)
        elif name in value:
            yield mismatch(value[name], inner, f"{at}.{name}")
        elif key == name:
            yield f"it does not say {shown(f'{at}.{name}'.lstrip('.'))}"


def _is(value: Any, shape: Any) -> bool:
    """Whether `value` is of the type `shape`, or one of several; False where entries must be compared too."""
    if isinstance(shape, tuple):
        return any(_is(value, each) for each in shape)
    if shape is None or shape is bool:
        return value is None if shape is None else isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if shape is float or shape == math.inf:
        whole = isinstance(value, int) and abs(value) <= LARGEST_WHOLE
        return whole or (isinstance(value, float) and (shape == math.inf or math.isfinite(value)))
    if shape is int:
        return isinstance(value, int) and abs(value) <= LARGEST_WHOLE
    if shape is str:
        return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(shape, type) and isinstance(value, shape)


def _named(shape: Any) -> str:
    names = {str: "a word", int: "a whole number", float: "a number", bool: "true or false", None: "null"}
    if isinstance(shape, list | dict) or shape in (list, dict):
        return "a list" if isinstance(shape, list) or shape is list else "an object"
    return names.get(shape, "a number")


def _read(path: Path, what: str, otherwise: str) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no {path}.") from None
    if len(content) > LARGEST:
        raise UserError(f"{path} is not {what}: it has more than {LARGEST:,} bytes, which none of ours has.")
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is damaged, or not {what}: it is not JSON ({shown(error)})."
            f"{otherwise and f' {otherwise}'}"
        ) from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is not {what}: got {kind_of(found)}.{otherwise and f' {otherwise}'}")
    return found


def _checksum(value: Mapping[str, Any]) -> str:
    words = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(words.encode(), digest_size=16).hexdigest()


def checksummed_line(value: Mapping[str, Any]) -> str:
    """`value` as one line of JSON with its checksum."""
    return json.dumps({**value, "crc32": _crc(value)})


def parse_line(line: str | bytes) -> dict[str, Any]:
    """Parse a line of `checksummed_line`; the error is the end of a sentence."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise UserError("it is not JSON.") from None
    if not isinstance(found, dict):
        raise UserError(f"an object was expected, got {kind_of(found)}.")
    crc = found.pop("crc32", None)
    if crc is not None and crc != _crc(found):
        raise UserError("its checksum does not fit its content.")
    return found


def _crc(value: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(value).encode()):08x}"
