"""Reading a dataset as a stream of row blocks, from copies that a machine's workers share."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath
from koco_stream.numerics.compiler import jit
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.rows import Rows, dense_rows, frozen, sparse_rows
from koco_stream.streams.shard_cache import check_room, open_copy
from koco_stream.streams.stream import (
    IN_WINDOWS,
    SHUFFLED,
    ShuffledInWindows,
    Stream,
    sharding_of,
    shuffled,
)
from koco_stream.types import Array

BLOCK_ROWS = 4096
LABEL_ROWS = 65536  # labels alone take little memory


class Block(NamedTuple):
    """Consecutive rounds of a stream."""

    rows: Rows
    labels: Array


class BlockLabels(NamedTuple):
    """A block's labels as a run's states learn them, and the numbers of their classes."""

    learnt: Array
    numbers: Array
    classes: Sequence[float] = ()


class StreamReader:
    """Reads one stream of a prepared dataset in blocks of rows."""

    def __init__(self, store: AnyPath, stream: Stream) -> None:
        self.store, self.stream = store, stream
        self.manifest = load_manifest(store, stream.dataset)
        in_windows = stream.order == IN_WINDOWS
        if self.manifest.dataset_hash != stream.dataset_hash or (
            in_windows and sharding_of(self.manifest) != stream.sharding
        ):
            raise WrongInput(
                f"dataset {stream.dataset!r} was prepared again after the sweep was planned; start"
                " the sweep again"
            )
        sizes = [shard.n_rows for shard in self.manifest.shards]
        self.firsts = np.cumsum([0, *sizes])  # each shard's first row, and the end
        self.order: Array | ShuffledInWindows | None = None
        if stream.order == SHUFFLED:
            check_room(self.manifest)
            self.order = shuffled(self.manifest.n_rows, stream.order_seed or 0)
        elif in_windows:
            self.order = ShuffledInWindows(sizes, stream.order_seed or 0, stream.window_rows or 1)
        self.opened: dict[int, ShardArrays] = {}

    @property
    def n_rows(self) -> int:
        """The rounds of the stream."""
        return min(self.manifest.n_rows, self.stream.max_rows or self.manifest.n_rows)

    def blocks(
        self,
        block_rows: int = BLOCK_ROWS,
        zeros: bool = False,
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[Block]:
        """Yield rounds `start` (from 0) to `stop` in blocks of at most `block_rows` rows."""
        last = self.n_rows if stop is None else stop
        while start < last:
            end = min(start + block_rows, last)
            if self.order is not None:
                yield self.rows_at(self.order[start:end], zeros)
            else:
                k = int(np.searchsorted(self.firsts, start, side="right")) - 1
                end = min(end, int(self.firsts[k + 1]))
                yield self._viewed(k, start - int(self.firsts[k]), end - int(self.firsts[k]), zeros)
            start = end

    def labels(self) -> Iterator[BlockLabels]:
        """Yield the labels of all rounds, without reading values."""
        for start in range(0, self.n_rows, LABEL_ROWS):
            numbers = self._numbers(start, min(start + LABEL_ROWS, self.n_rows))
            yield self.to_learn(self._labels_of(self._parts(numbers), numbers.size))

    def to_learn(self, labels: Array) -> BlockLabels:
        """The labels (n,) as a run's states learn them."""
        if self.stream.multiclass is None:
            return BlockLabels(labels.reshape(1, -1), (labels >= 0.0).astype(np.int64))
        classes = np.array(self.manifest.classes)
        return BlockLabels(
            frozen(np.where(labels == classes[:, None], 1.0, -1.0), np.float64),
            np.searchsorted(classes, labels),
            self.manifest.classes,
        )

    def whole(self, zeros: bool = False) -> Block:
        """The stream as one block, if it fits into memory."""
        return self.rows_at(self._numbers(0, self.n_rows), zeros)

    def _numbers(self, start: int, end: int) -> Array:
        return np.arange(start, end) if self.order is None else self.order[start:end]

    def _open(self, numbers: list[int]) -> None:
        """Keep exactly these shards open: mapped memory counts as the process's."""
        self.opened = {
            number: self.opened.get(number) or shard_arrays(self.store, self.manifest, number)
            for number in numbers
        }

    def _viewed(self, number: int, lo: int, hi: int, zeros: bool) -> Block:
        self._open([number])
        shard = self.opened[number]
        labels = self._as_read(shard.labels[lo:hi])
        if self.manifest.layout == "dense":
            return Block(dense_rows(shard.values[lo:hi], zeros), labels)
        a, b = int(shard.offsets[lo]), int(shard.offsets[hi])
        indptr = shard.offsets[lo : hi + 1].astype(np.int64) - a
        indices, values = shard.indices[a:b], shard.values[a:b]
        return Block(sparse_rows(indptr, indices, values, self.manifest.n_features), labels)

    def rows_at(self, numbers: Array, zeros: bool = False) -> Block:
        """The stored rows with these numbers (n,), copied."""
        parts = self._parts(numbers)
        labels = self._labels_of(parts, numbers.size)
        value_type, d = parts[0][0].values.dtype, self.manifest.n_features
        if self.manifest.layout == "dense":
            matrix = np.empty((numbers.size, d), value_type)
            for shard, rows, targets in parts:
                matrix[targets] = shard.values[rows]
            return Block(dense_rows(matrix, zeros), labels)
        indptr = np.zeros(numbers.size + 1, np.int64)
        for shard, rows, targets in parts:
            indptr[1 + targets] = shard.offsets[rows + 1] - shard.offsets[rows]
        np.cumsum(indptr, out=indptr)
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], value_type)
        for shard, rows, targets in parts:
            copy_rows(
                shard.offsets, shard.indices, shard.values, rows, indptr[targets], indices, values
            )
        return Block(sparse_rows(indptr, indices, values, d), labels)

    def _parts(self, numbers: Array) -> "list[Part]":
        shard_numbers = np.searchsorted(self.firsts, numbers, side="right") - 1
        self._open(np.unique(shard_numbers).tolist())
        found = []
        for k, shard in self.opened.items():
            targets = np.flatnonzero(shard_numbers == k)
            found.append((shard, numbers[targets] - self.firsts[k], targets))
        return found

    def _labels_of(self, parts: "list[Part]", n_rows: int) -> Array:
        labels = np.empty(n_rows)
        for shard, rows, targets in parts:
            labels[targets] = shard.labels[rows]
        return self._as_read(labels)

    def _as_read(self, labels: Array) -> Array:
        if self.stream.positive_class is not None:
            labels = np.where(labels == self.stream.positive_class, 1.0, -1.0)
        return frozen(labels, np.float64)


