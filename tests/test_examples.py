import ast
import runpy
from pathlib import Path

import pytest
import torch

import auglabel

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_own_loop_learns_labels(capsys):
    runpy.run_path(str(EXAMPLES / "own_loop.py"))["main"](epochs=2)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert float(printed[-1].rpartition(" ")[2]) < 1


def test_own_augmentation_learns_labels(capsys):
    runpy.run_path(str(EXAMPLES / "own_augmentation.py"))["main"]()
    assert "faint to full fade" in capsys.readouterr().out


def test_series_with_noise_learn_labels_and_are_less_over_confident_where_it_is_strong():
    found = runpy.run_path(str(EXAMPLES / "own_series.py"))["main"](epochs=80)
    one_hot, autolabel = (found[name][-4:].mean().item() for name in ("OneHot", "AutoLabel"))
    assert one_hot > 0.08
    assert autolabel < one_hot - 0.04


def test_series_of_another_shape_are_refused():
    noise = runpy.run_path(str(EXAMPLES / "own_series.py"))["Noise"]()
    with pytest.raises(ValueError, match=r"series must have shape \(B, T\), got \(2, 3, 4\)"):
        noise(torch.zeros(2, 3, 4), torch.tensor([0, 1]))


def test_ones_own_augmentation_takes_fewer_than_15_lines():
    tree = ast.parse((EXAMPLES / "own_augmentation.py").read_text())
    (fade,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert fade.end_lineno - fade.lineno + 1 < 15


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("own_*.py")), ids=lambda path: path.stem)
def test_examples_use_public_names_and_have_types(path):
    assert "type: ignore" not in path.read_text()
    listed = (EXAMPLES.parent / "docs" / "api.md").read_text()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("auglabel"):
            for name in (alias.name for alias in node.names):
                public = name in auglabel.__all__ if node.module == "auglabel" else False
                assert public or f":: {node.module}.{name}" in listed, name


README = (Path(__file__).parents[1] / "README.md").read_text()


def loop_of(text):
    """The lines from what is learned to the update, less indentation."""
    lines = [line.strip() for line in text.splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("learned = "))
    last = next(i for i, line in enumerate(lines) if line.startswith("learned.update("))
    return [line for line in lines[first : last + 1] if line]


def test_the_readme_shows_the_loop_that_own_loop_runs():
    block = next(part for part in README.split("```") if part.startswith("python") and "learned = " in part)
    assert loop_of(block) == loop_of((EXAMPLES / "own_loop.py").read_text())


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_readme_shows_both_commands(command):
    assert command in README
