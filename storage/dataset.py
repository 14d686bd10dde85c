"""Access to a prepared dataset from Python: its manifest, and its rows as a dask array."""

from typing import Any

import numpy as np

from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.preparing.chunks import rows_of_batch
from storage.sources.source import Piece


class Dataset:
    """A prepared dataset of a store, with its `manifest`.

    Raises `WrongInput` if the store has no dataset of this name.
    """

    def __init__(self, store: AnyPath, name: str) -> None:
        self.store = store_path(store)
        self.manifest: Manifest = load_manifest(self.store, name)

    def to_dask_array(self) -> Any:
        """Rows of the dataset as a lazy dask array (n, d), with one chunk per shard.

        A chunk is a `sparse.GCXS` compressed by rows, or a NumPy array if rows are dense.
        """
        import dask.array
        import sparse
        from dask import delayed

        d = self.manifest.n_features
        layout = self.manifest.layout
        folder = dataset_path(self.store, self.manifest.name)
        none = np.zeros((0, 0))
        meta = sparse.GCXS(none, compressed_axes=[0]) if layout == "sparse" else none
        read = delayed(shard_chunk, pure=True)
        chunks = [
            dask.array.from_delayed(
                read(folder / shard.path, d, layout), (shard.n_rows, d), meta=meta
            )
            for shard in self.manifest.shards
        ]
        return dask.array.concatenate(chunks)


def shard_chunk(path: StorePath, n_features: int, layout: str) -> Any:
    """Rows of one shard as a `sparse.GCXS` or NumPy array, (rows, d)."""
    import sparse

    rows = shard_rows(path)
    shape = rows.n_rows, n_features
    if layout == "dense":
        return rows.values.reshape(shape)
    return sparse.GCXS((rows.values, rows.indices, rows.indptr), shape=shape, compressed_axes=[0])


def shard_rows(path: StorePath) -> Piece:
    """The rows of a shard's file. Raises `LookupError` if it has no rows, or lacks a column."""
    return rows_of_batch(path.read_table().combine_chunks().to_batches()[0])
