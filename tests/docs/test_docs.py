"""The documentation: every block of code of README and of its pages runs, what pages say of the
code is so, no link is dead, figures are those that are stored, sums of words are held, and the
site is readable.

What a block is, its fence says: `sh` is run by the shell, `python` in a namespace that the page's
blocks share, `diff` is applied to files; anything with a title is written to the file of that name;
`toml` without a title is a sweep file or a part of one, or schedules; `text` is what the block
before it prints, among other lines, whatever its numbers and with … for any words of a line. A
fence without a language is a picture.

A comment above a fence says `not run: REASON`, or `needs THING`: then it runs only in a test that
has the thing. A comment that begins with `run` is a block of the shell that readers do not see, and
`after PAGE` begins with what the blocks of that page have left.
"""

import ast
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import unicodedata
from contextlib import chdir, closing, redirect_stdout
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.stats
import yaml

import koco_stream
from docs.pages import INSIDE, PAGES as MADE, written
from flows.cli import koco
from flows.report.papers.benchmark import KEPT
from flows.sweeping.halving import Halving, Race
from flows.sweeping.tables import DatasetTable, LearnerTable, ReportTable, SweepFile
from koco_stream.learners import LEARNERS
from koco_stream.runs.schemas import CURVES, PARAMETER_COLUMNS, PREDICTIONS, RUNS, WINDOWS
from storage.results import read_runs
from tests.helpers.in_process import commands
from tests.helpers.pages import SIZES, browser, opened, violations
from tests.helpers.project import ROOT

DOCS = ROOT / "docs"
PAGES = ["README.md", *sorted(file.name for file in DOCS.glob("*.md"))]
TIMEOUT = 280.0  # seconds of a block
PARTS = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$'
    r"|^<!-- (?P<mark>not run|needs|run|after)\b:?\s+(?P<rest>.*?)\s*-->$",
    re.M | re.S,
)
COMMANDS = re.compile(r"^\s*\$?\s*(koco|make|python|pip|git|import|from \w+ import)\b", re.M)


class Block(NamedTuple):
    """A block of code: the line that it begins in, its language, the file that it is to be written
    to, its text; why it is not run, or what it needs.
    """

    line: int
    language: str
    title: str
    text: str
    not_run: str = ""
    needs: str = ""


def text_of(page):
    """The text of a page."""
    return (ROOT / page if page == "README.md" else DOCS / page).read_text()


def page_before(page):
    """The page whose folder this one begins with, if there is one."""
    found = re.search(r"^<!-- after (\S+) -->$", text_of(page), re.M)
    return found and found[1]


def blocks_of(page):
    """The blocks of a page, in order."""
    text = text_of(page)
    found, marks = [], {}
    for part in PARTS.finditer(text):
        line = text[: part.start()].count("\n") + 2
        where = f"{page}:{line}"
        if part["mark"] == "run":
            found.append(Block(line, "sh", "", part["rest"]))
        elif part["mark"] in ("not run", "needs"):
            assert re.match(r"\s*```", text[part.end() :]), f"{where}: a mark without a block"
            marks = {part["mark"].replace(" ", "_"): part["rest"]}
        elif part["mark"] is None:
            language, title, inner = part["language"], part["title"] or "", part["text"]
            assert language or not COMMANDS.search(inner), f"{where}: say what language this is"
            if language:
                found.append(Block(line, language, title, inner, **marks))
            marks = {}
    fences = len(re.findall(r"^\s*```", text, re.M))
    assert fences == 2 * sum(part["mark"] is None for part in PARTS.finditer(text)), (
        f"{page}: a fence that is indented, or of another kind"
    )
    return found


def run_page(page, folder, environment, things=(), without=None):
    """Run the blocks of the page in the folder, and of those that need something only those that
    need one of the things; none that has the words `without` in it.
    """
    names, printed = {"__name__": page}, ""
    for block in blocks_of(page):
        left_out = block.not_run or (block.needs and block.needs not in things)
        if left_out or (without and without in block.text):
            continue
        where = f"{page}:{block.line}"
        if block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif block.language == "sh":
            printed = shell(block.text, folder, environment, where)
        elif block.language == "python":
            printed = python(block, folder, names, page)
        elif block.language == "diff":
            shell("git apply -p0 -", folder, environment, where, block.text)
        elif block.language == "toml":
            check_toml(block.text, folder, environment, where)
        else:
            assert block.language == "text", f"{where}: nothing runs {block.language!r}, no title"
            missing = missing_lines(block.text, printed)
            assert not missing, f"{where}: not printed: {missing}; printed was:\n{printed}"


