"""Input of figures: runs, their curves, rows of datasets, and cached results."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array, issparse

from koco_stream.io.cache import private_folder
from koco_stream.io.files import content_hash, json_text, write_text
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from koco_stream.types import Array
from storage.results import read_curves

READ = ("dataset", "dataset_hash", "order", "order_seed", "max_rows", "window_rows", "sharding")


def ok_runs(runs: pa.Table, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Runs with status ok, as dicts of some columns, with `params` decoded."""
    table = runs.filter(pc.equal(runs.column("status"), "ok")).select([*columns, "params"])
    return [row | {"params": json.loads(row["params"])} for row in table.to_pylist()]


def sources_of(store: AnyPath, runs: pa.Table) -> dict[str, dict[str, Any]]:
    """The sources of the datasets of some runs, by name."""
    return {
        name: load_manifest(store, name).source
        for name in pc.unique(runs.column("dataset")).to_pylist()
    }


class Curve(NamedTuple):
    """A run's cumulative loss, number of mistakes and dictionary size at rounds `t` (k,).

    Values are NaN where a run has none.
    """

    t: Array
    loss: Array
    mistakes: Array
    size: Array


def curves_of(store: AnyPath, run_ids: Sequence[str]) -> dict[str, Curve]:
    """Curves of runs, by run_id."""
    table = read_curves(store, run_ids).sort_by([("run_id", "ascending"), ("t", "ascending")])
    ids = table.column("run_id").to_pylist()
    arrays = [
        table.column(name).cast(pa.float64()).to_numpy()
        for name in ("t", "cumulative_loss", "mistakes", "dictionary_size")
    ]
    cuts = [k for k in range(len(ids) + 1) if k in (0, len(ids)) or ids[k] != ids[k - 1]]
    return {ids[a]: Curve(*(array[a:b] for array in arrays)) for a, b in pairwise(cuts)}


def stream_of(run: Mapping[str, Any]) -> Stream:
    """The stream that a run has read, from its values in the columns `READ`."""
    return Stream(**{name: run[name] for name in READ if name in run})


def rows_of_stream(store: AnyPath, stream: Stream) -> tuple[csr_array, Array]:
    """Rows (n, d) of a stream, and their labels (n,)."""
    block = StreamReader(store, stream).whole()
    rows = block.rows
    indices = rows.indices if rows.index_stride else np.tile(rows.indices, rows.n_rows)
    X = csr_array((rows.values, indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
    return X.astype(np.float64), block.labels


def kernel_matrix(X: Array | csr_array, params: dict[str, Any]) -> Array:
    """Kernel matrix (n, n) of rows X (n, d), including the intercept.

    The kernel is that of a learner's parameters; without one it is linear.
    """
    inner: Any = X @ X.T
    products = inner.toarray() if issparse(inner) else inner
    products = products + (1.0 if params.get("fit_intercept") else 0.0)
    kind = params.get("kernel", "linear")
    if kind == "gaussian":
        norms = np.diag(products)
        distances = np.maximum(norms[:, None] + norms - 2.0 * products, 0.0)
        return np.exp(-distances / (2.0 * params["bandwidth"] ** 2))
    return (products + 1.0) ** params["degree"] if kind == "polynomial" else products


def computed_once(folder: str, identity: object, compute: Callable[[], Any]) -> Any:
    """Result of `compute` as decoded from JSON, cached by `identity` in a folder of the cache.

    What is not finite is None.
    """
    path = Path(private_folder(folder)) / f"{content_hash(identity)}.json"
    if not path.is_file():
        write_text(path, json_text(compute()))
    return json.loads(path.read_text())
