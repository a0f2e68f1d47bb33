import functools
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_runs import make_run
from PIL import Image

from auglabel import __version__, cli
from auglabel.errors import UserError, UserTypeError
from auglabel.lab.commands.registry import COMMANDS


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"auglabel {__version__}"


def test_help_names_every_command(capsys):
    assert cli.main(["--help"]) == 0
    printed = capsys.readouterr().out
    for name, summary in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", printed, re.M)


def test_every_command_is_a_module_and_every_module_a_command():
    folder = Path(cli.__file__).parent / "lab" / "commands"
    assert {path.stem for path in folder.glob("*.py")} == {*COMMANDS, "__init__", "arguments", "registry"}


def test_help_and_version_need_neither_torch_nor_an_extra():
    code = "import sys; from auglabel.cli import main; main(['--help']); main(['--version']); main(['no'])"
    code += "; sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'rich')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_explains_itself(verb, capsys):
    assert cli.main([verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: auglabel {verb}")


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["demo", "--seeds", "0"], 1, "--seeds must be at least 1, got 0"),
        (["demo", "--epochs", "x"], 1, "--epochs: epochs must be a whole number, got x"),
        (["demo", "--sed", "1"], 1, 'no option "--sed"'),
        (["dmo"], 2, 'no command "dmo". There are: demo'),
        ([], 2, "usage: auglabel"),
        (["list", "recipe"], 1, 'no list "recipe".*Did you mean "recipes"'),
        (["train"], 1, "which recipe"),
        (["train", "nope"], 1, 'no recipe "nope"'),
        (["eval"], 1, "what to measure"),
        (["eval", "nowhere"], 1, "nowhere is not a run"),
        (["inspect"], 1, "which run"),
        (["inspect", "nowhere"], 1, "nowhere is not a run"),
        (["preview", "embedded", "--out", "x.jpg"], 1, "must be a .png file"),
        (["doctor", "--jsn"], 1, 'no option "--jsn"'),
        (["doctor", "--data.root"], 1, "--data.root: expected one argument"),
    ],
)
def test_words_it_cannot_use_end_with_one_sentence(words, code, complaint, capsys):
    assert cli.main(words) == code
    error = capsys.readouterr().err
    assert re.search(complaint, error)
    assert "Traceback" not in error
    assert words == [] or error.count("\n") == 1


def test_list_shows_names(capsys):
    assert cli.main(["list", "recipes"]) == 0
    few = capsys.readouterr().out.split()
    assert few == [
        *("cifar10", "cifar100", "cpu-cifar10", "cpu-cifar100", "embedded"),
        *("fast-cifar10", "fast-cifar100", "folder", "imagenet"),
    ]
    assert cli.main(["list", "recipes", "--all"]) == 0
    every = capsys.readouterr().out.split()
    assert {*few, "paper/cifar100-randaug_autolabel", "cpu/cifar10-randaug_autolabel"} < {*every}
    assert cli.main(["list"]) == 0
    printed = capsys.readouterr().out
    assert "regimes: vanilla" in printed
    assert "paper/" not in printed


def test_a_missing_extra_is_named_without_a_traceback():
    blocked = "import sys; sys.modules['rich'] = None; from auglabel import cli; sys.exit(cli.main(['demo']))"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert "pip install 'auglabel[train]'" in done.stderr


