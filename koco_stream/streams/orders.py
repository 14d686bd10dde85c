"""The shuffled orders of a stream: which row of the dataset comes in which round, and which shards
that takes.
"""

from collections.abc import Sequence

import numpy as np

from koco_stream.types import Array

AS_STORED, SHUFFLED, IN_WINDOWS = "as-stored", "shuffled", "shuffled-in-windows"
WINDOW_ROWS = 65536


class Shuffled:
    """A full permutation by `seed`: the same whatever the sharding. It holds n numbers, and reads
    all shards at once.
    """

    def __init__(self, shard_rows: Sequence[int], seed: int) -> None:
        self.everything = set(range(len(shard_rows)))
        self.permutation = np.random.default_rng([seed, 0x0D]).permutation(sum(shard_rows))

    def rows(self, start: int, stop: int) -> Array:
        """The numbers of the rows of rounds `start` to `stop` (from 0), (stop − start,) int64."""
        return self.permutation[start:stop]

    def shards(self, start: int, stop: int) -> set[int]:
        """The shards to be kept open for these rounds: all."""
        return self.everything


class ShuffledInWindows:
    """The shards in random order, and in the sequence of rows that they then form, each window of
    `window_rows` rows in random order, by `seed`. It depends on the sharding. It holds the numbers
    of one window, and reads its shards only.
    """

    def __init__(self, shard_rows: Sequence[int], seed: int, window_rows: int) -> None:
        self.seed, self.window_rows, self.n_rows = seed, window_rows, sum(shard_rows)
        self.sequence = np.random.default_rng([seed, 0x0E]).permutation(len(shard_rows))
        sizes = np.asarray(shard_rows, np.int64)
        self.ends = np.cumsum(sizes[self.sequence])  # of the shards, in the sequence
        # from a position in the sequence to a row
        self.moved = (np.cumsum(sizes) - sizes)[self.sequence] - (self.ends - sizes[self.sequence])
        self.last = (-1, np.zeros(0, np.int64))

    def rows(self, start: int, stop: int) -> Array:
        """The numbers of the rows of rounds `start` to `stop` (from 0), (stop − start,) int64."""
        W = self.window_rows
        positions = np.concatenate(
            [
                self._window(k)[max(start - k * W, 0) : stop - k * W]
                for k in range(start // W, -(-stop // W))
            ]
        )
        return positions + self.moved[np.searchsorted(self.ends, positions, side="right")]

    def shards(self, start: int, stop: int) -> set[int]:
        """The shards to be kept open for these rounds: those that the rounds around them read
        too.
        """
        W = self.window_rows
        first, last = start // W * W, min(-(-stop // W) * W, self.n_rows) - 1
        lo, hi = np.searchsorted(self.ends, [first, last], side="right")
        return set(self.sequence[lo : hi + 1].tolist())

    def _window(self, k: int) -> Array:
        """The positions in the sequence of the rows of window k, in the order in which they are
        read.
        """
        if self.last[0] != k:
            first = k * self.window_rows
            size = min(self.window_rows, self.n_rows - first)
            self.last = k, first + np.random.default_rng([self.seed, 0x0F, k]).permutation(size)
        return self.last[1]


Order = Shuffled | ShuffledInWindows  # a permutation of a dataset's rows
