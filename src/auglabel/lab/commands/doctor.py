"""`auglabel doctor`: what a bug report needs of the installation and the machine, problems first.

It needs the standard library alone, so that it can say what else is missing or broken.
"""

from __future__ import annotations

import json
import sys

from auglabel.lab.commands.arguments import Parser
from auglabel.lab.doctor.doctor import gather
from auglabel.lab.doctor.text import screen


def run(words: list[str]) -> None:
    """Print the screen, or the same as JSON."""
    parser = Parser("doctor", "What a bug report needs of the installation and the machine, problems first.")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    parser.add_argument(
        "--data.root", dest="root", metavar="DIR", help="where to look for data sets; . and data if not given"
    )
    if (options := parser.read(words)) is None:
        return
    if sys.stderr.isatty():
        print("trying each precision and each installed package, some seconds ...", file=sys.stderr)
    facts = gather(options.root)
    print(json.dumps(facts, indent=1) if options.json else screen(facts))