@pytest.mark.parametrize(
    ("module", "way_out"),
    [
        ("yaml", "Install the extra that brings it: pip install 'auglabel[train]'."),
        ("optuna.samplers", "Install the extra that brings it: pip install 'auglabel[sweep]'."),
        ("cv2", "Install the extra that brings it: pip install 'auglabel[corrupt]'."),
        ("numpy", "Install it: pip install numpy."),
        ("some_package_of_others", "No extra of auglabel brings it: install the package that has it."),
    ],
)
def test_a_missing_module_is_not_said_to_come_with_an_extra_that_lacks_it(
    module, way_out, demo_that_raises, capsys
):
    demo_that_raises(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == f"auglabel: demo needs {module}, which is not installed. {way_out}\n"


@pytest.mark.parametrize(
    "place",
    [
        "auglabel.lab.recipe.recipe.Optimizer.__post_init__",
        "auglabel.augment.randaug.RandAug.__init__",
        "auglabel.labels.LabelPolicy.__init__",
        "auglabel.models.small.SmallNet.__init__",
        "auglabel.lab.train.train.TrainOptions.__post_init__",
    ],
)
@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_a_bug_in_a_constructor_of_ours_is_no_mistake_of_the_user(place, kind, monkeypatch, tmp_path, capsys):
    owner, _, name = place.rpartition(".")

    @functools.wraps(getattr(pkgutil.resolve_name(owner), name))
    def fail(self, *values, **options):
        raise kind("math domain error")

    monkeypatch.setattr(place, fail)
    assert cli.main(["train", "embedded", "--tracker=none", f"--out={tmp_path / 'run'}"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert told.splitlines()[-1].startswith("auglabel: this is a defect of auglabel")


@pytest.fixture
def demo_that_raises(monkeypatch):
    """A function that makes `auglabel demo` raise this error."""
    monkeypatch.setenv("AUGLABEL_TRACEBACK", "0")  # --traceback sets it, and this takes it back

    def prepare(error):
        def fail(words):
            raise error

        monkeypatch.setattr("auglabel.lab.commands.demo.run", fail)

    return prepare


USERS = [
    UserError("the file is damaged."),
    UserTypeError("the file is damaged."),
    OSError("the file is damaged."),
    ImportError("the file is damaged."),
]


@pytest.mark.parametrize("error", USERS, ids=lambda error: type(error).__name__)
def test_a_mistake_of_the_user_is_one_sentence(error, demo_that_raises, capsys):
    demo_that_raises(error)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "auglabel: the file is damaged.\n"


@pytest.mark.parametrize("asked", ["flag", "variable"])
def test_a_mistake_of_the_user_shows_its_traceback_on_request(asked, demo_that_raises, monkeypatch, capsys):
    demo_that_raises(UserError("the file is damaged."))
    if asked == "variable":
        monkeypatch.setenv("AUGLABEL_TRACEBACK", "1")
    assert cli.main(["demo", "--traceback"] if asked == "flag" else ["demo"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert "in fail" in told
    assert told.endswith("\nauglabel: the file is damaged.\n")
    assert "report" not in told


@pytest.mark.parametrize("flags", [[], ["--traceback"]])
@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, KeyError, AssertionError])
def test_a_bug_shows_its_traceback_and_asks_for_a_report(kind, flags, demo_that_raises, capsys):
    demo_that_raises(kind("not what anybody typed"))
    assert cli.main(["demo", *flags]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert "in fail" in told
    assert told.splitlines()[-1].startswith("auglabel: this is a defect of auglabel")
    assert "Please report it" in told


def test_a_module_of_ours_that_is_missing_is_a_bug_and_no_extra(demo_that_raises, capsys):
    demo_that_raises(ModuleNotFoundError("No module named 'auglabel.lab.gone'", name="auglabel.lab.gone"))
    assert cli.main(["demo"]) == 1
    told = capsys.readouterr().err
    assert "Please report it" in told
    assert "pip install" not in told


def test_an_error_of_torch_is_no_mistake_of_the_user(monkeypatch, capsys, tmp_path):
    def broken(*parts, **options):
        raise ValueError("optimizer got an empty parameter list")

    monkeypatch.setattr("torch.optim.SGD.__init__", broken)
    monkeypatch.setenv("AUGLABEL_TRACEBACK", "0")
    small = ["--split.train=40", "--split.validation=20", "--split.test=20", "--batch_size=20", "--epochs=1"]
    assert cli.main(["train", "embedded", *small, "--tracker=none", f"--out={tmp_path}/run"]) == 1
    told = capsys.readouterr().err
    assert "ValueError: optimizer got an empty parameter list" in told
    assert "Please report it" in told


def test_an_interrupt_says_so(monkeypatch, capsys):
    def stop(words):
        raise KeyboardInterrupt

    monkeypatch.setattr("auglabel.lab.commands.demo.run", stop)
    assert cli.main(["demo"]) == 130
    assert "stopped" in capsys.readouterr().err


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("pgrep") is None,
    reason="needs pgrep and /proc to find the process",
)
@pytest.mark.parametrize("moment", ["at once", "in training"])
def test_a_process_of_the_demo_killed_from_outside_is_one_sentence(tmp_path, moment):
    """Whichever of its processes, and at any moment: as soon as there is one, or when two of them train."""
    command = [sys.executable, "-m", "auglabel.cli", "demo", "--seeds", "1", "--epochs", "200"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    victim, until = None, time.monotonic() + 60
    try:
        while victim is None and time.monotonic() < until:
            time.sleep(0.05)
            begun = len(list(tmp_path.glob("runs/demo/runs/*/metrics.jsonl")))
            if moment == "at once" or begun >= 2:
                victim = next(iter(workers_of(demo.pid)), None)
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        _, complaint = demo.communicate(timeout=60)
    finally:
        demo.kill()  # its workers end with it
    assert demo.returncode == 1
    assert complaint == (
        "auglabel: a process was killed from outside, perhaps for lack of memory: the same command again "
        "goes on from here.\n"
    )


def children(parent):
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False).stdout
    return [int(word) for word in found.split()]


def workers_of(parent):
    """The processes that train: forked from a server of the command, or started by it."""
    servers = [child for child in children(parent) if "forkserver" in words_of(child)]
    started = [child for child in children(parent) if "spawn_main" in words_of(child)]
    return [*(worker for server in servers for worker in children(server)), *started]


def words_of(process):
    """The command line of a process; nothing of one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


HOMELESS = "import pwd\ndef nobody(uid):\n    raise KeyError(uid)\npwd.getpwuid = nobody\n"


def test_commands_work_without_a_home_directory(tmp_path):
    """As in a container that runs with any user id: no HOME, and no entry for the user."""
    (tmp_path / "sitecustomize.py").write_text(HOMELESS)
    for name in ("a", "b"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(20):
            Image.new("RGB", (16, 16), (10 * number, 0, 0)).save(
                tmp_path / "pictures" / name / f"{number}.png"
            )
    kept = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME", "AUGLABEL_CACHE")}
    script = (
        "from auglabel.cli import main\n"
        "tiny = ['--data.size=16', '--epochs=1', '--model.widths=[4,4,4]', '--tracker=none', '--out=run']\n"
        "assert main(['train', 'folder', '--data.root=pictures', *tiny]) == 0\n"
        "assert main(['eval', 'run', '--resamples=0']) == 0\n"
        "assert main(['report', 'run']) == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=kept | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [kept.get("PYTHONPATH")])])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_inspect_prints_on_an_ascii_terminal(tmp_path):
    make_run(tmp_path / "run", "randaug_autolabel")
    done = subprocess.run(
        [sys.executable, "-m", "auglabel.cli", "inspect", "run"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.decode("ascii")
    assert "?" not in printed
    assert "#" in printed  # the bars of the course


SLOW = """
import time
print("importing", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    raise RecursionError  # as the real one has done
"""


def test_ctrl_c_while_torch_is_imported_is_one_sentence(tmp_path):
    (tmp_path / "torch.py").write_text(SLOW)
    source = Path(__file__).parents[1] / "src"
    with subprocess.Popen(
        [sys.executable, "-m", "auglabel.cli", "list", "recipes"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=30)
    assert (process.returncode, said, complaint) == (130, "", "auglabel: stopped.\n")
