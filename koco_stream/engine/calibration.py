"""Scan speed relative to this machine's current speed.

A learner's scan is timed next to a fixed compiled loop. A slower or busy processor slows both down,
so the ratio of the two times depends on the code more than the seconds do.
"""

import time
from dataclasses import replace
from functools import cache

import numpy as np

from koco_stream.io.paths import AnyPath
from koco_stream.learners.saved import state_arrays
from koco_stream.numerics.compiler import jit
from koco_stream.runs.measured import NOTHING_MORE
from koco_stream.runs.run import Run, RunState, Seen
from koco_stream.streams.block_labels import BlockLabels
from koco_stream.streams.reader import Block, StreamReader
from koco_stream.streams.rows import with_intercept
from koco_stream.types import Array

VERSION = 1  # of the loop and its measurement: ratios of different versions are not comparable
LOOP_ROWS, LOOP_FEATURES = 16_384, 24
FIRST_ROWS = 512
PROBE_SECONDS = 0.1  # rows are added until a scan takes this long, or the stream ends
TURN_SECONDS = 0.05  # scans are repeated for this long in each turn
TURNS = 7
LOOPS = 8  # calibration loops in each turn
LARGEST_KEPT = 100_000  # bytes: larger states always begin at a page boundary


@jit
def calibration_loop(weights: Array, values: Array) -> float:
    """A fixed amount of predict-and-correct work, like a learner's, as the unit of scan time.

    `weights` (d,) is updated; `values` (n, d) is larger than the nearest cache.
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
    """The fixed input rows of the calibration loop, (LOOP_ROWS, LOOP_FEATURES)."""
    numbers = np.arange(LOOP_ROWS * LOOP_FEATURES, dtype=np.float64).reshape(LOOP_ROWS, -1)
    return np.cos(numbers) / 7.0


def calibrate() -> float:
    """Run the calibration loop once; returns its thread CPU time in seconds, without waiting."""
    weights, values = np.zeros(LOOP_FEATURES), calibration_values()
    begun = time.thread_time()
    calibration_loop(weights, values)
    return time.thread_time() - begun


class Probe:
    """The first rounds of a run, held in memory so that their scan can be timed repeatedly: `rows`,
    by default as many as take a tenth of a second. Raises `WrongInput` as `StreamReader` does.
    """

    def __init__(self, store: AnyPath, run: Run, rows: int | None = None) -> None:
        self.run, self.reader = run, StreamReader(store, run.stream)
        self.rows = min(rows or FIRST_ROWS, self.reader.n_rows)
        calibrate()
        self._read()
        self.scan()  # the first scan compiles the learner's code, and is not timed
        while rows is None and self.rows < self.reader.n_rows and self.scan() < PROBE_SECONDS:
            self.rows = min(2 * self.rows, self.reader.n_rows)
            self._read()

    def _read(self) -> None:
        widen = self.run.adds_intercept
        self.blocks = [
            Block(
                with_intercept(block.rows) if widen else block.rows,
                BlockLabels.of(block.labels, self.reader).learnt[0],
            )
            for block in self.reader.blocks(stop=self.rows)
        ]

    def scan(self, kept: list[object] | None = None) -> float:
        """Scan the rows once from the initial state; returns the thread CPU time in seconds.

        The final state is appended to `kept`, which forces the next one to another address.
        """
        run = replace(self.run, measured=NOTHING_MORE)
        seen = Seen(self.reader.manifest.n_features, classes=(0.0,))
        started = RunState.start(run, seen, np.zeros(0))
        (state,) = started.states
        learner, spent = self.run.learner_class, 0.0
        for block in self.blocks:
            predictions = np.empty(block.labels.size)
            begun = time.thread_time()
            state, _ = learner.advance(started.params, state, block.rows, block.labels, predictions)
            spent += time.thread_time() - begun
        size = sum(array.nbytes for array in state_arrays(state).values())
        if kept is not None and size < LARGEST_KEPT:
            kept += [state, np.empty(16 * (1 + len(kept) % 7), np.uint8)]
        return spent

    def ratio(self) -> float:
        """The time of a scan divided by the time of the calibration loop.

        Each is the minimum over several repetitions: other load makes both longer, never shorter.
        The memory address of a state changes the time of a short round by up to a third, so scans
        use several, unless the state is so large that it is always page-aligned.
        """
        loops, scans = list[float](), list[float]()
        for _ in range(TURNS):
            loops += [calibrate() for _ in range(LOOPS)]
            until, kept = time.perf_counter() + TURN_SECONDS, list[object]()
            while time.perf_counter() < until:
                scans.append(self.scan(kept))
        return min(scans) / min(loops)
