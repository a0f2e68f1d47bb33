"""Options are read off signatures; values are converted to what annotations say, or refused."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from auglabel.errors import UserError
from auglabel.lab.recipe.options import RecipeError, flags
from auglabel.util.help_text import help_of_flags, help_of_section
from auglabel.util.signatures import REQUIRED, Unfit, converted, options_of
from auglabel.util.yaml_values import value_of, yaml_text


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (int, "3", 3),
        (int, 3, 3),
        (int, "0x10", 16),
        (float, "3", 3.0),
        (float, "4e-4", 0.0004),
        (float, 2, 2.0),
        (bool, "yes", True),
        (bool, "false", False),
        (str, "3", "3"),
        (str, 3, "3"),
        (str, "[a]", "[a]"),
        (str | None, "null", None),
        (str | None, "x", "x"),
        (int | float | None, "0.5", 0.5),
        (int | float, "1", 1),
        (float | None, "null", None),
        (str | os.PathLike[str], "a/b", "a/b"),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (Literal["a"] | None, "null", None),
        (tuple[int, int], "[1, 2]", (1, 2)),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (list[float], "[1, 2e0]", [1.0, 2.0]),
        (Sequence[str], "[a, b]", ["a", "b"]),
        (Mapping[str, int], "{a: 1}", {"a": 1}),
        (str | dict[str, tuple[float, float]], "{a: [0, 1]}", {"a": (0.0, 1.0)}),
        (str | dict[str, tuple[float, float]], "{a: 0}", "{a: 0}"),
        (Any, "[1, x]", [1, "x"]),
        (REQUIRED, "1e3", 1000.0),  # no annotation
    ],
)
def test_a_value_becomes_what_its_annotation_says(kind, value, wanted):
    found = converted(kind, value)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (int, "x", "a whole number"),
        (int, 3.0, "a whole number"),
        (int, True, "a whole number"),
        (float, True, "a number"),
        (float, "nan", "a number"),
        (bool, 0, "true or false"),
        (str, [1], "a word"),
        (str, None, "a word"),
        (int | None, "x", "a whole number or null"),
        (Literal["a", "b"], "c", "one of 'a', 'b'"),
        (Literal[1], True, "one of 1"),
        (tuple[int, int], [1], "a list of 2 values"),
        (tuple[int, ...], 1, "a list"),
        (list[int], ["x"], "a whole number"),
        (dict[str, int], [1], "a mapping"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_was_wanted(kind, value, wanted):
    with pytest.raises(Unfit) as caught:
        converted(kind, value)
    assert caught.value.wanted == wanted


def test_options_are_the_arguments_that_can_be_given_by_name():
    def call(
        given, first: "int", /, second: "float", *rest: int, third: str = "x", **others: Any
    ) -> None: ...

    assert options_of(call, {"given"}) == {"second": (float, REQUIRED), "third": (str, "x")}
    assert options_of(dict.fromkeys) == {}  # has no arguments with a name


def test_annotations_that_only_type_checkers_know_are_not_checked():
    def call(first: "Unknown" = 3) -> None: ...  # noqa: F821

    (option,) = options_of(call).values()
    assert converted(option.kind, "[1, 2]") == [1, 2]


@pytest.mark.parametrize("value", [None, True, 3, 0.25, "words", [1, "a"], {"a": [1, 2.5]}])
def test_a_value_survives_its_text(value):
    assert value_of(yaml_text(value)) == value


def test_text_that_stands_for_millions_of_values_stays_text():
    lists = ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]" for n in range(12))
    assert value_of(f"[{lists}]") == f"[{lists}]"


@dataclass(frozen=True)
class Flags:
    """What to do"""

    often: int
    """how many
    times"""
    names: tuple[str, ...] = ("a",)
    fast: bool = False
    """at once"""

    def __post_init__(self) -> None:
        if self.often < 1:
            raise UserError("often must be at least 1.")


def test_a_commands_flags_are_the_fields_of_its_dataclass_and_the_rest_is_left():
    found, rest = flags(Flags, ["--often", "3", "--names=x,y", "--fast", "--seed=4"])
    assert found == Flags(3, ("x", "y"), True)
    assert rest == ["--seed=4"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--often=x"], r"^--often: often must be a whole number, got x\.$"),
        (["--often=0"], r"^--often must be at least 1\.$"),
        (["--fast"], r"^--often VALUE is needed\.$"),
        (["often"], r'^an option such as --epochs 10 was expected, got "often"\.$'),
    ],
)
def test_a_mistake_among_a_commands_flags_is_one_sentence(words, complaint):
    with pytest.raises(RecipeError, match=complaint):
        flags(Flags, words)


def test_help_has_every_option_with_its_meaning_kind_and_default():
    assert help_of_flags(Flags).splitlines() == [
        "What to do:",
        "  --often               how many times (a whole number, required)",
        "  --names               (a list, default: [a])",
        "  --fast                at once (true or false, default: false)",
    ]


def test_help_takes_meanings_from_the_arguments_of_a_docstring():
    def call(much: float = 0.5, a_very_long_name_of_an_option: Any = None) -> None:
        """Do it.

        Args:
            much: how
                much
        """

    assert help_of_section("labels", call, options_of(call)).splitlines() == [
        "Do it:",
        "  --labels.much         how much (a number, default: 0.5)",
        "  --labels.a_very_long_name_of_an_option",
        "                        (default: null)",
    ]


@pytest.mark.parametrize("annotation", ["Unknown", "int.nothing", "1 +"])
def test_a_function_whose_annotations_cannot_be_resolved_still_has_its_options(annotation):
    def build(widths=3):
        return widths

    build.__annotations__["widths"] = annotation
    assert options_of(build)["widths"].default == 3
