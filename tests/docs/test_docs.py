"""The documentation: every block of code of README and of its pages runs, and what pages say of the
code is so.
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

import pytest
import yaml

import koco_stream
from docs.pages import INSIDE, written
from docs.pages import PAGES as MADE
from flows.cli import koco
from flows.sweeping.file import DatasetTable, LearnerTable, ReportTable, SweepFile
from flows.sweeping.halving import Halving
from koco_stream.learners import LEARNERS
from koco_stream.runs.schemas import CURVES, PARAMETER_COLUMNS, PREDICTIONS, RUNS, WINDOWS
from storage.results import read_runs
from tests.helpers.in_process import commands
from tests.helpers.pages_run import (
    DOCS,
    PAGES,
    blocks_of,
    environment_for,
    folder_after,
    page_before,
    run_page,
    text_of,
)
from tests.helpers.project import ROOT

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
    tagged = "SELECT t.value, o.key, o.value FROM tags t JOIN {} o USING (run_uuid)"
    tagged += " WHERE t.key = 'run_id'"
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
    known = {("mlflow", "results.md"), ("slurm", "clusters.md")}
    assert {pair for pair in needs if pair[0] != "data"} <= known
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
    columns = [f"`{c.name}`" for c in own]
    wanted = {"commands.md": [], "tables.md": columns, "learners.md": []}
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


def test_errata__has_every_number_that_the_code_cites():
    code = "\n".join(source.read_text() for source in (ROOT / "koco_stream").rglob("*.py"))
    cited = set(re.findall(r"\b([SKPTVNG]\d+)\b", code))
    errata = (ROOT / "docs" / "errata.md").read_text()
    assert cited <= set(re.findall(r"\*\*([SKPTVNG]\d+)\.", errata))
