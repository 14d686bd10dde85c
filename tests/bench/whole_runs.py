"""Whole runs of OjaSON on 20news, from the first row: how their time follows the sketch's size, and
the longest wait.
"""

import time
from statistics import median

import numpy as np

from koco_stream.learners import learner_named
from koco_stream.learners.scan import scan_rows
from koco_stream.streams.rows import Rows, frozen
from tests.bench.data import Stream
from tests.bench.growth import rows_of
from tests.bench.measure import show

SIZES = (10, 20, 40, 64)
STARTS = ("gradients", "random")
WIDE, NON_ZEROS = 10**6, 100


def whole_runs(stream: Stream, repetitions: int) -> dict[str, dict[str, float]]:
    """Measure and print. Returns, by start, each size's time over what m² + ms says, that of m = 10
    being 1, and `longest`, the longest wait in ms at d = 10⁶ and m = 64.
    """
    s = stream.rows.values.size / stream.n
    labels = frozen(stream.y, np.float64)
    results, table = {}, []
    for start in STARTS:
        taken: dict[int, list[float]] = {m: [] for m in SIZES}
        for _ in range(repetitions):
            for m in SIZES:
                taken[m].append(sum(pieces(m, start, stream.rows, labels, stream.n)))
        us = {m: 1e6 / stream.n * median(taken[m]) for m in SIZES}
        says = {m: (m * m + m * s) / (100 + 10 * s) for m in SIZES}
        found = {f"m = {m}": us[m] / us[10] / says[m] for m in SIZES}
        found["longest"] = 1e3 * longest(start)
        results[start] = found
        table += [[start, m, us[m], us[m] / us[10], says[m], found[f"m = {m}"]] for m in SIZES]
        table.append([start, "64, d = 10^6", "longest wait, ms", found["longest"], "", ""])
    show(
        f"{stream.name}: whole runs of OjaSON, medians of {repetitions}",
        ["start", "m", "µs/round", "times m = 10", "m² + ms says", "ratio"],
        table,
    )
    return results


def longest(start: str) -> float:
    """The longest wait for a round, in seconds, of a run with m = 64 over random rows. The first
    rounds wait for the system, which gives memory in pages.
    """
    draw = np.random.default_rng(0)
    rows = rows_of(4000, NON_ZEROS, WIDE, draw)
    labels = frozen(np.where(draw.random(rows.n_rows) < 0.5, -1.0, 1.0), np.float64)
    pieces(64, start, rows, labels, 1)  # compiled
    return max(pieces(64, start, rows, labels, 1))


def pieces(m: int, start: str, rows: Rows, labels: np.ndarray, size: int) -> list[float]:
    """The seconds of a run from its first row: of the start, then of so many rounds at a time."""
    learner = learner_named("OjaSON")
    params = learner.to_params(learner.complete({"sketch_size": m, "sketch_start": start}))
    scan, out, seconds = learner.compiled(scan_rows, "step", "full"), np.empty(size), []
    begun = time.perf_counter()
    state = learner.init(params, rows.n_features, 0)
    seconds.append(time.perf_counter() - begun)
    for first in range(0, rows.n_rows, size):
        some = slice(first, min(first + size, rows.n_rows))
        block = rows._replace(indptr=rows.indptr[some.start : some.stop + 1])
        begun = time.perf_counter()
        done = scan(params, state, block, labels[some], out[: some.stop - some.start])
        seconds.append(time.perf_counter() - begun)
        assert done == some.stop - some.start
    return seconds
