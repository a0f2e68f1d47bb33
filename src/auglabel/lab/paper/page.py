"""A table or the numbers of a figure: as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import Self

from auglabel.lab.runs.metric_list import metric_named, over_seeds
from auglabel.util.atomic_write import write_text
from auglabel.util.checksummed_json import write_checksummed

NOT_RUN = "not run"


def name_of(metric: str) -> str:
    """As it is shown; `ece T` is ECE T, and what has no other name keeps its own."""
    name, _, temperature = metric.partition(" ")
    return metric_named(name).title + (f" {temperature}" if temperature else "")


@dataclass(frozen=True)
class Record:
    """What all runs of a row reached in one metric, as fractions, and what the paper printed, in percent."""

    data: str
    method: str
    metric: str
    seeds: list[int]
    values: list[float]
    x: float | None = None  # where on a figure's axis
    paper: float | None = None
    ran: bool = False  # whether there are runs, though perhaps without this metric

    @classmethod
    def of(
        cls, data: str, method: str, metric: str, by_seed: Mapping[int, float | None], **more: Any
    ) -> Self:
        """Without the seeds that lack the metric."""
        there = {seed: value for seed, value in by_seed.items() if value is not None}
        return cls(data, method, metric, list(there), list(there.values()), **more)

    def shown(self) -> str:
        """Mean ± standard deviation over seeds; the paper's in parentheses."""
        ours = "-" if self.ran else NOT_RUN
        if self.values:
            ours = metric_named(self.metric).mean_and_spread(self.values)
        return ours if self.paper is None else f"{ours} ({self.paper:.1f})"

    def as_dict(self) -> dict[str, object]:
        mean, sd = over_seeds(self.values) if self.values else (None, None)
        return asdict(self) | {"paper": self.paper_fraction, "mean": mean, "sd": sd}

    @property
    def paper_fraction(self) -> float | None:
        return None if self.paper is None else round(self.paper / 100, 6)


@dataclass(frozen=True)
class Block:
    """One table of a page: a title, a head and rows of text."""

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [f"**{self.title}**", ""] if self.title else []
        lines += [_piped(self.head), _piped(["---"] * len(self.head)), *map(_piped, self.body)]
        return "\n".join(lines)

    def latex(self) -> str:
        columns = "".join("p{5cm}" if wide else "l" for wide in self._wide())
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        lines += [_ampersands(self.head), r"\midrule", *map(_ampersands, self.body), r"\bottomrule"]
        return "\n".join([*lines, r"\end{tabular}"])

    def _wide(self) -> list[bool]:
        """Which columns have cells that do not fit on a line."""
        return [max(map(len, column)) > 60 for column in zip(self.head, *self.body, strict=True)]


@dataclass(frozen=True)
class Page:
    """All there is to say of one table or figure."""

    name: str
    title: str
    blocks: Sequence[Block]
    records: Sequence[Record]
    notes: Sequence[str] = field(default_factory=list)

    def markdown(self, chart: bool) -> str:
        parts = [
            f"## {self.heading}: {self.title}",
            *([f"![{self.heading}]({self.name}.svg)"] if chart else []),
        ]
        parts += [block.markdown() for block in self.blocks]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    @property
    def heading(self) -> str:
        """Table 2."""
        word = self.name.rstrip("0123456789")
        return f"{word.capitalize()} {self.name[len(word) :]}".strip()

    def latex(self) -> str:
        """Each block as a tabular, for booktabs."""
        parts = [f"% {self.heading}: {self.title}", *(f"% {note}" for note in self.notes)]
        for block in self.blocks:
            parts += [f"% {block.title}", block.latex(), ""]
        return "\n".join(parts)

    def csv(self) -> str:
        """One line per metric of a row and seed; the blocks as they are where there are no such."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        if not self.records:
            writer.writerows(line for block in self.blocks for line in (block.head, *block.body))
            return file.getvalue()
        writer.writerow(["data", "method", "x", "metric", "seed", "value", "paper"])
        for record in self.records:
            about = [record.data, record.method, record.x, record.metric]
            paper = record.paper_fraction
            for seed, value in zip(record.seeds, record.values, strict=True):
                writer.writerow([*about, seed, round(value, 6), paper])
            if not record.values:
                writer.writerow([*about, None, None, paper])
        return file.getvalue()

    def write(self, folder: Path, chart: bool) -> None:
        """NAME.md, .tex, .csv and .json."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{self.name}.md", self.markdown(chart))
        write_text(folder / f"{self.name}.tex", self.latex())
        write_text(folder / f"{self.name}.csv", self.csv())
        about: Mapping[str, object] = {
            "format": "auglabel results, version 1",
            "name": self.name,
            "title": self.title,
            "records": [record.as_dict() for record in self.records],
            **({} if self.records else {"blocks": [asdict(block) for block in self.blocks]}),
            "notes": list(self.notes),
        }
        write_checksummed(folder / f"{self.name}.json", about)


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(cell) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    for plain, written in (
        ("\\", r"\textbackslash{}"),
        ("%", r"\%"),
        ("&", r"\&"),
        ("_", r"\_"),
        ("#", r"\#"),
    ):
        text = text.replace(plain, written)
    text = re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text)
    return text.replace("±", r"$\pm$").replace("<", "$<$").replace(">", "$>$")
