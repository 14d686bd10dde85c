"""How fast this machine is just now: a fixed compiled loop, and scans of a learner timed beside it.

The speed of a scan is given as a ratio to the loop's time. A slower processor, a lower clock or a
busy neighbour slows both down, so that the ratio says more of the code than the seconds do.
"""

import time
from functools import cache

import numpy as np

from koco_stream.io.paths import AnyPath
from koco_stream.learners import learner_named
from koco_stream.learners.saved import state_arrays
from koco_stream.numerics.compiler import jit
from koco_stream.runs.run import Run, RunState
from koco_stream.streams.reader import Block, StreamReader
from koco_stream.streams.rows import with_intercept
from koco_stream.types import Array

VERSION = 2  # of the loop and of how it is measured: ratios to another one cannot be compared
LOOP_ROWS, LOOP_FEATURES = 16_384, 24
FIRST_ROWS = 512
PROBE_SECONDS = 0.1  # rows are taken until a scan takes so long, or the stream ends
TURN_SECONDS = 0.05  # scans of a turn: as many as take so long
TURNS = 7
LOOPS = 8  # in a turn
LARGEST_KEPT = 100_000  # bytes


@jit
def calibration_loop(weights: Array, values: Array) -> float:
    """Predict and correct, as a learner does: `weights` (d,), `values` (n, d), which are more than
    the nearest cache holds.
    """
    total = 0.0
    for t in range(values.shape[0]):
        y_hat = 0.0
        for j in range(weights.size):
            y_hat += weights[j] * values[t, j]
        error = y_hat - (1.0 if t % 3 == 0 else -1.0)
        total += error * error
        step = 0.01 * error / (1.0 + 0.001 * t)
        for j in range(weights.size):
            weights[j] -= step * values[t, j]
    return total


@cache
def calibration_values() -> Array:
    """The loop's rows: always the same."""
    return (
        np.cos(np.arange(LOOP_ROWS * LOOP_FEATURES, dtype=np.float64)).reshape(
            LOOP_ROWS, LOOP_FEATURES
        )
        / 7.0
    )


def calibrate() -> float:
    """Seconds that the loop takes, of this thread's time on a processor: while others have it the
    clock stands.
    """
    weights, values = np.zeros(LOOP_FEATURES), calibration_values()
    begun = time.thread_time()
    calibration_loop(weights, values)
    return time.thread_time() - begun


class Probe:
    """The first `rows` rounds of a run, to be timed again and again; if that is None, as many as
    take a tenth of a second, and `rows` says how many. Raises as `StreamReader` does.
    """

    def __init__(self, store: AnyPath, run: Run, rows: int | None = None) -> None:
        self.run, self.reader = run, StreamReader(store, run.stream)
        self.rows = min(rows or FIRST_ROWS, self.reader.n_rows)
        calibrate()
        self._read()
        self.scan()  # what must be compiled is compiled now
        while rows is None and self.rows < self.reader.n_rows and self.scan() < PROBE_SECONDS:
            self.rows = min(2 * self.rows, self.reader.n_rows)
            self._read()

    def _read(self) -> None:
        widen = bool(self.run.params["fit_intercept"])
        self.blocks = [
            Block(with_intercept(block.rows), block.labels) if widen else block
            for block in self.reader.blocks(stop=self.rows)
        ]

    def scan(self, kept: list[object] | None = None) -> float:
        """Seconds of one scan over the rows, from the first state on; measured as the loop is. A
        list of what is `kept` gets the state: the next one is then in another place.
        """
        run_state = RunState.start(self.run, self.reader.manifest.n_features, np.zeros(0))
        learner, spent = learner_named(self.run.learner), 0.0
        for block in self.blocks:
            predictions = np.empty(block.labels.size)
            begun = time.thread_time()
            run_state.state, _ = learner.advance(
                run_state.params, run_state.state, block.rows, block.labels, predictions
            )
            spent += time.thread_time() - begun
        if (
            kept is not None
            and sum(array.nbytes for array in state_arrays(run_state.state).values()) < LARGEST_KEPT
        ):
            kept += [run_state.state, np.empty(16 * (1 + len(kept) % 7), np.uint8)]
        return spent

    def ratio(self) -> float:
        """Seconds of a scan over seconds of the loop beside it, each the shortest of several turns:
        whatever else the machine does makes both longer, never shorter. Where a state lies in
        memory is worth up to a third of a short round's time and differs from process to process:
        each scan of a turn therefore has another place, unless states are so large that they always
        begin with a page.
        """
        loops: list[float] = []
        scans: list[float] = []
        for _ in range(TURNS):
            loops += [calibrate() for _ in range(LOOPS)]
            until, kept = time.perf_counter() + TURN_SECONDS, list[object]()
            scans.append(self.scan(kept))
            while time.perf_counter() < until:
                scans.append(self.scan(kept))
        return min(scans) / min(loops)
