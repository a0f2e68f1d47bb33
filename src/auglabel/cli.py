"""The command line: verbs, each one call into the lab."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from auglabel import __version__


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; a failure is one sentence on standard error and a non-zero exit."""
    asked = _parser().parse_args(words)
    try:
        _demo(asked)
    except KeyboardInterrupt:
        print("auglabel: stopped.", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"auglabel: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="auglabel", description="What label should an augmented image carry? AutoLabel learns it."
    )
    parser.add_argument("--version", action="version", version=f"auglabel {__version__}")
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = verbs.add_parser("demo", help="train and compare on the embedded images, about two minutes")
    demo.add_argument("--seeds", type=_positive, default=3, help="runs per kind of label (default: 3)")
    demo.add_argument("--epochs", type=_positive, default=40, help="epochs per run (default: 40)")
    return parser


def _positive(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 was expected, but {word!r} came")
    return int(word)


def _demo(asked: argparse.Namespace) -> None:
    try:
        from auglabel.lab.demo_show import demo
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"the demo needs {missing.name}, which is not installed. "
            "Install the extra that brings it: pip install 'auglabel[train]'."
        ) from None
    demo(asked.seeds, asked.epochs)


if __name__ == "__main__":
    sys.exit(main())
