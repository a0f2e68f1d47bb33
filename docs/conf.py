"""The site: `make docs` turns the Markdown of this folder, the README and the docstrings into build/site.

The source folder is the whole repository, so that a link between files means here what it means where the
Markdown is read as it is. The built pages load nothing from elsewhere: equations become MathML.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes
from sphinx import addnodes

import auglabel

ROOT = Path(__file__).resolve().parents[1]
HOME = "docs/index"

project = "auglabel"
author = "The auglabel authors"
copyright = author  # Sphinx asks for this name
version = release = auglabel.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]

root_doc = HOME
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "docs/*.md"]
exclude_patterns = [
    path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "benchmarks")
]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page of Markdown may skip a level

html_theme = "furo"
html_title = "auglabel"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False  # an override says what is new, or nothing
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
nitpicky = True
nitpick_ignore_regex = [  # other people's names, and what their stubs call them
    ("py:.*", r"(torch|numpy|np|npt|nn|collections|os|pathlib|typing|typing_extensions)\b.*"),
    ("py:.*", r"(Array|Tensor|Generator|Sequence|Callable|Iterable|Iterator|Path|Self|Any|optional)"),
]


def contents(app: Any, docname: str, source: list[str]) -> None:
    """The list of pages in docs/index.md is the table of contents; a page that it lacks fails the build."""
    if docname != HOME:
        return
    groups = re.split(r"^## ", source[0], flags=re.M)[1:]
    for group in groups:
        title, _, text = group.partition("\n")
        pages = re.findall(r"^- \[(.*?)\]\((.*?)\.md\)", text, re.M)
        entries = "\n".join(f"{name} </{normal('docs/' + path)}>" for name, path in pages)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"


def normal(path: str) -> str:
    """docs/../README -> README"""
    return (ROOT / path).resolve().relative_to(ROOT).as_posix()


def plain(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with `code` in backticks, not reStructuredText."""
    if lines[:1] and lines[0].startswith("Alias for field number"):
        lines.clear()
    for i, line in enumerate(lines):
        parts = line.replace("\\", "\\\\").split("`")
        if len(parts) % 2 == 0:  # a backtick without its partner
            continue
        parts[::2] = [re.sub(r"([*|]|_\b)", r"\\\1", part) for part in parts[::2]]
        lines[i] = "``".join(parts)


def links(app: Any, doctree: nodes.document) -> None:
    """A link to a file that is no page leads to a page of its text; one to a folder is left as text."""
    here = app.env.docname
    for node in list(doctree.findall(addnodes.download_reference)):
        path = normal((Path(here).parent / node["reftarget"]).as_posix())
        app.env.shown_files.add(path)
        address = app.builder.get_relative_uri(here, f"files/{path}")
        node.replace_self(nodes.reference("", "", *node.children, refuri=address, internal=True))
    app.env.dlfiles.purge_doc(here)
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftype"] == "myst" and (ROOT / Path(here).parent / node["reftarget"]).is_dir():
            node.replace_self(node.children)


def unbroken(app: Any, doctree: nodes.document) -> None:
    """43.1 ± 0.3 stays on one line in the cells of tables."""
    for cell in doctree.findall(nodes.entry):
        for text in list(cell.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(text.replace(" ± ", "\u00a0±\u00a0")))


def public(app: Any, env: Any, node: nodes.Element, text: nodes.Node) -> nodes.Node | None:
    """auglabel.labels.OneHot is found under its public name; what has none stays text, if it is there."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target.startswith("auglabel."):
        return None
    name = target.rpartition(".")[2]
    if name in auglabel.__all__:
        python = env.get_domain("py")
        return python.resolve_xref(env, node["refdoc"], app.builder, "obj", f"auglabel.{name}", node, text)
    pkgutil.resolve_name(target)
    return text


def mathml(writer: Any, node: nodes.Element) -> None:
    block = isinstance(node, nodes.math_block)
    made = latex2mathml.converter.convert(node.astext(), display="block" if block else "inline")
    writer.body.append(f'<div class="equation">{made}</div>\n' if block else made)
    raise nodes.SkipNode


def more_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The text of every file that a page links to, and a first page that leads on to ours."""
    for path in sorted(app.env.shown_files):
        text = (ROOT / path).read_text(encoding="utf-8")
        language = {".py": "python", ".yaml": "yaml", ".cff": "yaml"}.get(Path(path).suffix, "text")
        shown = app.builder.highlighter.highlight_block(text, language)
        yield f"files/{path}", {"title": path, "body": f"<h1>{path}</h1>{shown}"}, "page.html"
    goes = f'<meta http-equiv="refresh" content="0; url={app.builder.get_target_uri(HOME)}">'
    yield "index", {"title": project, "metatags": goes, "body": ""}, "page.html"


def setup(app: Any) -> None:
    app.connect("env-before-read-docs", lambda app, env, docnames: setattr(env, "shown_files", set()))
    app.connect("source-read", contents)
    app.connect("doctree-read", links)
    app.connect("doctree-read", unbroken)
    app.connect("missing-reference", public)
    app.connect("autodoc-process-docstring", plain)
    app.connect("html-collect-pages", more_pages)
    app.add_html_math_renderer("mathml", inline_renderers=(mathml, None), block_renderers=(mathml, None))
