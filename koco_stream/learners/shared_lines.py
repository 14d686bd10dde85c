"""States of one learner that lie side by side, so that one pass over a row advances all of them.

Several states of a first-order learner, as those of a sweep's step sizes or of a run's classes, lie
in one table: number c of a feature, in state k of W, is at [feature, c·W + k]. A state is a view of
its column. So it is read, saved and restored as one that has its own array, which is contiguous.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from koco_stream.learners.base import Learner
from koco_stream.learners.scan import bound_later
from koco_stream.learners.spec import Cost, Public, Shared, StreamSize
from koco_stream.numerics.by_reference import by_reference
from koco_stream.numerics.llvm.feature_lines import aligned_zeros
from koco_stream.streams.rows import Rows, frozen, row
from koco_stream.types import Array

WIDTHS = (8, 4)  # states in a table: a line of the processor's cache, or half of one
FEWEST = WIDTHS[-1]
LONGEST_BLOCK = 65536  # rows that the engine reads at a time at the most

# lines(params, table, shape, idx, val, y, live, y_hat, change, following)
lines = bound_later


def scan_lines(
    params: Any,
    table: Array,
    shape: Any,
    rows: Rows,
    numbers: Array,
    columns: Array,
    labels: Array,
    predictions: Array,
    live: Array,
    scratch: Array,
    done: Array,
) -> None:
    """Advance states of a table over rows, each as `scan_rows` does.

    State `numbers[i]` is in column `columns[i]`. It learns its line of `labels` (k, n), fills that
    of `predictions` (k, n) and counts its rounds in `done[i]`. It stops when its prediction is not
    finite: that round is the last, and not counted. `live` (W,) marks the columns of states that
    have not stopped. The tuple `shape` is as long as there are columns.
    """
    p, y, y_hat, change = by_reference(params), scratch[0], scratch[1], scratch[2]
    for t in range(labels.shape[1]):
        idx, val = row(rows, t)
        # Those of dense rows are the same, and in the cache.
        scattered = rows.index_stride > 0 and t + 1 < labels.shape[1]
        following = row(rows, t + 1)[0] if scattered else idx[:0]
        for i in range(columns.size):
            y[columns[i]] = labels[numbers[i], t]
        lines(p, table, shape, idx, val, y, live, y_hat, change, following)
        running = False
        for i in range(columns.size):
            k = columns[i]
            if live[k]:
                predictions[numbers[i], t] = y_hat[k]
                live[k] = math.isfinite(y_hat[k])
                done[i] += live[k]
                running |= live[k]
        if not running:
            return


class SharedLineLearner(Learner):
    """A learner whose states can lie side by side. A state is one array, which starts as zeros.

    The compiled function `lines(params, table, shape, idx, val, y, live, y_hat, change, following)`
    is a round of all states of a table. The length of the tuple `shape` is their number W. `params`
    has arrays (W,) in place of numbers; `y` and `live` are arrays (W,), also `y_hat`, which is
    filled, and `change`, which is scratch. A state that is not live does not change. Lines of the
    features `following` are fetched for the next round. `own_share` is about the time of a state in
    a full table, relative to that of a state by itself.
    """

    lines: ClassVar[Callable[..., None]]
    own_share: ClassVar[float]

    @classmethod
    def cost(cls, q: Public, size: StreamSize) -> Cost:
        """The approximate cost of a run: of its time, `own_share` is its own in a full table.

        The rest is counted once in a cohort, as are the labels and predictions of a table.
        """
        alone = super().cost(q, size)
        if not shares_lines(cls):
            return alone
        own, key = cls.own_share * alone.nanoseconds, ("lines", cls.__name__, q["fit_intercept"])
        held = 2 * WIDTHS[0] * min(size.rounds, LONGEST_BLOCK)
        return Cost(alone.floats, own, Shared(key, alone.nanoseconds - own, held))


def shares_lines(learner: Any) -> bool:
    """Whether states of this learner may lie side by side. Those of a subclass may not: it may have
    a step of its own.
    """
    return issubclass(learner, SharedLineLearner) and "lines" in vars(learner)


def portions(n: int) -> Iterator[slice]:
    """The numbers below n, as many at a time as fill a table; the last ones singly."""
    first = 0
    while first < n:
        size = next((width for width in WIDTHS if width <= n - first), 1)
        yield slice(first, first + size)
        first += size


def laid_side_by_side(states: Sequence[Any]) -> list[Any]:
    """The states of a learner before the first round, of one precision and shape, side by side in
    tables.

    Those that do not fill a table stay as they are. A table has no empty columns, so states take
    the same memory as before.
    """
    laid = list[Any]()
    for these in portions(len(states)):
        some = states[these]
        if len(some) == 1:
            laid += some
            continue
        (array,) = some[0]
        table = aligned_zeros(len(array), len(some) * math.prod(array.shape[1:]), array.dtype)
        columns = table.reshape(*array.shape, len(some))
        laid += [type(state)(columns[..., k]) for k, state in enumerate(some)]
    return laid


class Place(NamedTuple):
    """Where a state lies: in a column of a table, which is in an array with room before it."""

    room: Array
    width: int
    column: int

    @staticmethod
    def of(state: Any) -> "Place | None":
        """The place of a state, which is that of its array; None if the array is by itself.

        It is read from the array's memory, so it is right wherever the state comes from.
        """
        (array,) = state
        if array.flags.c_contiguous:
            return None
        before = array.ctypes.data - array.base.ctypes.data - _skipped(array.base)
        return Place(array.base, array.strides[-1] // array.itemsize, before // array.itemsize)

    def table(self, size: int) -> Array:
        """The table (d, numbers·W), of which a state has `size` numbers in d lines."""
        first = _skipped(self.room) // self.room.itemsize
        return self.room[first : first + size]


def _skipped(room: Array) -> int:
    """The bytes before the table: `aligned_zeros` begins at a line of the processor's cache."""
    return int(-room.ctypes.data % 64)


def tables_of(learner: Any, states: Sequence[Any]) -> tuple[list[list[int]], list[int]]:
    """The numbers of a learner's states in each table, and of those that lie by themselves."""
    if not shares_lines(learner):
        return [], list(range(len(states)))
    tables, single = dict[int, list[int]](), list[int]()
    for i, state in enumerate(states):
        place = Place.of(state)
        (single if place is None else tables.setdefault(id(place.room), [])).append(i)
    return list(tables.values()), single


def advance_table(
    learner: Any,
    params: Sequence[Any],
    states: Sequence[Any],
    numbers: Sequence[int],
    rows: Rows,
    labels: Array,
    predictions: Array,
) -> list[int]:
    """Advance the states with these numbers, of one table, over rows, as `advance_states` does.

    Other states of the table do not change. Returns the rounds that each has done.
    """
    places = [place for i in numbers if (place := Place.of(states[i])) is not None]
    (array,), width = states[numbers[0]], places[0].width
    table = places[0].table(array.size * width).reshape(len(array), -1)
    live, of_column = np.zeros(width, np.bool_), [params[numbers[0]]] * width
    for i, place in zip(numbers, places, strict=True):
        live[place.column], of_column[place.column] = True, params[i]
    arrays = type(of_column[0])(*(np.array(values) for values in zip(*of_column, strict=True)))
    done = np.zeros(len(numbers), np.int64)
    learner.compiled(scan_lines, "lines")(
        arrays,
        table,
        (0,) * width,
        rows,
        np.array(numbers),
        np.array([place.column for place in places]),
        frozen(labels, np.float64),
        predictions,
        live,
        np.zeros((3, width)),
        done,
    )
    return [int(rounds) for rounds in done]