def shell(text, folder, environment, where, given=None):
    """What the commands print, both to stdout and to stderr; the first that fails ends them."""
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=folder,
        env=environment,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout


def python(block, folder, names, page):
    """What the code prints."""
    code = compile("\n" * (block.line - 1) + block.text, page, "exec")
    with chdir(folder), redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def check_toml(text, folder, environment, where):
    """Read schedules as `koco serve` does, and a sweep file, whatever it lacks, as `koco sweep`."""
    given = tomllib.loads(text)
    file = Path(folder, ".part.toml")
    if "schedule" in given:
        file.write_text(text)
        if not (sweeps := Path(folder, "sweeps")).exists():
            sweeps.symlink_to(ROOT / "flows" / "sweeps")
        read = "from pathlib import Path; from flows.schedules.service import read_schedules as r"
        shell(f'python -c \'{read}; r(Path("{file}"), "store")\'', folder, environment, where)
        return
    step = "{ log_uniform = [0.1, 1.0] }" if "search" in given else "1.0"
    lacking = {
        "dataset": '[[dataset]]\nname = "ill-conditioned"\n',
        "learner": f'[[learner]]\nname = "OGD"\nstep_size = {step}\n',
    }
    first = "" if "name" in given else 'name = "part"\n'
    rest = "".join(table for key, table in lacking.items() if key not in given)
    file.write_text(f"{first}{text}\n{rest}")
    shell(f"koco sweep {file} --dry-run", folder, environment, where)


def missing_lines(expected, printed):
    """The lines of `expected` that are not among those printed, numbers aside."""
    there = "\n".join(masked(line) for line in printed.splitlines())

    def found(line):
        pattern = ".*".join(map(re.escape, masked(line).split("…")))
        return re.search(rf"^{pattern}$", there, re.M)

    return [line for line in expected.splitlines() if line.strip() and not found(line)]


def masked(line):
    """The line with each number as #, and single spaces."""
    return " ".join(re.sub(r"\d[\d.,]*(e[+-]?\d+)?", "#", line).split())


def environment_for(folder, source, python=sys.executable):
    """The environment in which a page's commands find this Python, `koco` of `source`, and folders
    for what they keep. With another Python, its programs see nothing of `source`.
    """
    programs = folder / ".programs"
    programs.mkdir()
    path = f'PYTHONPATH="{source}" '
    run = {
        "koco": f"{path}exec {sys.executable} -m flows",
        "python": f"{path * (python == sys.executable)}exec {python}",
    }
    for name, words in run.items():
        (programs / name).write_text(f'#!/bin/sh\n{words} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, "PATH": f"{programs}:{os.environ['PATH']}"}


def folder_after(page, folder, left_by):
    """The new folder, with what the page before this one has left, and the real datasets."""
    if before := page_before(page):
        shutil.copytree(
            left_by(before),
            folder,
            symlinks=True,
            ignore=shutil.ignore_patterns(".programs", "data"),
        )
    else:
        folder.mkdir()
    if data := os.environ.get("KOCO_DATA"):
        (folder / "data").symlink_to(data)
    return folder


DAILY = {"sweep-file.md"}  # the others' blocks take longer: each night
WITH_CODE = [page for page in PAGES if "```" in text_of(page)]
ON_A_COPY = "own-learner.md"  # changes the project
DATA = {"data"} if os.environ.get("KOCO_DATA") else set()


@pytest.fixture(scope="module")
def left_by(tmp_path_factory):
    """A function that gives the folder in which a page's blocks have run, once for all."""
    folders = {}

    def folder_of(page):
        if page not in folders:
            folder = folder_after(page, tmp_path_factory.mktemp("page") / "folder", folder_of)
            folders[page] = folder
            run_page(page, folder, environment_for(folder, ROOT), DATA)
        return folders[page]

    return folder_of


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in DAILY else pytest.mark.long)
        for page in WITH_CODE
        if page != ON_A_COPY
    ],
)
def test_page__runs(page, left_by):
    left_by(page)


