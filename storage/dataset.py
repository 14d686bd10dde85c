"""Access to a prepared dataset from Python: its manifest, and its rows as a dask array."""

from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.sources.source import Piece, dense_piece


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

        d, layout = self.manifest.n_features, self.manifest.layout
        folder, meta = dataset_path(self.store, self.manifest.name), np.zeros((0, 0))
        if layout == "sparse":
            meta = sparse.GCXS(meta, compressed_axes=[0])
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

    rows = prepared_rows(path.read_table(), layout)
    shape = rows.n_rows, n_features
    if layout == "dense":
        return rows.values.reshape(shape)
    return sparse.GCXS((rows.values, rows.indices, rows.indptr), shape=shape, compressed_axes=[0])


def prepared_rows(table: pa.Table, layout: str) -> Piece:
    """Convert an Arrow table of prepared rows to arrays."""
    table = table.combine_chunks()
    labels = table.column("label").to_numpy()
    values = table.column("values").combine_chunks()
    flat = values.flatten().to_numpy()
    if layout == "dense":
        return dense_piece(labels, flat.reshape(labels.size, values.type.list_size))
    indices = table.column("indices").combine_chunks()
    offsets = values.offsets.to_numpy().astype(np.int64)
    return Piece(labels, offsets - offsets[0], indices.flatten().to_numpy(), flat)
