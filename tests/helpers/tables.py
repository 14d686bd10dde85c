"""Rows in memory as a source, and any source's rows as a list."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse

from storage.sources.source import Piece, Source, dense_piece
from tests.helpers.wire import as_on_a_worker


@dataclass(kw_only=True)
class Table(Source):
    """Rows in memory. As a `Source` it is for one process: it goes along with each of its pieces,
    which are ranges of rows.
    """

    rows: Piece
    n_features: int
    rows_per_piece: int = 65536
    format: str = "table"

    def __post_init__(self) -> None:
        self.n_bytes = int(self.rows.values.nbytes)

    def pieces(self, scratch: Path) -> Iterator[tuple[int, int]]:
        """Ranges of rows."""
        for start in range(0, self.rows.n_rows, self.rows_per_piece):
            yield start, min(start + self.rows_per_piece, self.rows.n_rows)

    def read(self, piece: tuple[int, int]) -> Piece:
        """The rows of a range."""
        return self.rows.between(*piece)

    def piece_bytes(self, piece: tuple[int, int]) -> int:
        """The bytes of the piece's values."""
        return int(self.rows.between(*piece).values.nbytes)


def table_of(X, y, **options):
    """The rows of a matrix, dense or CSR, as a source."""
    if scipy.sparse.issparse(X):
        rows = Piece(y, X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)
        layout = "sparse"
    else:
        rows, layout = dense_piece(y, X), "dense"
    return Table(rows=rows, n_features=X.shape[1], layout=layout, **options)


def listed(source, scratch):
    """(label, {feature: value}) of each row, dense rows with their zeros, of a surveyed source that
    has gone through a pickle as on its way to a worker.
    """
    source, rows, n_bytes = as_on_a_worker(source), [], 0
    for name in source.pieces(scratch):
        n_bytes += source.piece_bytes(name)
        piece = source.read(as_on_a_worker(name))
        source.release(name)
        types = (piece.labels.dtype, piece.indptr.dtype, piece.indices.dtype)
        assert types == (np.float64, np.int64, np.int32)
        for label, (a, b) in zip(piece.labels.tolist(), pairwise(piece.indptr), strict=True):
            indices = piece.indices[a:b] if source.layout == "sparse" else np.arange(b - a)
            assert (np.diff(indices) > 0).all()
            cells = zip(indices.tolist(), piece.values[a:b].tolist(), strict=True)
            rows.append((label, dict(cells)))
    assert n_bytes == source.n_bytes
    return rows
