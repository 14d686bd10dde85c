"""Parts: pieces of a source as files while it is being prepared, and the rows of any range read
back from them.

A part is an uncompressed Arrow file that is mapped, not read, so a range costs what it holds and
nothing else.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.types import Array
from storage.sources.source import Piece, Source

MOST_DISTINCT = 200  # labels: from one more on, they are only said to be many


@dataclass(frozen=True)
class Part:
    """What is known of a piece that was read and written to `path`.

    labels: its distinct labels, sorted, or None if there are more than `MOST_DISTINCT`. least: the
    smallest value. single: whether float32 holds every value exactly.
    """

    path: str
    n_rows: int
    n_values: int
    n_features: int
    n_bytes: int
    labels: tuple[float, ...] | None
    label_min: float
    label_max: float
    whole: bool
    least: float
    single: bool


def store_piece(source: Source, piece: Any, path: Path) -> Part:
    """Read a piece of the source and write it to `path`. Raises `WrongInput` as `source.read`
    does.
    """
    rows = source.read(piece)
    write_rows(rows, path)
    distinct = np.unique(rows.labels + 0.0)  # which makes 0 of -0
    return Part(
        str(path),
        rows.n_rows,
        int(rows.values.size),
        int(rows.indices.max(initial=-1)) + 1,
        source.piece_bytes(piece),
        tuple(distinct.tolist()) if distinct.size <= MOST_DISTINCT else None,
        float(distinct.min(initial=np.inf)),
        float(distinct.max(initial=-np.inf)),
        bool((distinct == np.rint(distinct)).all()),
        float(rows.values.min(initial=0.0)),
        is_single(rows.values),
    )


def is_single(values: Array) -> bool:
    """Whether float32 holds every value exactly: half the memory for counts and the like, the same
    numbers.
    """
    with np.errstate(over="ignore"):
        return values.dtype == np.float32 or bool((values.astype(np.float32) == values).all())


def write_rows(rows: Piece, path: Path) -> None:
    """Write rows to an Arrow file of one batch."""
    sizes = pa.array(np.diff(rows.indptr))
    batches = {"label": rows.labels, "size": sizes}
    with pa.OSFile(str(path), "wb") as sink:
        for columns in (batches, {"index": rows.indices}, {"value": rows.values}):
            batch = pa.RecordBatch.from_pydict(
                {name: pa.array(column) for name, column in columns.items()}
            )
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)


def read_rows(path: str | Path) -> Piece:
    """The rows of a file that `write_rows` wrote, mapped."""
    columns: dict[str, Array] = {}
    with pa.memory_map(str(path)) as source:
        for _ in range(3):
            for batch in pa.ipc.open_stream(source):
                columns.update(
                    {
                        name: batch.column(name).to_numpy(zero_copy_only=True)
                        for name in batch.schema.names
                    }
                )
    indptr = np.concatenate([[0], np.cumsum(columns["size"])])
    return Piece(columns["label"], indptr, columns["index"], columns["value"])


class Parts:
    """Parts in the order of their rows."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self.firsts = [0]
        for part in parts:
            self.firsts.append(self.firsts[-1] + part.n_rows)

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return self.firsts[-1]

    def cover(self, lo: int, hi: int) -> list[tuple[str, int, int]]:
        """(path, first row, last row + 1 within it) of the parts that hold the rows lo to hi."""
        found = []
        for k in range(max(bisect_right(self.firsts, lo) - 1, 0), len(self.parts)):
            a, b = max(lo - self.firsts[k], 0), min(hi - self.firsts[k], self.parts[k].n_rows)
            if hi <= self.firsts[k]:
                break
            if a < b:
                found.append((self.parts[k].path, a, b))
        return found


def rows_of(cover: Sequence[tuple[str, int, int]]) -> Piece:
    """The rows that `Parts.cover` named, one after the other."""
    pieces = []
    for path, a, b in cover:
        whole = read_rows(path)
        lo, hi = whole.indptr[a], whole.indptr[b]
        indices = whole.indices[lo:hi] if whole.indices.size else whole.indices
        pieces.append(
            Piece(whole.labels[a:b], whole.indptr[a : b + 1] - lo, indices, whole.values[lo:hi])
        )
    if len(pieces) == 1:
        return pieces[0]
    sizes = [np.diff(piece.indptr) for piece in pieces]
    return Piece(
        np.concatenate([np.zeros(0), *(piece.labels for piece in pieces)]),
        np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))]),
        np.concatenate([np.zeros(0, np.int32), *(piece.indices for piece in pieces)]),
        np.concatenate([np.zeros(0), *(piece.values for piece in pieces)]),
    )
