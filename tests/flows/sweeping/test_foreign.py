"""Foreign learners in sweeps: their rows beside ours, what fails, and what their identity is."""

import json

import pytest

from flows.sweeping.launch import run_sweep
from koco_stream.errors import WrongInput
from storage.results import read_runs
from tests.helpers.sweeps import checked, written

LEARNER = """
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
name = "foreign"
learner_seeds = 2
[[dataset]]
name = "ill-conditioned"
n_rows = 600
[[learner]]
name = "mine.py:Mean"
shift = [0.0, 0.5]
[[learner]]
name = "mine.py:Broken"
[[learner]]
name = "mine.py:Mean"
slow = 0.01
time_limit = 1.5
[[learner]]
name = "AdaGrad"
"""


@pytest.fixture
def spec(tmp_path):
    """A sweep file with a foreign learner in a file beside it."""
    (tmp_path / "mine.py").write_text(LEARNER)
    return written(tmp_path, SWEEP)


def test_rows__stand_beside_ours_and_failures_are_theirs_alone(spec):
    run_sweep(checked(spec, spec.parent / "store"))
    rows = read_runs(spec.parent / "store").to_pylist()
    found = {(row["learner"], row["params"]): row for row in rows}
    assert len(found) == len(rows) == 5  # no seed changes anything
    ours = [row for row in rows if row["learner"] == "AdaGrad"]
    assert [(row["numbers"], row["status"]) for row in ours] == [("own", "ok")]
    for shift in (0.0, 0.5):
        row = found["mine.py:Mean", json.dumps({"shift": shift}, separators=(",", ":"))]
        assert (row["numbers"], row["status"], row["rounds"]) == ("foreign", "ok", 600)
        assert row["seconds"] > 0.0
        assert len(row["learner_code"]) == 16
    (broken,) = (row for row in rows if row["learner"] == "mine.py:Broken")
    assert broken["status"] == "failed"
    assert "round 50" in broken["error"]
    assert "nothing here" in broken["error"]
    (slow,) = (row for row in rows if "slow" in row["params"])
    assert slow["status"] == "failed"
    assert "took longer than time_limit = 1.5 s" in slow["error"]
    assert not checked(spec, spec.parent / "store").next_to_compute()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shift = [0.0, 0.5]", "shfit = 1", "line 9, .*no argument 'shfit'; did you mean 'shift'"),
        ('mine.py:Mean"\nshift', 'mine.py:Meen"\nshift', "no class 'Meen'; did you mean 'Mean'"),
        ("time_limit = 1.5", "time_limit = 0", "time_limit must be greater than 0"),
    ],
)
def test_wrong_argument__is_refused_before_the_sweep_starts(spec, old, new, said):
    spec.write_text(SWEEP.replace(old, new))
    with pytest.raises(WrongInput, match=said):
        checked(spec, spec.parent / "store")
