"""Preparing in blocks: what is held in memory and on disk, interrupted work, and verify."""

import hashlib
import json
import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse
import sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import storage.dataset
from koco_stream import WrongInput
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.dataset import Dataset, dataset_problems
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.preparing.transform import SCALES
from tests.helpers.cut import meanwhile
from tests.helpers.sweeps import dense_rows
from tests.helpers.tables import table_of


def scaled(X, scale, n=None):
    """Each scale, literally, on a dense matrix, with the statistics of its first n rows."""
    known = X[:n]
    if scale == "minmax":
        low, high = known.min(axis=0), known.max(axis=0)
        return np.divide(X - low, high - low, out=np.zeros_like(X), where=high > low)
    if scale == "unit-mean-square":
        return X / math.sqrt((known**2).sum() / len(known))
    if scale == "tf-idf":
        X = X * (np.log((1 + len(known)) / (1 + (known != 0).sum(axis=0))) + 1)
    if scale != "none":
        norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
        return np.divide(X, norms, out=np.zeros_like(X), where=norms > 0)
    return X


def literal_identity(X, y, layout, value_type):
    """The identity from its definition: blocks of 64 rows, each row without its zeros unless it is
    dense.
    """
    digest = hashlib.sha256(
        f"koco-stream rows 2|{len(X)}|{X.shape[1]}|{layout}|{value_type}".encode()
    )
    for lo in range(0, len(X), 64):
        rows = X[lo : lo + 64]
        kept = np.ones_like(rows, bool) if layout == "dense" else rows != 0
        block = y[lo : lo + 64].tobytes() + kept.sum(axis=1).astype(np.int64).tobytes()
        if layout == "sparse":
            block += np.nonzero(kept)[1].astype(np.int32).tobytes()
        digest.update(hashlib.sha256(block + rows[kept].astype(value_type).tobytes()).digest())
    return digest.hexdigest()


@settings(max_examples=20, deadline=None)
@given(
    data=st.data(),
    n=st.integers(1, 100),
    of_source=st.sampled_from(["sparse", "dense"]),
    layout=st.sampled_from(["sparse", "dense"]),
    scale=st.sampled_from(SCALES),
    task=st.sampled_from(["classification", "regression"]),
)
def test_dataset__does_not_depend_on_the_cuts_nor_its_values_on_the_layouts(
    data, n, of_source, layout, scale, task, tmp_path_factory
):
    assume((scale, layout) != ("tf-idf", "dense"))
    first = None
    if scale not in ("none", "unit-rows"):
        first = data.draw(st.one_of(st.none(), st.integers(1, n)))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    X = draw.choice([0.0, -0.0, 0.0, 1.0, 3.0, 0.1, 7.5, 1e-9], (n, 4))
    X[0, 0] = 1.0
    y = draw.choice([0.0, -0.0, 1.0, 2.0], n)
    y[0], y[min(1, n - 1)] = 0, 1  # a real target has to vary in the first rows
    assume(not (scale == "minmax" and task == "regression" and first == 1))
    found = set()
    for _ in range(2):
        pieces, values = data.draw(st.integers(1, n)), data.draw(st.integers(1, 5 * n))
        store = tmp_path_factory.mktemp("store")
        how = Preparing(
            layout=layout, scale=scale, scale_rows=first, task=task, values_per_shard=values
        )
        matrix = X if of_source == "dense" else scipy.sparse.csr_array(X)
        manifest = prepare_source(store, "x", table_of(matrix, y, rows_per_piece=pieces), how)
        rows, labels = dense_rows(store)
        # sparse rows keep their zeros, so that [0, max] is the range if a feature may be absent
        zeros = np.zeros((1, 4)) if layout == "sparse" and scale == "minmax" and first else X[:0]
        literal = scaled(np.vstack([zeros, X]), scale, first and first + len(zeros))[len(zeros) :]
        if zeros.size and first == n:
            literal = scaled(X, scale)
        np.testing.assert_allclose(rows, literal, rtol=1e-12, atol=1e-13)
        assert not np.signbit([*rows[rows == 0], *labels[labels == 0], *manifest.classes]).any()
        label_scale = scale if task == "regression" and scale == "minmax" else "none"
        np.testing.assert_allclose(
            labels, scaled(y[:, None], label_scale, first)[:, 0], rtol=1e-12, atol=1e-13
        )
        assert manifest.dataset_hash == literal_identity(rows, labels, layout, manifest.value_type)
        assert dataset_problems(store, "x") == []
        assert manifest.statistics == pytest.approx(
            {
                "label_min": labels.min(),
                "label_max": labels.max(),
                "label_mean": labels.mean(),
                "mean_square_norm": (rows**2).sum(axis=1).mean(),
                "empty_rows": (rows == 0).all(axis=1).sum() if layout == "sparse" else 0,
            }
        )
        assert all(
            one.n_values <= max(values, 4) and one.n_rows <= values for one in manifest.shards
        )
        found.add((manifest.dataset_hash, str(manifest.statistics), str(manifest.transformations)))
    assert len(found) == 1


