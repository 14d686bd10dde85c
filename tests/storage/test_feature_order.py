"""Features in the order of their frequency: the same rows under other numbers, and a table of the
original numbers is kept with the rows.
"""

import json
import os
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import koco_stream
from koco_stream import OGD, AdaGrad, OjaSON, WrongInput
from koco_stream.io.files import file_hash
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import FeatureTable, load_manifest
from storage.dataset import Dataset
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.preparing.transform import SCALES
from storage.verify import dataset_problems
from tests.helpers.tables import table_of


def rows_of(store, name):
    """(label, {feature: value}) of each row, as its shards hold them, sorted by feature."""
    for shard in load_manifest(store, name).shards:
        for row in pq.read_table(store / "datasets" / name / shard.path).to_pylist():
            assert row["indices"] == sorted(set(row["indices"]))
            yield row["label"], dict(zip(row["indices"], row["values"], strict=True))


def by_frequency(rows, d):
    """The original number of each new one, literally: rows with a non-zero value, most first."""
    X = np.zeros((len(rows), d))
    for t, (_, cells) in enumerate(rows):
        X[t, list(cells)] = list(cells.values())
    return np.argsort(-(X != 0).sum(axis=0), kind="stable").tolist()


def random_matrix(seed, n, d):
    """Rows with zeros, features that never occur, and ties."""
    draw = np.random.default_rng(seed)
    present = draw.random((n, d)) < draw.choice([0.0, 0.2, 0.2, 0.9], d)
    return present * draw.choice([1.0, 3.0, 0.1, 7.5, 1e-9, 1 / 3], (n, d))


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    seed=st.integers(0, 10**6),
    n=st.integers(1, 150),
    d=st.integers(1, 12),
    of_source=st.sampled_from(["sparse", "dense"]),
    scale=st.sampled_from(sorted(set(SCALES) - {"standard"})),
    bits=st.sampled_from([None, None, 2, 6]),
)
def test_rows__mapped_back_are_to_the_bit_those_without_the_option(
    data, seed, n, d, of_source, scale, bits, tmp_path_factory
):
    store, X = tmp_path_factory.mktemp("store"), random_matrix(seed, n, d)
    assume(X.any())
    y, names = np.arange(n) % 2.0, [f"name {j}" for j in range(d)]
    options = {"layout": "sparse", "scale": scale, "hash_bits": bits}
    matrix = X if of_source == "dense" else scipy.sparse.csr_array(X)
    plain = prepare_source(
        store, "plain", table_of(matrix, y, feature_names=names), Preparing(**options)
    )
    expected = list(rows_of(store, "plain"))
    made = []
    for _ in range(2):
        source = table_of(
            matrix, y, feature_names=names, rows_per_piece=data.draw(st.integers(1, n))
        )
        how = Preparing(
            **options, order_features="frequency", values_per_shard=data.draw(st.integers(1, 5 * n))
        )
        made.append(prepare_source(store, "x", source, how))
        original = Dataset(store, "x").original_features().tolist()
        assert original == by_frequency(expected, plain.n_features)
        assert expected == [
            (label, {original[j]: value for j, value in cells.items()})
            for label, cells in rows_of(store, "x")
        ]
        assert dataset_problems(store, "x") == []
    assert made[0].dataset_hash == made[1].dataset_hash
    assert made[0].feature_table.sha256 == made[1].feature_table.sha256
    assert (made[0].dataset_hash == plain.dataset_hash) == (original == sorted(original))
    assert made[0].feature_names == ([] if bits else [names[j] for j in original])
    assert made[0].value_type == plain.value_type
    assert made[0].transformations == [
        *plain.transformations,
        "features renumbered by the number of rows with a non-zero value, most first",
    ]


WORDS = "1 2:1 4:1\n-1 2:1\n1 1:2 2:1 4:3\n"


@pytest.fixture
def store(tmp_path):
    """A store with the dataset "x" of `WORDS` in the order of frequency: 2, 4, 1, 3 from 1."""
    (tmp_path / "a.svm").write_text(WORDS)
    prepare_file(tmp_path / "store", "x", tmp_path / "a.svm", order_features="frequency")
    return tmp_path / "store"


