"""Write tables, figures and verdicts from the results that are there."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from auglabel.augment.augmix import AugMix
from auglabel.data.embedded import embedded
from auglabel.lab.paper.charts import write_chart, write_svg
from auglabel.lab.paper.choices import choices
from auglabel.lab.paper.figures import figure
from auglabel.lab.paper.page import Block, Page
from auglabel.lab.paper.published import published
from auglabel.lab.paper.readings import reading
from auglabel.lab.paper.rows import MADE
from auglabel.lab.paper.schematic import schematic
from auglabel.lab.paper.study import Study
from auglabel.lab.paper.tables import POOLED, table
from auglabel.lab.paper.verdicts import LEVEL, Part, Verdict, claims, judge
from auglabel.lab.pictures.preview import contact_sheet
from auglabel.util.atomic_write import write_atomically, write_text
from auglabel.util.checksummed_json import write_checksummed

FAMILIES = {
    "paper": "Claims of the paper",
    "ours": "What an expert asks beyond it",
    "later": "Added when runs were under way, not in the plan",
}
SIZES = {"cpu": "CPU size", "fast": "the scale `fast`"}
SHOWN = 64  # images to choose the pictures of Figure 1 from


def assemble(names: Sequence[str], study: Study, folder: Path, console: Console) -> None:
    """Each of `names` as Markdown, LaTeX, CSV, JSON and a chart, and the claims that rest on them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        page = page_of(name, study)
        drawn = _draw(page, study, folder)
        page.write(folder, drawn)
        console.print(page.markdown(chart=False), markup=False, soft_wrap=True)
    if study.scale in MADE and len(names) > 1:
        choices(study).write(folder, chart=False)
        write_verdicts(study, folder, console)
    console.print(f"wrote {', '.join(names)} into {folder}", markup=False, soft_wrap=True)


def page_of(name: str, study: Study) -> Page:
    if name == "figure4":
        return Page(name, str(published()[name]["title"]), [], [], ["Drawn; no run is behind it."])
    return figure(name, study) if name.startswith("figure") else table(name, study)


def _draw(page: Page, study: Study, folder: Path) -> bool:
    if page.name == "figure4":
        write_svg(schematic(), folder / page.name)
        return True
    drawn = write_chart(page, folder)
    if page.name == "figure1" and drawn:
        _draw_views(page, folder)
    return drawn


def _draw_views(page: Page, folder: Path) -> None:
    """Pictures of every AugMix bucket, out of the embedded images, with the labels learned for it."""
    learned = [statistics.fmean(record.values) for record in page.records if record.values]
    source = embedded().train
    rows = torch.arange(SHOWN)
    sheet = contact_sheet(
        AugMix(), source.fetch(rows), source.labels[rows], embedded().classes, table=torch.tensor(learned)
    )
    write_atomically(folder / "figure1_images.png", lambda partial: sheet.save(partial, format="PNG"))


def write_verdicts(study: Study, folder: Path, console: Console) -> None:
    """verdicts.md, .tex, .csv and .json: every claim, its intervals and what became of it."""
    rows = {row.name: row for some in MADE[study.scale].values() for row in some}
    found = {name: study.found(row) for name, row in rows.items()}
    values = _values(found)
    judged = {family: judge(some, values) for family, some in claims(study.scale).items()}
    blocks = [_block(FAMILIES[family], some) for family, some in judged.items()]
    title = f"what became of each claim at {SIZES[study.scale]}"
    notes = [
        "Each part is a difference by seed in percent points (NLL in nats), its mean and 95 % t interval; "
        "p is the claim's, and then after Holm's correction over the claims of its table that can be "
        f"tested, which decides at {LEVEL}. A claim holds if all its parts do; it is reversed if one is. An "
        f"undecided one leans for or against where its own p, before the correction, is at most {LEVEL}; "
        "with three seeds the correction leaves little that can hold: look at the intervals.",
        "ECE is measured on 10,000 clean and on 1,000 corrupted images of each kind, and is biased upwards "
        "the more the fewer images there are: the claims that compare its fall on the one and the other, or "
        "over severities from 0, are flattered or hurt by it. Labels fall with distortion on average over "
        "operations; those of some operations do not.",
        POOLED,
    ]
    page = Page("verdicts", title, blocks, [], notes)
    write_text(folder / "verdicts.md", page.markdown(chart=False))
    write_text(folder / "verdicts.tex", page.latex())
    write_text(folder / "verdicts.csv", _csv(judged))
    plain = {name: [_plain(verdict) for verdict in some] for name, some in judged.items()}
    write_checksummed(folder / "verdicts.json", {"format": "auglabel verdicts, version 1", **plain})
    console.print(page.markdown(chart=False), markup=False, soft_wrap=True)


