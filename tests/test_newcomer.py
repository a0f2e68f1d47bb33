"""What scripts/newcomer.py says of packages that are wrong; `make newcomer` runs all of it."""

import re
from pathlib import Path

import pytest
from test_reliability_page import loaded

import auglabel

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    return loaded(ROOT / "scripts" / "newcomer.py")


def test_a_wheel_of_the_package_and_its_metadata_is_right(script):
    names = [f"auglabel/{name}" for name in script.package()] + ["auglabel-0.1.0.dist-info/METADATA"]
    assert script.wrong_in_wheel(names) == []


def test_what_a_wheel_lacks_or_has_too_many_is_named(script):
    names = [f"auglabel/{name}" for name in script.package() - {"recipes/folder.yaml", "cli.py"}]
    assert script.wrong_in_wheel([*names, "tests/conftest.py", "auglabel/notes.txt"]) == [
        "auglabel/cli.py is missing",
        "auglabel/recipes/folder.yaml is missing",
        "tests/conftest.py does not belong there",
        "auglabel/notes.txt does not belong there",
    ]


def test_what_an_sdist_lacks_or_has_too_many_is_named(script):
    tops = script.IN_SDIST - {"src", "LICENSE"} | {"results"}
    source = [f"a-1/src/auglabel/{name}" for name in script.package() - {"py.typed"}]
    assert script.wrong_in_sdist([*(f"a-1/{name}" for name in tops), *source]) == [
        "LICENSE is missing",
        "src/auglabel/py.typed is missing",
        "results does not belong there",
    ]


def test_five_commands_are_enough(script):
    assert len(script.COMMANDS) <= 5


def test_every_place_that_names_the_version_names_the_same():
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    (wheel,) = set(re.findall(r"auglabel-(.*?)-py3", (ROOT / "README.md").read_text()))
    assert (cited, wheel) == (auglabel.__version__, auglabel.__version__)