class ShardArrays(NamedTuple):
    """Views of a shard's memory-mapped copy."""

    labels: Array
    offsets: Array
    indices: Array
    values: Array


# Rows of one shard: their numbers in it, and their positions among those that are read.
Part = tuple[ShardArrays, Array, Array]


def shard_arrays(store: AnyPath, manifest: Manifest, number: int) -> ShardArrays:
    """Open a shard of a dataset as arrays."""
    # `to_numpy` would import pandas if it is installed, which costs each worker a third of a
    # second and 30 MB.
    view = np.from_dlpack
    batch = open_copy(store, manifest, number)
    labels, values = view(batch.column("label")), batch.column("values")
    flat = view(values.values)
    if manifest.layout == "dense":
        none = np.zeros(0, np.int32)
        return ShardArrays(labels, none, none, flat.reshape(labels.size, manifest.n_features))
    return ShardArrays(labels, view(values.offsets), view(batch.column("indices").values), flat)


@jit
def copy_rows(
    offsets: Array,
    indices: Array,
    values: Array,
    rows: Array,
    to: Array,
    indices_out: Array,
    values_out: Array,
) -> None:
    """Copy rows of a sparse shard to the positions `to` of the outputs."""
    for k in range(rows.size):
        lo, hi = offsets[rows[k]], offsets[rows[k] + 1]
        for i in range(hi - lo):
            values_out[to[k] + i] = values[lo + i]
            indices_out[to[k] + i] = indices[lo + i]
