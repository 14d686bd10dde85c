"""The rows of a dataset as a matrix, for what a figure computes from them itself."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from koco_stream.rows import Rows


def matrix_of(rows: Rows) -> csr_array:
    """Rows as a sparse matrix (n, d)."""
    indices = rows.indices if rows.index_stride else np.tile(rows.indices, rows.n_rows)
    return csr_array((rows.values, indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
