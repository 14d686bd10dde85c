"""Runs that read kernel values between the stream's rows, advanced together: what depends on the
stream and the kernel alone is done once.

One run alone is a cohort of one: its numbers are the same, bit for bit.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from koco_stream.kernels.dictionary import Points
from koco_stream.kernels.earlier_rows import (
    History,
    block_of,
    clear_block,
    fill_tile,
    give_back,
    load_block,
    remember,
    with_room,
)
from koco_stream.learners.scan import code_name
from koco_stream.numerics.compiler import jit_with
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


def step(params: Any, state: Any, tile: Array, r: int, block: int, k_tt: float, y: float) -> float:
    """Stands for a learner's step; `rounds_of` binds the name to one."""
    raise AssertionError("rounds_of binds this name")


def tile_rounds(
    params: Any, state: Any, tile: Array, own: Array, block: int, labels: Array, predictions: Array
) -> int:
    """The rounds of a block, in order; as for `scan.scan_rows`, fewer if a prediction was not
    finite.
    """
    for r in range(labels.size):
        y_hat = step(params, state, tile, r, block, own[r], labels[r])
        predictions[r] = y_hat
        if not math.isfinite(y_hat):
            return r
    return labels.size


def forward(params: Any, state: Any, tile: Array, r: int, block: int, k_tt: float) -> float:
    """Stands for a learner's `forward`; `expectations_of` binds the name to one."""
    raise AssertionError("expectations_of binds this name")


def tile_expectations(
    params: Any, state: Any, tile: Array, own: Array, block: int, predictions: Array
) -> None:
    """What the learner would predict next for each row of a block; learns nothing."""
    for r in range(predictions.size):
        y_hat = forward(params, state, tile, r, block, own[r])
        predictions[r] = min(max(y_hat, -params.clip), params.clip)


@cache
def rounds_of(learner: Any) -> Callable[..., int]:
    """The rounds of a learner's class."""
    return jit_with(tile_rounds, f"rounds_{code_name(learner)}", step=learner.step)


@cache
def expectations_of(learner: Any) -> Callable[..., None]:
    """The predictions without learning of a learner's class."""
    return jit_with(tile_expectations, f"expect_{code_name(learner)}", forward=learner.forward)


class SharedKernelScan:
    """Runs of the same kernel on the same rows; run i has `learners[i]`, a class, `params[i]` and
    `states[i]`.

    `advance` changes `states`; a run whose prediction was not finite, or whose step raised what
    `failures` then holds by its number, learns nothing more.
    """

    def __init__(
        self, learners: Sequence[Any], params: Sequence[Any], states: Sequence[Any]
    ) -> None:
        self.learners, self.params, self.states = list(learners), list(params), list(states)
        self.live = [True] * len(self.states)
        self.failures: dict[int, Exception] = {}
        self.history: History = self.states[0].history
        self.coefficients = np.zeros((len(self.states), 0))
        self.sums = np.zeros((len(self.states), 2, BLOCK))
        self.tile = np.zeros((0, BLOCK))

    def advance(self, rows: Rows, labels: Array, predictions: Array) -> list[int]:
        """Run all over a block of rows, filling `predictions` (runs, n); returns the rounds that
        each has done.
        """
        self._make_room(rows)
        done = [0] * len(self.states)
        block, own = block_of(rows)
        for first in range(0, rows.n_rows, BLOCK):
            count = min(BLOCK, rows.n_rows - first)
            known = int(self.history.n)
            load_block(
                block, rows.indptr, rows.indices, rows.index_stride, rows.values, first, count
            )
            remember(self.history, rows.indptr, rows.indices, rows.index_stride, rows.values, block)
            self._fill(block, own, known)
            for i, learner in enumerate(self.learners):
                if not self.live[i]:
                    continue
                part = predictions[i, first : first + count]
                try:
                    self.states[i] = learner.with_room(self.params[i], self.states[i])
                    rounds = rounds_of(learner)(
                        self.params[i],
                        self.states[i],
                        self.tile,
                        own,
                        known,
                        labels[first : first + count],
                        part,
                    )
                except Exception as error:  # this run's own: the others go on
                    self.live[i], self.failures[i] = False, error
                    continue
                done[i] += rounds
                self.live[i] = rounds == count
            clear_block(block, rows.indptr, rows.indices, rows.index_stride)
        give_back(block)
        return done

    def expect(self, rows: Rows) -> Array:
        """What the first run would predict next for each row, (n,). Nothing is learnt, and nothing
        remembered.
        """
        predictions = np.empty(rows.n_rows)
        self._make_room(rows, 0)
        block, own = block_of(rows)
        for first in range(0, rows.n_rows, BLOCK):
            count = min(BLOCK, rows.n_rows - first)
            load_block(
                block, rows.indptr, rows.indices, rows.index_stride, rows.values, first, count
            )
            self._fill(block, own, int(self.history.n))
            expectations_of(self.learners[0])(
                self.params[0],
                self.states[0],
                self.tile,
                own,
                int(self.history.n),
                predictions[first : first + count],
            )
            clear_block(block, rows.indptr, rows.indices, rows.index_stride)
        give_back(block)
        return predictions

    def _fill(self, block: Points, own: Array, known: int) -> None:
        first = min(
            (
                learner.first_row(s)
                for learner, s, live in zip(self.learners, self.states, self.live, strict=True)
                if live
            ),
            default=known,
        )
        kernel = self.params[0].kernel
        fill_tile(
            kernel,
            self.history,
            block,
            first - first % 2,
            known,
            self.tile,
            own,
            self.coefficients,
            self.sums,
        )

    def _make_room(self, rows: Rows, more: int | None = None) -> None:
        """Room for these rows in the history, the coefficients and the tile; the states hold views
        of what all share.
        """
        more = rows.n_rows if more is None else more
        self.history = with_room(
            self.history, more, int(rows.indptr[-1] - rows.indptr[0]) if more else 0
        )
        room = self.history.norms.size
        if self.tile.shape[0] < room or room == 0:
            self.tile = np.zeros((max(room, 1), BLOCK))
        coefficients = np.zeros((len(self.states), room))
        for i, state in enumerate(self.states):
            coefficients[i, : min(state.c.size, room)] = state.c[:room]
        if self.coefficients.shape[1] != room or any(s.c.base is None for s in self.states):
            self.coefficients = coefficients
        self.sums = np.zeros((len(self.states), 2, BLOCK))
        self.states = [
            s._replace(history=self.history, c=self.coefficients[i], sums=self.sums[i])
            for i, s in enumerate(self.states)
        ]
