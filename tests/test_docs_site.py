"""The site builds without a warning, its links lead somewhere, and it asks nothing of the network."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from docs_blocks import PAGES, ROOT

import auglabel

SOURCES = [*PAGES, "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md"]
pytestmark = pytest.mark.skipif(not (ROOT / "results").exists(), reason="pages link to results/")
LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """What a page has to link to, what it links to, and what a browser loads for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.ids, self.links, self.loads = path, set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        self.loads += [given[key] for name, key in LOADS if tag == name and given.get(key)]
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.append(given["content"].partition("url=")[2])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Every page of the site by its path; built as `make docs` does, warnings being errors."""
    out = tmp_path_factory.mktemp("site")
    words = ["-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-c", "docs", "-d", out / "doctrees", ".", out]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path: Page(path) for path in sorted(out.rglob("*.html"))}


def test_every_link_of_the_site_leads_somewhere(site):
    lost = []
    for page in site.values():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in site and anchor not in site[target].ids):
                lost.append(f"{page.path.name}: {link}")
    assert len(site) > len(SOURCES)
    assert not lost


def test_the_site_loads_nothing_from_elsewhere(site):
    root = next(iter(site)).parent  # CHANGELOG.html
    for page in site.values():
        for load in page.loads:
            parts = urlsplit(load)
            assert parts.scheme in ("", "data"), f"{page.path.name} loads {load}"
            assert not parts.netloc, f"{page.path.name} loads {load}"
            here = parts.scheme or not parts.path  # data:, or the page itself
            assert here or (page.path.parent / unquote(parts.path)).is_file(), load
    for path in root.rglob("*.css"):
        for found in re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", path.read_text(encoding="utf-8")):
            assert found.startswith("data:") or (path.parent / found.split("?")[0]).is_file(), (path, found)
    for path in [*root.rglob("*.js"), *site]:
        text = path.read_text(encoding="utf-8")
        asks = (
            r"(?:fetch|importScripts|import|open)\(\s*['\"`](?:https?:)?//|\.src\s*=\s*['\"`](?:https?:)?//"
        )
        assert not re.search(asks, text), path


def test_every_public_name_is_on_the_api_page(site):
    ids = next(page.ids for path, page in site.items() if path.name == "api.html")
    missing = {name for name in auglabel.__all__ if f"auglabel.{name}" not in ids}
    assert missing <= {"metrics"}
    assert "module-auglabel.metrics" in ids


def test_equations_are_made_when_the_site_is_built(site):
    method = next(path for path in site if path.name == "method.html").read_text(encoding="utf-8")
    assert method.count('display="block"') >= 5
    assert "$" not in re.sub(r"<(pre|script|style).*?</\1>", "", method, flags=re.S)


def anchors_of(path):
    """Of a page of Markdown, as they are made where it is read as it is."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()) for title in titles]
    return {title.replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", SOURCES)
def test_links_between_files_work_where_the_markdown_is_read_as_it_is(page):
    here = ROOT / page
    text = re.sub(r"^```.*?^```", "", here.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = here.parent / unquote(parts.path) if parts.path else here
        assert target.exists(), f"{page}: {link}"
        assert target.resolve().is_relative_to(ROOT), f"{page}: {link} leads out of the repository"
        if parts.fragment:
            assert parts.fragment in anchors_of(target), f"{page}: {link} names no heading"
