"""A source that is in memory already: what tests and small generators have."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from koco_stream.types import Array
from storage.sources.source import Each, Piece


@dataclass(frozen=True)
class Table:
    """Rows as canonical CSR, labels (n,), indptr (n + 1,), indices, values, or dense: then
    `indices` is empty and each row has `n_features` values. As a `Source` it is for one process: it
    goes along with each of its pieces.
    """

    labels: Array
    indptr: Array
    indices: Array
    values: Array
    n_features: int
    layout: str
    format: str = "table"
    feature_names: list[str] = field(default_factory=list)
    done: tuple[str, ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)
    rows_a_piece: int = 65536

    @property
    def n_bytes(self) -> int:
        """The bytes of its values."""
        return int(self.values.nbytes)

    def surveyed(self, each: Each, scratch: Path) -> "Table":
        """Itself: everything is known."""
        return self

    def pieces(self, scratch: Path) -> Iterator[tuple[int, int]]:
        """Ranges of rows."""
        for lo in range(0, self.labels.size, self.rows_a_piece):
            yield lo, min(lo + self.rows_a_piece, self.labels.size)

    def read(self, piece: tuple[int, int]) -> Piece:
        """The rows of a range."""
        lo, hi = piece
        a, b = int(self.indptr[lo]), int(self.indptr[hi])
        indptr = np.asarray(self.indptr[lo : hi + 1] - a, np.int64)
        indices = self.indices[a:b] if self.layout == "sparse" else self.indices
        return Piece(
            np.asarray(self.labels[lo:hi], np.float64),
            indptr,
            np.asarray(indices, np.int32),
            self.values[a:b],
        )

    def release(self, piece: tuple[int, int]) -> None:
        """Nothing was written."""

    def piece_bytes(self, piece: tuple[int, int]) -> int:
        """The bytes of the piece's values."""
        return int(self.indptr[piece[1]] - self.indptr[piece[0]]) * self.values.itemsize
