"""docs/design.md says who may import whom; the code must agree."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "auglabel"
DESIGN = (ROOT / "docs" / "design.md").read_text()


def rules(text: str) -> dict[str, set[str]]:
    """What each part may import, as a table of the page says."""
    found: dict[str, set[str]] = {}
    for left, right in re.findall(r"^\| (`.*?) \| (.*?) \|$", text, flags=re.M):
        names = re.findall(r"`(\w+)`", right)
        for name in re.findall(r"`(\w+)`", left):
            everything = right.startswith(("all of the above", "all rooms"))
            found[name] = set(found) - set(names) if everything else set(names)
    return found


def tables() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Of the package's parts, and of the rooms of lab."""
    section = DESIGN.split("### Who may import whom")[1].split("Nothing points back up")[0]
    parts, rooms = section.split("The rooms of `lab`")
    return rules(parts), rules(rooms)


def modules_imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("auglabel"):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("auglabel.")}
    return found


@pytest.mark.parametrize(("folder", "depth"), [(SOURCE, 1), (SOURCE / "lab", 2)], ids=["parts", "rooms"])
def test_imports_follow_the_design_page(folder, depth):
    allowed, above = tables()[depth - 1], ("auglabel", "lab")[:depth]
    for path in sorted(folder.rglob("*.py")):
        part = path.relative_to(folder).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        names = [module.split(".") for module in modules_imported(path)]
        imported = {name[depth] for name in names if tuple(name[:depth]) == above}
        extra = imported - allowed[part] - {part, "__version__"}
        assert not extra, f"{path.relative_to(ROOT)} imports {extra}, which docs/design.md does not allow"


def test_every_room_of_lab_is_in_the_table():
    assert {path.name for path in (SOURCE / "lab").iterdir() if (path / "__init__.py").exists()} == {
        *tables()[1]
    }


def layout() -> set[str]:
    """The paths of the modules that the page lists: folders by their indentation."""
    found: set[str] = set()
    folders: list[tuple[int, str]] = []
    text = DESIGN.split("## Layout")[1].split("```")[1].removeprefix("text\n")
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        folders = [(depth, name) for depth, name in folders if depth < indent]
        if named := re.match(r"\s*([\w/]+)/(\s|$)", line):
            folders.append((indent, named[1]))
        inside = "/".join(name for _, name in folders)
        found |= {f"{inside}/{name}" for name in re.findall(r"\b(\w+\.py)\b", line)}
    return found


def test_every_module_of_the_layout_exists_and_every_module_is_in_it():
    there = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "examples", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert layout() == there | {"tests/reference.py"}