def _csv(judged: Mapping[str, Iterable[Verdict]]) -> str:
    """One line per part of a claim."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["family", "claim", "rests_on", "verdict", "p", "holm", "part", "seeds", "mean", "low", "high"]
    writer.writerow(head)
    for family, verdicts in judged.items():
        for verdict in verdicts:
            about: list[Any] = [family, verdict.claim, verdict.rests_on, verdict.verdict]
            about += [_short(verdict.p), _short(verdict.adjusted)]
            for part in verdict.parts:
                numbers = _numbers(part)
                ends = numbers["interval"] or (None, None)
                writer.writerow([*about, part.text, len(part.values), numbers["mean"], *ends])
            if not verdict.parts:
                writer.writerow([*about, verdict.why, 0, None, None, None])
    return file.getvalue()


def _values(found: Mapping[str, Mapping[int, dict[str, Any]]]) -> Any:
    def values(row: str, metric: str) -> dict[int, float]:
        read = {seed: reading(result, metric) for seed, result in found[row].items()}
        return {seed: value for seed, value in read.items() if value is not None}

    return values


def _block(title: str, verdicts: Iterable[Verdict]) -> Block:
    body = []
    for verdict in verdicts:
        p = "" if verdict.p is None else f"{verdict.p:.2g}; {verdict.adjusted:.2g}"
        seeds = str(min((len(part.values) for part in verdict.parts), default="") or "")
        parts = verdict.why or "; ".join(_shown(part) for part in verdict.parts if part.values)
        word = f"**{verdict.verdict}**" + (f", leans {verdict.leans}" if verdict.leans else "")
        claim = verdict.claim + (" (asked after its runs)" if verdict.seen else "")
        body.append([claim, verdict.rests_on, word, p, seeds, parts])
    return Block(title, ["claim", "rests on", "verdict", "p; Holm", "seeds", "parts: mean [interval]"], body)


def _shown(part: Part) -> str:
    scale = 1 if "nll" in part.text or "brier" in part.text else 100
    digits = 3 if scale == 1 else 1
    more = f" (to be above {scale * part.above:g})" if part.above else ""
    mean = f"{part.text} = {scale * part.mean:.{digits}f}{more}"
    if len(part.values) < 2:
        return mean
    low, high = part.interval
    return f"{mean} [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "rests_on": verdict.rests_on,
        "verdict": verdict.verdict,
        "leans": verdict.leans,
        "p": _short(verdict.p),
        "holm": _short(verdict.adjusted),
        "why": verdict.why,
        "parts": [
            {"text": part.text, "above": part.above, "seeds": part.seeds, **_numbers(part)}
            for part in verdict.parts
        ],
    }


def _numbers(part: Part) -> dict[str, Any]:
    several = len(part.values) > 1
    return {
        "values": [_short(value) for value in part.values],
        "mean": _short(part.mean) if part.values else None,
        "interval": [_short(end) for end in part.interval] if several else None,
        "p": _short(part.p) if several else None,
    }


def _short(value: float | None) -> float | None:
    """Six digits: the same on every machine."""
    return None if value is None else float(f"{value:.6g}")
