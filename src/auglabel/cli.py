"""The command line: finds the command, runs it, and says what went wrong."""

from __future__ import annotations

import atexit
import difflib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from auglabel import __version__
from auglabel.errors import UserError, lacks_memory
from auglabel.lab.commands.registry import COMMANDS

TRACEBACK = "AUGLABEL_TRACEBACK"  # environment variable: 1 shows where every failure comes from
OTHER_NAMES = {  # modules that are not called as the package that has them
    "pil": "pillow",
    "yaml": "pyyaml",
    "cv2": "opencv-python-headless",
    "vl-convert": "vl-convert-python",
}
BUG = (
    "this is a defect of auglabel, or of a part of your own that it called, not a mistake in what you typed. "
    "Please report it with the lines above and what `auglabel doctor` prints."
)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the user's mistake is one sentence on standard error, a defect of ours a traceback."""
    words = list(sys.argv[1:] if words is None else words)
    if "--traceback" in words:
        words.remove("--traceback")
        os.environ[TRACEBACK] = "1"  # for the processes that this one starts too
    if not words or words[0] in ("-h", "--help"):
        print(usage(), file=sys.stderr if not words else sys.stdout)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"auglabel {__version__}")
        return 0
    _find_home()
    name, *rest = words
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        return _fail(f'there is no command "{name}". There are: {", ".join(COMMANDS)}.{hint}', 2)
    try:
        return _run(name, rest)
    except KeyboardInterrupt:
        return _fail("stopped.", 130)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("auglabel"):
            return _fail(BUG, 1, always=True)
        return _fail(f"{name} needs {missing.name}, which is not installed. {_way_to(missing.name or '')}", 1)
    except (UserError, OSError, ImportError) as error:
        return _fail(str(error), 1)
    except Exception as error:
        if lacks_memory(error):
            return _fail(
                f"{name} ran out of memory. Fewer images at a time need less: a smaller --batch_size. "
                "Images that do not fit are streamed with a smaller --data.memory_gb.",
                1,
            )
        return _fail(BUG, 1, always=True)


def _run(name: str, words: list[str]) -> int:
    """Import the command, and torch with most of them, and run it; its exit code."""
    command = importlib.import_module(f"auglabel.lab.commands.{name}")
    if "torch" in sys.modules and signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if {"--help", "-h"} & {*words} and hasattr(command, "OPTIONS"):  # doctor needs no extra to explain itself
        from auglabel.lab.commands.arguments import help_text

        print(help_text(name, command, [word for word in words if word not in ("--help", "-h")]))
        return 0
    return command.run(words) or 0


def usage() -> str:
    listed = "\n".join(f"  {name:9} {summary}" for name, summary in COMMANDS.items())
    return (
        "usage: auglabel COMMAND ... [--traceback]\n\n"
        "What label should an augmented image carry? AutoLabel learns it.\n\n"
        f"{listed}\n\nauglabel COMMAND --help says more; auglabel --version says which this is.\n"
        "--traceback, or AUGLABEL_TRACEBACK=1, shows where in the code a failure comes from."
    )


def _way_to(module: str) -> str:
    """How to install a module: with an extra of ours, if one brings it."""
    from auglabel.lab.doctor.packages import requirements

    top = module.partition(".")[0].lower().replace("_", "-")
    package = OTHER_NAMES.get(top, top)
    extras = [each.extra for each in requirements() if each.package.lower() == package]
    if not extras:
        return "No extra of auglabel brings it: install the package that has it."
    if extras[0] is None:
        return f"Install it: pip install {package}."
    return f"Install the extra that brings it: pip install 'auglabel[{extras[0]}]'."


def _find_home() -> None:
    """Make one for this process where there is none, as in a container with any user id."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = tempfile.mkdtemp(prefix="auglabel-home-")
        atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)


def _fail(sentence: str, code: int, always: bool = False) -> int:
    """Print it, after the traceback if that is wanted: `always`, or where the user asked for it."""
    if always or (os.environ.get(TRACEBACK, "0") != "0" and sys.exc_info()[0] is not None):
        traceback.print_exc()
    print(f"auglabel: {sentence}", file=sys.stderr)
    return code


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: inside torch, while that is imported, KeyboardInterrupt may turn into any other error."""
    os.write(2, b"auglabel: stopped.\n")
    os._exit(130)


def run() -> None:
    """Run the command that was typed, and end this process."""
    from auglabel.lab.process.streams import keep_open

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    keep_open()
    code = main()
    if os.environ.get("WORLD_SIZE", "1") != "1":
        # One of several ranks goes at once: torch's threads may abort an interpreter that takes itself apart.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
