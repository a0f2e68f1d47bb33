"""Every block of code in README.md and docs/ works as it is printed.

A page is read from top to bottom in an empty directory: Python runs in one namespace, commands run in turn,
YAML is read as a recipe, and what a block of text says must have been printed by the block before it. What is
not done in full is listed here, with the reason.
"""

import contextlib
import io
import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from docs_blocks import PAGES, ROOT, blocks_of, commands_of
from PIL import Image
from safetensors.torch import save_file

from auglabel import cli
from auglabel.data.embedded import load_embedded
from auglabel.lab.commands import demo, doctor, inspect, sweep
from auglabel.lab.commands import train as train_command
from auglabel.lab.commands.registry import COMMANDS
from auglabel.lab.compare.candidates import of_file
from auglabel.lab.copies import copies
from auglabel.lab.evaluate import corrupted
from auglabel.lab.recipe import build
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.report import report as reported
from auglabel.lab.runs.run import Run
from auglabel.lab.study.study import Study
from auglabel.models.small import SmallNet

LANGUAGES = {"python", "sh", "yaml", "text", "{eval-rst}"}  # the last one is for the site to run

# Commands that are stopped where the work would begin: their words are read and their recipes checked.
PARSED = {
    r"auglabel demo": "minutes; tests/test_demo.py runs a short one",
    r"auglabel doctor": "tries everything installed; tests/test_doctor.py runs it",
    r"auglabel (train|eval|audit|corrupt) .*(cifar|imagenet|--program|--copies)": "what is not here",
    r"auglabel reproduce (?!all --scale paper --plan)": "hours; tests/test_reproduce.py runs small ones",
    r"auglabel sweep ": "minutes; tests/test_sweep.py runs small ones",
    r"-m auglabel.cli train ": "several machines",
}
# Commands that are run with these words too, which make them small.
SMALLER = {
    r"auglabel train folder ": ["--epochs=1", "--model.widths=[4,8,8]"],
    r"auglabel compare embedded": [
        *("--epochs=1", "--split.train=60", "--split.validation=40", "--model.widths=[4,8,8]"),
        *("--seeds=2", "--corrupted=false"),
    ],
    r"auglabel compare folder": [
        *("--epochs=1", "--model.widths=[4,8,8]", "--seeds=2", "--corrupted=false"),
    ],
    r"auglabel train embedded --labels": ["--epochs=1", "--split.train=60", "--split.validation=60"],
    r"auglabel eval runs/(one-hot|autolabel)": ["--resamples=20"],
    r"auglabel eval runs/mine --on .*(pgd|corrupted)": ["--resamples=0", "--images=2"],
}
# Blocks of text that no command before them printed, by what they begin with.
NOT_COMPARED = {
    "         Learned label": "the demo, which took minutes",
    "    magnitude": "an excerpt of it, which is checked below",
    "auglabel: mine.yaml, line 6": "checked below",
    "6 runs, 3 points x 2 seeds": "figures of a sweep, which took minutes",
    "Problems\n": "of another machine; tests/test_doctor.py checks the screen",
    "src/auglabel/": "the layout, which tests/test_design.py checks",
    "training step": "a drawing",
}
BEFORE = {  # what a page's first block of Python takes for granted
    "README.md": """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from auglabel.data.embedded import load_embedded
from auglabel.models.small import SmallNet
images, labels = (part[:60] for part in load_embedded().train)
train_loader = val_loader = DataLoader(TensorDataset(images, labels), batch_size=30)
device, epochs = "cpu", 2
model = SmallNet(num_classes=10, mean=[0.286], std=[0.353])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
""",
    "docs/corruptions.md": """
from auglabel.data.embedded import load_embedded
images = load_embedded().test.images[:2]
""",
}
RUNS = {  # runs that a page speaks of and does not train
    "docs/corruptions.md": ["mine"],
    "docs/report.md": ["one", "other", "third"],
}


class Reached(BaseException):
    """A command got to where its work would begin."""


def stop(*args, **options):
    raise Reached


