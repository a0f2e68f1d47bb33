"""Fail a test session that leaves the checkout other than it found it; tests write to `tmp_path`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

CACHES = {".git", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "htmlcov"}


def watch(config: pytest.Config, root: Path) -> None:
    """Compare `root` before and after the session, in the one process that starts and ends last."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Watch(root))


class _Watch:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.changed: list[str] = []

    def pytest_sessionstart(self) -> None:
        self.before = state(self.root)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        after = state(self.root)
        self.changed = sorted(path for path, _ in self.before.items() ^ after.items())
        self.changed = list(dict.fromkeys(self.changed))
        if self.changed and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.changed:
            terminalreporter.section("the checkout has changed", red=True)
            terminalreporter.line("A test must write to tmp_path only. New, gone or written since the start:")
            for path in self.changed:
                terminalreporter.line(f"  {path}")


def state(root: Path) -> dict[str, tuple[int, int] | None]:
    """When each file was written and its size; None for folders, which change with the caches in them."""
    found: dict[str, tuple[int, int] | None] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in CACHES and not name.startswith(".venv")]
        place = Path(folder)
        found.update({(place / name).relative_to(root).as_posix(): None for name in folders})
        for name in files:
            if name != ".git" and not name.startswith(".coverage"):
                with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                    about = (place / name).lstat()
                    found[(place / name).relative_to(root).as_posix()] = about.st_mtime_ns, about.st_size
    return found
