"""What may go wrong with a foreign learner: its run fails with a reason, and no process is left."""

import subprocess
import sys

import numpy as np
import psutil
import pytest

from koco_stream.errors import TimeLimit
from koco_stream.learners import Mixture
from koco_stream.learners.mixture import Member, Params
from koco_stream.learners.record import recorded
from koco_stream.learners.saved import state_arrays
from koco_stream.streams.inputs import as_rows
from tests.helpers.foreign import CLASSES, advanced, scores, started
from tests.helpers.project import ROOT, environment

X, LABELS = np.ones((40, 3)), np.resize([1.0, -1.0, 0.5], 40)


def run(name, time_limit=60.0, **arguments):
    """The predictions of a learner that may fail, and its state."""
    parts = started(f"{CLASSES}:{name}", arguments, 3, time_limit=time_limit)
    return advanced(*parts, as_rows(X), LABELS, cuts=(5, 17)), parts[2]


@pytest.mark.parametrize(
    ("kind", "name", "given", "said"),
    [
        (RuntimeError, "Raises", {"at": 1}, "{}, round 1: ValueError: this row is odd ("),
        (RuntimeError, "Raises", {"at": 18}, "{}, round 18: ValueError: this row is odd ("),
        (RuntimeError, "CannotBeMade", {"size": 3}, "{}, before its first round: ValueError: 3 is"),
        (RuntimeError, "Leaves", {"at": 6}, "{}, round 6: SystemExit: enough"),
        (
            ChildProcessError,
            "Exits",
            {"at": 18},
            "the process of {} ended with exit status 3 (round 18); it wrote last: going",
        ),
        (
            ChildProcessError,
            "Killed",
            {"at": 18},
            "{} was killed by SIGSEGV (round 18); it wrote last: the last line",
        ),
        # at once, though another process holds its pipes
        (ChildProcessError, "ForksAndExits", {"at": 3}, "ended with exit status 4 (round 3)"),
        (ValueError, "SendsAPickle", {"at": 18}, "the magic string is not correct"),
        (TimeLimit, "Mean", {"time_limit": 0.01}, "(before its first round)"),
        (
            TimeLimit,
            "Sleeps",
            {"at": 18, "time_limit": 3},
            "{} took longer than time_limit = 3 s (round 18); raise time_limit",
        ),
    ],
)
def test_failure__is_told_with_its_round_and_reason(kind, name, given, said):
    with pytest.raises(kind) as caught:
        run(name, **given)
    assert said.format(f"{CLASSES}:{name}") in str(caught.value)


def test_time_limit__of_a_mixture_is_that_of_its_members():
    learner, params, _ = started(f"{CLASSES}:Mean", {}, 3)
    mixed = Mixture.within(Params((Member(learner, params, None),), 0, 1.0, 0.5), 7.0)
    assert mixed.members[0].params.time_limit == 7.0


def test_nan__ends_the_run_before_its_round_and_nothing_more_is_learnt():
    (predictions, rounds), state = run("IsNaN", at=18)
    with pytest.raises(RuntimeError, match="has failed before, or was closed"):
        state.advance(as_rows(X), LABELS, predictions)
    assert rounds == state.rounds == 17
    assert np.isfinite(predictions[:17]).all()
    assert np.isnan(predictions[17])
    assert np.isinf(predictions[18:]).all()  # not touched


def test_output__is_no_answer():
    (predictions, _), _ = run("Prints")
    np.testing.assert_allclose(predictions, [0.0, *(np.cumsum(LABELS)[:-1] / np.arange(1, 40))])


def test_global_generators__are_seeded():
    found = [scores(f"{CLASSES}:Draws", {}, X, LABELS, seed=s).tolist() for s in (1, 1, 2, 2**40)]
    assert found[0] == found[1] != found[2]
    assert len(set(found[0])) == 40


def test_state__has_no_arrays_and_its_processes_end_with_it():
    (_, rounds), state = run("StartsAProcess")
    assert rounds == 40
    assert state_arrays(state) == recorded(state) == {}
    assert [p.name() for p in psutil.Process().children(recursive=True)].count("sleep") == 1
    state.close()
    state.close()  # again: nothing happens


PARENT = """
import threading, time
import numpy as np
from koco_stream.streams.inputs import as_rows
from tests.helpers.foreign import CLASSES, advanced, started

parts = started(f"{CLASSES}:Sleeps", {"at": 2}, 3)
rows = as_rows(np.ones((2, 3)))
threading.Thread(target=advanced, args=(*parts, rows, np.ones(2)), daemon=True).start()
while parts[2].progress < 2:
    time.sleep(0.01)
print(parts[2]._process.pid, flush=True)
time.sleep(60)
"""


def test_process__ends_when_the_one_that_started_it_is_killed():
    words = [sys.executable, "-c", PARENT]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), cwd=ROOT) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(20.0)  # raises if it is still there