@pytest.fixture
def room(tmp_path, monkeypatch):
    """An empty directory to read a page in, with what its reader has: pictures, and a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AUGLABEL_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    images, labels = load_embedded().train
    for name in (0, 1):
        (tmp_path / "pictures" / f"class{name}").mkdir(parents=True)
        for number, image in enumerate(images[labels == name][:10]):
            Image.fromarray(image[0].numpy()).save(tmp_path / f"pictures/class{name}/{number}.png")
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "nets.py").write_text(
        "from auglabel.models.small import SmallNet\n\n\n"
        "def build(num_classes, mean, std):\n    return SmallNet(num_classes, mean=mean, std=std)\n"
    )
    save_file(SmallNet(10, mean=[0.5] * 3, std=[0.2] * 3).state_dict(), tmp_path / "net.safetensors")
    return tmp_path


def test_every_block_names_its_language():
    wrong = [
        f"{block.place}: {block.language!r}"
        for page in PAGES
        for block in blocks_of(page)
        if block.language not in LANGUAGES
    ]
    assert not wrong, f"expected one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)])
def test_the_blocks_of_a_page_run_in_order(page, room, monkeypatch):
    names, file, printed = vars(module_of(page, room, monkeypatch)), str(room / "page.py"), ""
    exec(BEFORE.get(page, ""), names)
    for seed, name in enumerate(RUNS.get(page, ())):
        run(f"auglabel train folder --data.root pictures --seed {seed} --out runs/{name}", monkeypatch)
    for block in blocks_of(page):
        if block.language == "python":
            torch.manual_seed(0)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * block.line + block.text, file, "exec"), names)
            printed = out.getvalue()
        elif block.language == "sh":
            printed = "".join(run(command, monkeypatch) for command in commands_of(block))
        elif block.language == "yaml":
            named = re.match(r"# (\S+\.yaml)\n", block.text)
            file = room / (named[1] if named else "block.yaml")
            file.write_text(block.text)
            of_file(file) if file.name == "methods.yaml" else read_recipe(str(file))
        elif block.language == "text" and not not_compared(block):
            require_printed(block, printed)


def test_the_labels_of_the_extension_that_learns_are_recorded_and_shown(room, monkeypatch, capsys):
    module = module_of("docs/extending.md", room, monkeypatch)
    exec((room / "page.py").read_text(), vars(module))
    small = ["--epochs=1", "--split.train=60", "--split.validation=40", "--model.widths=[4,8,8]"]
    assert cli.main(["train", "embedded", "--labels=mine:AsAccurate", *small, "--out=runs/learned"]) == 0
    assert len(Run(room / "runs/learned").history()) == 1
    assert cli.main(["inspect", "runs/learned"]) == 0
    assert "shear_x" in capsys.readouterr().out


def module_of(page, room, monkeypatch):
    """A module whose source is the page's Python, each line where the page has it."""
    lines = []
    for block in blocks_of(page):
        if block.language == "python":
            lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    (room / "page.py").write_text("\n".join(lines))
    module = ModuleType("page")
    module.__file__ = str(room / "page.py")
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setitem(sys.modules, "mine", module)  # the file that docs/extending.md speaks of
    linecache.checkcache()
    return module


def not_compared(block):
    return next((start for start in NOT_COMPARED if block.text.startswith(start)), None)


def require_printed(block, printed):
    """Every line of the block, in this order; `...` stands for what is left out, spaces do not count."""
    left = iter(" ".join(line.split()) for line in printed.splitlines())
    for line in block.text.splitlines():
        wanted = " ".join(line.split())
        if wanted and wanted != "...":
            pattern = re.escape(wanted).replace(re.escape("..."), ".*")
            assert any(re.fullmatch(pattern, line) for line in left), (
                f"{block.place}: {line!r} is not in\n{printed}"
            )


def run(command, monkeypatch):
    """Do what a line of a shell block says, as far as this file's tables allow; what it prints."""
    words = shlex.split(command, comments=True)
    if "&&" in words:
        return "".join(run(part, monkeypatch) for part in command.split("&&"))
    words = [os.path.expanduser(word) for word in words]
    program = words[0].removeprefix(".venv/bin/")
    if program == "make":
        assert shutil.which("make"), "there is no make to ask"
        return subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, text=True, stdout=-1).stdout
    if program == "pip" or words[1:3] == ["-m", "venv"]:
        require_extras(command)
        return ""
    if program in ("python", "pytest"):
        assert all((ROOT / word).is_file() for word in words[1:] if "/" in word)
        return ""
    start = words.index("auglabel.cli") if "auglabel.cli" in words else 0
    assert start or program == "auglabel", f"{command}: this test knows no {program}"
    return run_auglabel(words[start + 1 :], command.removeprefix(".venv/bin/"), monkeypatch)


