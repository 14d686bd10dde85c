"""Chunks: temporary Arrow files with the rows of a source, one per piece, memory-mapped."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.types import Array
from storage.sources.source import Piece, Source, concatenated, dense_piece

MOST_DISTINCT = 200  # limit up to which distinct labels are counted

# consecutive rows as ranges of chunks: (chunk file, first row, end row)
Cover = Sequence[tuple[str, int, int]]


@dataclass(frozen=True)
class Chunk:
    """Summary of a piece of a source that was read and written to the file `path`."""

    path: str
    n_rows: int
    n_values: int
    n_features: int  # largest feature number plus one; 0 for dense rows
    n_bytes: int  # what the piece adds to the progress
    labels: frozenset[float]  # the distinct ones, at most `MOST_DISTINCT` + 1
    label_min: float
    label_max: float
    whole: bool  # whether all labels are integers
    least: float  # smallest value, at most 0
    largest: float  # largest absolute value
    single: bool  # whether float32 represents every value exactly
    n_dropped: int  # rows that were left out for their missing values


def store_piece(source: Source, task: tuple[Any, Path]) -> Chunk:
    """Read a piece, write its rows to a file, and summarize them; `task` is (piece, file)."""
    piece, path = task
    return store_rows(source.read(piece), path, source.piece_bytes(piece))


def store_rows(rows: Piece, path: Path, n_bytes: int) -> Chunk:
    """Write rows to a file, and summarize them; they add `n_bytes` to the progress."""
    write_rows(rows, path)
    distinct = np.unique(rows.labels + 0.0)  # adding 0 turns -0 into 0
    return Chunk(
        path=str(path),
        n_rows=rows.n_rows,
        n_values=int(rows.values.size),
        n_features=int(rows.indices.max(initial=-1)) + 1,
        n_bytes=n_bytes,
        labels=frozenset(distinct[: MOST_DISTINCT + 1].tolist()),
        label_min=float(distinct.min(initial=np.inf)),
        label_max=float(distinct.max(initial=-np.inf)),
        whole=bool((distinct == np.rint(distinct)).all()),
        least=float(rows.values.min(initial=0.0)),
        largest=float(np.abs(rows.values).max(initial=0.0)),
        single=is_single(rows.values),
        n_dropped=rows.n_dropped,
    )


def is_single(values: Array) -> bool:
    """Whether float32 represents every value exactly, so that half the memory suffices."""
    with np.errstate(over="ignore"):
        return values.dtype == np.float32 or bool((values.astype(np.float32) == values).all())


def write_rows(rows: Piece, path: Path) -> None:
    """Write rows to an Arrow file."""
    batch = batch_of(rows)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def read_rows(path: str | Path) -> Piece:
    """Rows of a file written by `write_rows`, memory-mapped."""
    with pa.memory_map(str(path)) as source:
        return rows_of_batch(pa.ipc.open_stream(source).read_next_batch())


def batch_of(rows: Piece) -> pa.RecordBatch:
    """Rows in Arrow's form, in which they are prepared.

    Sparse rows have the columns `label`, `indices` and `values`; dense rows have `label` and a
    fixed-size list `values`.
    """
    columns = {"label": pa.array(rows.labels)}
    if rows.values.size and not rows.indices.size:
        d = int(rows.indptr[1])
        columns["values"] = pa.FixedSizeListArray.from_arrays(pa.array(rows.values), d)
    else:
        offsets = pa.array(rows.indptr.astype(np.int32))
        columns["indices"] = pa.ListArray.from_arrays(offsets, pa.array(rows.indices))
        columns["values"] = pa.ListArray.from_arrays(offsets, pa.array(rows.values))
    return pa.record_batch(columns)


def rows_of_batch(batch: pa.RecordBatch) -> Piece:
    """Rows out of Arrow's form. Raises `KeyError` if a column is missing."""
    labels = batch.column("label").to_numpy()
    values = batch.column("values")
    flat = values.flatten().to_numpy()
    if pa.types.is_fixed_size_list(values.type):
        return dense_piece(labels, flat.reshape(labels.size, values.type.list_size))
    offsets = values.offsets.to_numpy().astype(np.int64)
    return Piece(labels, offsets - offsets[0], batch.column("indices").flatten().to_numpy(), flat)


class Chunks:
    """The chunks of a source in row order; `firsts` has the first row of each.

    `labels` are the sorted distinct labels; None if there are more than `MOST_DISTINCT`.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = list(chunks)
        self.firsts = list(accumulate((chunk.n_rows for chunk in self.chunks), initial=0))
        self.n_rows = self.firsts[-1]
        self.n_values = sum(chunk.n_values for chunk in self.chunks)
        labels: frozenset[float] = frozenset().union(*(chunk.labels for chunk in self.chunks))
        self.labels = sorted(labels) if len(labels) <= MOST_DISTINCT else None

    def cover(self, start: int, stop: int) -> Cover:
        """Locate rows `start` to `stop` (exclusive) as ranges of rows of chunks."""
        found = []
        for k in range(bisect_right(self.firsts, start) - 1, bisect_right(self.firsts, stop - 1)):
            first = self.firsts[k]
            a = max(start - first, 0)
            b = min(stop - first, self.chunks[k].n_rows)
            if a < b:
                found.append((self.chunks[k].path, a, b))
        return found


def rows_of(cover: Cover) -> Piece:
    """Read the rows that `Chunks.cover` located, as one piece."""
    return concatenated([read_rows(path).between(start, stop) for path, start, stop in cover])
