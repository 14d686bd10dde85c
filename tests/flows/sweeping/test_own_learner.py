"""Learners of a user's file in sweeps: their identity, their numbers, and a file that changes."""

import json
import shutil

import numpy as np
import pytest

from flows.sweeping import planning
from flows.sweeping.file import read_sweep
from flows.sweeping.launch import run_sweep
from koco_stream.errors import LearnerChanged, WrongInput
from koco_stream.io.source_files import source_files
from koco_stream.learners import learner_called, learner_named
from koco_stream.learners.files import send
from storage.results import read_runs
from tests.helpers.project import ROOT
from tests.helpers.sweeps import checked, dense_rows, written

SWEEP = """
name = "own"
[[dataset]]
name = "ill-conditioned"
n_rows = 3000
[[learner]]
name = "sub/nlms.py:NLMS"
step_size = [0.1, 0.5]
[[learner]]
name = "AdaGrad"
"""


@pytest.fixture
def spec(tmp_path):
    """A sweep file, with a learner's file in a folder beside it."""
    (tmp_path / "sub").mkdir()
    shutil.copy(ROOT / "examples" / "nlms.py", tmp_path / "sub")
    return written(tmp_path, SWEEP)


def swept(spec):
    """The rows of the sweep's runs, computed in this process."""
    store = spec.parent / "store"
    run_sweep(checked(spec, store))
    return read_runs(store).to_pylist()


def test_learner_of_a_file__has_the_rows_and_bits_of_one_of_the_library(spec):
    rows = {row["params"]: row for row in swept(spec) if row["learner"] == "nlms.py:NLMS"}
    assert len(rows) == 2
    learner = learner_named(learner_called("sub/nlms.py:NLMS", spec.parent))
    X, y = dense_rows(spec.parent / "store", "ill-conditioned,n_rows=3000")
    for row in rows.values():
        step = json.loads(row["params"])["step_size"]
        assert (row["status"], row["numbers"], row["step_size"]) == ("ok", "own", step)
        assert len(row["learner_code"]) == 16
        losses = (learner(step).progressive(X, y) - y) ** 2
        assert row["mean_loss"] == np.cumsum(losses)[-1] / 3000


def test_changed_file__makes_new_runs_and_keeps_the_others(spec):
    before = {row["run_id"]: row for row in swept(spec)}
    assert swept(spec) == list(before.values())  # nothing is computed again
    file = spec.parent / "sub" / "nlms.py"
    file.write_text(file.read_text().replace("if n2 == 0.0:", "if n2 <= 0.0:"))
    after = swept(spec)
    new = [row for row in after if row["run_id"] not in before]
    assert [row["learner"] for row in new] == ["nlms.py:NLMS"] * 2
    assert {row["mean_loss"] for row in new} == {
        row["mean_loss"] for row in before.values() if row["learner_code"]
    }
    assert len(after) == len(before) + 2


@pytest.mark.parametrize("what", ["the file", "the store's copy"])
def test_file_changed_while_the_sweep_runs__is_refused_by_name(spec, what, monkeypatch):
    store = spec.parent / "store"
    sweep, run = checked(spec, store), planning.run_cohorts
    (code,) = {one.learner.partition("@")[2] for one in sweep.runs if "@" in one.learner}

    def changed_before_the_cohorts_run(*given):
        send(str(store), code)
        if what == "the file":
            with (spec.parent / "sub" / "nlms.py").open("a") as file:
                file.write("# another\n")
        else:
            monkeypatch.setattr(planning, "send", lambda *_: None)
            note = store / "learners" / f"{code}.json"
            note.write_text(note.read_text().replace("n2 == 0.0", "n2 <= 1.0"))
        run(*given)

    monkeypatch.setattr(planning, "run_cohorts", changed_before_the_cohorts_run)
    with pytest.raises(LearnerChanged, match=r"nlms\.py:NLMS was changed while its sweep ran"):
        run_sweep(sweep)


def test_source__is_the_file_and_what_it_imports_beside_it(tmp_path):
    for name, text in {
        "a.py": "import b, numpy\ndef f():\n    from pack.c import g\n",
        "b.py": "import a\n",
        "other.py": "",
        "pack/__init__.py": "from . import d\n",
        "pack/c.py": "from .d import h\nfrom .. import e\n",
        "pack/d.py": "",
        "pack/unused.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(source_files(tmp_path / "a.py")) == [
        "a.py",
        "b.py",
        "pack/__init__.py",
        "pack/c.py",
        "pack/d.py",
    ]


def test_helper_beside_the_file__is_part_of_its_identity(tmp_path):
    (tmp_path / "helped.py").write_text(
        "from rates_of_this_test import RATE\nfrom koco_stream import OGD\n"
        "class Mine(OGD):\n    rate = RATE\n"
    )
    codes = set()
    for rate in (0.1, 0.1, 0.2):
        (tmp_path / "rates_of_this_test.py").write_text(f"RATE = {rate}\n")
        codes.add(learner_called("helped.py:Mine", tmp_path))
    assert len(codes) == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.py:A", "", "there is no file .*none.py; .*relative to the sweep file"),
        ("l.py:Nlsm", "class NLMS: pass", "no class 'Nlsm'; did you mean 'NLMS'"),
        ("l.py:A", "class A", "l.py:1: .*not Python"),
        ("l.py:A", "import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("l.py:A", "class A: pass", "learn_one"),
        ("l.py:A", "class A: pass", "partial_fit"),
        ("nothing_of_this_name.x:A", "", "is not installed; pip install nothing_of_this_name"),
        ("AdaGard", "", r"did you mean 'AdaGrad'\? \(a learner in a file is named 'file.py:Class'"),
    ],
)
def test_wrong_name__is_refused_with_its_line_and_the_remedy(tmp_path, name, text, said):
    (tmp_path / "l.py").write_text(text)
    (tmp_path / "s.toml").write_text(SWEEP.replace("sub/nlms.py:NLMS", name))
    with pytest.raises(WrongInput, match=rf"s.toml, line 7, learner 1, name: .*{said}"):
        read_sweep(tmp_path / "s.toml")
