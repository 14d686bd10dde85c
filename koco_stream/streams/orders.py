"""The orders of a stream: a dataset row for each round."""

from collections.abc import Sequence

import numpy as np

from koco_stream.types import Array

AS_STORED, SHUFFLED, IN_WINDOWS = "as-stored", "shuffled", "shuffled-in-windows"
WINDOW_ROWS = 65536


def shuffled(n_rows: int, seed: int) -> Array:
    """A random permutation (n,) of the rows, whatever the sharding."""
    return np.random.default_rng([seed, 0x0D]).permutation(n_rows)


class ShuffledInWindows:
    """A permutation of a dataset's rows that needs few shards at a time.

    The shards are put in random order, and each window of `window_rows` rows is shuffled. A slice
    has these rounds' row numbers.
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
        if self.last[0] != k:
            first = k * self.window_rows
            size = min(self.window_rows, self.n_rows - first)
            self.last = k, first + np.random.default_rng([self.seed, 0x0F, k]).permutation(size)
        return self.last[1]
