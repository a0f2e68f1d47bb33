"""Write docs/results.md out of results/: what was run, what became of each claim, every table and figure.

python scripts/results_page.py
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from auglabel.lab.paper.figures import ONLY_DRAWN
from auglabel.lab.paper.tables import LABELLED, POOLED, TEMPERATURES
from auglabel.lab.study.gpu_cost import FRACTION, PEAKS, run_flops
from auglabel.lab.study.row import NAMES
from auglabel.lab.study.run_options import options_of
from auglabel.lab.study.study import Study
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.result import Result
from auglabel.util.atomic_write import write_text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"
INTRO = """# Results

Every table and figure of the paper that has runs, at two sizes, ours beside the paper's, and a verdict on
each claim. First the scale `fast`: CIFAR-100, a quarter of it and all, with a network that trains in
minutes. Behind it the CPU size: a few thousand images. All of it is made by these commands, the first two
of which run what is not there yet:

```sh
auglabel reproduce all --scale fast --cifar10 DIR --cifar100 DIR
auglabel reproduce all --scale cpu --cifar10 DIR --cifar100 DIR
python scripts/results_page.py
```

What a row is, its seeds, how rho and alpha are chosen, and each claim are written down before the runs
that it rests on, where the plan does not say otherwise: {plans}. A plan ends with what was
corrected, added and dropped since. One JSON file per run is in [results](../results), of all runs that
were made but those that a plan says were removed.

