"""Preparing: what comes out is what went in, in order; what is wrong is refused with its place, and the store stays as it was."""

import bz2
import gzip
import lzma
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from koco_stream import WrongInput
from koco_stream.files import file_hash
from koco_stream.manifest import datasets_folder, load_manifest
from koco_stream.runs import Stream
from koco_stream.stream import StreamReader
from storage.prepare import prepare_file


def read_back(store, name, **stream):
    """The stream's rows as a dense matrix, and its labels."""
    manifest = load_manifest(store, name)
    blocks = list(StreamReader(store, Stream(name, manifest.dataset_hash, **stream)).blocks(block_rows=7))
    X, y = [], []
    for block in blocks:
        rows = block.rows
        if rows.index_stride:
            X.append(scipy.sparse.csr_matrix((rows.values, rows.indices, rows.indptr), (rows.n_rows, rows.n_features)).toarray())
        else:
            X.append(rows.values.reshape(rows.n_rows, rows.n_features))
        y.append(block.labels)
    return np.vstack(X), np.concatenate(y)


def tree(folder):
    """Every file below a folder, with its content's hash."""
    return {str(p.relative_to(folder)): file_hash(p) for p in folder.rglob("*") if p.is_file()} if folder.exists() else None


table = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.5, 0.1, 3e-9, 1e30]), min_size=4, max_size=4), min_size=n, max_size=n)
)


@settings(max_examples=25, deadline=None)
@given(rows=table, per_shard=st.integers(1, 20), seed=st.integers(0, 5))
def test_prepared__streams_back_the_rows_in_order(rows, per_shard, seed, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("prepare")
    X = np.array(rows)
    X[0, 3] = 7.0  # so that the largest feature number is seen
    y = np.arange(len(X)) % 2 * 2.0 - 1
    text = "".join(
        f"{label:g} {' '.join(f'{j + 1}:{v!r}' for j, v in enumerate(x.tolist()) if v)}\n" for x, label in zip(X, y, strict=True)
    )
    (tmp / "a.svm").write_text(text)
    prepare_file(tmp / "store", "a", tmp / "a.svm", values_per_shard=per_shard)
    back, labels = read_back(tmp / "store", "a")
    assert (back == X).all()
    assert (labels == y).all()
    shuffled, labels = read_back(tmp / "store", "a", order="shuffled", order_seed=seed)
    order = np.random.default_rng([seed, 0x0D]).permutation(len(X))
    assert (shuffled == X[order]).all()
    assert (labels == y[order]).all()
    one = prepare_file(tmp / "store", "one", tmp / "a.svm")
    assert one.dataset_hash == load_manifest(tmp / "store", "a").dataset_hash


def test_same_rows__same_identity_from_every_format_and_compression(tmp_path):
    svm, vw = "1 1:0.5 3:2\n-1 2:1\n1 \n", "1 |f 2:2 0:0.5\n-1 | 1\n1 |\n"
    (tmp_path / "a.svm").write_text(svm)
    (tmp_path / "a.vw").write_text(vw)
    (tmp_path / "crlf.svm").write_bytes(b"\xef\xbb\xbf" + svm.replace("\n", "\r\n").encode())
    for suffix, module in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        (tmp_path / f"a.svm{suffix}").write_bytes(module.compress(svm.encode()))
    identities = set()
    for source in sorted(p for p in tmp_path.iterdir() if p.is_file()):
        identities.add(prepare_file(tmp_path / "store", "x", source).dataset_hash)
    assert len(identities) == 1


def test_csv__header_target_and_minmax(tmp_path):
    (tmp_path / "a.csv").write_text("y,a,b\n10,1,5\n20,3,5\n30,2,5\n")
    manifest = prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", target="y", scale="minmax", task="regression")
    X, y = read_back(tmp_path / "store", "a")
    assert X.tolist() == [[0, 0], [1, 0], [0.5, 0]]
    assert y.tolist() == [0, 0.5, 1]
    assert manifest.feature_names == ["a", "b"]
    assert len(manifest.transformations) == 2


def test_scales(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:3 2:4\n-1 2:1\n1\n")
    prepare_file(tmp_path / "store", "unit", tmp_path / "a.svm", scale="unit-rows")
    np.testing.assert_allclose(read_back(tmp_path / "store", "unit")[0], [[0.6, 0.8], [0, 1], [0, 0]])
    prepare_file(tmp_path / "store", "mean", tmp_path / "a.svm", scale="unit-mean-square")
    assert (read_back(tmp_path / "store", "mean")[0] ** 2).sum(1).mean() == pytest.approx(1)
    prepare_file(tmp_path / "store", "tfidf", tmp_path / "a.svm", scale="tf-idf")
    from sklearn.feature_extraction.text import TfidfTransformer

    np.testing.assert_allclose(
        read_back(tmp_path / "store", "tfidf")[0], TfidfTransformer().fit_transform(np.array([[3, 4], [0, 1], [0, 0]])).toarray()
    )


WRONG = {
    "bad token": ("a.svm", "1 1:2\n-1 3:x\n", r"a\.svm, line 2: the value of feature 3 is 'x'"),
    "underscore": ("a.svm", "1 1:1_000\n", r"line 1: the value of feature 1 is '1_000'"),
    "no colon": ("a.svm", "1 1:2\n-1 3\n", r"line 2: '3' is not a feature"),
    "nan": ("a.svm", "1 1:2\n-1 3:nan\n", r"line 2: .*'nan'.* remove the row or fill"),
    "infinity": ("a.svm", "1 1:2\ninf 3:1\n", r"line 2: the label is 'inf'"),
    "overflow": ("a.svm", "1 1:1e999\n", r"line 1: .*'1e999'"),
    "descending": ("a.svm", "1 3:2 2:1\n", r"line 1: feature 2 comes after 3"),
    "duplicate": ("a.svm", "1 3:2 3:1\n", r"line 1: feature 3 comes after 3"),
    "zero index": ("a.svm", "1 0:2\n", r"line 1: feature 0 .*--zero-based"),
    "index overflow": ("a.svm", "1 99999999999:2\n", r"line 1: feature 99999999999 is beyond"),
    "qid": ("a.svm", "1 qid:3 1:2\n", r"line 1: .*query ids"),
    "text label": ("a.svm", "spam 1:2\n", r"line 1: the label is 'spam'"),
    "nul": ("a.svm", "1 1:2\n1 1:\x00\n", r"line 2: a NUL byte"),
    "empty": ("a.svm", "", r"a\.svm: the file holds no rows"),
    "blank": ("a.csv", "\n\n", r"a\.csv: the file holds no rows"),
    "header only": ("a.csv", "a,b\n", r"a\.csv: the file holds no rows"),
    "ragged": ("a.csv", "a,b\n1,2\n1,2,3\n", r"a\.csv, line 3: 3 columns where the first line has 2"),
    "csv nan": ("a.csv", "a,b\n1,2\nNaN,3\n", r"line 3: column 'a' is 'NaN'"),
    "csv missing": ("a.csv", "1,2\n,3\n", r"line 2: column 1 is ''"),
    "csv quote": ("a.csv", 'a,b\n1,"2\n', r"line 2"),
    "csv latin": ("a.csv", b"a,b\n1,\xff\n", r"line 2: .*UTF-8"),
    "one column": ("a.csv", "a\n1\n", r"line 1: one column only"),
    "vw namespaces": ("a.vw", "1 |a 1:2 |b 3:1\n", r"line 1: more than one namespace"),
    "vw importance": ("a.vw", "1 2.0 |a 1:2\n", r"line 1: '1 2.0' before"),
    "vw names": ("a.vw", "1 |a cat:2\n", r"line 1: feature 'cat' is not a number"),
    "vw no bar": ("a.vw", "1 |a 1:2\n1 1:2\n", r"line 2: no '\|'"),
    "no format": ("a.txt", "the quick brown fox\n", r"line 1: neither LIBSVM, VW nor CSV"),
    "truncated xz": ("a.svm.xz", lzma.compress(os.urandom(2000).hex().encode())[:-40], r"cut short or damaged"),
    "truncated gz": ("a.svm.gz", gzip.compress(b"1 1:2\n" * 9999)[:-30], r"cut short or damaged"),
    "not bz2": ("a.svm.bz2", b"1 1:2\n", r"damaged"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("there", [True, False])
def test_wrong_file__is_refused_with_its_place_and_the_store_unchanged(case, there, tmp_path):
    store = tmp_path / "store"
    if there:
        (tmp_path / "good.svm").write_text("1 1:1\n-1 2:1\n")
        prepare_file(store, "x", tmp_path / "good.svm")
    before = tree(store)
    name, content, message = WRONG[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WrongInput, match=message):
        prepare_file(store, "x", tmp_path / name)
    assert tree(store) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "price"}, "did you mean 'prize'"),
        ({"scale": "median"}, "median is not one of"),
        ({"scale": "tf-idf"}, "takes counts"),
    ],
)
def test_wrong_option__is_refused(options, message, tmp_path):
    (tmp_path / "a.csv").write_text("prize,b\n1,-2\n3,4\n")
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", **options)
    assert tree(tmp_path / "store") is None


