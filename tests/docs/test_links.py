"""No link in the repository is dead, on GitHub or on the site, and no page's name in the code; and
the sums of words that nothing else holds.
"""

import ast
import re
import subprocess
import unicodedata
from functools import cache

import pytest
import yaml

from koco_stream.learners import LEARNERS
from tests.helpers.pages_run import PAGES
from tests.helpers.project import ROOT

PACKAGES = "koco_stream", "storage", "cluster", "flows"
WITH_LINKS = ["CONTRIBUTING.md", "CHANGELOG.md", "README.md"]
WITH_LINKS += [f"docs/{page}" for page in PAGES if page != "README.md"]
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)|^\[[^\]]+\]: (\S+)$", re.M)
NAMED = re.compile(r"\b(?:docs/[\w-]+\.(?:md|py)|tests/[\w/]+\.py)\b")


@cache
def text_of(file):
    """The text of a page without its blocks of code."""
    return FENCED.sub("", (ROOT / file).read_text())


@cache
def in_repository():
    """Every file of the project, and every folder."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.check_output(words, cwd=ROOT, text=True).split("\n")
    return {
        *files,
        *(file.rsplit("/", n)[0] for file in files for n in range(1, file.count("/") + 1)),
    }


@cache
def anchors_of(file):
    """The anchors of a page's headings that GitHub and the site both have."""
    titles = re.findall(r"^#+ (.+?)\s*$", text_of(file), re.M)
    titles = [re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", title) for title in titles]
    on_github = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles]
    plain = [
        unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode() for one in titles
    ]
    on_site = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", s).strip().lower()) for s in plain]
    return {*on_github} & {*on_site}


@pytest.mark.parametrize("file", WITH_LINKS)
def test_every_link__leads_somewhere(file):
    links = [a or b for a, b in LINK.findall(text_of(file))]
    dead = []
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (ROOT / file).parent.joinpath(name).resolve() if name else ROOT / file
        relative = str(target.relative_to(ROOT))
        if relative not in in_repository():
            dead.append(link)
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(relative):
            dead.append(link)
    assert dead == []


def test_every_page_that_code_and_pages_name__is_there():
    named = {
        (name, str(file))
        for file in in_repository()
        if file.endswith(
            (".py", ".toml", ".md", ".yaml", ".yml", ".sql", "Makefile", ".cff", ".j2")
        )
        for name in NAMED.findall((ROOT / file).read_text())
    }
    assert {pair for pair in named if pair[0] not in in_repository()} == set()


def test_navigation__has_every_page():
    def pages_in(entry):
        inner = entry.values() if isinstance(entry, dict) else entry
        return [entry] if isinstance(entry, str) else [p for one in inner for p in pages_in(one)]

    navigation = yaml.safe_load((ROOT / "properdocs.yml").read_text())["nav"]
    assert sorted(pages_in(navigation)) == [page for page in PAGES if page != "README.md"]


def test_every_learner__is_on_the_page_that_helps_to_choose():
    page = text_of("docs/choosing.md")
    assert [name for name in LEARNERS if name not in page] == []


def test_words__are_few():
    def words(*files):
        return sum(len((ROOT / file).read_text().split()) for file in files)

    docs = [f"docs/{page}" for page in PAGES if page != "README.md"]
    docstrings = sum(
        len((ast.get_docstring(node) or "").split())
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if "koco_stream/learners/" not in str(file)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert words("README.md") <= 800
    assert len(docs) <= 20
    assert words(*docs) <= 22_000
    assert docstrings <= 28_000
