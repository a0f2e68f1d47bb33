"""Write docs/results.md out of results/: what was run, what became of each claim, every table and figure.

python scripts/results_page.py
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from auglabel.lab.paper.study import NAMES
from auglabel.util.atomic_write import write_text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "cpu"
PAGE = ROOT / "docs" / "results.md"
INTRO = """# Results

Every table and figure of the paper at CPU size, ours beside the paper's, and a verdict on each claim. All of
it is made by two commands, the first of which runs what is not there yet:

```sh
auglabel reproduce all --cifar10 DIR --cifar100 DIR
python scripts/results_page.py
```

What a row is, its seeds, how rho and alpha are chosen, and each claim were written down before a test image
was looked at: [results/plan.yaml](../results/plan.yaml), which ends with what was corrected since. One JSON
file per run, of all runs that were made, is in [results/cpu/runs](../results/cpu/runs).

**CPU size** is small: 2,000 CIFAR-10 images (4,000 of CIFAR-100, 1,000 or 2,000 for adversarial training), a
network of {parameters:,} parameters, 10 to 40 epochs, and AutoLabel by its pooled rule, in its first form
([cost.md](cost.md)), where a row does not say otherwise. A verdict is about that size, and says nothing
certain about the paper's. ECE depends on the number of images it is measured on: compare it between equal
numbers of images only, not clean with corrupted.

**In short**, at this size: AutoLabel is far better calibrated than one-hot labels. Whether it is better
calibrated than label smoothing depends on rho and on the data, and no difference in accuracy is seen. A
temperature fitted afterwards gives one-hot labels the same ECE and, it seems, a lower NLL; one label for all
distances does as well as one for each; and the validation images that AutoLabel learns from raise accuracy by
several points if they are trained on instead. The verdicts have the numbers.
"""


def main() -> None:
    write_text(PAGE, text())
    print(f"wrote {PAGE.relative_to(ROOT)}")


def text() -> str:
    """The page."""
    paths = sorted((RESULTS / "runs").glob("*.json"))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    parts = [INTRO.format(parameters=_parameters(runs)), _effort(runs), _count()]
    for name in ("verdicts", *NAMES, "choices"):
        path = RESULTS / f"{name}.md"
        if path.exists():
            parts.append(_linked(path.read_text(encoding="utf-8")))
    return "\n".join(parts)


def _parameters(runs: list[dict[str, Any]]) -> int:
    """Of the CIFAR-10 network."""
    return next(run["parameters"] for run in runs if run["recipe"]["data"]["name"] == "cifar10")


def _effort(runs: list[dict[str, Any]]) -> str:
    hours = sum(sum(run["seconds"].values()) for run in runs) / 3600
    versions = sorted(
        {f"torch {v['torch']}, Python {v['python']}" for v in (run["versions"] for run in runs)}
    )
    plan = yaml.safe_load((ROOT / "results" / "plan.yaml").read_text(encoding="utf-8"))
    return (
        f"{len(runs)} runs are there. They took {hours:.1f} hours by the clock, one thread each, two at a "
        f"time and other work beside them, with {' and '.join(versions)}. The plan had {plan['core_hours']} "
        "core-hours of computing for all its rows. A cell says `not run` where that budget did not reach "
        "(CIFAR-10 at the three larger radii of Table 4), or where nothing was planned at this size "
        "(ImageNet, and CIFAR-100 with adversarial training and mixup).\n"
    )


def _count() -> str:
    """How many claims held, and which."""
    found = json.loads((RESULTS / "verdicts.json").read_text(encoding="utf-8"))
    counts = Counter(verdict["verdict"] for verdict in found["paper"])
    leans = Counter(verdict["leans"] for verdict in found["paper"] if verdict["leans"])
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    more = (
        f" Of those undecided {leans['for']} lean for the claim and {leans['against']} against it."
        if leans
        else ""
    )
    return f"Of {len(found['paper'])} claims of the paper: {told}.{more if leans else ''}\n"


def _linked(text: str) -> str:
    """Pictures lie beside the table, not beside this page."""
    return re.sub(r"\]\(([\w.]+\.(?:svg|png))\)", r"](../results/cpu/\1)", text)


if __name__ == "__main__":
    main()
