"""The shuffled orders of a stream: the dataset row of each round, and the shards it needs."""

from collections.abc import Sequence

import numpy as np

from koco_stream.types import Array

AS_STORED, SHUFFLED, IN_WINDOWS = "as-stored", "shuffled", "shuffled-in-windows"
WINDOW_ROWS = 65536


class Shuffled:
    """A full random permutation of a dataset's rows, determined by `seed`.

    It does not depend on the sharding. It keeps n row numbers in memory and needs all shards open.
    """

    def __init__(self, shard_rows: Sequence[int], seed: int) -> None:
        self.everything = set(range(len(shard_rows)))
        self.permutation = np.random.default_rng([seed, 0x0D]).permutation(sum(shard_rows))

    def rows(self, start: int, stop: int) -> Array:
        """The row numbers of rounds `start` (from 0) to `stop`, (stop − start,) int64."""
        return self.permutation[start:stop]

    def shards(self, start: int, stop: int) -> set[int]:
        """The numbers of the shards to keep open for these rounds: all shards."""
        return self.everything


class ShuffledInWindows:
    """A permutation of a dataset's rows that needs few shards open at a time.

    The shards are put in random order, and each window of `window_rows` rows of the resulting
    sequence is shuffled. The result is determined by `seed` and the sharding. Only one window's row
    numbers are kept in memory.
    """

    def __init__(self, shard_rows: Sequence[int], seed: int, window_rows: int) -> None:
        self.seed, self.window_rows, self.n_rows = seed, window_rows, sum(shard_rows)
        self.sequence = np.random.default_rng([seed, 0x0E]).permutation(len(shard_rows))
        sizes = np.asarray(shard_rows, np.int64)
        self.ends = np.cumsum(sizes[self.sequence])  # each shard's end in the sequence
        # Added to a position in the sequence, this gives the row's number in the dataset.
        self.moved = (np.cumsum(sizes) - sizes)[self.sequence] - (self.ends - sizes[self.sequence])
        self.last = (-1, np.zeros(0, np.int64))

    def rows(self, start: int, stop: int) -> Array:
        """The row numbers of rounds `start` (from 0) to `stop`, (stop − start,) int64."""
        W = self.window_rows
        positions = np.concatenate(
            [
                self._window(k)[max(start - k * W, 0) : stop - k * W]
                for k in range(start // W, -(-stop // W))
            ]
        )
        return positions + self.moved[np.searchsorted(self.ends, positions, side="right")]

    def shards(self, start: int, stop: int) -> set[int]:
        """The numbers of the shards to keep open for these rounds: those of their windows."""
        W = self.window_rows
        first, last = start // W * W, min(-(-stop // W) * W, self.n_rows) - 1
        lo, hi = np.searchsorted(self.ends, [first, last], side="right")
        return set(self.sequence[lo : hi + 1].tolist())

    def _window(self, k: int) -> Array:
        """The positions, in the sequence of shards, of the rows of window k in shuffled order."""
        if self.last[0] != k:
            first = k * self.window_rows
            size = min(self.window_rows, self.n_rows - first)
            self.last = k, first + np.random.default_rng([self.seed, 0x0F, k]).permutation(size)
        return self.last[1]


Order = Shuffled | ShuffledInWindows  # a permutation of a dataset's rows
