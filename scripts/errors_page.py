"""Write docs/errors.md: every sentence that the command line can end with, out of the source.

python scripts/errors_page.py

A sentence is the text of an error that is raised anywhere under src/auglabel, less what only a caller in
Python can meet. scripts/errors.yaml says which those are, which module belongs to which heading, and the way
out of those sentences that do not name it themselves. tests/test_errors.py holds the page against the source,
and every sentence against the tests.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from auglabel.whole import write_text

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "auglabel"
PAGE = ROOT / "docs" / "errors.md"
ABOUT = Path(__file__).with_name("errors.yaml")
RAISED = ROOT / "results" / "reliability" / "errors.json"
SAYING = {"ImportError", "BrokenImage", "_fail"}  # made or printed elsewhere than in a `raise`
NEVER = {"NotImplementedError", "AssertionError", "RuntimeError", "KeyError"}  # not caught: a defect of ours
NAMED = {"came": "VALUE", "wrong": "VALUE", "value": "VALUE", "error": "REASON", "why": "REASON"}
NAMED |= {"wanted": "WHAT", "told": "WHAT", "strerror": "REASON", "where": "PATH", "file": "PATH"}
NAMED |= {
    "SUCH_AS": "EXAMPLE",
    "WHERE": "WHAT",
    "LARGEST": "N",
    "SMALLEST": "N",
    "PIXELS": "N",
    "roots": "PATH",
}
NAMED |= {"journal": "PATH", "runs": "PATH", "checkpoints": "PATH", "below": "PATH", "int": "N"}
NAMED |= {"tuple": "SHAPE", "shape_of": "KINDS", "short": "REASON", "getattr": "REASON", "item": "VALUE"}
NAMED |= {"split": "REASON", "splitlines": "REASON", "decode": "NAME", "list": "VALUE", "damaged": "REASON"}
NAMED |= {"partition": "OPTION", "losses": "VALUE", "gone": "NAME", "strange": "NAME", "classes": "NAME"}
NAMED |= {"broken": "REASON", "sorted": "NAME", "keys": "NAME", "others": "OPTION", "given": "OPTION"}
NAMED |= {"missing": "NAME", "known": "NAME", "formats": "FORMAT", "sum": "N"}
NAMED |= {"split_file": "PATH", "does": "WHAT", "words": "REASON", "made": "VALUE", "_md5": "VALUE"}
NAMED |= {"root": "PATH", "folder": "PATH", "out": "PATH", "kind_of": "VALUE", "len": "N", "join": "NAMES"}
FRONT = {"place", "origin", "_origin"}  # `mine.yaml, line 6: ` or nothing
REST = {"hint", "near", "otherwise", "_hint", "_first"}  # `Did you mean "epochs"?` or nothing
GAP, FILE = "\0", "\1"
FEWEST = 8  # fixed letters; with fewer it hands on another sentence


@dataclass
class Sentence:
    """One sentence with gaps, and how it is shown."""

    text: str  # with GAP for what differs
    shown: str
    modules: set[str] = field(default_factory=set)
    places: set[tuple[str, int]] = field(default_factory=set)  # module and line, where it is said

    @property
    def pattern(self) -> re.Pattern[str]:
        """What it looks like when it is said; another end may be put on it."""
        first, *rest = map(re.escape, self.text.removesuffix(".").split(GAP))
        return re.compile(
            ".*".join([f"[^,:]*{rest[0]}", *rest[1:]]) if not first else ".*".join([first, *rest])
        )


def sentences() -> list[Sentence]:
    """Every one that the command line can end with, in the order of the source."""
    about, found = load(), dict[str, Sentence]()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        for text, shown, place in of_module(ast.parse(path.read_text(encoding="utf-8"))):
            if is_one(text) and reached(module, text, about["python"]):
                sentence = found.setdefault(text, Sentence(text, shown))
                sentence.modules.add(module)
                sentence.places.add((module, place))
    return list(found.values())


def is_one(text: str) -> bool:
    """Not a part of another, such as "it is not a zip archive", nor what only hands another on."""
    part = not text.endswith((".", GAP)) or (text.startswith("it ") and not text.endswith("."))
    return not part and len(text.replace(GAP, "")) >= FEWEST


def reached(module: str, text: str, python: dict[str, Any]) -> bool:
    """Whether a command can come to this sentence, and not a caller in Python alone."""
    if module in python["modules"] or module.partition("/")[0] in python["modules"]:
        return starts(text, python["but"]) is not None
    return starts(text, python["sentences"]) is None


def load() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(ABOUT.read_text(encoding="utf-8"))
    return found


def starts(text: str, beginnings: list[str]) -> str | None:
    """The one of `beginnings`, less what differs in front, that the sentence begins with."""
    plain = text.replace(GAP, "").strip()
    return next((each for each in beginnings if plain.startswith(each)), None)


def of_module(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Each sentence with gaps, as it is shown, and the line where it is said."""
    known = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and re.search("[ /]", str(node.value.value))
    }
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        if function.name == "explained":  # what another package complains of, in our words
            returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
            yield from (
                (*written(node.value, known), node.lineno) for node in returns if node.value is not None
            )
    raised = {node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    for call in sorted(calls, key=lambda node: node.lineno):
        name = last_name(call.func)
        if (call in raised and name not in NEVER) or name in SAYING:
            yield *written(call.args[0], known), call.lineno
        elif name == "locked" and len(call.args) == 2:
            yield *written(call.args[1], known), 0  # said elsewhere


def written(text: ast.expr, known: Mapping[str, str]) -> tuple[str, str]:
    """The sentence with gaps, and with a word in capitals in each of them."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    gaps, words = "", ""
    for part in parts:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        fixed = inner.value if isinstance(inner, ast.Constant) else known.get(last_name(inner))
        if isinstance(fixed, str):
            gaps, words = gaps + fixed, words + fixed
        else:
            word = word_for(inner)
            if last_name(inner) in FRONT:  # of a recipe, in front, with its colon; or a part of a sentence
                word = FILE if not gaps else "" if gaps.endswith(GAP) else "PLACE"
                gaps += GAP  # two: with a comma and a colon
            gaps, words = gaps + GAP, words + word
    gaps = gaps.replace(f"{GAP}{GAP} ", f"{GAP} ")
    words = words.replace(f"{FILE} ", "PATH ").replace(FILE, "PLACE: ")
    return gaps, re.sub(r"\.{4,}", "...", words)


def word_for(inner: ast.expr) -> str:
    if isinstance(inner, ast.BoolOp):
        return word_for(inner.values[0]) if isinstance(inner.op, ast.Or) else ""
    if isinstance(inner, ast.Call) and last_name(inner) == "shown":
        return word_for(inner.args[0])
    name = last_name(inner)
    if name in REST:
        return ""
    return NAMED.get(name.strip("_"), name.strip("_").upper()) or "..."


def last_name(node: ast.expr) -> str:
    """value, of self.value, value[0] or value(...)"""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return str(getattr(node, "attr", getattr(node, "id", "")))


def text() -> str:
    """The page."""
    about, groups = load(), defaultdict(list)
    for sentence in sentences():
        groups[group_of(sentence, about)].append(sentence)
    found = [about["intro"].strip(), said()]
    for group in about["groups"]:
        found.append(f"## {group['title']}\n\n{group['lead'].strip()}")
        found.append("\n".join(sorted(line(each, about["ways"]) for each in groups[group["title"]])))
    return "\n\n".join(found) + "\n"


def said() -> str:
    """What scripts/errors_raised.py found when it was last called."""
    if not RAISED.exists():
        return "Which of them the tests come to was not looked at."
    found = json.loads(RAISED.read_text(encoding="utf-8"))
    return (
        "When the lines that the tests run were last looked at "
        "([scripts/errors_raised.py](../scripts/errors_raised.py)), they had come\n"
        f"to {found['said']} of {found['sentences']} sentences. The others are said in processes of their "
        "own, or need a package that is\nnot always there; tests for them are there too."
    )


def group_of(sentence: Sentence, about: dict[str, Any]) -> str:
    """The heading of its module; of several modules', the one that comes first."""
    for group in about["groups"]:
        if sentence.modules & set(group["modules"]):
            return str(group["title"])
    raise ValueError(f"scripts/errors.yaml has no group with one of {sorted(sentence.modules)}.")


def line(sentence: Sentence, ways: dict[str, str]) -> str:
    key = starts(sentence.text, sorted(ways, key=len, reverse=True))
    return f"- `{sentence.shown.strip()}`" + (f" {ways[key]}" if key is not None else "")


if __name__ == "__main__":
    write_text(PAGE, text())
