"""`auglabel doctor`: what a bug report needs of the installation and the machine, problems first.

It needs the standard library alone, so that it can say what else is missing or broken.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from auglabel.errors import UserError
from auglabel.lab.doctor.doctor import gather
from auglabel.lab.doctor.text import screen


def run(words: list[str]) -> None:
    """Print the screen, or the same as JSON."""
    parser = _parser()
    if "--help" in words or "-h" in words:
        print(parser.format_help(), end="")
        return
    options, rest = parser.parse_known_args(words)
    if rest:
        raise UserError(f'there is no option "{rest[0].partition("=")[0]}"; --help lists them.')
    if sys.stderr.isatty():
        print("trying each precision and each installed package, some seconds ...", file=sys.stderr)
    facts = gather(options.root)
    print(json.dumps(facts, indent=1) if options.json else screen(facts))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(f"{message}; --help lists the options.")


def _parser() -> argparse.ArgumentParser:
    about = "What a bug report needs of the installation and the machine, problems first."
    parser = _Parser("auglabel doctor", add_help=False, allow_abbrev=False, description=about)
    parser.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    parser.add_argument(
        "--data.root", dest="root", metavar="DIR", help="where to look for data sets; . and data if not given"
    )
    return parser