def run_auglabel(words, command, monkeypatch):
    words = [*words, *(word for key, more in SMALLER.items() if re.search(key, command) for word in more)]
    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        if parsed := any(re.search(key, command) for key in PARSED):
            stop_at_work(patch)
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.suppress(Reached):
            code = cli.main(words)
            if parsed and find_spec("timm") is None and "timm is not installed" in errors.getvalue():
                raise Reached  # its name was read; which networks it has, we cannot ask
            assert code == 0, f"{command}\n{errors.getvalue()}"
            assert not parsed or words[0] == "train", f"{command} ran in full: it needs no entry in PARSED"
    return out.getvalue()


def stop_at_work(patch):
    """Stop every command before it reads data, trains or draws; a training leaves the recipe of its run."""
    for module in (build, copies):
        patch.setattr(module, "data_set_for", stop)
    patch.setattr(train_command, "train", lambda recipe, out, options: Run(out).begin(recipe))
    patch.setattr(train_command, "launch", lambda command, processes, port: 0)
    patch.setattr(corrupted, "corrupted", stop)
    patch.setattr(inspect, "inspect_run", stop)
    patch.setattr(reported, "read_run", stop)
    patch.setattr(demo, "contest_of", stop)
    patch.setattr(doctor, "gather", stop)
    patch.setattr(sweep, "_tell", stop)
    patch.setattr(Study, "require_data", stop)


def require_extras(command):
    """An installation asks for extras that there are; nothing is installed."""
    known = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\[", PROJECT, re.S)[1]
    for extras in re.findall(r"(?:auglabel|\.)\[([\w,]+)\]", command):
        for extra in extras.split(","):
            assert re.search(rf"^{extra} = ", known, re.M), f"{command}: there is no extra {extra}"


PROJECT = (ROOT / "pyproject.toml").read_text()


def test_every_exception_is_needed():
    blocks = [block for page in PAGES for block in blocks_of(page)]
    commands = [line for block in blocks if block.language == "sh" for line in commands_of(block)]
    for key in (*PARSED, *SMALLER):
        assert any(re.search(key, command) for command in commands), f"{key} matches no command"
    texts = {not_compared(block) for block in blocks if block.language == "text"}
    assert set(NOT_COMPARED) <= texts
    assert set(BEFORE) <= {block.page for block in blocks if block.language == "python"}
    assert set(RUNS) <= {block.page for block in blocks if block.language == "sh"}


def test_extras_named_in_the_text_are_there():
    for page in PAGES:
        require_extras((ROOT / page).read_text())


def test_commands_named_in_the_text_are_there():
    named = {verb for page in PAGES for verb in re.findall(r"`auglabel ([a-z]+)", (ROOT / page).read_text())}
    assert named <= set(COMMANDS)


def test_the_mistake_that_the_lab_page_shows_is_named_so(room, capsys):
    blocks = blocks_of("docs/lab.md")
    recipe, _ = (block.text for block in blocks if block.language == "yaml")
    (shown,) = (block.text for block in blocks if block.text.startswith("auglabel: mine.yaml"))
    (room / "mine.yaml").write_text(recipe.replace("max_depth: 2", "depth: 2"))
    assert cli.main(["train", "mine.yaml"]) == 1
    assert capsys.readouterr().err.split() == shown.split()


def test_the_readmes_excerpt_is_part_of_the_whole_table():
    (excerpt,) = (block.text for block in blocks_of("README.md") if block.language == "text")
    (whole,) = (block.text for block in blocks_of("docs/demo.md") if block.language == "text")
    assert {line for line in excerpt.splitlines() if line != "..."} <= set(whole.splitlines())


def test_choosing_says_of_alpha_what_the_choices_say():
    said = " ".join((ROOT / "docs/choosing.md").read_text().split())
    assert (
        "Start with 0.02.** At CPU size it had the lowest validation NLL out of 0.02 to 0.5 each time" in said
    )
    contest = (ROOT / "docs/contest.md").read_text()
    for told, shown in (
        ("images of CIFAR-100 it was 0.1 out of 0.02, 0.1 and 0.5", "0.02, 0.1, 0.5, 0.1 has the lowest"),
        ("on `cpu-cifar10`, where less was offered too, 0.005", "0.02, 0.1, 0.5, 0.005 has the lowest"),
    ):
        assert told in said
        assert shown in contest
    rows = re.findall(r"\| alpha \| (.*?) \| (.*?) \|", (ROOT / "docs/results.md").read_text())
    chosen = [choice for values, choice in rows if values]
    assert chosen
    assert {choice.split()[0] for choice in chosen} == {"0.02"}
