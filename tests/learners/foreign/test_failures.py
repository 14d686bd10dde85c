"""What may go wrong with a foreign learner: its run fails with a reason, and no process is left."""

import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from koco_stream.errors import TimeLimit
from koco_stream.streams.inputs import as_rows
from tests.helpers.foreign import CLASSES, advanced, scores, started
from tests.helpers.project import ROOT, environment

X, LABELS = np.ones((40, 3)), np.resize([1.0, -1.0, 0.5], 40)
MEANS = [0.0, *(np.cumsum(LABELS)[:-1] / np.arange(1, 40))]
CUTS = (5, 17)


def run(name, cuts=CUTS, time_limit=60.0, **arguments):
    """The predictions of a learner that may fail, and its state."""
    learner, params, state = started(f"{CLASSES}:{name}", arguments, 3, time_limit=time_limit)
    return advanced(learner, params, state, as_rows(X), LABELS, cuts), state


def failure(kind, name, **arguments):
    with pytest.raises(kind) as caught:
        run(name, **arguments)
    return str(caught.value)


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
        (TimeLimit, "Mean", {"time_limit": 0.01}, "(before its first round)"),
    ],
)
def test_failure__is_told_with_its_round_and_reason(kind, name, given, said):
    assert said.format(f"{CLASSES}:{name}") in failure(kind, name, **given)


def test_exit__is_seen_though_another_process_holds_the_pipes():
    begun = time.monotonic()
    assert "ended with exit status 4 (round 3)" in failure(ChildProcessError, "ForksAndExits", at=3)
    assert time.monotonic() < begun + 30.0


def test_time_limit__ends_a_learner_that_sleeps():
    message = failure(TimeLimit, "Sleeps", at=18, time_limit=3)
    assert message.startswith(
        f"{CLASSES}:Sleeps took longer than time_limit = 3 s (round 18); raise time_limit"
    )


def test_after_a_failure__nothing_more_is_learnt():
    learner, params, state = started(f"{CLASSES}:Raises", {"at": 1}, 3)
    for message in ("this row is odd", "has failed before, or was closed"):
        with pytest.raises(RuntimeError, match=message):
            advanced(learner, params, state, as_rows(X), LABELS)


def test_nan__ends_the_run_before_its_round():
    (predictions, rounds), state = run("IsNaN", at=18)
    assert rounds == state.rounds == 17
    assert np.isfinite(predictions[:17]).all()
    assert np.isnan(predictions[17])
    assert np.isinf(predictions[18:]).all()  # not touched


def test_output__is_no_answer():
    (predictions, rounds), _ = run("Prints")
    assert rounds == 40
    np.testing.assert_allclose(predictions, MEANS)


def test_global_generators__are_seeded():
    found = [scores(f"{CLASSES}:Draws", {}, X, LABELS, seed=s).tolist() for s in (1, 1, 2, 2**40)]
    assert found[0] == found[1] != found[2]
    assert len(set(found[0])) == 40


def test_processes_of_the_learner__end_with_it():
    (_, rounds), state = run("StartsAProcess")
    assert rounds == 40
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
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), cwd=ROOT)
    try:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        child.wait(20.0)  # raises if it is still there
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
