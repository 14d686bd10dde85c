"""Preparing piece by piece: the dataset does not depend on how its source was cut, nor on where the work was done."""

import hashlib
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream.manifest import datasets_folder, load_manifest
from storage.dataset import Dataset
from storage.prepare import Preparing, prepare_source
from storage.table import Table
from storage.transform import SCALES
from storage.verify import dataset_problems

numbers = st.sampled_from([0.0, 0.0, 0.0, 1.0, 3.0, 0.1, 7.5, 1e-9])


def as_table(X, y, layout, rows_a_piece):
    n, d = X.shape
    if layout == "dense":
        return Table(y, np.arange(n + 1) * d, np.zeros(0, np.int32), X.ravel().copy(), d, "dense", rows_a_piece=rows_a_piece)
    matrix = scipy.sparse.csr_array(X)
    return Table(y, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, d, "sparse", rows_a_piece=rows_a_piece)


def scaled(X, scale):
    """Each scale, literally, on a dense matrix."""
    if scale == "minmax":
        low, high = X.min(axis=0), X.max(axis=0)
        return np.divide(X - low, high - low, out=np.zeros_like(X), where=high > low)
    if scale == "unit-mean-square":
        return X / math.sqrt((X**2).sum() / len(X))
    if scale == "tf-idf":
        X = X * (np.log((1 + len(X)) / (1 + (X != 0).sum(axis=0))) + 1)
    if scale != "none":
        norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return np.divide(X, norms, out=np.zeros_like(X), where=norms > 0)
    return X


def literal_identity(X, y, layout, value_type):
    """The identity from its definition: blocks of 64 rows, each row without its zeros unless it is dense."""
    digest = hashlib.sha256(f"koco-stream rows 2|{len(X)}|{X.shape[1]}|{layout}|{value_type}".encode())
    for lo in range(0, len(X), 64):
        rows = X[lo : lo + 64]
        kept = np.ones_like(rows, bool) if layout == "dense" else rows != 0
        block = y[lo : lo + 64].tobytes() + kept.sum(axis=1).astype(np.int64).tobytes()
        if layout == "sparse":
            block += np.nonzero(kept)[1].astype(np.int32).tobytes()
        digest.update(hashlib.sha256(block + rows[kept].astype(value_type).tobytes()).digest())
    return digest.hexdigest()


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(),
    n=st.integers(1, 200),
    layout=st.sampled_from(["sparse", "dense"]),
    scale=st.sampled_from(SCALES),
    task=st.sampled_from(["classification", "regression"]),
)
def test_dataset__does_not_depend_on_the_cuts(data, n, layout, scale, task, tmp_path_factory):
    if scale == "tf-idf" and layout == "dense":
        return
    seed = data.draw(st.integers(0, 10**6))
    draw = np.random.default_rng(seed)
    X = draw.choice([0.0, 0.0, 0.0, 1.0, 3.0, 0.1, 7.5, 1e-9], (n, 4))
    X[0, 0] = 1.0
    y = draw.integers(0, 3, n).astype(float)
    found = set()
    for _ in range(3):
        pieces, values = data.draw(st.integers(1, n)), data.draw(st.integers(1, 5 * n))
        store = tmp_path_factory.mktemp("store")
        how = Preparing(scale=scale, task=task, values_per_shard=values)
        manifest = prepare_source(store, "x", as_table(X, y, layout, pieces), how)
        array = Dataset(store, "x").to_dask_array()
        rows = np.vstack([np.asarray(c.todense() if layout == "sparse" else c) for c in map(compute, array.to_delayed().ravel())])
        labels = Dataset(store, "x").labels().compute(scheduler="synchronous")
        np.testing.assert_allclose(rows, scaled(X, scale), rtol=1e-12, atol=0)
        np.testing.assert_allclose(labels, scaled(y[:, None], "minmax")[:, 0] if (scale, task) == ("minmax", "regression") else y)
        assert manifest.dataset_hash == literal_identity(rows, labels, layout, manifest.value_type)
        assert dataset_problems(store, "x") == []
        assert manifest.statistics["label_mean"] == pytest.approx(labels.mean())
        assert manifest.statistics["mean_square_norm"] == pytest.approx((rows**2).sum(axis=1).mean())
        assert all(shard.n_values <= max(values, 4) for shard in manifest.shards)
        found.add((manifest.dataset_hash, str(manifest.statistics), str(manifest.transformations)))
    assert len(found) == 1


def compute(delayed):
    return delayed.compute(scheduler="synchronous")


def test_dask_array__stays_sparse(small_store):
    X = Dataset(small_store, "sparse").to_dask_array()
    assert X.numblocks[0] == len(load_manifest(small_store, "sparse").shards) > 1
    assert isinstance(X._meta, sparse.GCXS)
    assert isinstance(X.blocks[1].compute(scheduler="synchronous"), sparse.GCXS)
    assert (X**2).sum().compute(scheduler="synchronous").todense() == pytest.approx(np.sum([1 for n in sizes_of(small_store) if n]))


def sizes_of(store):
    folder = datasets_folder(store) / "sparse"
    return [len(row) for s in load_manifest(store, "sparse").shards for row in pq.read_table(folder / s.path).column("values").to_pylist()]


def test_verify__names_what_was_altered(small_store):
    manifest = load_manifest(small_store, "sparse")
    assert dataset_problems(small_store, "sparse") == []
    path = datasets_folder(small_store) / "sparse" / manifest.shards[1].path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    (problem,) = dataset_problems(small_store, "sparse")
    assert str(path) in problem
    assert "altered" in problem
    path.unlink()
    assert "missing" in dataset_problems(small_store, "sparse")[0]
    path.write_bytes(whole)
    text = datasets_folder(small_store) / "sparse" / "manifest.json"
    text.write_text(text.read_text().replace(manifest.dataset_hash, "0" * 64))
    assert "not that of these shards" in dataset_problems(small_store, "sparse")[0]
