"""Compile what a sweep needs before its workers start: `python -m koco_stream.warm '[["OjaSON", {...}, "float64"], …]'`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from koco_stream.comparator import add_squares, normal_rows, scaled_norm2
from koco_stream.learners import Public, learner_named
from koco_stream.rows import dense_rows, frozen
from koco_stream.runs import Run
from koco_stream.scan import advance, tally

Needed = tuple[str, Public, str]


def needed(runs: Iterable[Run], value_types: dict[str, str]) -> list[Needed]:
    """One example of everything that must be compiled for these runs; `value_types` is by dataset hash."""
    kinds: dict[tuple[object, ...], Needed] = {}
    for run in runs:
        declared = learner_named(run.learner)
        params = declared.to_params(declared.complete(run.params))
        shape = tuple(len(p) for p in params if isinstance(p, tuple))
        value_type = value_types[run.stream.dataset_hash]
        kinds.setdefault((run.learner, shape, value_type), (run.learner, run.params, value_type))
    return list(kinds.values())


def warm(kinds: Sequence[Needed]) -> None:
    """Compile the scans (or read them from the cache) by running each over a row of one."""
    for learner, public, value_type in kinds:
        declared = learner_named(learner)
        params = declared.to_params(declared.complete(public))
        rows = dense_rows(np.ones((1, 1), value_type))
        advance(learner, params, declared.module.init(params, 1, 0), rows, frozen([1.0], np.float64), np.zeros(1))
    for value_type in {value_type for _, _, value_type in kinds}:
        rows = dense_rows(np.ones((1, 1), value_type))
        add_squares(rows.indptr, rows.indices, 0, rows.values, np.zeros(1))
        normal_rows(
            rows.indptr, rows.indices, 0, rows.values, frozen([1.0], np.float64), False, True, np.zeros(1), np.zeros(1), np.zeros(2)
        )
    scaled_norm2(np.zeros(1), np.ones(1))
    tally(0, np.zeros(0), frozen([], np.float64), 0, np.zeros(3), np.zeros(1), 0, np.zeros((1, 3)))


if __name__ == "__main__":
    warm([(name, public, value_type) for name, public, value_type in json.loads(sys.argv[1])])
