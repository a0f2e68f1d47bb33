"""Standard output that nobody reads any more, or that lacks a character, must not stop a command."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

CLOSED = (errno.EPIPE, errno.EIO)  # a pipe without a reader, a terminal that was closed


class Lasting:
    """A stream that goes on into nothing once its other end is closed."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self._unless_closed(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._unless_closed(self.stream.flush)

    def _unless_closed(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            if error.errno not in CLOSED:
                raise
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.stream.fileno())  # what is still in the buffer goes there too
            os.close(nothing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def keep_open() -> None:
    """Make this process's output such a stream; what it cannot encode becomes a question mark."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:
            setattr(sys, name, Lasting(stream))
