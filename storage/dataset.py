"""A prepared dataset: its manifest, its rows as a dask array, and whether it is intact."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.preparing.files import BLOCK, digests_of, identity_of, rows_of_batch
from storage.sources.source import Piece, concatenated


def to_dask_array(store: AnyPath, name: str) -> Any:
    """Rows of a prepared dataset as a lazy dask array (n, d), with one chunk per shard.

    A chunk is a `sparse.GCXS` compressed by rows, or a NumPy array if rows are dense.
    """
    import dask.array
    import sparse
    from dask import delayed

    manifest = load_manifest(store, name)
    folder = dataset_path(store, name)
    d = manifest.n_features
    none = np.zeros((0, 0))
    meta = sparse.GCXS(none, compressed_axes=[0]) if manifest.layout == "sparse" else none
    read = delayed(shard_chunk, pure=True)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(
                read(folder / shard.path, d, manifest.layout), (shard.n_rows, d), meta=meta
            )
            for shard in manifest.shards
        ]
    )


def shard_chunk(path: StorePath, n_features: int, layout: str) -> Any:
    import sparse

    rows = shard_rows(path)
    shape = rows.n_rows, n_features
    if layout == "dense":
        return rows.values.reshape(shape)
    return sparse.GCXS((rows.values, rows.indices, rows.indptr), shape=shape, compressed_axes=[0])


def shard_rows(path: StorePath) -> Piece:
    """Raises `LookupError` if the file has no rows, or lacks a column."""
    return rows_of_batch(path.read_table().combine_chunks().to_batches()[0])


def dataset_problems(store: AnyPath, name: str) -> list[str]:
    while True:
        try:
            manifest = load_manifest(store, name)
            try:
                problems = problems_of(store, name, manifest)
            except FileNotFoundError as error:
                problems = [f"{error.filename or error} is missing; prepare the dataset again"]
            if not problems or load_manifest(store, name) == manifest:
                return problems
        except WrongInput as error:
            return [str(error)]


def problems_of(store: AnyPath, name: str, manifest: Manifest) -> list[str]:
    folder = dataset_path(store, name)
    files = [(folder / shard.path, shard.sha256) for shard in manifest.shards]
    altered = "is not the file that was prepared: it was altered or damaged"
    problems = [
        f"{path} {altered if path.is_file() else 'is missing'}; prepare the dataset again"
        for path, sha256 in files
        if not path.is_file() or path.sha256() != sha256
    ]
    if problems:
        return problems
    try:
        found = identity_of(
            block_digests(store, manifest),
            manifest.n_rows,
            manifest.n_features,
            manifest.layout,
            manifest.value_type,
        )
    except (pa.ArrowInvalid, LookupError) as error:
        return [f"{folder}: its shards cannot be read ({error}); prepare the dataset again"]
    other = f"{folder}: the manifest is not that of these shards; prepare the dataset again"
    return [] if found == manifest.dataset_hash else [other]


def block_digests(store: AnyPath, manifest: Manifest) -> Iterator[bytes]:
    left: list[Piece] = []
    for shard in manifest.shards:
        path = dataset_path(store, manifest.name) / shard.path
        rows = shard_rows(path)
        if (rows.n_rows, rows.values.size) != (shard.n_rows, shard.n_values):
            raise pa.ArrowInvalid(
                f"{path} has {rows.n_rows} rows and {rows.values.size} values, and the manifest"
                " says otherwise"
            )
        rows = concatenated([*left, rows])
        whole = rows.n_rows // BLOCK * BLOCK
        left = [rows.between(whole, rows.n_rows)]
        yield digests_of(rows.between(0, whole), manifest.layout)[0]
    for rows in left:  # the last block
        yield digests_of(rows, manifest.layout)[0]