@pytest.mark.long  # compiles what the package sparse has
def test_dask_array__stays_sparse_and_has_the_rows(small_store):
    X = Dataset(small_store, "sparse").to_dask_array()
    manifest = load_manifest(small_store, "sparse")
    assert X.numblocks[0] == len(manifest.shards) > 1
    assert {type(X._meta), type(X.blocks[1].compute(scheduler="synchronous"))} == {sparse.GCXS}
    rows = X.compute(scheduler="synchronous").todense()
    assert (rows == dense_rows(small_store, "sparse")[0]).all()
    norms = (X**2).sum().compute(scheduler="synchronous").todense()
    assert norms == pytest.approx(manifest.n_rows - manifest.statistics["empty_rows"])


def test_verify__from_the_command_line(small_store, koco):
    verify = partial(koco, "store", "verify", "--store", small_store)
    told = json.loads(verify("--json", status=0).stdout)
    assert {row["what"]: row["state"] for row in told} == {
        "dataset real": "ok",
        "dataset sparse": "ok",
        "results": "ok",
    }
    shard = small_store / "datasets" / "real" / load_manifest(small_store, "real").shards[0].path
    shard.write_bytes(shard.read_bytes()[:-1])
    assert f"{shard} is not the file that was prepared: it was altered" in verify(status=1).stdout
    shard.unlink()
    assert f"{shard} is missing" in verify(status=1).stdout
    verify("other", status=2)


def test_dataset_that_is_not_there__is_answered_with_the_nearest_or_a_few(tmp_path):
    for name in ("drift,n_rows=1", "drift,n_rows=2", *(f"mine{k}" for k in range(6))):
        file = tmp_path / "datasets" / name / "manifest.json"
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    for name, said in (
        ("mine", r"did you mean 'mine\d'\? \("),
        ("xyz", r"there are: mine0, mine1, mine2, mine3, mine4, … \("),
    ):
        with pytest.raises(WrongInput, match=said):
            load_manifest(tmp_path, name)


def test_manifest__altered_anywhere_is_refused(small_store):
    manifest = load_manifest(small_store, "sparse")
    path = small_store / "datasets" / "sparse" / "manifest.json"
    whole = path.read_bytes()
    for position in range(0, len(whole), 17):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 2]) + whole[position + 1 :])
        assert (
            dataset_problems(small_store, "sparse")
            or load_manifest(small_store, "sparse") == manifest
        )


def test_manifest__that_leads_elsewhere_or_miscounts_is_refused(small_store):
    manifest = load_manifest(small_store, "sparse")
    path = small_store / "datasets" / "sparse" / "manifest.json"
    first, second, *others = manifest.shards
    moved = [replace(first, n_rows=first.n_rows - 1), replace(second, n_rows=second.n_rows + 1)]
    cases = {
        "is the manifest of dataset 'real'": {"name": "real"},
        "do not have 701 rows": {"n_rows": 701},
        "shards cannot be read .* rows .* manifest says otherwise": {"shards": [*moved, *others]},
        "values, and the manifest says": {
            "shards": [replace(first, n_values=first.n_values + 1), second, *others]
        },
        "not that of these shards": {"shards": [second, first, *others]},
        "manifest is not that of": {"n_features": 41},
        "the manifest is not that of these shards": {"dataset_hash": "0" * 64},
    }
    for message, wrong in cases.items():
        path.write_text(replace(manifest, **wrong).to_json())
        (problem,) = dataset_problems(small_store, "sparse")
        assert re.search(message, problem), problem
    path.write_text(replace(manifest, shards=[*moved, *others]).to_json())
    with pytest.raises(WrongInput, match=r"rows, and .* in the manifest"):
        list(StreamReader(small_store, Stream("sparse", manifest.dataset_hash)).blocks())


def test_verify__of_a_dataset_that_is_prepared_anew_meanwhile_is_of_the_new_one(
    small_store, tmp_path, monkeypatch
):
    again = partial(prepare_file, source=tmp_path / "sparse.svm")
    meanwhile(
        monkeypatch, storage.dataset, "problems_of", lambda store, name, _: again(store, name)
    )
    assert dataset_problems(small_store, "sparse") == []
    assert len(load_manifest(small_store, "sparse").shards) == 1