[Fast: in short](#the-scale-fast),
[comparison of labels](#fast-comparison-every-kind-of-labels-setting-by-setting),
[verdicts](#fast-verdicts-what-became-of-each-claim-at-the-scale-fast),
[costs](#what-a-run-costs); [CPU size](#cpu-size).
"""
FAST = """## The scale fast

CIFAR-100 with RandAug and AugMix that distort widely ([`wide` magnitudes](method.md), not the default, of
which translation reaches as far as in the code that the paper trained with); 5,000 images held out, as in
the paper; a network of 642,768 parameters. Most rows have a quarter of the other 45,000 images in 48
epochs, where one-hot labels with RandAug end over-confident (by 4.3 points on validation images of seed
100; the paper's ECE is 4.1 %). Some have all images in 12 epochs, the same number of steps. Those of
"16,000 training images", in 34 epochs, have 250 held out: as many labelled images as 11,250 and 5,000.
AutoLabel finds its step by itself. Label smoothing has the paper's rho, 0.02, with all images, and 0.05
with fewer: the smallest of the three values that [the contest](contest.md) chose from, with 6,000 images
and a similar network. It is not tuned at this size.

Adversarial training (Tables 3 and 4) has 9,000 + 1,000 images of CIFAR-10, 16 epochs and a narrower
network, since an attack of ten steps costs eleven times a plain step; rho is the paper's in Table 3, and
in Table 4 chosen from 0.1, 0.2 and 0.3. AutoLabel finds its step by itself there, too, and is expected to
leave labels near 1; alpha of 0.1 to 1 is not planned. A verdict is about this size: the paper's networks
are larger and train for longer.

Dropped before their runs, or never planned: AugMix, mixup and training without augmentation with all
images, and AugMix with one label for all or with shuffled distances.
"""
CPU = """## CPU size

**CPU size** is small: 2,000 CIFAR-10 images (4,000 of CIFAR-100, 1,000 or 2,000 for adversarial training), a
network of {parameters:,} parameters, 10 to 40 epochs, and AutoLabel by its pooled rule, in its first form
([cost.md](cost.md)), where a row does not say otherwise. A verdict is about that size, and says nothing
certain about the paper's. ECE depends on the number of images it is measured on: compare it between equal
numbers of images only, not clean with corrupted. CCAT goes by the largest radius here, not by the one drawn.
"""
PARTS = ("training", "measuring")
SHARED = {TEMPERATURES, LABELLED, POOLED, ONLY_DRAWN}  # notes of several tables
UNNAMED = "not named"
FIRST_RUNS = " Runs that name no processor were made by an AMD EPYC of family 25, model 17 (Zen 4)."
WITH_AMX = "Intel(R) Xeon(R) Processor, family 6, model 167"
AMX = f" Those of {WITH_AMX} were made with AMX."
COSTS = """### What a run costs

Minutes of one thread, the median of the runs so far, two runs at a time and other work beside them;
[lab.md](lab.md#all-of-cifar-in-minutes) has other processors. PFLOP are counted; the seconds are what
they would take on one A100 at {percent} % of its peak in {precision}, by arithmetic: none was at hand,
and so small a network keeps no GPU that busy.{unnamed}

| row | processor | runs | training, min | measuring, min | PFLOP | seconds on a GPU |
| --- | --- | --- | --- | --- | --- | --- |
{lines}
"""
NOT_RUN = "Not run yet.\n"
PLANS = {"fast": "plan-fast.yaml", "cpu": "plan.yaml"}


def main() -> None:
    write_text(PAGE, text())
    print(f"wrote {PAGE.relative_to(ROOT)}")


def text() -> str:
    """The page: `fast` first, the CPU size behind it."""
    runs = _runs("cpu")
    parameters = next(run["parameters"] for run in runs if run["recipe"]["data"]["name"] == "cifar10")
    there = [f"[{name}](../results/{name})" for name in PLANS.values() if (RESULTS / name).exists()]
    intro = INTRO.format(plans=" and ".join(there))
    parts = [intro, FAST, *_scale("fast"), CPU.format(parameters=parameters), *_scale("cpu")]
    return "\n".join(parts)


def _scale(scale: str) -> list[str]:
    """What is there of a scale, the answer first; or that nothing is."""
    folder, runs = RESULTS / scale, _runs(scale)
    if not runs or not (folder / "verdicts.json").exists():
        return [NOT_RUN]
    found = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    pages = {
        name: (folder / f"{name}.md").read_text(encoding="utf-8")
        for name in ("comparison", "verdicts", *NAMES, "choices")
        if (folder / f"{name}.md").exists()
    }
    waiting = [name for name in NAMES if name in pages and _waits(folder / f"{name}.json")]
    parts = [in_short(found), _count(found)]
    if (folder / "overview.svg").exists():
        parts.append("![Accuracy against calibration error](overview.svg)\n")
    parts += [text for name, text in pages.items() if name not in waiting]
    if waiting:
        told = ", ".join(re.sub(r"(\d)", r" \1", name.capitalize()) for name in waiting)
        parts.append(f"Waiting for their runs: {told}.\n")
    if scale == "fast":
        parts.append(costs(Study("fast", Results(folder / "runs"), words=options_of(folder, ()))))
    parts.append(_effort(scale, runs))
    return _once([_placed(part, scale) for part in parts])


def _waits(path: Path) -> bool:
    """Whether a table has rows and no run of any, or a figure with rows to run not two points of a curve."""
    about = json.loads(path.read_text(encoding="utf-8"))
    if not any("Not run, or not with all seeds" in note for note in about["notes"]):
        return False
    there = [record for record in about["records"] if record["values"]]
    places = {record["x"] for record in there}
    return not there or (about["name"].startswith("figure") and len(places) < 2)


def _once(parts: list[str]) -> list[str]:
    """What explains several tables stands with the first of them alone."""
    seen: set[str] = set()
    found = []
    for part in parts:
        kept = []
        for paragraph in part.rstrip("\n").split("\n\n"):
            if paragraph not in seen:
                kept.append(paragraph)
            if paragraph in SHARED:
                seen.add(paragraph)
        found.append("\n\n".join(kept) + "\n")
    return found


def in_short(found: dict[str, Any]) -> str:
    """The sentence that each claim has for its verdict, if it is run: what is decided first."""
    told = [each for family in ("paper", "ours", "later") for each in found.get(family, []) if each["short"]]
    told.sort(key=lambda each: each["verdict"] == "undecided")
    words = [each["short"] for each in told if each["verdict"] != "not run"]
    if len(words) < len(told):
        words.append("What else it sums up is not run yet.")
    lines = "\n".join(f"- {sentence}" for sentence in words)
    return f"**In short**, at this size:\n\n{lines}\n"


def _runs(scale: str) -> list[dict[str, Any]]:
    paths = sorted((RESULTS / scale / "runs").glob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _effort(scale: str, runs: list[dict[str, Any]]) -> str:
    hours = sum(sum(run["seconds"].values()) for run in runs) / 3600
    versions = sorted(
        {f"torch {v['torch']}, Python {v['python']}" for v in (run["versions"] for run in runs)}
    )
    plan = yaml.safe_load((RESULTS / PLANS[scale]).read_text(encoding="utf-8"))
    added = sum(each["core_hours"] for each in plan.get("added", []))
    later = f", and {added:.1f} for what was added to it or took the place of some of them" if added else ""
    missing = {
        "cpu": "A cell says `not run` where that budget did not reach (CIFAR-10 at the three larger radii of "
        "Table 4), or where nothing was planned at this size (ImageNet, and CIFAR-100 with adversarial "
        "training and mixup).",
        "fast": "Where a cell says `not run` a row waits for its runs.",
    }
    return (
        f"{len(runs)} runs are there. They took {hours:.1f} hours by the clock, one thread each, two at a "
        f"time and other work beside them, with {' and '.join(versions)}. The plan had "
        f"{plan['core_hours']} core-hours of computing for all its rows{later}. {missing[scale]}\n"
    )


def costs(study: Study) -> str:
    """Minutes of a run of each row here, and seconds on one GPU by the model of `--plan`."""
    lines, precisions = [], []
    for row in study.rows(study.names()):
        by_processor: dict[str, list[Result]] = {}
        for result in study.found([row])[row.name].values():
            by_processor.setdefault(result.processor or UNNAMED, []).append(result)
        for processor, done in by_processor.items():
            job = study.planned(row)[0]
            precisions.append(job.recipe.engine.precision)
            flops, peak = run_flops(job), PEAKS["A100 SXM"][precisions[-1]] * 1e12 * FRACTION
            minutes = [f"{statistics.median(each.seconds[part] for each in done) / 60:.1f}" for part in PARTS]
            cells = [row.name, processor, str(len(done)), *minutes]
            lines.append(f"| {' | '.join([*cells, f'{flops / 1e15:.2f}', f'{flops / peak:.1f}'])} |")
    precision = " and ".join(dict.fromkeys(precisions))
    told = FIRST_RUNS if any(f"| {UNNAMED} |" in line for line in lines) else ""
    told += AMX if any(WITH_AMX in line for line in lines) else ""
    return COSTS.format(
        percent=f"{100 * FRACTION:g}", precision=precision, unnamed=told, lines="\n".join(lines)
    )


def _count(found: dict[str, Any]) -> str:
    """How many claims held, and which."""
    counts = Counter(verdict["verdict"] for verdict in found["paper"])
    leans = Counter(verdict["leans"] for verdict in found["paper"] if verdict["leans"])
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    more = (
        f" Of those undecided {leans['for']} {'leans' if leans['for'] == 1 else 'lean'} for the claim and "
        f"{leans['against']} against it."
        if leans
        else ""
    )
    return f"Of {len(found['paper'])} claims of the paper: {told}.{more}\n"


def _placed(text: str, scale: str) -> str:
    """Pictures lie beside the table, not beside this page; headings of `fast` say so."""
    text = re.sub(r"\]\(([\w.]+\.(?:svg|png))\)", rf"](../results/{scale}/\1)", text)
    return re.sub(r"^## ", "## Fast: ", text, flags=re.M) if scale == "fast" else text


if __name__ == "__main__":
    main()
