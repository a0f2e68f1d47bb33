"""Which sentences of docs/errors.md the tests came to, by a coverage report of them.

pytest --cov=auglabel --cov-report=json:coverage.json
python scripts/errors_raised.py coverage.json

Prints one JSON line: how many sentences there are, how many were said in this process of the tests, and the
others. Commands that tests start as processes of their own are not in the report; the three sentences of
folders that another process holds are said by one line, which tells nothing, and do not count.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from errors_page import sentences


def main() -> int:
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = {
        path.partition("src/auglabel/")[2].removesuffix(".py"): set(file["executed_lines"])
        for path, file in report["files"].items()
    }
    found = [each for each in sentences() if all(line for _, line in each.places)]
    missed = [
        f"{module}, line {line}: {sentence.shown}"
        for sentence in found
        for module, line in sorted(sentence.places)[:1]
        if not any(place in lines.get(of, ()) for of, place in sentence.places)
    ]
    print(json.dumps({"sentences": len(found), "said": len(found) - len(missed), "others": missed}, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
