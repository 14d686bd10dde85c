"""Reading a dataset as a stream: blocks of rows, in order, from a memory-mapped copy that all workers of a machine share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream._jit import jit
from koco_stream.cache import private_folder
from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.files import file_hash, written_atomically
from koco_stream.linalg import Array
from koco_stream.manifest import Manifest, dataset_place, load_manifest
from koco_stream.places import Where
from koco_stream.rows import Rows, dense_rows, frozen, sparse_rows
from koco_stream.runs import Stream

BLOCK_ROWS = 4096


class Block(NamedTuple):
    """Consecutive rounds of a stream: rows and labels (n,)."""

    rows: Rows
    labels: Array


class StreamReader:
    """One stream, opened. Raises `WrongInput` if the dataset is not prepared or has changed since the sweep was planned."""

    def __init__(self, store: Where, stream: Stream) -> None:
        self.store, self.stream = store, stream
        self.manifest = load_manifest(store, stream.dataset)
        if self.manifest.dataset_hash != stream.dataset_hash:
            raise WrongInput(f"dataset {stream.dataset!r} was prepared anew since the sweep was planned; start the sweep again")
        self.shards = [shard_arrays(path, self.manifest) for path in shared_copies(store, self.manifest)]

    @property
    def n_rows(self) -> int:
        """Rounds in the stream."""
        return min(self.manifest.n_rows, self.stream.max_rows or self.manifest.n_rows)

    @cached_property
    def order(self) -> Array | None:
        """Row numbers in the stream's order, (n,), or None for as stored."""
        if self.stream.order == "as-stored":
            return None
        return np.random.default_rng([self.stream.order_seed or 0, 0x0D]).permutation(self.manifest.n_rows)[: self.n_rows]

    def blocks(self, block_rows: int = BLOCK_ROWS) -> Iterator[Block]:
        """The stream in blocks of at most `block_rows` rows. The size of a block changes no number."""
        for start in range(0, self.n_rows, block_rows):
            stop = min(start + block_rows, self.n_rows)
            rows = np.arange(start, stop) if self.order is None else self.order[start:stop]
            yield self._take(rows)

    def _take(self, numbers: Array) -> Block:
        """The rows with these numbers, in this order."""
        firsts = np.cumsum([0] + [shard.labels.size for shard in self.shards])
        where = np.searchsorted(firsts, numbers, side="right") - 1
        in_order = self.order is None
        if in_order and where[0] == where[-1]:  # within one shard: no copy
            shard, lo, hi = self.shards[where[0]], int(numbers[0] - firsts[where[0]]), int(numbers[-1] - firsts[where[0]] + 1)
            return Block(shard.rows(lo, hi), self._labels(shard.labels[lo:hi]))
        sizes = np.empty(numbers.size, np.int64)
        labels = np.empty(numbers.size)
        for k in np.unique(where):
            mine, local = where == k, numbers[where == k] - firsts[k]
            sizes[mine] = self.shards[k].indptr[local + 1] - self.shards[k].indptr[local]
            labels[mine] = self.shards[k].labels[local]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        values = np.empty(indptr[-1], self.shards[0].values.dtype)
        indices = np.empty(indptr[-1] if self.manifest.layout == "sparse" else 0, np.int32)
        for k in np.unique(where):
            mine = np.flatnonzero(where == k)
            shard = self.shards[k]
            copy_rows(shard.indptr, shard.indices, shard.values, numbers[mine] - firsts[k], indptr[mine], indices, values)
        if self.manifest.layout == "dense":
            return Block(dense_rows(values.reshape(numbers.size, -1)), self._labels(labels))
        return Block(sparse_rows(indptr, indices, values, self.manifest.n_features), self._labels(labels))

    def _labels(self, labels: Array) -> Array:
        if self.stream.positive_class is not None:
            labels = np.where(labels == self.stream.positive_class, 1.0, -1.0)
        return frozen(labels, np.float64)


class ShardArrays(NamedTuple):
    """A shard as views into the memory-mapped copy: indptr (n + 1,), indices, values (both by place), labels (n,)."""

    indptr: Array
    indices: Array
    values: Array
    labels: Array
    n_features: int

    def rows(self, lo: int, hi: int) -> Rows:
        """Rows lo to hi, without copying values."""
        a, b = int(self.indptr[lo]), int(self.indptr[hi])
        if self.indices.size == 0 and self.values.size:
            return dense_rows(self.values[a:b].reshape(hi - lo, self.n_features))
        return sparse_rows(self.indptr[lo : hi + 1] - a, self.indices[a:b], self.values[a:b], self.n_features)


def shared_copies(store: Where, manifest: Manifest) -> list[Path]:
    """The dataset's shards as uncompressed Arrow files in the cache folder, written if they are not there yet.

    Raises `WrongInput` if a shard is missing or damaged.
    """
    folder = private_folder("datasets", manifest.dataset_hash[:32])
    paths = []
    for number, shard in enumerate(manifest.shards):
        path = folder / f"{number:05d}-{shard.sha256[:16]}.arrow"
        if not path.exists():
            source = dataset_place(store, manifest.name) / shard.path
            try:
                with source.local() as file:  # of an object store, fetched once, to be hashed and read
                    if file_hash(file) != shard.sha256:
                        raise WrongInput(
                            f"{source} is not the file that was prepared: it was altered or damaged; prepare the dataset again"
                        )
                    table = pq.read_table(file, memory_map=True).combine_chunks()
            except StoreUnavailable:
                raise
            except (OSError, pa.ArrowInvalid) as error:
                raise WrongInput(f"{source}: {error}; prepare the dataset again") from None
            with written_atomically(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
                with pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
        paths.append(path)
    return paths


def shard_arrays(path: Path, manifest: Manifest) -> ShardArrays:
    """Zero-copy views of one copied shard."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    if reader.num_record_batches == 0:
        empty = np.zeros(0)
        return ShardArrays(np.zeros(1, np.int64), np.zeros(0, np.int32), empty, empty, manifest.n_features)
    batch = reader.get_batch(0)
    labels = batch.column("label").to_numpy()
    values = batch.column("values")
    flat = _buffer_of(values.values)
    if manifest.layout == "dense":
        indptr = np.arange(0, (labels.size + 1) * manifest.n_features, manifest.n_features or 1)
        return ShardArrays(indptr, np.zeros(0, np.int32), flat, labels, manifest.n_features)
    indptr = values.offsets.to_numpy().astype(np.int64)
    return ShardArrays(indptr, _buffer_of(batch.column("indices").values), flat, labels, manifest.n_features)


def _buffer_of(array: Any) -> Array:
    return array.to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]


@jit
def copy_rows(indptr: Array, indices: Array, values: Array, rows: Array, to: Array, indices_out: Array, values_out: Array) -> None:
    """Copy the given rows of a shard to the places `to` (one a row) of the output arrays."""
    for k in range(rows.size):
        lo, hi = indptr[rows[k]], indptr[rows[k] + 1]
        for i in range(hi - lo):
            values_out[to[k] + i] = values[lo + i]
            if indices.size > 0:
                indices_out[to[k] + i] = indices[lo + i]
