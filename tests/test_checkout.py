import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, {tests!r})
from checkout import watch


def pytest_configure(config):
    watch(config, Path(__file__).parent)
"""
TESTS = """
from pathlib import Path


def test_cache(tmp_path):
    (tmp_path / "kept-apart").write_text("x")
    Path("__pycache__").mkdir(exist_ok=True)
    Path("__pycache__/more").write_text("x")
"""
WRITING = """

def test_writes():
    Path("runs/demo.html").write_text("page")
    Path("README.md").write_text("written")
    Path("LICENSE").unlink()
    Path("sweeps").mkdir()
"""


def session(project, tests, *words):
    """pytest's exit code and words on a project of these tests."""
    (project / "runs").mkdir(parents=True)
    for name, content in {
        "conftest.py": CONFTEST.format(tests=str(Path(__file__).parent)),
        "test_project.py": tests,
        "README.md": "read me",
        "LICENSE": "free",
    }.items():
        (project / name).write_text(content)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--basetemp", str(project.parent / "scratch"), *words],
        cwd=project,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("words", [[], ["-p", "xdist", "-n", "2"]], ids=["one process", "xdist"])
def test_a_session_that_changes_the_checkout_fails_and_names_the_files(tmp_path, words):
    code, printed = session(tmp_path / "project", TESTS + WRITING, *words)
    assert code == 1
    assert "2 passed" in printed
    told = printed.partition("written since the start:\n")[2].splitlines()
    named = [line.strip() for line in told if line.startswith("  ")]
    assert named == ["LICENSE", "README.md", "runs/demo.html", "sweeps"]


def test_a_session_that_writes_elsewhere_and_into_caches_passes(tmp_path):
    code, printed = session(tmp_path / "project", TESTS)
    assert code == 0, printed
    assert "checkout" not in printed
    assert (tmp_path / "project" / ".pytest_cache").is_dir()  # pytest's own
