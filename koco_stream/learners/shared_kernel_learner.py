"""Learners whose rounds need kernel values of a row with earlier ones, which runs can share."""

from typing import Any

from koco_stream.learners.base import Learner
from koco_stream.learners.shared_kernel_scan import SharedKernelScan
from koco_stream.learners.spec import Public, Shared, StreamSize
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


class SharedKernelLearner(Learner):
    """A learner that reads its kernel values from a tile, which runs with the same kernel share.

    Its `step` and `forward` have the tile, a column of it, the block's first row and k(x, x) in
    place of a row: see `koco_stream.kernels.earlier_rows`. Its state has `history`, `c` and `sums`.
    """

    grows = True

    @staticmethod
    def first_row(state: Any, /) -> int:
        """The first row of the stream whose kernel values the next round needs."""
        return 0

    @staticmethod
    def with_room(params: Any, state: Any, /) -> Any:
        """The same state with room for the points of another block."""
        return state

    @classmethod
    def advance(
        cls, params: Any, state: Any, rows: Rows, labels: Array, predictions: Array
    ) -> tuple[Any, int]:
        """As `Learner.advance`: a shared scan of one run."""
        scan = SharedKernelScan([cls], [params], [state])
        done = scan.advance(rows, labels, predictions.reshape(1, -1))[0]
        if scan.failures:
            raise scan.failures[0]
        return scan.states[0], done

    @classmethod
    def expect(cls, params: Any, state: Any, rows: Rows) -> Array:
        """As `Learner.expect`."""
        return SharedKernelScan([cls], [params], [state]).expect(rows)


def kernel_values(q: Public, size: StreamSize, earlier: float) -> Shared:
    """What runs share that read the kernel values of a row with so many `earlier` ones.

    That is the rows seen, whose room doubles when it is full, and a tile.
    """
    key = (q["kernel"], q.get("bandwidth"), q.get("degree"), q["fit_intercept"])
    floats = int(2 * size.rounds * (3 + 1.5 * size.s) + 16 * size.rounds)
    return Shared(key, earlier * (1.5 + 0.1 * size.s), floats)
