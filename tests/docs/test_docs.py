"""The documentation: every block of code of the tutorial and the how-to guides runs, and the site
has what it promises.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from tests.helpers.pages_run import DOCS, blocks_of, environment_for, missing_lines, run_page
from tests.helpers.project import ROOT

BUILDER = Path(sys.executable).parent / "properdocs"


def site():
    """properdocs.yml; its tags for Python objects are none of ours."""
    return yaml.safe_load((ROOT / "properdocs.yml").read_text())


def pages_under(title):
    """The pages below a title of the navigation."""
    [found] = [entry[title] for entry in site()["nav"] if title in entry]
    return (
        [found] if isinstance(found, str) else [page for entry in found for page in entry.values()]
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which somebody follows the tutorial, then reads results; its environment."""
    folder = tmp_path_factory.mktemp("pages")
    environment = environment_for(folder, ROOT)
    run_page("tutorial.md", folder, environment)
    return folder, environment


def test_tutorial__runs(folder):
    assert (folder[0] / "store" / "reports" / "pump.html").is_file()


def test_reading_results__runs_after_the_tutorial(folder):
    run_page("read-results.md", *folder)


@pytest.mark.parametrize("page", ["own-dataset.md", "python-use.md"])
def test_how_to__runs(page, tmp_path):
    run_page(page, tmp_path, environment_for(tmp_path, ROOT))


@pytest.mark.parametrize(
    "without",
    [pytest.param(None, marks=pytest.mark.soak), "pytest"],
    ids=["whole", "without its tests"],
)
def test_adding_a_learner__runs_on_a_copy_of_the_project(without, tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("koco_stream", "storage", "cluster", "flows", "tests", "docs"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, clone)
    run_page("own-learner.md", clone, environment_for(tmp_path, clone), without)


@pytest.mark.soak  # sweeps on Slurm are tested at length in test_slurm.py
def test_slurm__runs_where_slurm_does(slurm_conf, tmp_path):
    run_page(
        "slurm.md", tmp_path, {**environment_for(tmp_path, ROOT), "SLURM_CONF": str(slurm_conf)}
    )


def test_every_how_to__is_run_by_a_test():
    run = set(re.findall(r'"([\w-]+\.md)"', Path(__file__).read_text()))
    assert {*pages_under("Tutorial"), *pages_under("How to")} <= run
    for page in (*pages_under("Tutorial"), *pages_under("How to")):
        assert blocks_of(page), page


def test_runner__sees_what_is_not_so(tmp_path):
    printed = "reading 12 rows\nmean loss 0.125, 3 runs\n"
    assert missing_lines("mean loss 0.5, 4 runs\nreading …\n", printed) == []
    assert missing_lines("mean loss is 0.5\n", printed) == ["mean loss is 0.5"]
    with pytest.raises(AssertionError, match=r"tutorial\.md:\d+: exit status"):
        run_page("tutorial.md", tmp_path, {"PATH": "/usr/bin:/bin"})  # where no koco is


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, built as `make docs` does."""
    if not BUILDER.exists():
        pytest.skip("needs properdocs: pip install 'koco-stream[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [str(BUILDER), "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_site__fetches_nothing(built):
    elsewhere = re.compile(
        r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*\b(?:src|href|data)=[\"']?(?:https?:)?//[^>]*>",
        re.I,
    )
    for page in built.rglob("*.html"):
        assert [
            found for found in elsewhere.findall(page.read_text()) if 'rel="canonical"' not in found
        ] == [], page
    for style in built.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style
    for script in built.rglob("*.js"):
        assert not re.search(
            r"\b(fetch|import|importScripts|open)\(\s*[\"'`](https?:)?//", script.read_text()
        ), script


def test_site__has_every_command_column_and_parameter(built):
    from flows.cli import koco
    from koco_stream.learners import LEARNERS
    from koco_stream.runs.schemas import CURVES, RUNS

    def commands(group, path):
        for name, command in group.commands.items():
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from commands(command, f"{path} {name}")

    text = (built / "commands.html").read_text()
    for path, command in commands(koco, "koco"):
        assert f">{path}<" in text
        for option in (
            option
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("--")
        ):
            assert option in text
    tables = (built / "tables.html").read_text()
    assert [
        name
        for name in (column.name for column in (*RUNS, *CURVES))
        if f"<code>{name}</code>" not in tables
    ] == []
    learners = (built / "learners.html").read_text()
    for name, learner in LEARNERS.items():
        assert f'id="{name.lower()}"' in learners
        assert all(f"<code>{parameter.name}</code>" in learners for parameter in learner.parameters)


def test_sweep_file_s_page__has_every_key():
    from flows.sweep.file import DatasetTable, LearnerTable, ReportTable, SweepFile
    from flows.sweep.halving import Halving

    text = (DOCS / "sweep-file.md").read_text()
    for table in (SweepFile, DatasetTable, LearnerTable, ReportTable, Halving):
        for name, field in table.model_fields.items():
            assert f"`{name}`" in text, name
            if not field.is_required() and isinstance(field.default, int | str):
                assert f"`{field.default!r}`".replace("'", '"') in text, (name, field.default)


def test_citation__says_what_the_package_says():
    import tomllib

    import koco_stream

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["version"] == project["version"] == koco_stream.__version__
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
