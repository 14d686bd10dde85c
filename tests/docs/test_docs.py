"""The documentation: every block of code of the tutorial, the how-to guides and the README runs,
and the site has what it promises.
"""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
import yaml

import koco_stream
from flows.cli import koco
from flows.sweeping.file import DatasetTable, LearnerTable, ReportTable, SweepFile
from flows.sweeping.halving import Halving
from flows.sweeping.request import packaged
from koco_stream.learners import LEARNERS
from koco_stream.runs.schemas import CURVES, PREDICTIONS, RUNS, WINDOWS
from storage.results import read_runs
from tests.helpers.in_process import commands
from tests.helpers.many_runs import many_runs
from tests.helpers.pages import SIZES, browser, opened, violations
from tests.helpers.pages_run import DOCS, blocks_of, environment_for, run_page
from tests.helpers.project import ROOT

README = (ROOT / "README.md").read_text()
BUILDER = Path(sys.executable).parent / "properdocs"


def pages_under(title):
    """The pages below a title of the navigation in properdocs.yml."""
    navigation = yaml.safe_load((ROOT / "properdocs.yml").read_text())["nav"]
    [found] = [entry[title] for entry in navigation if title in entry]
    several = not isinstance(found, str)
    return [page for entry in found for page in entry.values()] if several else [found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which somebody follows the tutorial, then reads results; its environment."""
    folder = tmp_path_factory.mktemp("pages")
    environment = environment_for(folder, ROOT)
    run_page("tutorial.md", folder, environment)
    return folder, environment


@pytest.mark.system
def test_tutorial__runs(folder):
    assert (folder[0] / "store" / "reports" / "pump.html").is_file()


@pytest.mark.system
def test_reading_results__runs_after_the_tutorial(folder):
    run_page("read-results.md", *folder)


@pytest.mark.long
@pytest.mark.parametrize("page", ["own-dataset.md", "python-use.md", "sweeps-in-python.md"])
def test_how_to__runs(page, tmp_path):
    run_page(page, tmp_path, environment_for(tmp_path, ROOT))


@pytest.mark.data
@pytest.mark.long
def test_dask__computes_on_20news(data_folder, tmp_path):
    run_page("dask.md", tmp_path, environment_for(tmp_path, ROOT))


@pytest.mark.system
def test_export__gives_mlflow_the_runs_of_the_store(tmp_path):
    """MLflow holds other packages back, so that it is in an environment of its own."""
    python = os.environ.get("KOCO_MLFLOW") or sys.executable
    if subprocess.run([python, "-c", "import mlflow, sqlalchemy"], capture_output=True).returncode:
        pytest.skip(
            "needs MLflow: python -m venv E; E/bin/pip install mlflow; KOCO_MLFLOW=E/bin/python"
        )
    runs = read_runs(many_runs(tmp_path / "store", 12)).to_pylist()
    environment = environment_for(tmp_path, ROOT)
    (tmp_path / ".programs" / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    del environment["PYTHONPATH"]
    run_page("export.md", tmp_path, environment)
    tagged = "SELECT t.value, o.key, o.value FROM tags t JOIN {} o USING (run_uuid)"
    tagged += " WHERE t.key = 'run_id'"
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database:
        params, metrics = ({*database.execute(tagged.format(of))} for of in ("params", "metrics"))
    for run in runs:
        given = {"dataset": run["dataset"], **json.loads(run["params"])}
        assert {(run["run_id"], name, str(value)) for name, value in given.items()} <= params
    names = ("mean_loss", "error_rate", "seconds")
    assert metrics == {(run["run_id"], name, run[name]) for run in runs for name in names}


@pytest.mark.long
def test_adding_a_learner__runs_on_a_copy_of_the_project(tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("koco_stream", "storage", "cluster", "flows", "tests", "docs"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        shutil.copy(ROOT / name, clone)
    run_page("own-learner.md", clone, environment_for(tmp_path, clone), "pytest")


def test_example__is_the_page_s():
    [block] = [block for block in blocks_of("own-learner.md") if block.title == "nlms.py"]
    assert (ROOT / "examples" / "nlms.py").read_text() == block.text


@pytest.mark.soak  # sweeps on Slurm are tested at length in test_slurm.py
def test_slurm__runs_where_slurm_does(slurm_conf, tmp_path):
    environment = environment_for(tmp_path, ROOT) | {"SLURM_CONF": str(slurm_conf)}
    run_page("slurm.md", tmp_path, environment)


def test_every_how_to__is_run_by_a_test():
    run = set(re.findall(r'"([\w-]+\.md)"', Path(__file__).read_text()))
    pages = {*pages_under("Tutorial"), *pages_under("How to")}
    assert pages <= run
    assert [page for page in pages if not blocks_of(page)] == []


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
    assert len(files) > 30
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
        page.wait_for_url("**/choosing.html#*")
        assert wrong == []


@pytest.mark.long
def test_site__has_every_command_column_and_parameter(built):
    columns = [f"<code>{c.name}</code>" for c in (*RUNS, *CURVES, *WINDOWS, *PREDICTIONS)]
    wanted = {"commands.html": [], "tables.html": columns, "learners.html": []}
    for words, command in commands(koco):
        path = " ".join(words)
        options = [option for parameter in command.params for option in parameter.opts]
        wanted["commands.html"] += [f">{path}<", *(o for o in options if o.startswith("--"))]
    for name, learner in LEARNERS.items():
        parameters = [f"<code>{parameter.name}</code>" for parameter in learner.parameters]
        wanted["learners.html"] += [f'id="{name.lower()}"', *parameters]
    for page, texts in wanted.items():
        shown = (built / page).read_text()
        assert [text for text in texts if text not in shown] == [], page


def test_sweep_file_s_page__has_every_key():
    text = (DOCS / "sweep-file.md").read_text()
    for table in (SweepFile, DatasetTable, LearnerTable, ReportTable, Halving):
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


@pytest.mark.long
def test_readme_s_python_examples__run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("".join(re.findall(r"```python\n(.*?)```", README, re.S)), {})
    assert re.fullmatch(
        r"progressive error 0\.\d+\nmean loss 0\.0\d+, \d+ rows in the dictionary\n"
        r"sweep small: 8 of 8 runs in (.*\n)+",
        capsys.readouterr().out,
    )


def test_readme_s_table_of_learners__is_complete():
    assert set(re.findall(r"^- `(\w+)`:", README, re.M)) == set(LEARNERS)


def test_readme_s_links_and_sweeps__exist():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "https://" not in link]
    assert [name for name in links if not (ROOT / name).exists()] == []
    sweeps = re.findall(r"koco sweep (?!FILE)([\w][\w-]+)", README)
    assert {"20news", "adversary"} <= set(sweeps) <= set(packaged())


def test_errata__has_every_number_that_the_code_cites():
    code = "\n".join(source.read_text() for source in (ROOT / "koco_stream").rglob("*.py"))
    cited = set(re.findall(r"\b([SKPTVNG]\d+)\b", code))
    errata = (ROOT / "docs" / "errata.md").read_text()
    assert cited <= set(re.findall(r"\*\*([SKPTVNG]\d+)\.", errata))
