"""Compile what a sweep needs before its workers start, and time runs on their first rows.

`python -m koco_stream.engine.warm_up '[[…], …]'` compiles what its argument lists.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from koco_stream.io.cache import private_folder
from koco_stream.io.files import canonical_json, content_hash, write_text
from koco_stream.learners import Public, learner_named
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.run import Run
from koco_stream.streams.reader import Block, BlockLabels
from koco_stream.streams.rows import dense_rows, frozen
from koco_stream.theory.baselines import normal_sums, result_on, square_columns


class Needed(NamedTuple):
    """One specialization: a learner's parameters, and the type of its rows' values."""

    learner: str
    params: Public
    value_type: str

    @property
    def mark(self) -> Path:
        """A file that is there when it is compiled. Its name is of what compiled code depends on:
        learner, sizes of vectors, how rows are fed, and their value type.
        """
        learner = learner_named(self.learner)
        params = learner.to_params(learner.complete(self.params))
        sizes = [len(value) for value in params if isinstance(value, tuple)]
        is_scaled = bool(self.params.get("diagonal"))
        about = [self.learner, sizes, is_scaled, self.value_type, self.params.get("members")]
        return private_folder("compiled", code_hash(), "done") / content_hash(about)

    @property
    def is_compiled(self) -> bool:
        """Whether it is in the compile cache."""
        return self.mark.exists()


def needed(runs: Iterable[Run], value_types: dict[str, str]) -> list[Needed]:
    """One example of each specialization; `value_types` are by dataset hash."""
    # The code that is compiled depends on nothing else.
    alike = {
        (
            value_types[run.stream.dataset_hash],
            run.learner,
            run.params.get("kernel"),
            run.params.get("sketch_size"),
            bool(run.params.get("diagonal")),
            canonical_json(run.params.get("members")),
        ): run
        for run in runs
        if run.is_own
    }
    kinds = [Needed(run.learner, run.params, key[0]) for key, run in alike.items()]
    return list({kind.mark: kind for kind in kinds}.values())


def warm_up(kinds: Sequence[Needed]) -> None:
    """Compile each specialization."""
    load(kinds)
    for kind in kinds:
        write_text(kind.mark, "")


def load(kinds: Sequence[Needed]) -> None:
    """Compile each specialization by a run on a single row."""
    for kind in kinds:
        learner = learner_named(kind.learner)
        params = learner.to_params(learner.complete(kind.params))
        learner.advance(
            params,
            learner.initial_state(params, 1, 0, True),
            dense_rows(np.ones((1, 1), kind.value_type)),
            frozen([1.0], np.float64),
            np.zeros(1),
        )
    for value_type in {kind.value_type for kind in kinds}:
        block = Block(dense_rows(np.ones((1, 1), value_type)), frozen([1.0], np.float64))
        blocks = partial(iter, [block])
        square_columns(blocks, 1, False)
        normal_sums(blocks, False, np.zeros(1), against_labels=True)
    result_on([BlockLabels(frozen([[1.0]], np.float64), np.ones(1, np.int64))], "squared")


if __name__ == "__main__":
    warm_up([Needed(*kind) for kind in json.loads(sys.argv[1])])
