"""A stream: a dataset read in one order, its identity, and the orders."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from koco_stream.io.files import canonical_json, content_hash
from koco_stream.streams.manifest import Manifest
from koco_stream.types import Array

AS_STORED, SHUFFLED, IN_WINDOWS = "as-stored", "shuffled", "shuffled-in-windows"
WINDOW_ROWS = 65536


@dataclass(frozen=True)
class Stream:
    """A dataset read in one order.

    Only "shuffled-in-windows" has `window_rows` and `sharding`. Label `positive_class` is read as
    +1 and all others as −1; with `multiclass` "one-vs-rest" a run learns every class.
    """

    dataset: str
    dataset_hash: str
    order: str = "as-stored"
    order_seed: int | None = None
    positive_class: float | None = None
    max_rows: int | None = None
    window_rows: int | None = None
    sharding: str | None = None
    multiclass: str | None = None

    def reduced(self, n_rows: int, classes: Sequence[float]) -> "Stream":
        """The stream without settings that have no effect on `n_rows` rows."""
        as_read = self.positive_class == 1.0 and bool(classes) and set(classes) <= {-1.0, 1.0}
        return replace(
            self,
            max_rows=None if self.max_rows is None or self.max_rows >= n_rows else self.max_rows,
            window_rows=None if self.window_rows is None else min(self.window_rows, n_rows),
            positive_class=None if as_read else self.positive_class,
        )

    def n_states(self, n_classes: int) -> int:
        """How many states a learner has for so many classes."""
        return 1 if self.multiclass is None else n_classes

    @cached_property
    def identity_text(self) -> str:
        """The identity as canonical JSON."""
        return canonical_json(self.identity())

    @property
    def group(self) -> tuple[Any, ...]:
        """A key of streams that differ in their `order_seed` only."""
        return tuple(value for name, value in self.identity().items() if name != "order_seed")

    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows and their order."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "dataset"}


def sharding_of(manifest: Manifest) -> str:
    """A hash of the shards' row counts."""
    return content_hash([shard.n_rows for shard in manifest.shards])


def shuffled(n_rows: int, seed: int) -> Array:
    """A random permutation (n,) of the rows, whatever the sharding."""
    return np.random.default_rng([seed, 0x0D]).permutation(n_rows)


class ShuffledInWindows:
    """A permutation of a dataset's rows that needs few shards at a time."""

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
            self.last = (
                k,
                first
                + np.random.default_rng([self.seed, 0x0F, k]).permutation(
                    min(self.window_rows, self.n_rows - first)
                ),
            )
        return self.last[1]
