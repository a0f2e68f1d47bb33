"""What docs/integrations.md says of lines to add, and the examples that no other file runs."""

import os
import re
import runpy
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "integrations.md").read_text()
MOST = {"A plain loop": 5, "Lightning": 2, "timm": 3, "Hugging Face Trainer": 6}
EXAMPLES = {"Lightning": "lightning", "timm": "timm", "Hugging Face Trainer": "transformers"}


def blocks(title):
    """The Python of a section of the page."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)[1]
    return "\n".join(re.findall(r"```python\n(.*?)```", section, re.S))


def marked(code):
    return [line for line in code.splitlines() if line.endswith("# +")]


def claimed(title):
    return int(re.search(rf"^\| \[{title}\]\([^|]*\) \| (\d+) \|", PAGE, re.M | re.I)[1])


@pytest.mark.parametrize("title", MOST)
def test_as_few_lines_are_added_as_the_page_says(title):
    code = blocks(title)
    assert len(marked(code)) == claimed(title) <= MOST[title]
    ours = [
        line
        for line in code.splitlines()
        if re.search(r"auglabel|AugmentAndLabel|AugMix|learned|mixup_fn\.", line)
    ]
    assert ours == [line for line in ours if line.endswith("# +")]
    if title in EXAMPLES:
        program = (ROOT / "examples" / f"with_{EXAMPLES[title]}.py").read_text()
        assert len(marked(program)) == claimed(title)


@pytest.mark.parametrize("title", ["A plain loop", "Lightning"])
def test_without_the_marked_lines_it_is_plain_training(title, tmp_path, monkeypatch):
    pytest.importorskip("lightning", reason="Lightning is not installed")
    monkeypatch.chdir(tmp_path)
    first = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]
    plain = "\n".join(line for line in blocks(title).splitlines() if not line.endswith("# +"))
    assert "AugmentAndLabel" not in plain
    exec(first + plain, {})


def test_transforms_of_albumentations_learn_labels(capsys, monkeypatch):
    pytest.importorskip("albumentations", reason="albumentations is not installed")
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")
    table = runpy.run_path(str(ROOT / "examples" / "with_transforms.py"))["main"](epochs=1, rows=300)
    assert table.shape == (15,)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_trained_network_is_fine_tuned_from_a_file(capsys, tmp_path):
    example = runpy.run_path(str(ROOT / "examples" / "fine_tune.py"))
    torch.manual_seed(0)
    net = example["SmallNet"](num_classes=5, mean=[0.286], std=[0.353])
    torch.save(net.state_dict(), tmp_path / "net.pt")
    found = example["main"](epochs=1, weights=os.fspath(tmp_path / "net.pt"), most=50)
    assert all(seen.count == 50 for seen in found.values())
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("labels start at")
    assert [line.split()[0] for line in printed[1:3]] == ["OneHot", "AutoLabel"]