@pytest.mark.long
def test_adding_a_learner__runs_on_a_copy_of_the_project(tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("koco_stream", "storage", "cluster", "flows", "tests", "docs"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, clone)
    run_page(ON_A_COPY, clone, environment_for(tmp_path, clone), DATA, "pytest")


@pytest.mark.system
def test_export__gives_mlflow_the_runs_of_the_store(tmp_path, left_by):
    """MLflow holds other packages back, so that it is in an environment of its own."""
    python = os.environ.get("KOCO_MLFLOW") or sys.executable
    if subprocess.run([python, "-c", "import mlflow, sqlalchemy"], capture_output=True).returncode:
        pytest.skip(
            "needs MLflow: python -m venv E; E/bin/pip install mlflow; KOCO_MLFLOW=E/bin/python"
        )
    folder = folder_after("results.md", tmp_path / "folder", left_by)
    run_page("results.md", folder, environment_for(folder, ROOT, python), {"mlflow"})
    runs = read_runs(folder / "store").to_pylist()
    tagged = (
        "SELECT t.value, o.key, o.value FROM tags t JOIN {} o USING (run_uuid)"
        " WHERE t.key = 'run_id'"
    )
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        params, metrics = ({*database.execute(tagged.format(of))} for of in ("params", "metrics"))
    for run in runs:
        given = {"dataset": run["dataset"], **json.loads(run["params"])}
        assert {(run["run_id"], name, str(value)) for name, value in given.items()} <= params
    names = ("mean_loss", "error_rate", "seconds")
    assert metrics == {
        (run["run_id"], name, run[name]) for run in runs for name in names if run[name] is not None
    }


@pytest.mark.soak  # sweeps on Slurm are tested at length in test_slurm.py
def test_slurm__runs_where_slurm_does(slurm_conf, tmp_path, left_by):
    folder = folder_after("clusters.md", tmp_path / "folder", left_by)
    environment = environment_for(folder, ROOT) | {"SLURM_CONF": str(slurm_conf)}
    run_page("clusters.md", folder, environment, {"slurm"})


def test_every_block__runs_in_one_of_these_tests():
    needs = {(block.needs, page) for page in PAGES for block in blocks_of(page) if block.needs}
    assert {pair for pair in needs if pair[0] != "data"} <= {
        ("mlflow", "results.md"),
        ("slurm", "clusters.md"),
    }
    assert {page_before(page) for page in PAGES} - {None} <= {*WITH_CODE}


def test_example__is_the_page_s():
    [block] = [block for block in blocks_of(ON_A_COPY) if block.title == "nlms.py"]
    assert (ROOT / "examples" / "nlms.py").read_text() == block.text


@pytest.mark.parametrize("page", [*MADE, *INSIDE])
def test_page_from_the_code__is_current(page):
    """`python -m docs.pages --write` writes what is not."""
    assert (DOCS / page).read_text() == written(page), "run: python -m docs.pages --write"


def test_pages__have_every_command_column_and_parameter():
    own = (c for c in (*RUNS, *CURVES, *WINDOWS, *PREDICTIONS) if c not in PARAMETER_COLUMNS)
    wanted = {"commands.md": [], "tables.md": [f"`{c.name}`" for c in own], "learners.md": []}
    for words, command in commands(koco):
        if not hasattr(command, "commands"):
            options = [option for parameter in command.params for option in parameter.opts]
            wanted["commands.md"] += ["## " + " ".join(words)]
            wanted["commands.md"] += [option for option in options if option.startswith("--")]
    for name, learner in LEARNERS.items():
        wanted["learners.md"] += [f"## {name}\n", *(f"`{q.name}`" for q in learner.parameters)]
    for page, texts in wanted.items():
        shown = (DOCS / page).read_text()
        assert [text for text in texts if text not in shown] == [], page


def test_sweep_file_s_page__has_every_key():
    text = (DOCS / "sweep-file.md").read_text()
    for table in (SweepFile, DatasetTable, LearnerTable, ReportTable, Halving, Race):
        for name, field in table.model_fields.items():
            assert f"`{name}`" in text, name
            if not field.is_required() and isinstance(field.default, int | str):
                assert f"`{json.dumps(field.default)}`" in text, name


def test_citation__says_what_the_package_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["version"] == koco_stream.__version__
    assert f"## {koco_stream.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_errata__has_every_number_that_the_code_cites():
    code = "\n".join(source.read_text() for source in (ROOT / "koco_stream").rglob("*.py"))
    cited = set(re.findall(r"\b([SKPTVNG]\d+)\b", code))
    assert cited <= set(
        re.findall(r"\*\*([SKPTVNG]\d+)\.", (ROOT / "docs" / "errata.md").read_text())
    )


PACKAGES = "koco_stream", "storage", "cluster", "flows"
IN_DOCS = [f"docs/{page}" for page in PAGES if page != "README.md"]
LINK = re.compile(r"\]\(<?([^)\s>]+)>?\)|^\[[^\]]+\]: (\S+)$", re.M)
NAMED = re.compile(r"\b(?:docs/[\w-]+\.(?:md|py)|tests/[\w/]+\.py)\b")


@cache
def prose_of(file):
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", (ROOT / file).read_text(), flags=re.M | re.S)


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
    titles = [
        re.sub(r"\[(.*?)\]\(.*?\)|[`*]", r"\1", title)
        for title in re.findall(r"^#+ (.+?)\s*$", prose_of(file), re.M)
    ]
    on_github = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles]
    plain = [
        unicodedata.normalize("NFKD", one).encode("ascii", "ignore").decode() for one in titles
    ]
    on_site = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", s).strip().lower()) for s in plain]
    return {*on_github} & {*on_site}


