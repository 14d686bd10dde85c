"""What a figure computes itself from the rows of a dataset: matrices, and results that are kept."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from koco_stream.io.cache import private_folder
from koco_stream.io.files import content_hash, write_text
from koco_stream.streams.rows import Rows
from koco_stream.types import Array


def matrix_of(rows: Rows) -> csr_array:
    """Rows as a sparse matrix (n, d)."""
    indices = rows.indices if rows.index_stride else np.tile(rows.indices, rows.n_rows)
    return csr_array((rows.values, indices, rows.indptr), shape=(rows.n_rows, rows.n_features))


def with_intercept(X: csr_array) -> csr_array:
    """The rows (n, d) with one more feature that is 1."""
    return csr_array(hstack([X, np.ones((X.shape[0], 1))]))


def kernel_matrix(X: Array | csr_array, params: dict[str, Any]) -> Array:
    """The kernel matrix (n, n) of the rows X (n, d), for the kernel that the parameters say (none:
    linear), the intercept included.
    """
    inner: Any = X @ X.T
    products = (inner.toarray() if issparse(inner) else inner) + (
        1.0 if params.get("fit_intercept") else 0.0
    )
    kind = params.get("kernel", "linear")
    if kind == "gaussian":
        norms = np.diag(products)
        return np.exp(
            -np.maximum(norms[:, None] + norms - 2.0 * products, 0.0)
            / (2.0 * params["bandwidth"] ** 2)
        )
    return (products + 1.0) ** params["degree"] if kind == "polynomial" else products


def computed_once(folder: str, identity: object, compute: Callable[[], Any]) -> Any:
    """What `compute` gives, as JSON has it; from the cache folder if it was computed before."""
    path = Path(private_folder(folder)) / f"{content_hash(identity)}.json"
    if not path.is_file():
        write_text(path, json.dumps(compute()))
    return json.loads(path.read_text())
