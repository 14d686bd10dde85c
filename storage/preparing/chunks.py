"""Chunks: pieces of a source as files while it is being prepared, and the rows of any range read
back from them.

A chunk is an uncompressed Arrow file that is mapped, not read, so a range costs what it holds and
nothing else.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.types import Array
from storage.sources.source import Piece, Source, concatenated

MOST_DISTINCT = 200  # labels: from one more on, they are only said to be many

Cover = Sequence[tuple[str, int, int]]  # rows: (file of a chunk, first row, row after the last)


@dataclass(frozen=True)
class Chunk:
    """What is known of a piece that was read and written to `path`.

    labels: its distinct labels, of which no more are kept than tell that they are many. whole:
    whether all are whole numbers. least: the smallest value, largest: the largest without its sign.
    single: whether float32 holds every value exactly.
    """

    path: str
    n_rows: int
    n_values: int
    n_features: int
    n_bytes: int
    labels: frozenset[float]
    label_min: float
    label_max: float
    whole: bool
    least: float
    largest: float
    single: bool


def store_piece(source: Source, task: tuple[Any, Path]) -> Chunk:
    """Read a piece of the source and write it to a path: the task. Raises `WrongInput` as
    `source.read` does.
    """
    piece, path = task
    rows = source.read(piece)
    write_rows(rows, path)
    distinct = np.unique(rows.labels + 0.0)  # which makes 0 of -0
    return Chunk(
        path=str(path),
        n_rows=rows.n_rows,
        n_values=int(rows.values.size),
        n_features=int(rows.indices.max(initial=-1)) + 1,
        n_bytes=source.piece_bytes(piece),
        labels=frozenset(distinct[: MOST_DISTINCT + 1].tolist()),
        label_min=float(distinct.min(initial=np.inf)),
        label_max=float(distinct.max(initial=-np.inf)),
        whole=bool((distinct == np.rint(distinct)).all()),
        least=float(rows.values.min(initial=0.0)),
        largest=float(np.abs(rows.values).max(initial=0.0)),
        single=is_single(rows.values),
    )


def is_single(values: Array) -> bool:
    """Whether float32 holds every value exactly: half the memory for counts and the like, the same
    numbers.
    """
    with np.errstate(over="ignore"):
        return values.dtype == np.float32 or bool((values.astype(np.float32) == values).all())


def write_rows(rows: Piece, path: Path) -> None:
    """Write rows to an Arrow file of two batches: the labels, and the values of each row, beside
    their features where rows are sparse.
    """
    columns = {"value": rows.values}
    if rows.indices.size:
        columns["index"] = rows.indices
    with pa.OSFile(str(path), "wb") as sink:
        for batch in (
            pa.record_batch({"label": rows.labels, "size": np.diff(rows.indptr)}),
            pa.record_batch(columns),
        ):
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)


def read_rows(path: str | Path) -> Piece:
    """The rows of a file that `write_rows` wrote, mapped."""
    columns: dict[str, Array] = {"index": np.zeros(0, np.int32)}
    with pa.memory_map(str(path)) as source:
        for _ in range(2):
            batch = pa.ipc.open_stream(source).read_all()
            columns.update({n: batch.column(n).chunk(0).to_numpy() for n in batch.column_names})
    indptr = np.concatenate([[0], np.cumsum(columns["size"])])
    return Piece(columns["label"], indptr, columns["index"], columns["value"])


class Chunks:
    """Chunks in the order of their rows."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = list(chunks)
        self.firsts = list(accumulate((chunk.n_rows for chunk in self.chunks), initial=0))

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return self.firsts[-1]

    @property
    def n_values(self) -> int:
        """Values in all."""
        return sum(chunk.n_values for chunk in self.chunks)

    @property
    def labels(self) -> list[float] | None:
        """The distinct labels, sorted, or None if there are more than `MOST_DISTINCT`."""
        found: frozenset[float] = frozenset().union(*(chunk.labels for chunk in self.chunks))
        return sorted(found) if len(found) <= MOST_DISTINCT else None

    def cover(self, start: int, stop: int) -> Cover:
        """The rows from `start` up to `stop` as ranges of rows of chunks."""
        found = []
        for k in range(bisect_right(self.firsts, start) - 1, bisect_right(self.firsts, stop - 1)):
            first = self.firsts[k]
            a, b = max(start - first, 0), min(stop - first, self.chunks[k].n_rows)
            if a < b:
                found.append((self.chunks[k].path, a, b))
        return found


def rows_of(cover: Cover) -> Piece:
    """The rows that `Chunks.cover` named, one after the other."""
    return concatenated([read_rows(path).between(start, stop) for path, start, stop in cover])