@pytest.mark.parametrize("file", ["CONTRIBUTING.md", "CHANGELOG.md", "README.md", *IN_DOCS])
def test_every_link__leads_somewhere(file):
    links = [a or b for a, b in LINK.findall(prose_of(file))]
    dead = []
    for link in (link for link in links if not re.match(r"[a-z]+:", link)):
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
    assert [name for name in LEARNERS if name not in prose_of("docs/choosing.md")] == []


def test_words__are_few():
    def words(*files):
        return sum(len((ROOT / file).read_text().split()) for file in files)

    docstrings = sum(
        len((ast.get_docstring(node) or "").split())
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    meanings = {q.meaning for learner in LEARNERS.values() for q in learner.parameters}
    assert words("README.md") <= 800
    assert len(IN_DOCS) <= 20
    assert words(*IN_DOCS) <= 22_000
    assert docstrings + sum(len(text.split()) for text in meanings) <= 36_000


PAGE = (ROOT / "docs" / "findings.md").read_text()
LINE = r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
MEASURED = {name: [float(x) for x in given] for name, *given in re.findall(LINE, PAGE, re.M)}


@pytest.mark.parametrize("learner", MEASURED)
def test_table_of_matrix_learners__is_the_benchmark_s(learner):
    found = {
        (row["learner"], row["source"]): float(f"{np.mean(row['scores']):.11e}")
        for row in pq.read_table(KEPT).to_pylist()
        if row["part"] == "benchmark-whole" and row["learner"] in MEASURED
    }
    sources = sorted({source for _, source in found})
    ranks = np.mean(
        [scipy.stats.rankdata([found[name, s] for name in MEASURED]) for s in sources], axis=0
    )
    rank = dict(zip(MEASURED, ranks, strict=True))[learner]
    expected = [*(found[learner, s] for s in ("a9a", "cod-rna", "w8a")), rank]
    assert (np.abs(np.subtract(MEASURED[learner], expected)) <= [6e-5, 6e-5, 6e-5, 6e-3]).all()


BUILDER = Path(sys.executable).parent / "properdocs"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, built as `make docs` does."""
    if not BUILDER.exists():
        pytest.skip("needs properdocs: pip install 'koco-stream[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = [BUILDER, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.system
def test_site__is_readable_in_a_browser(built):
    """From disk, wide and narrow, light and dark: nothing asked for elsewhere, no message, no page
    wider than the window, nothing that axe-core finds.
    """
    files = [file for file in sorted(built.glob("*.html")) if file.name != "404.html"]
    assert [f"{file.stem}.md" for file in files] == [page for page in PAGES if page != "README.md"]
    with browser() as started:
        for file, (width, scheme) in product(files, (SIZES[0], SIZES[-1])):
            with opened(started, file, width, scheme, site=True) as (page, complaints):
                assert page.evaluate("document.documentElement.scrollWidth") <= width, file
                assert violations(page) == [], (file, width, scheme)
                assert complaints == [], file


@pytest.mark.system
def test_search__finds_from_disk_while_one_types(built):
    with browser() as started, opened(started, built / "index.html", site=True) as (page, wrong):
        page.keyboard.press("s")
        page.locator("#properdocs-search-query:focus").fill("bandwid")
        page.locator("#properdocs-search-results a").first.click()
        page.wait_for_url("**/*.html#*")
        assert "bandwid" in page.inner_text("[role=main]").lower()
        assert wrong == []


def test_walk__is_short():
    """The page of the architecture has it as traced, and a test keeps it current."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    [walk] = re.findall(r"<!-- sweep: .*?<!-- end of sweep -->", page, re.S)
    files, _, back = walk.partition("A room calls back")
    assert 10 < len(set(re.findall(r"`(\w+/[\w/]+\.py)`", files))) <= 18
    assert back.split().count("to") <= 2
