"""docs/design.md says who may import whom; the code must agree."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "auglabel"
DESIGN = (ROOT / "docs" / "design.md").read_text()


def part_of(module: str) -> str:
    """auglabel.augment.ops -> augment"""
    return module.split(".")[1] if "." in module else ""


def allowed() -> dict[str, set[str]]:
    section = DESIGN.split("### Who may import whom")[1].split("Nothing points back up")[0]
    rules: dict[str, set[str]] = {}
    for left, right in re.findall(r"^\| (`.*?) \| (.*?) \|$", section, flags=re.M):
        names = re.findall(r"`(\w+)`", right)
        for name in re.findall(r"`(\w+)`", left):
            rules[name] = set(rules) - set(names) if right.startswith("all of the above") else set(names)
    return rules


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("auglabel"):
            found |= {part_of(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {part_of(alias.name) for alias in node.names if alias.name.startswith("auglabel")}
    return found


def test_imports_follow_the_design_page():
    rules = allowed()
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        extra = imports(path) - rules[part] - {part, "__version__"}
        assert not extra, f"{path.relative_to(ROOT)} imports {extra}, which docs/design.md does not allow"


def test_every_module_of_the_layout_exists_and_every_module_is_in_it():
    layout = DESIGN.split("## Layout")[1].split("```")[1]
    named = set(re.findall(r"\b(\w+)\.py\b", layout))
    there = {path.stem for folder in ("src", "examples", "scripts") for path in (ROOT / folder).rglob("*.py")}
    there |= {"reference"}
    assert there - {"__init__"} == named
