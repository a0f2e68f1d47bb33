"""Write docs/reliability.md out of results/reliability: what was broken on purpose, and what became of it.

python scripts/reliability_page.py

faults.jsonl, fuzz.jsonl and soak.jsonl there are what benchmarks/faults.py, fuzz.py and soak.py print; one
that is not there is called not run. licences.json is by scripts/licences.py; the words are those of
scripts/reliability.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from auglabel.util.atomic_write import write_text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
NOT_RUN = "not run"
READ = "checkpoint_damaged"  # the fault of faults.py that starts no command
Line = dict[str, Any]


def text() -> str:
    """The page."""
    faults, inputs, soaks = (read(f"{name}.jsonl") for name in ("faults", "fuzz", "soak"))
    words = Path(__file__).with_name("reliability.md").read_text(encoding="utf-8")
    return words.format(
        summary=summary(faults, inputs, soaks),
        faults=of_faults(faults),
        inputs=of_inputs(inputs),
        soak=of_soak(soaks),
        licences=licences(),
    )


def read(name: str) -> list[Line]:
    """The JSON objects of a file, a line each; lines of other words are passed by."""
    path = RESULTS / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]


def summary(faults: list[Line], inputs: list[Line], soaks: list[Line]) -> str:
    tried = [line for line in faults if "tried" in line]
    read = [line for line in tried if line.get("name") == READ]
    broken = [line for line in tried if line not in read]
    rows = [
        ("faults tried", total(broken, "tried")),
        ("survived", total(broken, "survived")),
        ("damaged checkpoints read beside them", total(read, "tried")),
        ("of which named, with the one before taken, or unharmed", total(read, "survived")),
        ("lost beyond the last unsaved step", f"{sum(len(line['lost']) for line in tried)}", tried),
        ("longest time until a command ended after a fault", seconds(tried, "longest")),
        ("damaged and hostile files read", total(inputs, "inputs")),
        ("of which read without complaint", total(inputs, "read")),
        ("refused in one sentence", total(inputs, "refused")),
        ("neither: crashed, hung, ran something, took a gigabyte", total(inputs, "defects")),
        ("most memory that one took", most(inputs, "most_megabytes", "MB")),
        ("longest that one took", seconds(inputs, "longest_seconds")),
        ("a long run", soak_in_short(soaks)),
    ]
    lines = [f"| {row[0]} | {row[1] if len(row) < 3 or row[2] else NOT_RUN} |" for row in rows]
    return "\n".join(["| | |", "| --- | --- |", *lines])


def total(lines: list[Line], key: str) -> str:
    return f"{sum(line[key] for line in lines):,}" if lines else NOT_RUN


def most(lines: list[Line], key: str, unit: str) -> str:
    return f"{max(line[key] for line in lines):,.0f} {unit}" if lines else NOT_RUN


def seconds(lines: list[Line], key: str) -> str:
    return f"{max(line[key] for line in lines):.1f} s" if lines else NOT_RUN


def soak_in_short(soaks: list[Line]) -> str:
    return (
        "; ".join(
            f"{line['minutes']:.0f} minutes, {line['loops']:,} loops, tracker {tracker(line)}: "
            f"{'flat' if line['flat'] else 'NOT flat'}"
            for line in soaks
        )
        or NOT_RUN
    )


def tracker(line: Line) -> str:
    return str(line.get("tracker", "tensorboard"))


def of_faults(faults: list[Line]) -> str:
    if not faults:
        return f"`benchmarks/faults.py`: {NOT_RUN}."
    rows = [
        f"| {line['fault']} | {line['skipped']} | | | |"
        if "skipped" in line
        else f"| {line['fault']} | {line['tried']} | {line['survived']} | {len(line['lost'])} "
        f"| {line['longest']:.1f} s |"
        for line in faults
    ]
    late = sum(line["late"] for line in faults if "skipped" not in line)
    after = (
        "\nTried: the fault hit, that is, a process was at work and was killed, or could not go on, or\n"
        f"read the damaged file. {late} more came after the process had ended, and do not count. Survived:\n"
        "the command, called again, ends with the bits of a run that was left alone, and one sentence was\n"
        "said where one is due. Two are not called again: of a report, the page before was still there or\n"
        "the new one was whole; of damaged checkpoints that were only read, the damage was named and the\n"
        "one before taken. Longest: until a command that was hit, or called again, had ended, training\n"
        "included."
    )
    return "\n".join(["| Fault | tried | survived | lost | longest |", f"|{' --- |' * 5}", *rows, after])


def of_inputs(inputs: list[Line]) -> str:
    if not inputs:
        return f"`benchmarks/fuzz.py`: {NOT_RUN}."
    rows = [
        f"| {line['reader']} | {line['inputs']:,} | {line['read']:,} | {line['refused']:,} "
        f"| {line['defects']} | {line['most_megabytes']:.0f} MB | {line['longest_seconds']:.2f} s |"
        for line in inputs
    ]
    head = "| Reader | files | read | refused | defects | most memory | longest |"
    return "\n".join([head, f"|{' --- |' * 7}", *rows])


def of_soak(soaks: list[Line]) -> str:
    if not soaks:
        return f"`benchmarks/soak.py`: {NOT_RUN}."
    rows = ["| tracker | | after warm-up | at the end |", "| --- | --- | --- | --- |"]
    told = []
    for line in soaks:
        ends = [line["memory"][when] for when in ("after warm-up", "at the end")]
        rows.append(f"| {tracker(line)} | resident memory | {ends[0]:.0f} MiB | {ends[1]:.0f} MiB |")
        for what in ("open files", "threads"):
            rows.append(f"| | {what} | {line[what]['after warm-up']} | {line[what]['at the end']} |")
        slope = line["slope"]
        told.append(
            f"\nTracker {tracker(line)}: {line['minutes']:.0f} minutes in one process, {line['loops']:,} "
            "loops of training, calibration,\nevaluation, audit and now and then a report. Memory moved by "
            f"{slope['MiB per hour']:+.1f} MiB an hour (95 % interval\n{slope['low']:+.1f} to "
            f"{slope['high']:+.1f}) and was {line['largest']:.0f} MiB at most. "
            f"{'Flat' if line['flat'] else 'NOT flat'}, by the rule in "
            "[benchmarks/soak.py](../benchmarks/soak.py)."
        )
    return "\n".join([*rows, *told])


def licences() -> str:
    path = RESULTS / "licences.json"
    if not path.exists():
        return f"`scripts/licences.py`: {NOT_RUN}."
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        f"| {one['name']} {one['version']} | {', '.join(one['extras']) or 'always'} | {one['licence']} |"
        for one in found["named"]
    ]
    kinds = defaultdict(list)
    for one in found["behind"]:
        kinds[one["licence"]].append(one["name"])
    others = [f"- {licence}: {', '.join(names)}" for licence, names in sorted(kinds.items())]
    return "\n".join(
        [
            "| Package | Extra | Licence |\n| --- | --- | --- |",
            *rows,
            f"\nThe {len(found['behind'])} packages that these bring with them:\n",
            *others,
        ]
    )


if __name__ == "__main__":
    write_text(PAGE, text())
