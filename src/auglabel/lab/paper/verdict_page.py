"""The page of verdicts: every claim, its intervals and what became of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from auglabel.lab.paper.claim_verdicts import ClaimVerdict, Part, judge
from auglabel.lab.paper.page import Block, Page
from auglabel.lab.paper.tables import POOLED
from auglabel.lab.runs.metric_list import metric_named
from auglabel.lab.study.claims import LEVEL, claims
from auglabel.lab.study.readings import reading
from auglabel.lab.study.rows import rows_by_name
from auglabel.lab.study.study import Study
from auglabel.util.atomic_write import write_text
from auglabel.util.checksummed_json import write_checksummed

FAMILIES = {
    "paper": "Claims of the paper",
    "ours": "Further questions",
    "later": "Added when runs were under way, not in the plan",
}
SIZES = {"cpu": "CPU size", "fast": "the scale `fast`"}
NOTES = [
    'A part names rows and metrics: "randaug_autolabel-train11250 cece" is the cECE of AutoLabel with '
    "RandAug and 11,250 training images. A row without _autolabel or _ls, which is label smoothing, has "
    "one-hot labels; T or TA behind a metric is a fitted temperature.",
    "Each part is a difference by seed in percent points (NLL in nats, AURC as it is), its mean and 95 % t "
    "interval; p is the claim's, and then after Holm's correction over the claims of its family that rest on "
    f"the same table or figure and can be tested, which decides at {LEVEL}. A claim holds if all its parts "
    "do; it is reversed if one is. At the scale `fast` it is judged when all seeds of its rows are there; "
    "some rows stand in Table 2 alone. "
    "An undecided one leans for or against where its own p, before the "
    f"correction, is at most {LEVEL}; with three or four seeds only large differences can hold: look at the "
    "intervals.",
    "ECE is measured on 10,000 clean and on 1,000 corrupted images of each kind, and is biased upwards "
    "the more the fewer images there are: the claims that compare its fall on the one and the other, or "
    "over severities from 0, are flattered or hurt by it. Labels fall with distortion on average over "
    "operations; those of some operations do not, or rise.",
    POOLED,
]


def write_verdicts(study: Study, folder: Path, console: Console) -> None:
    """verdicts.md, .tex, .csv and .json: every claim, those that are decided first."""
    rows = rows_by_name(study.scale)
    found = study.found(rows.values())

    def values(row: str, metric: str) -> dict[int, float]:
        planned = study.seeds or rows[row].seeds
        if study.scale == "fast" and len(found[row]) < planned:  # it is still under way
            return {}
        read = {seed: reading(result, metric) for seed, result in found[row].items()}
        return {seed: value for seed, value in read.items() if value is not None}

    judged = {family: judge(some, values) for family, some in claims(study.scale).items()}
    blocks = [_block(FAMILIES[family], some) for family, some in judged.items()]
    title = f"what became of each claim at {SIZES[study.scale]}"
    page = Page("verdicts", title, blocks, [], NOTES)
    write_text(folder / "verdicts.md", page.markdown(chart=False))
    write_text(folder / "verdicts.tex", page.latex())
    write_text(folder / "verdicts.csv", _csv(judged))
    plain = {name: [_as_json(verdict) for verdict in some] for name, some in judged.items()}
    write_checksummed(folder / "verdicts.json", {"format": "auglabel verdicts, version 1", **plain})
    console.print(page.markdown(chart=False), markup=False, soft_wrap=True)


def _csv(judged: Mapping[str, Iterable[ClaimVerdict]]) -> str:
    """One line per part of a claim."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["family", "claim", "rests_on", "verdict", "p", "holm", "part", "seeds", "mean", "low", "high"]
    writer.writerow(head)
    for family, verdict in ((family, verdict) for family, some in judged.items() for verdict in some):
        about = [family, verdict.claim, verdict.rests_on, verdict.verdict]
        ps = [_short(verdict.p), _short(verdict.adjusted)]
        for part in verdict.parts:
            mean = _short(part.mean) if part.values else None
            writer.writerow([*about, *ps, part.text, len(part.values), mean, *_interval(part)])
        if not verdict.parts:
            writer.writerow([*about, *ps, verdict.why, 0, None, None, None])
    return file.getvalue()


def _block(title: str, verdicts: Iterable[ClaimVerdict]) -> Block:
    body = []
    for verdict in sorted(verdicts, key=lambda each: each.verdict in ("not run", "not testable")):
        p = "" if verdict.p is None else f"{verdict.p:.2g}; {verdict.adjusted:.2g}"
        seeds = str(min((len(part.values) for part in verdict.parts), default="") or "")
        parts = verdict.why or "; ".join(_shown(part) for part in verdict.parts if part.values)
        word = f"**{verdict.verdict}**" + (f", leans {verdict.leans}" if verdict.leans else "")
        claim = verdict.claim + (" (asked after its runs)" if verdict.seen else "")
        claim += f" (unlikely to show here: {verdict.hardly})" if verdict.hardly else ""
        body.append([claim, verdict.rests_on, word, p, seeds, parts])
    return Block(title, ["claim", "rests on", "verdict", "p; Holm", "seeds", "parts: mean [interval]"], body)


def _shown(part: Part) -> str:
    scale, digits = (100, 1) if metric_named(part.metric).unit == "%" else (1, 3)
    more = f" (to be above {scale * part.above:g})" if part.above else ""
    mean = f"{part.text} = {scale * part.mean:.{digits}f}{more}"
    if len(part.values) < 2:
        return mean
    low, high = part.interval
    return f"{mean} [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"


def _as_json(verdict: ClaimVerdict) -> dict[str, object]:
    return {
        **{"claim": verdict.claim, "rests_on": verdict.rests_on, "verdict": verdict.verdict},
        **{"leans": verdict.leans, "p": _short(verdict.p), "holm": _short(verdict.adjusted)},
        **{"why": verdict.why, "hardly": verdict.hardly, "short": verdict.short},
        "parts": [_part_as_json(part) for part in verdict.parts],
    }


def _part_as_json(part: Part) -> dict[str, object]:
    several = len(part.values) > 1
    return {
        **{"text": part.text, "above": part.above, "seeds": part.seeds},
        **{"values": [*map(_short, part.values)], "mean": _short(part.mean) if part.values else None},
        **{"interval": _interval(part) if several else None, "p": _short(part.p) if several else None},
    }


def _interval(part: Part) -> list[float | None]:
    return [*map(_short, part.interval)] if len(part.values) > 1 else [None, None]


def _short(value: float | None) -> float | None:
    """Six digits: the same on every machine."""
    return None if value is None else float(f"{value:.6g}")
