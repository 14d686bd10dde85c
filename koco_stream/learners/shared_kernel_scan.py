"""Learners that need the kernel values of a row with earlier rows, and a shared scan of them.

Runs with the same kernel on the same rows are advanced side by side, so that work that depends on
the rows and the kernel alone is done once. A run by itself has bit-identical results.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

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
from koco_stream.learners.base import Learner
from koco_stream.learners.scan import bound_later
from koco_stream.learners.spec import Public, Shared, StreamSize
from koco_stream.numerics.llvm.point_panels import BLOCK
from koco_stream.streams.rows import Rows
from koco_stream.types import Array

# step(params, state, tile, r, block, k_tt, y), forward(params, state, tile, r, block, k_tt)
step = forward = bound_later


def learn_block(
    params: Any, state: Any, tile: Array, own: Array, block: int, labels: Array, predictions: Array
) -> int:
    """Run a learner over a block of rows, filling `predictions` (n,).

    `block` is the number of the block's first row. Returns the number of rounds done; fewer than n
    if a prediction was not finite.
    """
    for r in range(labels.size):
        y_hat = step(params, state, tile, r, block, own[r], labels[r])
        predictions[r] = y_hat
        if not math.isfinite(y_hat):
            return r
    return labels.size


def predict_block(
    params: Any, state: Any, tile: Array, own: Array, block: int, predictions: Array
) -> None:
    """Fill `predictions` (n,) with the next-round prediction for each row of a block."""
    for r in range(predictions.size):
        y_hat = forward(params, state, tile, r, block, own[r])
        predictions[r] = min(max(y_hat, -params.clip), params.clip)


class SharedKernelScan:
    """A scan of several runs that have the same kernel and read the same rows.

    Run i has the learner class `learners[i]`, parameters `params[i]` and state `states[i]`.
    `advance` updates `states`. A run stops when its prediction is not finite, or when its step
    raises an exception, which is then in `failures` under its number.
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
        self.own = np.zeros(BLOCK)

    def advance(self, rows: Rows, labels: Array, predictions: Array) -> list[int]:
        """Advance all runs over a block of rows, filling `predictions` (runs, n).

        Returns the number of rounds that each run has done.
        """
        self._make_room(rows, rows.n_rows)
        done = [0] * len(self.states)
        for these, before in self._tiles(rows, learning=True):
            for i, learner in enumerate(self.learners):
                if not self.live[i]:
                    continue
                y_hat = predictions[i, these]
                try:
                    self.states[i] = learner.with_room(self.params[i], self.states[i])
                    rounds = learner.compiled(learn_block, "step")(
                        self.params[i],
                        self.states[i],
                        self.tile,
                        self.own,
                        before,
                        labels[these],
                        y_hat,
                    )
                except Exception as error:  # this run fails, the others continue
                    self.live[i], self.failures[i] = False, error
                    continue
                done[i] += rounds
                self.live[i] = rounds == y_hat.size
        return done

    def expect(self, rows: Rows) -> Array:
        """The first run's prediction (n,) for each row, as if it came in the next round.

        State and row history do not change.
        """
        predictions = np.empty(rows.n_rows)
        self._make_room(rows, 0)
        predict = self.learners[0].compiled(predict_block, "forward")
        for these, before in self._tiles(rows, learning=False):
            y_hat = predictions[these]
            predict(self.params[0], self.states[0], self.tile, self.own, before, y_hat)
        return predictions

    def _tiles(self, rows: Rows, learning: bool) -> Iterator[tuple[slice, int]]:
        """Compute the kernel values of sixteen rows at a time; yields rows and the number before
        them.

        The kernel values are in the tile. When learning, the rows are added to the history.
        """
        block = block_of(rows)
        for first in range(0, rows.n_rows, BLOCK):
            these, before = slice(first, first + BLOCK), int(self.history.n)
            load_block(block, rows, first, min(first + BLOCK, rows.n_rows))
            if learning:
                remember(self.history, rows, block)
            running = zip(self.learners, self.states, self.live, strict=True)
            needed = min((which.first_row(s) for which, s, live in running if live), default=before)
            fill_tile(
                self.params[0].kernel,
                self.history,
                block,
                needed - needed % 2,
                before,
                self.tile,
                self.own,
                self.coefficients,
                self.sums,
            )
            yield these, before
            clear_block(block, rows)
        give_back(block)

    def _make_room(self, rows: Rows, more: int) -> None:
        """Make room for `more` rows in the history, coefficients and tile that the states share."""
        non_zeros = int(rows.indptr[more] - rows.indptr[0])
        self.history = with_room(self.history, more, non_zeros)
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


class SharedKernelLearner(Learner):
    """A learner that reads kernel values from a tile shared with other runs of the same kernel.

    Instead of a row, its `step` and `forward` take the tile, a column of it, the number of the
    block's first row, and k(x, x): see `koco_stream.kernels.earlier_rows`. Its state has the fields
    `history`, `c` and `sums`.
    """

    grows = True

    @staticmethod
    def first_row(state: Any, /) -> int:
        """The number of the earliest row whose kernel values the next round needs."""
        return 0

    @staticmethod
    def with_room(params: Any, state: Any, /) -> Any:
        """The same state with room for the points of one more block."""
        return state

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """Learn from a block of rows by a shared scan with one run; see `Algorithm.advance`."""
        scan = SharedKernelScan([cls], [params], [state])
        done = scan.advance(rows, labels, predictions.reshape(1, -1))[0]
        if scan.failures:
            raise scan.failures[0]
        return scan.states[0], done

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """The next-round prediction (n,) for each row; see `Algorithm.expect`."""
        return SharedKernelScan([cls], [params], [state]).expect(rows)


def kernel_values(q: Public, size: StreamSize, earlier: float) -> Shared:
    """The shared cost of the kernel values of each row with `earlier` past rows.

    It covers the history of rows, whose arrays double when full, and a tile.
    """
    key = (q["kernel"], q.get("bandwidth"), q.get("degree"), q["fit_intercept"])
    floats = int(2 * size.rounds * (3 + 1.5 * size.s) + 16 * size.rounds)
    return Shared(key, earlier * (1.5 + 0.1 * size.s), floats)
