"""Compile what a sweep needs before its workers start, and time each learner on a few rows.

`python -m koco_stream.engine.warm_up '[[…], …]'` compiles what its argument lists.
"""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from koco_stream.io.cache import private_folder
from koco_stream.io.files import content_hash, json_text, write_text
from koco_stream.learners import Growth, Public, StreamSize, learner_named
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.cost_model import DataSize, Timing
from koco_stream.runs.run import Run
from koco_stream.streams.reader import BlockLabels
from koco_stream.streams.rows import Rows, dense_rows, frozen, sparse_rows
from koco_stream.theory.baselines import add_squares, normal_rows, result_on

TIMED_SECONDS = 0.02
TIMED_ROWS = 256  # in a block
# The most features of timed rows: with more, creating the state would take longer than the timing.
WIDEST = 100_000


class Needed(NamedTuple):
    """One specialization: a learner's parameters, and its rows."""

    learner: str
    params: Public
    value_type: str
    n_features: int
    non_zeros: float

    @property
    def specialization(self) -> tuple[str, tuple[int, ...], str]:
        """What compiled code depends on: learner, sizes of vectors, value type."""
        learner = learner_named(self.learner)
        params = learner.to_params(learner.complete(self.params))
        sizes = tuple(len(value) for value in params if isinstance(value, tuple))
        return self.learner, sizes, self.value_type


def needed(
    runs: Iterable[Run], value_types: dict[str, str], sizes: dict[str, DataSize]
) -> list[Needed]:
    """One example of each specialization; `value_types` and `sizes` are by dataset hash."""
    # The code that is compiled depends on nothing else.
    alike = {
        (
            value_types[run.stream.dataset_hash],
            run.learner,
            run.params.get("kernel"),
            run.params.get("sketch_size"),
        ): run
        for run in runs
        if run.learner_class.numbers == "own"
    }
    kinds = {}
    for (value_type, *_), run in alike.items():
        size = sizes[run.stream.dataset_hash].seen_by(run)
        kind = Needed(run.learner, run.params, value_type, size.d, size.s)
        kinds[kind.specialization] = kind
    return list(kinds.values())


def warm_up(kinds: Sequence[Needed]) -> None:
    """Compile and time each specialization."""
    load(kinds)
    for kind in kinds:
        write_text(_kept(kind), json_text(timed(kind)))


def kept_timing(kind: Needed) -> Timing | None:
    """A specialization's cached timing, if it is compiled."""
    try:
        learner, params, size, seconds = json.loads(_kept(kind).read_text())
        rounds, d, s, growth = size
        grown = None if growth is None else Growth(*map(tuple, growth))
        return Timing(learner, params, StreamSize(rounds, d, s, grown), seconds)
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _kept(kind: Needed) -> Path:
    named = content_hash([*kind.specialization, kind.n_features.bit_length()])
    return private_folder("compiled", code_hash(), "timings") / f"{named}.json"


def load(kinds: Sequence[Needed]) -> None:
    """Compile each specialization by a run on a single row."""
    for kind in kinds:
        learner = learner_named(kind.learner)
        params = learner.to_params(learner.complete(kind.params))
        rows = dense_rows(np.ones((1, 1), kind.value_type))
        learner.advance(
            params,
            learner.initial_state(params, 1, 0, True),
            rows,
            frozen([1.0], np.float64),
            np.zeros(1),
        )
    for value_type in {kind.value_type for kind in kinds}:
        rows = dense_rows(np.ones((1, 1), value_type))
        add_squares(rows.indptr, rows.indices, 0, rows.values, np.zeros(1))
        label, w, out, totals = frozen([1.0], np.float64), np.zeros(1), np.zeros(1), np.zeros(2)
        normal_rows(rows.indptr, rows.indices, 0, rows.values, label, False, True, w, out, totals)
    result_on([BlockLabels(frozen([[1.0]], np.float64))], "squared")


def timed(kind: Needed) -> Timing:
    """Time a learner's scan on synthetic rows like the stream's."""
    learner, d = learner_named(kind.learner), max(1, min(kind.n_features, WIDEST))
    params = learner.to_params(learner.complete(kind.params))
    rows = made_up(d, max(1, min(round(kind.non_zeros), d)), kind.value_type)
    labels = frozen(np.resize([1.0, -1.0], rows.n_rows), np.float64)
    predictions = np.zeros(rows.n_rows)
    state, done, begun = learner.initial_state(params, d, 0, True), 0, time.perf_counter()
    while time.perf_counter() < begun + TIMED_SECONDS:
        state, rounds = learner.advance(params, state, rows, labels, predictions)
        done += rounds
        if rounds < rows.n_rows:
            break  # the learner diverges on these rows
    seconds = time.perf_counter() - begun
    joined, grown = learner.joined(state), None
    if joined is not None and learner.sampling(learner.complete(kind.params)) is not None:
        grown = Growth.measured(joined, done)
    size = StreamSize(done, d, rows.indptr[-1] / rows.n_rows, grown)
    return Timing(kind.learner, kind.params, size, seconds)


def made_up(d: int, s: int, value_type: str) -> Rows:
    """Random rows of unit norm with `s` of `d` features."""
    draw = np.random.default_rng(0)
    values = draw.standard_normal((TIMED_ROWS, s))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    if s == d:
        return dense_rows(values.astype(value_type))
    # The feature numbers increase within each row.
    indices = np.sort(draw.integers(0, d - s + 1, (TIMED_ROWS, s)), axis=1) + np.arange(s)
    indptr = np.arange(0, TIMED_ROWS * s + 1, s, dtype=np.int64)
    return sparse_rows(
        indptr, indices.reshape(-1).astype(np.int32), values.reshape(-1).astype(value_type), d
    )


if __name__ == "__main__":
    warm_up([Needed(*kind) for kind in json.loads(sys.argv[1])])