def test_a_folder_that_is_no_store__is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(WrongInput, match="is not a store"):
        prepare_file(tmp_path, "a", tmp_path / "a.svm")


def test_newer_store__is_refused(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "koco-store.json").write_text('{"format": 99}')
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(WrongInput, match="format 99"):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.svm")


def test_prepared_again__replaces_the_dataset_whole(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    (tmp_path / "b.svm").write_text("1 1:1\n-1 2:2\n")
    first = prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    before = tree(tmp_path / "store")
    assert prepare_file(tmp_path / "store", "x", tmp_path / "a.svm") == first
    assert tree(tmp_path / "store") == before
    second = prepare_file(tmp_path / "store", "x", tmp_path / "b.svm")
    assert second.dataset_hash != first.dataset_hash
    assert len(list((datasets_folder(tmp_path / "store") / "x").rglob("*.parquet"))) == 1
    assert [p.name for p in (tmp_path / "store").iterdir() if p.name.startswith(".")] == []


def test_shards__are_read_by_other_tools(small_store):
    manifest = load_manifest(small_store, "sparse")
    assert len(manifest.shards) > 1
    table = pq.read_table(datasets_folder(small_store) / "sparse" / manifest.shards[0].path)
    assert table.column_names == ["label", "indices", "values"]
    assert table.schema.metadata[b"n_features"] == b"40"


@pytest.mark.data
def test_real_files(data_folder, tmp_path):
    news = prepare_file(tmp_path / "store", "20news", data_folder / "20news" / "20news_bow_counts.svm.xz", scale="unit-rows")
    assert (news.n_rows, news.n_features) == (18846, 101631)
    assert news.n_values / news.n_rows == pytest.approx(93.89, abs=0.005)
    cpu = prepare_file(tmp_path / "store", "cpusmall", data_folder / "cpusmall" / "cpu.small.csv.xz", target="usr", scale="minmax")
    assert (cpu.n_rows, cpu.n_features, cpu.task) == (8192, 12, "regression")
    assert (cpu.statistics["label_min"], cpu.statistics["label_max"]) == (0.0, 1.0)
