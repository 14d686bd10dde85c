"""Learners that need the kernel values of a row with earlier rows, and a shared scan of them.

Runs with the same kernel on the same rows are advanced together, so that work that depends on only
the rows and the kernel is done once. A run by itself has bit-identical results.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from koco_stream.kernels.dictionary import padded
from koco_stream.kernels.earlier_rows import (
    History,
    clear_panel,
    fill_tile,
    give_back,
    panel_of,
    with_room,
)
from koco_stream.learners.kernel.base import KernelLearner
from koco_stream.learners.scan import bound_later
from koco_stream.learners.spec import Public, Shared, StreamSize
from koco_stream.numerics.by_reference import by_reference
from koco_stream.numerics.compiler import inlined
from koco_stream.numerics.instructions.point_panels import BLOCK
from koco_stream.streams.rows import Rows, frozen
from koco_stream.types import Array

# step(params, state, tile, r, first, k_tt, y), forward(params, state, tile, r, first, k_tt),
# look_ahead(params, state, tile, rows)
step = forward = look_ahead = bound_later


def learn_tile(
    params: Any, state: Any, tile: Array, own: Array, first: int, labels: Array, predictions: Array
) -> int:
    """Run a learner over the rows of a tile, filling `predictions` (n,).

    `first` is the number of the tile's first row. Returns the number of rounds done; fewer than n
    if a prediction was not finite.
    """
    p, s = by_reference(params), by_reference(state)
    look_ahead(p, s, tile, labels.size)
    for r in range(labels.size):
        y_hat = step(p, s, tile, r, first, own[r], labels[r])
        predictions[r] = y_hat
        if not math.isfinite(y_hat):
            return r
    return labels.size


def predict_tile(
    params: Any, state: Any, tile: Array, own: Array, first: int, predictions: Array
) -> None:
    """Fill `predictions` (n,) with the next-round prediction for each row of a tile."""
    p, s = by_reference(params), by_reference(state)
    look_ahead(p, s, tile, predictions.size)
    for r in range(predictions.size):
        y_hat = forward(p, s, tile, r, first, own[r])
        predictions[r] = min(max(y_hat, -params.clip), params.clip)


class SharedKernelScan:
    """A scan of a block of rows by several runs that have the same kernel and the same past rows.

    Run i has the learner class `learners[i]`, parameters `params[i]` and state `states[i]`. The
    arrays that the states share get room for the rows if they are learnt from. A run stops when its
    prediction is not finite, or when its step raises an exception, which is then in `failures`
    under its number.
    """

    def __init__(
        self,
        learners: Sequence[Any],
        params: Sequence[Any],
        states: Sequence[Any],
        rows: Rows,
        learning: bool = True,
    ) -> None:
        self.learners, self.params, self.rows, self.learning = learners, params, rows, learning
        self.live, self.failures = [True] * len(states), dict[int, Exception]()
        more = rows.n_rows if learning else 0
        non_zeros = int(rows.indptr[more] - rows.indptr[0])
        self.history: History = with_room(states[0].history, more, non_zeros)
        room = self.history.indptr.size - 1
        self.tile, self.own = np.zeros((max(room, 1), BLOCK)), np.zeros(BLOCK)
        self.coefficients = np.array([padded(s.c, room) for s in states])
        self.sums = np.zeros((len(states), 2, BLOCK))
        self.states = [
            s._replace(history=self.history, c=self.coefficients[i], sums=self.sums[i])
            for i, s in enumerate(states)
        ]

    def advance(self, labels: Array, predictions: Array) -> list[int]:
        """Learn from the rows with `labels` (runs, n), filling `predictions` (runs, n).

        Returns the number of rounds that each run has done.
        """
        done = [0] * len(self.states)
        for these, before in self._tiles():
            for i, learner in enumerate(self.learners):
                if not self.live[i]:
                    continue
                y, y_hat = labels[i, these], predictions[i, these]
                try:
                    self.states[i] = learner.with_room(self.params[i], self.states[i])
                    rounds = learner.compiled(learn_tile, "step", "look_ahead")(
                        self.params[i], self.states[i], self.tile, self.own, before, y, y_hat
                    )
                except Exception as error:  # this run fails, the others continue
                    self.live[i], self.failures[i] = False, error
                    continue
                done[i] += rounds
                self.live[i] = rounds == y_hat.size
        return done

    def expect(self) -> Array:
        """The first run's prediction (n,) for each row, as if it came in the next round.

        State and row history do not change.
        """
        predictions = np.empty(self.rows.n_rows)
        predict = self.learners[0].compiled(predict_tile, "forward", "look_ahead")
        state = self.learners[0].with_room(self.params[0], self.states[0])
        for these, before in self._tiles():
            predict(self.params[0], state, self.tile, self.own, before, predictions[these])
        return predictions

    def _tiles(self) -> Iterator[tuple[slice, int]]:
        """Compute the kernel values of sixteen rows at a time; yields rows and the number before
        them.

        The kernel values are in the tile. When learning, the rows are added to the history.
        """
        panel, rows = panel_of(self.rows), self.rows
        for first in range(0, rows.n_rows, BLOCK):
            these, before = slice(first, first + BLOCK), int(self.history.n)
            running = zip(self.learners, self.states, self.live, strict=True)
            needed = min((which.first_row(s) for which, s, live in running if live), default=before)
            fill_tile(
                self.params[0].kernel,
                self.history,
                panel,
                rows,
                first,
                self.learning,
                needed - needed % 2,
                self.tile,
                self.own,
                self.coefficients,
                self.sums,
            )
            yield these, before
        clear_panel(panel)
        give_back(panel)


class SharedKernelLearner(KernelLearner):
    """A learner that reads kernel values from a tile shared with other runs of the same kernel.

    Instead of a row, its `step` and `forward` take the tile, a column of it, the number of the
    tile's first row, and k(x, x): see `koco_stream.kernels.earlier_rows`. Its state has the fields
    `history`, `c` and `sums`.
    """

    grows = True

    @staticmethod
    def first_row(state: Any, /) -> int:
        """The number of the earliest row whose kernel values the next round needs."""
        return 0

    @staticmethod
    @inlined
    def look_ahead(params: Any, state: Any, tile: Array, rows: int) -> None:
        """Compute what is faster for all rows of a tile at once; nothing by default."""

    @classmethod
    def shared(cls, q: Public, size: StreamSize) -> Shared:
        """The history of rows, whose arrays double when full, and a tile."""
        key = (q["kernel"], q.get("bandwidth"), q.get("degree"), q["fit_intercept"])
        return Shared(key, int(2 * size.rounds * (3 + 1.5 * size.s) + 16 * size.rounds))

    @staticmethod
    def with_room(params: Any, state: Any, /) -> Any:
        """The same state with room for one more tile, and for the points that join from it."""
        return state

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """Learn from a block of rows by a shared scan with one run; see `Algorithm.advance`."""
        scan = SharedKernelScan([cls], [params], [state], rows)
        done = scan.advance(labels.reshape(1, -1), predictions.reshape(1, -1))[0]
        if scan.failures:
            raise scan.failures[0]
        return scan.states[0], done

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """The prediction (n,) for each row, as if it came in the next round; nothing is learnt."""
        return SharedKernelScan([cls], [params], [state], rows, learning=False).expect()

    @staticmethod
    def advance_states(
        learners: Sequence[Any],
        params: Sequence[Any],
        states: Sequence[Any],
        rows: Rows,
        labels: Array,
        predictions: Array,
    ) -> tuple[list[Any], list[int], dict[int, Exception]]:
        """Advance states over a block of rows, with kernel values computed once.

        See `advance_each`.
        The learners have one kernel and the same past rows.
        """
        scan = SharedKernelScan(learners, params, states, rows)
        done = scan.advance(frozen(labels, np.float64), predictions)
        return scan.states, done, scan.failures
