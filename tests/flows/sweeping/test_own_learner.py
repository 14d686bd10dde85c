"""Learners of a user's file in sweeps, and those of other libraries: their identity, their numbers
and failures, and a file that changes.
"""

import json
import shutil

import numpy as np
import pytest

from flows.sweeping import planning
from flows.sweeping.file import read_sweep
from flows.sweeping.launch import run_sweep
from koco_stream.errors import LearnerChanged
from koco_stream.io.source_files import source_files
from koco_stream.learners import learner_called, learner_named
from koco_stream.learners.files import send
from storage.results import read_runs
from tests.helpers.project import ROOT
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, dense_rows, written

FOREIGN = """
class Mean:
    def __init__(self, shift=0.0, slow=0.0):
        self.shift, self.slow, self.total, self.n = shift, slow, 0.0, 0

    def predict_one(self, x):
        return self.shift + (self.total / self.n if self.n else 0.0)

    def learn_one(self, x, y):
        if self.slow:
            import time
            while self.n == 100:
                time.sleep(self.slow)
        self.total, self.n = self.total + y, self.n + 1


class Broken(Mean):
    def learn_one(self, x, y):
        super().learn_one(x, y)
        if self.n == 50:
            raise KeyError("nothing here")
"""
SWEEP = """
name = "own"
time_limit = 1.5
[[dataset]]
name = "ill-conditioned"
n_rows = 600
[[learner]]
name = "sub/nlms.py:NLMS"
step_size = [0.1, 0.5]
[[learner]]
name = "mine.py:Mean"
shift = [0.0, 0.5]
[[learner]]
name = "mine.py:Broken"
[[learner]]
name = "mine.py:Mean"
slow = 0.01
[[learner]]
name = "AdaGrad"
"""


@pytest.fixture
def spec(tmp_path):
    """A sweep file, with learners' files beside it, one of them in a folder."""
    (tmp_path / "sub").mkdir()
    shutil.copy(ROOT / "examples" / "nlms.py", tmp_path / "sub")
    (tmp_path / "mine.py").write_text(FOREIGN)
    return written(tmp_path, SWEEP)


def swept(spec):
    """The rows of the sweep's runs, computed in this process, by learner and parameters."""
    run_sweep(checked(spec, spec.parent / "store"))
    rows = read_runs(spec.parent / "store").to_pylist()
    return {(row["learner"], row["params"], row["learner_code"]): row for row in rows}


def test_rows__stand_beside_ours_until_a_file_changes_and_failures_are_theirs_alone(spec):
    before = swept(spec)
    found = {key[:2]: row for key, row in before.items()}
    learner = learner_named(learner_called("sub/nlms.py:NLMS", spec.parent))
    X, y = dense_rows(spec.parent / "store", "ill-conditioned,n_rows=600")
    mine = [row for (name, _), row in found.items() if name == "nlms.py:NLMS"]
    assert {row["step_size"] for row in mine} == {0.1, 0.5}
    for row in mine:
        assert (row["status"], row["numbers"]) == ("ok", "own")
        losses = (learner(row["step_size"]).progressive(X, y) - y) ** 2
        assert row["mean_loss"] == np.cumsum(losses)[-1] / 600
    for shift in (0.0, 0.5):
        row = found["mine.py:Mean", json.dumps({"shift": shift}, separators=(",", ":"))]
        assert (row["numbers"], row["status"], row["rounds"]) == ("foreign", "ok", 600)
        assert (row["seconds"] > 0.0, len(row["learner_code"])) == (True, 16)
    ended = {row["status"]: (key[0], row["error"]) for key, row in found.items() if row["error"]}
    assert {status: name for status, (name, _) in ended.items()} == {
        "failed": "mine.py:Broken",
        "stopped": "mine.py:Mean",
    }
    assert "round 50" in ended["failed"][1]
    assert "nothing here" in ended["failed"][1]
    assert "took longer than time_limit = 1.5 s (round 101)" in ended["stopped"][1]
    assert not checked(spec, spec.parent / "store").next_to_compute()
    longer = SWEEP.replace("time_limit = 1.5", 'time_limit = "00:00:09"')
    longer = written(spec.parent, longer, "longer.toml")
    (again,) = checked(longer, spec.parent / "store").next_to_compute()
    assert [row["status"] for row in before.values() if row["run_id"] == again.run_id] == [
        "stopped"
    ]
    file = spec.parent / "sub" / "nlms.py"
    file.write_text(file.read_text().replace("if n2 == 0.0:", "if n2 <= 0.0:"))
    new = {key[:2]: row for key, row in swept(spec).items() if key not in before}
    assert [key[0] for key in new] == ["nlms.py:NLMS"] * 2
    assert all(row["mean_loss"] == found[key]["mean_loss"] for key, row in new.items())


@pytest.mark.parametrize("what", ["the file", "the store's copy"])
def test_file_changed_while_the_sweep_runs__is_refused_by_name(spec, what, monkeypatch):
    store = spec.parent / "store"
    sweep, run = checked(spec, store), planning.run_cohorts
    (code,) = {one.file.code for one in sweep.runs if one.learner.startswith("nlms")}

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
    refusal(r"nlms\.py:NLMS was changed while its sweep ran", run_sweep, sweep, by=LearnerChanged)


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
    ("old", "new", "said"),
    [
        ("shift = [0.0, 0.5]", "shfit = 1", "line 12, .*no argument 'shfit'; did you mean 'shift'"),
        ('mine.py:Mean"\nshift', 'mine.py:Meen"\nshift', "no class 'Meen'; did you mean 'Mean'"),
        ("slow = 0.01", "time_limit = 9", "time_limit is for all runs; give it above the first"),
    ],
)
def test_wrong_argument__is_refused_before_the_sweep_starts(spec, old, new, said):
    refusal(said, read_sweep, written(spec.parent, SWEEP.replace(old, new)))


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
    refusal(rf"s.toml, line 8, learner 1, name: .*{said}", read_sweep, tmp_path / "s.toml")
