"""Runs are timed on their first rows, without anything being learnt of what they are worth; and
checkpoints are written by the clock.
"""

from dataclasses import replace

import numpy as np
import pytest

from koco_stream.engine import cohort as engine
from koco_stream.engine.cohort import run_cohort
from koco_stream.engine.timing import MOST_POWER, known_timings, remember, timed
from koco_stream.runs.cost_model import UNMEASURED, timing_key
from koco_stream.runs.run import Run
from koco_stream.streams.stream import Stream
from tests.helpers.sweeps import cohort_on, results_of, undisturbed


@pytest.mark.parametrize("learner", ["OGD", "FDSON", "KONS", "CONKONS", "Constant"])
def test_run__is_timed_on_its_first_rows(learner, small_store):
    (run,) = cohort_on(small_store, [(learner, {}, 1)]).runs
    key, timing = timed(str(small_store), run)
    assert key == timing_key(run)
    assert 64 <= timing.rounds <= 500
    assert 0 < timing.seconds < 5
    assert 1 <= timing.power <= (MOST_POWER if run.learner_class.open_ended else 1)
    remember(key, timing)
    assert known_timings([run]) == {key: timing}


def test_run_that_cannot_be_timed__says_why_only_when_it_runs(small_store):
    run = Run.of(Stream("missing", "h"), "OGD", {}, 0)
    assert timed(str(small_store), run) == (timing_key(run), UNMEASURED)


def test_real_parameters__share_a_timing_and_sizes_do_not():
    stream = Stream("a", "h")
    keys = [
        timing_key(Run.of(stream, "OjaSON", {"alpha": alpha, "sketch_size": m}, 0))
        for alpha, m in ((1.0, 5), (2.0, 5), (1.0, 6))
    ]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("clock", [0.0, np.inf])
def test_checkpoints__are_written_by_the_clock(clock, small_store, monkeypatch):
    """After each block if no time may be lost, and never if all may; the numbers are the same."""
    cohort = cohort_on(small_store, [("FDSON", {}, 1)])
    whole = undisturbed(small_store, cohort)
    saved = []
    monkeypatch.setattr(engine, "SAVING_SHARE", np.inf)
    monkeypatch.setattr(engine, "save_cohort", lambda where, rounds, *_: saved.append(rounds))
    run_cohort(str(small_store), "try", replace(cohort, checkpoint_seconds=clock), 100)
    assert saved == ([100, 200, 300, 400] if clock == 0.0 else [])
    assert results_of(small_store, cohort) == whole