def files_in(folder):
    """The files below a folder, with their content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_command__states_the_option_in_the_manifest(store, tmp_path, koco):
    done = koco(
        *("prepare", "y", "--from", tmp_path / "a.svm", "--store", store),
        *("--order-features", "frequency", "--json"),
        status=0,
    )
    content = json.loads(done.stdout)
    assert content["transformations"] == load_manifest(store, "x").transformations
    assert content["feature_table"]["path"].endswith("/features.parquet")
    table = pq.read_table(store / "datasets" / "y" / content["feature_table"]["path"])
    assert table.to_pydict() == {"feature": [0, 1, 2, 3], "original": [1, 3, 0, 2]}


def test_dataset_without_the_option__has_its_own_numbers_and_no_table(small_store):
    dataset = Dataset(small_store, "sparse")
    assert dataset.manifest.feature_table is None
    assert dataset.original_features().tolist() == list(range(40))


def test_table__missing_or_damaged_is_named_with_what_to_do(store):
    path = store / "datasets" / "x" / load_manifest(store, "x").feature_table.path
    whole = path.read_bytes()
    cases = {
        f"{path} is not the file that was prepared: it was altered": [
            *(whole[:-1], whole[:40], b"", whole.replace(b"original", b"originaX"))
        ],
        f"{path} is missing; prepare the dataset again": [None],
    }
    for message, contents in cases.items():
        for content in contents:
            path.unlink() if content is None else path.write_bytes(content)
            (problem,) = dataset_problems(store, "x")
            assert problem.startswith(message)
            with pytest.raises(WrongInput, match="prepare the dataset again"):
                Dataset(store, "x").original_features()


def test_table__that_the_manifest_takes_from_elsewhere_is_refused(store):
    """Written by somebody, with a manifest that has its hash: the numbers are indices of arrays."""
    folder, manifest = store / "datasets" / "x", load_manifest(store, "x")
    path = folder / manifest.feature_table.path
    numbers, text = np.arange(4, dtype=np.int32), pa.array(["a"] * 4)
    tables = [
        {"feature": numbers, "original": np.array([0, 1, 2, 2], np.int32)},
        {"feature": numbers, "original": np.array([0, 1, 2, 4], np.int32)},
        {"feature": numbers[::-1].copy(), "original": numbers},
        {"feature": numbers[:3], "original": numbers[:3]},
        {"feature": numbers, "original": numbers.astype(float)},
        {"feature": numbers, "original": pa.array([0, 1, 2, None], pa.int32())},
        {"feature": numbers, "original": text},
        {"original": numbers},
        {"original": numbers, "feature": numbers},
    ]
    for table in tables:
        pq.write_table(pa.table(table), path)
        entry = replace(manifest.feature_table, sha256=file_hash(path))
        (folder / "manifest.json").write_text(replace(manifest, feature_table=entry).to_json())
        (problem,) = dataset_problems(store, "x")
        assert problem == (
            f"{path} does not list each of the 4 features once; prepare the dataset again"
        )
    path.write_bytes(b"PAR1")
    entry = replace(manifest.feature_table, sha256=file_hash(path))
    (folder / "manifest.json").write_text(replace(manifest, feature_table=entry).to_json())
    (problem,) = dataset_problems(store, "x")
    assert problem.startswith(f"{path}: ")
    for wrong in ("../y/features.parquet", str(path)):
        entry = FeatureTable(wrong, manifest.feature_table.sha256)
        (folder / "manifest.json").write_text(replace(manifest, feature_table=entry).to_json())
        (problem,) = dataset_problems(store, "x")
        assert "is not in the dataset's folder" in problem


def test_dataset_in_that_order_already__is_the_same_one_and_keeps_no_other_file(tmp_path):
    """Both have the same rows, and so the same identity; only one has a table."""
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 1:1\n")
    folder, found = tmp_path / "store" / "datasets" / "x", []
    for order in (None, "frequency", None):
        manifest = prepare_file(tmp_path / "store", "x", tmp_path / "a.svm", order_features=order)
        files = {file.path for file in manifest.files}
        assert set(files_in(folder)) == {"manifest.json", *files}
        assert dataset_problems(tmp_path / "store", "x") == []
        found.append((manifest.dataset_hash, len(files)))
    assert found == [(found[0][0], 1), (found[0][0], 2), (found[0][0], 1)]


def test_prepared_again__and_killed_keeps_the_dataset_and_its_table(store, tmp_path):
    before = files_in(store)
    (tmp_path / "b.svm").write_text("1 1:1\n-1 3:1\n1 3:1\n")
    options = {"order_features": "frequency"}
    killed = mock.patch.object(StorePath, "write_text", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        prepare_file(store, "x", tmp_path / "b.svm", **options)
    assert before.items() <= files_in(store).items()
    assert dataset_problems(store, "x") == []
    assert Dataset(store, "x").original_features().tolist() == [1, 3, 0, 2]
    prepare_file(store, "x", tmp_path / "a.svm", **options)
    assert files_in(store) == before
    failing = mock.patch.object(os, "fsync", side_effect=OSError("the disk fails"))
    with failing, pytest.raises(OSError, match="the disk fails"):
        prepare_file(store, "x", tmp_path / "b.svm", **options)
    assert files_in(store) == before


@pytest.mark.parametrize(
    ("learner", "tolerance"),
    [
        (OGD(step_size=0.1), 1e-9),
        (AdaGrad(step_size=0.1), 1e-9),
        (OjaSON(sketch_size=5, sketch_start="gradients"), 1e-6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_learners__predict_the_same_but_for_rounding(learner, tolerance, small_store, tmp_path):
    """Only the order of sums differs, and no learner takes a feature for another."""
    options = {"scale": "unit-rows", "order_features": "frequency"}
    prepare_file(small_store, "ordered", tmp_path / "sparse.svm", **options)
    predictions = []
    for name in ("sparse", "ordered"):
        X, y = koco_stream.stream(small_store, name, positive_class=1).whole()
        predictions.append(clone(learner).progressive(X, y))
    plain, ordered = predictions
    assert np.abs(plain).max() > 0.1
    np.testing.assert_allclose(ordered, plain, rtol=tolerance, atol=tolerance * 1e-3)
