"""The time of runs, measured on the first rows of their streams; what is known is in the cache."""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from koco_stream.engine.cohort import advance_runs, fetch_files, seen_by
from koco_stream.engine.reporting import Reporter
from koco_stream.engine.warm_up import Needed, load
from koco_stream.errors import WrongInput
from koco_stream.io.cache import private_folder
from koco_stream.io.files import json_text, write_text
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.cost_model import UNMEASURED, Timing, timing_key
from koco_stream.runs.run import Run, RunState
from koco_stream.streams.reader import BLOCK_ROWS, StreamReader

FIRST_ROWS = 64
MOST_POWER = 3.0  # a round takes at most the square of the rounds before


def timed(store: str, run: Run) -> tuple[str, Timing]:
    """A run's `timing_key`, and its timing; `UNMEASURED` if that fails: the run will say why."""
    try:
        return timing_key(run), measured(store, run)
    except (WrongInput, OSError):
        return timing_key(run), UNMEASURED


def measured(store: str, run: Run) -> Timing:
    """Time a run on its first rows, of which there are twice as many each time."""
    fetch_files(store, [run])
    reader = StreamReader(store, run.stream)
    load([Needed(run.learner, run.params, reader.manifest.value_type)])
    points = np.zeros(0)
    one = RunState.start(run, seen_by(reader), points)
    open_ended = run.open_ended
    limit = 0.2 if open_ended else 0.02  # in seconds; rounds may take longer and longer
    before = found = UNMEASURED
    done = 0
    while one.status == "ok" and one.seconds < limit and done < reader.n_rows:
        until = min(max(FIRST_ROWS, 2 * done), reader.n_rows)
        *_, done = advance_runs([one], reader, done, until, BLOCK_ROWS, points, Reporter("", done))
        before, found = found, Timing(max(int(one.totals[0]), 1), one.seconds)
    if not open_ended or before.seconds <= 0.0 or found.rounds <= before.rounds:
        return found
    power = math.log(found.seconds / before.seconds) / math.log(found.rounds / before.rounds)
    return found._replace(power=min(max(power, 1.0), MOST_POWER))


def known_timings(runs: Iterable[Run]) -> dict[str, Timing]:
    """What was measured before, by `timing_key`."""
    files = {timing_key(run): _file(timing_key(run)) for run in runs}
    return {
        key: Timing(*json.loads(file.read_text())) for key, file in files.items() if file.exists()
    }


def remember(key: str, timing: Timing) -> None:
    """Write what was measured to the cache."""
    write_text(_file(key), json_text(timing))


def _file(key: str) -> Path:
    return private_folder("compiled", code_hash(), "timings") / f"{key}.json"
