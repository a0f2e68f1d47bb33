"""The pages, and the blocks of code in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}, line {self.line}"


def blocks_of(page: str) -> list[Block]:
    """Every fenced block, in order."""
    found, opened = [], None
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"\s*(```+|~~~+)\s*(.*)$", line)
        if opened is None and fence:
            opened = (number, fence[1], fence[2].strip(), [])
        elif opened is not None and fence and fence[1] == opened[1] and not fence[2]:
            found.append(Block(page, opened[0], opened[2], "\n".join(opened[3])))
            opened = None
        elif opened is not None:
            opened[3].append(line)
    assert opened is None, f"{page}, line {opened[0]}: this block has no end"
    return found


def commands_of(block: Block) -> list[str]:
    """The lines of a shell block less comments; a backslash goes on."""
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    return [command for line in lines if (command := re.sub(r"(^|\s+)#.*", "", line).strip())]
