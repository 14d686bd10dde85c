"""The orders of a stream: a shuffled one gives the dataset row of each round."""

from collections.abc import Sequence

import numpy as np

from koco_stream.types import Array

AS_STORED, SHUFFLED, IN_WINDOWS = "as-stored", "shuffled", "shuffled-in-windows"
WINDOW_ROWS = 65536


def shuffled(n_rows: int, seed: int) -> Array:
    """The row numbers (n,) of a full random permutation, whatever the sharding."""
    return np.random.default_rng([seed, 0x0D]).permutation(n_rows)


class ShuffledInWindows:
    """A permutation of a dataset's rows that needs few shards at a time.

    The shards are put in random order, and each window of `window_rows` rows of the resulting
    sequence is shuffled. The result is determined by `seed` and the sharding. Only one window's row
    numbers are kept in memory. A slice of it has the row numbers of these rounds, counted from 0.
    """

    def __init__(self, shard_rows: Sequence[int], seed: int, window_rows: int) -> None:
        self.seed, self.window_rows, self.n_rows = seed, window_rows, sum(shard_rows)
        self.sequence = np.random.default_rng([seed, 0x0E]).permutation(len(shard_rows))
        sizes = np.asarray(shard_rows, np.int64)
        self.ends = np.cumsum(sizes[self.sequence])  # each shard's end in the sequence
        # Added to a position in the sequence, this gives the row's number in the dataset.
        self.moved = (np.cumsum(sizes) - sizes)[self.sequence] - (self.ends - sizes[self.sequence])
        self.last = (-1, np.zeros(0, np.int64))

    def __getitem__(self, rounds: slice) -> Array:
        start, stop, W = rounds.start, rounds.stop, self.window_rows
        windows = range(start // W, -(-stop // W))
        positions = np.concatenate(
            [self._window(k)[max(start - k * W, 0) : stop - k * W] for k in windows]
        )
        return positions + self.moved[np.searchsorted(self.ends, positions, side="right")]

    def _window(self, k: int) -> Array:
        """The positions, in the sequence of shards, of the rows of window k in shuffled order."""
        if self.last[0] != k:
            first = k * self.window_rows
            size = min(self.window_rows, self.n_rows - first)
            self.last = k, first + np.random.default_rng([self.seed, 0x0F, k]).permutation(size)
        return self.last[1]
