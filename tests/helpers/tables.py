"""Rows in memory as a source, and any source's rows as a list."""

from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse

from storage.generated.streams import Blocks
from storage.sources.source import Piece, dense_piece
from tests.helpers.wire import as_on_a_worker


def rows_of_block(number, n_rows, rows):
    """So many rows of a table, or those that are left; it goes along with each task."""
    first = number * n_rows
    return rows.between(first, min(first + n_rows, rows.n_rows))


def table_of(X, y, rows_per_piece=65536):
    """The rows of a matrix, dense or CSR, as a source."""
    if scipy.sparse.issparse(X):
        rows = Piece(y, X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)
        layout = "sparse"
    else:
        rows, layout = dense_piece(y, X), "dense"
    make = partial(rows_of_block, rows=rows)
    source = Blocks(make=make, n_rows=rows.n_rows, n_features=X.shape[1], layout=layout)
    source.block_rows = rows_per_piece
    return source


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
