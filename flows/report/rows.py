"""Rows of datasets, of which figures are computed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from flows.views.views import Views
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest, load_manifest, prepared_names
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from koco_stream.types import Array

READ = ("dataset", "dataset_hash", "order", "order_seed", "max_rows", "window_rows", "sharding")


def manifests_of(views: Views) -> dict[str, Manifest]:
    there = prepared_names(views.store)
    names = views.column("SELECT DISTINCT dataset FROM runs ORDER BY dataset")
    return {name: load_manifest(views.store, name) for name in names if name in there}


def stream_of(run: Mapping[str, Any]) -> Stream:
    return Stream(**{name: run[name] for name in READ})


def rows_of_stream(store: AnyPath, stream: Stream) -> tuple[csr_array, Array]:
    block = StreamReader(store, stream).whole()
    return block.rows.to_scipy().astype(np.float64), block.labels


def kernel_matrix(X: csr_array, params: Mapping[str, Any]) -> Array:
    """Kernel matrix (n, n) of rows X (n, d), with the intercept; linear without a `kernel`."""
    inner = (X @ X.T).toarray() + (1.0 if params.get("fit_intercept") else 0.0)
    kind = params.get("kernel", "linear")
    if kind == "gaussian":
        norms = np.diag(inner)
        distances = np.maximum(norms[:, None] + norms - 2.0 * inner, 0.0)
        return np.exp(-distances / (2.0 * params["bandwidth"] ** 2))
    return (inner + 1.0) ** params["degree"] if kind == "polynomial" else inner
