"""The options of a function or class, read off its signature, and values converted to what it takes.

Checked are int, float, bool, str, paths, None, Literal, unions, sequences and mappings of those; a value of
any other annotation passes as it is.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from auglabel.util.yaml_values import value_of

REQUIRED = inspect.Parameter.empty  # the default of an option that has none
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", NoneType: "null"}


class Option(NamedTuple):
    """What an option may be, and what it is if nobody sets it."""

    kind: Any  # its annotation
    default: Any


def options_of(call: Callable[..., Any], given: Iterable[str] = ()) -> dict[str, Option]:
    """The arguments of `call` that can be given by name, but for those in `given`."""
    try:
        parameters = inspect.signature(call, eval_str=True).parameters
    except ValueError:  # a builtin without a signature
        return {}
    except Exception:  # an annotation that only type checkers can resolve, or a wrong one
        parameters = inspect.signature(call).parameters
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: Option(parameter.annotation, parameter.default)
        for name, parameter in parameters.items()
        if name not in given and parameter.kind in by_name
    }


class Unfit(Exception):
    """A value that does not fit, and what was wanted, in words."""

    def __init__(self, wanted: str, value: Any) -> None:
        super().__init__(wanted)
        self.wanted, self.value = wanted, value


def wanted(kind: Any) -> str:
    """What a value of this annotation is, in words; nothing for an annotation that is not checked."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(filter(None, map(wanted, inside))))
    if origin is Literal:
        return f"one of {', '.join(map(repr, inside))}"
    if _is_text(kind):
        return WORDS[str]
    if is_list(kind):
        return "a list"
    return "a mapping" if _is_mapping(kind) else WORDS.get(kind, "")


def converted(kind: Any, value: Any) -> Any:
    """`value` as the annotation `kind` has it; text is read as YAML unless the annotation asks for text."""
    if get_origin(kind) in (Union, UnionType):
        return _first(get_args(kind), value)
    if get_origin(kind) is Literal:
        for each in (value, value_of(value)):
            if any(type(each) is type(choice) and each == choice for choice in get_args(kind)):
                return each
    elif _is_text(kind):
        if isinstance(value, str | int | float):
            return value if isinstance(value, str) else str(value)
    else:
        value = value_of(value)
        if is_list(kind):
            return _converted_list(kind, value)
        if _is_mapping(kind):
            return _converted_mapping(kind, value)
        if kind is float and type(value) in (int, float):
            return float(value)
        if kind not in WORDS or type(value) is kind:
            return value
    raise Unfit(wanted(kind), value)


def _first(kinds: Sequence[Any], value: Any) -> Any:
    """As the first of `kinds` that takes it; text, which takes nearly everything, comes last."""
    for kind in sorted(kinds, key=_is_text):
        try:
            return converted(kind, value)
        except Unfit:
            pass
    raise Unfit(wanted(Union[tuple(kinds)]), value_of(value))  # noqa: UP007


def _converted_list(kind: Any, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise Unfit("a list", value)
    inside, as_kind = get_args(kind), tuple if (get_origin(kind) or kind) is tuple else list
    if as_kind is tuple and inside and inside[-1] is not ...:
        if len(value) != len(inside):
            raise Unfit(f"a list of {len(inside)} values", value)
        return tuple(converted(each, part) for each, part in zip(inside, value, strict=True))
    return as_kind(converted(inside[0] if inside else Any, part) for part in value)


def _converted_mapping(kind: Any, value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise Unfit("a mapping", value)
    keys, values = get_args(kind) or (Any, Any)
    return {converted(keys, key): converted(values, each) for key, each in value.items()}


def _is_text(kind: Any) -> bool:
    return kind is str or _is_class(kind, os.PathLike)


def is_list(kind: Any) -> bool:
    return _is_class(kind, Sequence) and not _is_class(kind, str | bytes)


def _is_mapping(kind: Any) -> bool:
    return _is_class(kind, Mapping)


def _is_class(kind: Any, of: Any) -> bool:
    kind = get_origin(kind) or kind
    return inspect.isclass(kind) and issubclass(kind, of)


def meanings(call: Callable[..., Any]) -> dict[str, str]:
    """What options mean: the strings below the fields of a dataclass, or the Args of a docstring."""
    if not is_dataclass(call):
        _, _, arguments = (inspect.getdoc(call) or "").partition("Args:\n")
        return {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(arguments)}
    kinds = [kind for kind in reversed(inspect.getmro(call)) if is_dataclass(kind)]
    definitions = [ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0] for kind in kinds]
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for definition in definitions
        for field, text in itertools.pairwise(definition.body)  # type: ignore[attr-defined]
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {5,}.+)*)", re.M)
