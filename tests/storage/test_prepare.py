"""Preparing: what comes out is what went in, in order; what is wrong is refused with its place, and
the store stays as it was.
"""

import json
import os
import shutil
import socket
import tempfile

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.prepare.preparation import prepare_named
from koco_stream import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.io.paths import LocalPath
from koco_stream.streams.manifest import datasets_folder, load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.generated.datasets import prepare_synthetic
from storage.generated.generators import synthetic_name
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.sources.table import Table
from storage.store import check_store, open_store, staging_folder
from tests.helpers.malformed import MALFORMED, PACKED


def read_back(store, name, **stream):
    """The stream's rows as a dense matrix, and its labels."""
    manifest = load_manifest(store, name)
    blocks = list(
        StreamReader(store, Stream(name, manifest.dataset_hash, **stream)).blocks(block_rows=7)
    )
    X, y = [], []
    for block in blocks:
        rows = block.rows
        if rows.index_stride:
            X.append(
                scipy.sparse.csr_matrix(
                    (rows.values, rows.indices, rows.indptr), (rows.n_rows, rows.n_features)
                ).toarray()
            )
        else:
            X.append(rows.values.reshape(rows.n_rows, rows.n_features))
        y.append(block.labels)
    return np.vstack(X), np.concatenate(y)


def tree(folder):
    """Every file below a folder, with its content's hash."""
    return (
        {str(p.relative_to(folder)): file_hash(p) for p in folder.rglob("*") if p.is_file()}
        if folder.exists()
        else None
    )


table = st.integers(1, 12).flatmap(
    lambda n: st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.5, 0.1, 3e-9, 1e30]), min_size=4, max_size=4),
        min_size=n,
        max_size=n,
    )
)


@settings(max_examples=25, deadline=None)
@given(rows=table, per_shard=st.integers(1, 20), seed=st.integers(0, 5))
def test_prepared__streams_back_the_rows_in_order(rows, per_shard, seed, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("prepare")
    X = np.array(rows)
    X[0, 3] = 7.0  # so that the largest feature number is seen
    y = np.arange(len(X)) % 2 * 2.0 - 1
    text = "".join(
        f"{label:g} {' '.join(f'{j + 1}:{v!r}' for j, v in enumerate(x.tolist()) if v)}\n"
        for x, label in zip(X, y, strict=True)
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
    for suffix, pack in PACKED.items():
        (tmp_path / f"a.svm{suffix}").write_bytes(pack(svm.encode()))
    identities = set()
    for source in sorted(p for p in tmp_path.iterdir() if p.is_file()):
        identities.add(prepare_file(tmp_path / "store", "x", source).dataset_hash)
    assert len(identities) == 1


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_zeros_with_a_sign__are_zeros(layout, tmp_path):
    texts = "1,0,0\n-3,2,1\n", "1,-0.0,-0\n-3,2,1\n"
    manifests = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_text(text)
        manifests.append(
            prepare_file(tmp_path / "store", f"{number}", tmp_path / f"{number}.csv", layout=layout)
        )
    assert manifests[0].dataset_hash == manifests[1].dataset_hash
    assert json.dumps(manifests[1].classes) == "[0.0, 1.0]"


@pytest.mark.parametrize("scale", ["none", "minmax", "unit-rows", "unit-mean-square", "tf-idf"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_rows_of_zeros_only__are_refused_or_rows_of_zeros(scale, layout, tmp_path):
    if (layout, scale) == ("dense", "tf-idf"):
        return
    (tmp_path / "a.svm").write_text("1 2:0\n-1\n")
    with pytest.raises(
        WrongInput, match="the number of features is not known; give it with --n-features"
    ):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.svm", layout=layout, scale=scale)
    if scale == "unit-mean-square":
        with pytest.raises(WrongInput, match="every row is empty"):
            prepare_file(
                tmp_path / "store",
                "a",
                tmp_path / "a.svm",
                layout=layout,
                scale=scale,
                n_features=2,
            )
    else:
        prepare_file(
            tmp_path / "store", "a", tmp_path / "a.svm", layout=layout, scale=scale, n_features=2
        )
        assert read_back(tmp_path / "store", "a")[0].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "1 2147483647:1\n-1 1:1\n",
            {"scale": "minmax"},
            "--scale minmax keeps .* at most 16,777,216, and there are 2,147,483,647; use",
        ),
        (
            "1 2147483647:1\n-1 1:1\n",
            {"scale": "tf-idf"},
            "--scale tf-idf keeps .* at most 16,777,216, and there are 2,147,483,647; use",
        ),
        (
            "1 400000000:1\n",
            {"layout": "dense"},
            "--layout dense takes at most 16,777,216 features, and there are 400,000,000; keep",
        ),
        ("1 1:1\n", {"n_features": 2**31}, "--n-features 2147483648: .* give at most 2147483647"),
        (
            "1 1:1\nx\n",
            {"scale": "median"},
            "--scale median is not one of",
        ),  # before the source is read, which may take long
        ("1 1:1\nx\n", {"layout": "dense", "hash_bits": 3}, "--hash-bits is for sparse rows"),
    ],
)
def test_what_no_memory_holds_and_what_fits_no_source__is_refused(text, options, message, tmp_path):
    (tmp_path / "a.svm").write_text(text)
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.svm", **options)


def test_shards__have_no_more_rows_than_values_may_be(tmp_path):
    (tmp_path / "a.svm").write_text("1\n" * 250 + "1 1:1\n")
    manifest = prepare_file(tmp_path / "store", "a", tmp_path / "a.svm", values_per_shard=100)
    assert [shard.n_rows for shard in manifest.shards] == [100, 100, 51]
    assert (
        manifest.dataset_hash
        == prepare_file(tmp_path / "store", "b", tmp_path / "a.svm").dataset_hash
    )


def test_csv__header_target_and_minmax(tmp_path):
    (tmp_path / "a.csv").write_text("y,a,b\n10,1,5\n20,3,5\n30,2,5\n")
    manifest = prepare_file(
        tmp_path / "store", "a", tmp_path / "a.csv", target="y", scale="minmax", task="regression"
    )
    X, y = read_back(tmp_path / "store", "a")
    assert X.tolist() == [[0, 0], [1, 0], [0.5, 0]]
    assert y.tolist() == [0, 0.5, 1]
    assert manifest.feature_names == ["a", "b"]
    assert len(manifest.transformations) == 2


def test_scales(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:3 2:4\n-1 2:1\n1\n")
    prepare_file(tmp_path / "store", "unit", tmp_path / "a.svm", scale="unit-rows")
    np.testing.assert_allclose(
        read_back(tmp_path / "store", "unit")[0], [[0.6, 0.8], [0, 1], [0, 0]]
    )
    prepare_file(tmp_path / "store", "mean", tmp_path / "a.svm", scale="unit-mean-square")
    assert (read_back(tmp_path / "store", "mean")[0] ** 2).sum(1).mean() == pytest.approx(1)
    prepare_file(tmp_path / "store", "tfidf", tmp_path / "a.svm", scale="tf-idf")
    from sklearn.feature_extraction.text import TfidfTransformer

    np.testing.assert_allclose(
        read_back(tmp_path / "store", "tfidf")[0],
        TfidfTransformer().fit_transform(np.array([[3, 4], [0, 1], [0, 0]])).toarray(),
    )


TOO_LARGE = {"square": ("a.svm", b"1 1:1e200\n", {}, r"the largest value is 1e\+200")}


@pytest.mark.parametrize("case", [*MALFORMED, *TOO_LARGE])
def test_wrong_file__is_refused_with_its_place_and_the_store_unchanged(case, tmp_path):
    name, content, options, message = {**MALFORMED, **TOO_LARGE}[case]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.svm").write_text("1 1:1\n-1 2:1\n")
    for there in (False, True):
        store = tmp_path / f"store-{there}"
        if there:
            prepare_file(store, "x", tmp_path / "good.svm")
        before = tree(store)
        with pytest.raises(WrongInput, match=f"(?s){message}"):
            prepare_file(store, "x", tmp_path / name, **options)
        assert tree(store) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "²"}, "--target ²: no such column"),
        ({"target": "9" * 5000}, "no such column"),
        ({"target": "price"}, "did you mean 'prize'"),
        ({"scale": "median"}, "median is not one of"),
        ({"scale": "tf-idf"}, "takes counts"),
        ({"scale": "none", "layout": "round"}, "round is not one of dense, sparse"),
        ({"drop": ("c",)}, "--drop c: no such column"),
        ({"drop": ("b",)}, "--drop names the target column, column 'b'"),
        ({"drop": ("prize",)}, "leaves no feature"),
        (
            {"labels": "4=1"},
            r"a\.csv, line 2: column 'b' is '-2', which --labels '4=1' does not have",
        ),
        ({"labels": "g"}, "'g' is not LABEL=NUMBER"),
        ({"labels": "4=1,4=2"}, "'4' is given twice"),
        ({"n_features": 4}, "--n-features is for LIBSVM and VW files"),
    ],
)
def test_wrong_option__is_refused(options, message, tmp_path):
    (tmp_path / "a.csv").write_text("prize,b\n1,-2\n3,4\n")
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", **options)
    assert tree(tmp_path / "store") is None


def test_a_file_that_is_to_be_a_store__is_called_one(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(WrongInput, match="is a file; a store is a folder"):
        prepare_file(tmp_path / "a.svm", "a", tmp_path / "a.svm")


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


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("1 5:1\n", {"n_features": 4}, "line 1, column 3: feature 5 is beyond --n-features 4"),
        (
            "1 5:1\n",
            {"one_hot": True},
            "--one-hot is for the columns of a CSV file, and this file is libsvm",
        ),
        ("1 2000000000:1\n1 1:1\n", {"layout": "dense"}, "GiB; keep this source sparse"),
        ("1 1:-1\n1 2:1\n", {"scale": "minmax"}, "add --layout dense"),
        ("1,red\n2,blue\n", {"target": "1"}, "line 1: numbers, and text 'red': .*--one-hot"),
        ("1,red\n2,blue\n", {}, "line 1: numbers, and text 'red': .*--labels"),
        (
            "?,1\n3,1\n",
            {"one_hot": True},
            r"column 1 holds numbers, and '\?' in its first row; fill",
        ),
        ("3,a,1\n?,b,1\n", {"one_hot": True}, r"line 2: column 1 is '\?'.*fill the value in"),
        ("1 2 3\n1 2\n", {}, "line 2: 2 columns where the first line has 3"),
    ],
)
def test_option_that_does_not_fit_the_file__is_refused(lines, options, message, tmp_path):
    (tmp_path / "a.txt").write_text(lines)
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / "store", "a", tmp_path / "a.txt", **options)
    assert tree(tmp_path / "store") is None


def test_labels__by_rule(tmp_path):
    (tmp_path / "a.csv").write_text("1,<=50K\n2,>50K\n3,<=50K.\n")
    manifest = prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", labels="<=50K=-1,>50K=1")
    assert read_back(tmp_path / "store", "a")[1].tolist() == [-1, 1, -1]
    assert manifest.transformations == ["labels by the rule <=50K=-1,>50K=1"]
    (tmp_path / "b.csv").write_text("Z,1\nA,2\n")
    prepare_file(tmp_path / "store", "b", tmp_path / "b.csv", target="1", labels="letters")
    assert read_back(tmp_path / "store", "b")[1].tolist() == [26, 1]
    (tmp_path / "c.svm").write_text("1 1:1\n2.0 2:1\n")
    prepare_file(tmp_path / "store", "c", tmp_path / "c.svm", labels="1=-1,2=1")
    assert read_back(tmp_path / "store", "c")[1].tolist() == [-1, 1]


def test_one_hot__over_all_files_and_only_texts(tmp_path):
    (tmp_path / "a.csv").write_text("5, red, 1\n0, ?, -1\n")
    (tmp_path / "b.csv").write_text("7, blue, 1\n")
    manifest = prepare_file(
        tmp_path / "store", "a", [tmp_path / "a.csv", tmp_path / "b.csv"], one_hot=True
    )
    X, y = read_back(tmp_path / "store", "a")
    assert manifest.feature_names == ["column 1", "column 2=?", "column 2=blue", "column 2=red"]
    assert X.tolist() == [[5, 0, 0, 1], [0, 1, 0, 0], [7, 0, 1, 0]]
    assert y.tolist() == [1, -1, 1]
    assert manifest.layout == "sparse"
    assert [part["file"] for part in manifest.source["files"]] == ["a.csv", "b.csv"]
    assert manifest.source["files"][1]["sha256"] == file_hash(tmp_path / "b.csv")


def test_several_files__are_read_in_order(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 3:1\n")
    (tmp_path / "b.svm").write_text("1 2:4\n")
    both = [tmp_path / "b.svm", tmp_path / "a.svm"]
    assert prepare_file(tmp_path / "store", "x", both, n_features=5).n_features == 5
    assert read_back(tmp_path / "store", "x")[0].tolist() == [
        [0, 4, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    (tmp_path / "d.csv").write_text("a,b\n3,4\n")
    prepare_file(
        tmp_path / "store", "y", [tmp_path / "c.csv", tmp_path / "d.csv"], task="regression"
    )
    assert read_back(tmp_path / "store", "y")[0].tolist() == [[1], [3]]
    (tmp_path / "e.csv").write_text("a,c\n3,4\n")
    for second, message in (
        ("e.csv", "other columns"),
        ("c.csv", "given twice"),
        ("a.svm", "is libsvm and .* is csv"),
    ):
        with pytest.raises(WrongInput, match=message):
            prepare_file(tmp_path / "store", "z", [tmp_path / "c.csv", tmp_path / second])


def test_drop_header_and_spaces(tmp_path):
    (tmp_path / "a.csv").write_text('# "id","t","x"\n1,2,3\n')
    manifest = prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", target="t", drop=["id"])
    assert manifest.feature_names == ["x"]
    assert read_back(tmp_path / "store", "a")[0].tolist() == [[3]]
    (tmp_path / "b.txt").write_text("-1 5\t 6\n1 7 8\n")
    prepare_file(tmp_path / "store", "b", tmp_path / "b.txt", target="1")
    X, y = read_back(tmp_path / "store", "b")
    assert (X.tolist(), y.tolist()) == ([[5, 6], [7, 8]], [-1, 1])


@pytest.mark.parametrize("scale", ["none", "minmax", "unit-rows", "unit-mean-square"])
@pytest.mark.parametrize("first", [2, 0])
def test_layout__changes_no_value(scale, first, tmp_path):
    rows = np.array(
        [[first, 1, 0.0, 3], [4, 0, 0, 3], [6, 5, 0, 3]]
    )  # a first feature that every row has, or not
    (tmp_path / "a.svm").write_text(
        "".join(f"1 {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}\n" for row in rows)
    )
    (tmp_path / "a.csv").write_text("".join(f"{','.join(map(str, row))},1\n" for row in rows))
    back = []
    for name in ("a.svm", "a.csv"):
        for layout in ("sparse", "dense"):
            manifest = prepare_file(
                tmp_path / "store", "x", tmp_path / name, layout=layout, scale=scale
            )
            assert manifest.layout == layout
            back.append(read_back(tmp_path / "store", "x")[0])
    for X in back:
        np.testing.assert_allclose(X, back[0], rtol=1e-15)


def test_scaling__of_zeros_and_of_the_smallest_and_largest_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("0,0,1\n1e308,1e308,1\n3e-320,4e-320,-1\n-1e308,0,1\n")
    prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", scale="unit-rows")
    root = 0.5**0.5
    np.testing.assert_allclose(
        read_back(tmp_path / "store", "a")[0],
        [[0, 0], [root, root], [0.6, 0.8], [-1, 0]],
        rtol=1e-3,
    )
    prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", scale="minmax")
    np.testing.assert_allclose(
        read_back(tmp_path / "store", "a")[0], [[0.5, 0], [1, 1], [0.5, 0], [0, 0]], atol=1e-300
    )
    prepare_file(tmp_path / "store", "a", tmp_path / "a.csv", scale="unit-mean-square")
    assert (read_back(tmp_path / "store", "a")[0] ** 2).sum(1).mean() == pytest.approx(1)
    (tmp_path / "b.svm").write_text("1 1:1e308\n1 2:1\n")
    table = Table(
        np.ones(2),
        np.arange(3),
        np.arange(2, dtype=np.int32),
        np.array([1.7e308, np.inf]),
        2,
        "sparse",
    )
    with pytest.raises(
        WrongInput, match="row 1 has a value that is no finite number after --scale tf-idf"
    ):
        prepare_source(tmp_path / "store", "b", table, Preparing(scale="tf-idf"))


def test_scaling__of_a_row_s_smallest_values_leaves_no_stored_zero(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1e-300 2:1e300\n")
    assert (
        prepare_file(tmp_path / "store", "a", tmp_path / "a.svm", scale="unit-rows").n_values == 1
    )


def test_prepared_again__and_killed_anywhere_keeps_the_dataset(tmp_path, monkeypatch):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    (shard,) = load_manifest(tmp_path / "store", "x").shards
    path = datasets_folder(tmp_path / "store") / "x" / shard.path
    path.write_bytes(
        path.read_bytes() + b" "
    )  # as another version of the library would have written the same rows

    class Killed(Exception):
        pass

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("koco_stream.io.paths.LocalPath.write_text", kill)
        with pytest.raises(Killed):
            prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    assert path.is_file()
    prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    assert read_back(tmp_path / "store", "x")[0].tolist() == [[1, 0], [0, 1]]
    assert len(list((datasets_folder(tmp_path / "store") / "x").rglob("*.parquet"))) == 1


def test_altered_shard__is_refused(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1.25\n")
    (shard,) = prepare_file(tmp_path / "store", "x", tmp_path / "a.svm").shards
    path = datasets_folder(tmp_path / "store") / "x" / shard.path
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(
        WrongInput, match=r"is not the file that was prepared.*prepare the dataset again"
    ):
        read_back(tmp_path / "store", "x")


def test_staging_folders__of_the_living_and_of_other_machines_stay(tmp_path):
    staging = tmp_path / ".staging"
    mine = f"{socket.gethostname()}-{os.getpid()}-abc"
    for name in (mine, "elsewhere-99999999-abc", f"{socket.gethostname()}-99999999-abc"):
        (staging / name).mkdir(parents=True)
    with staging_folder(tmp_path) as folder, staging_folder(tmp_path) as other:
        assert folder != other
        assert {p.name for p in staging.iterdir()} == {
            mine,
            "elsewhere-99999999-abc",
            folder.name,
            other.name,
        }


def test_store__whose_first_maker_was_killed_or_is_at_work_is_opened(tmp_path, monkeypatch):
    (tmp_path / ".koco-store.json.4711-4711.tmp").write_text("{")
    assert not check_store(tmp_path)
    open_store(tmp_path)
    names = LocalPath.names

    def names_after_another_made_it(self):
        (self.path / "datasets").mkdir(parents=True)
        shutil.copy(tmp_path / "koco-store.json", self.path)
        return names(self)

    monkeypatch.setattr(LocalPath, "names", names_after_another_made_it)
    assert check_store(tmp_path / "other")


def test_staging_folder__is_made_though_another_process_removes_the_empty_one(
    tmp_path, monkeypatch
):
    make, removed = tempfile.mkdtemp, []

    def removed_before(*args, dir, **kwargs):
        if not removed:
            removed.append(dir.rmdir())
        return make(*args, dir=dir, **kwargs)

    monkeypatch.setattr(tempfile, "mkdtemp", removed_before)
    with staging_folder(tmp_path) as folder:
        assert folder.is_dir()
        assert removed == [None]


@pytest.mark.parametrize("name", ["ill-conditioned", "ill-conditioned,data_seed=3"])
def test_generator_s_name__is_not_for_files(name, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    with pytest.raises(WrongInput, match="is generated on demand"):
        prepare_named(str(tmp_path / "store"), name, [tmp_path / "a.svm"], {})
    prepare_file(tmp_path / "store", "ill-conditioned", tmp_path / "a.svm")
    with pytest.raises(WrongInput, match="was not made by the generator"):
        prepare_synthetic(tmp_path / "store", "ill-conditioned", {})
    assert load_manifest(tmp_path / "store", "ill-conditioned").n_rows == 2


def test_generated_names__tell_every_parameter(tmp_path):
    assert (
        synthetic_name("ill-conditioned", {"data_seed": 1234567})
        == "ill-conditioned,data_seed=1234567"
    )
    assert (
        synthetic_name("ill-conditioned", {"data_seed": 3.0, "condition_number": 10})
        == "ill-conditioned,condition_number=10,data_seed=3"
    )
    assert (
        synthetic_name("ill-conditioned", {"condition_number": 1.23456789})
        == "ill-conditioned,condition_number=1.23456789"
    )
    for name, value in (
        ("data_seed", float("inf")),
        ("data_seed", float("nan")),
        ("condition_number", float("nan")),
        ("condition_number", float("inf")),
        ("condition_number", 10**400),
        ("n_rows", 10**21),
        ("n_rows", 10**9),
        ("data_seed", 2**63),
    ):
        with pytest.raises(WrongInput, match=name):
            synthetic_name("ill-conditioned", {name: value})


def test_labels_that_were_given_numbers__are_classes_however_many(tmp_path):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    path = tmp_path / "letters.csv"
    path.write_text("".join(f"{k},{letter}\n" for k, letter in enumerate(letters)))
    assert prepare_file(tmp_path / "store", "letters", path, labels="letters").classes == list(
        range(1, 27)
    )
    path.write_text("".join(f"{k},{k}\n" for k in range(26)))
    assert prepare_file(tmp_path / "store", "numbers", path).task == "regression"


def test_folder__that_no_dataset_of_the_catalogue_has_is_told_about_documents(tmp_path):
    with pytest.raises(
        WrongInput,
        match=r"is a folder, and the catalogue does not have 'mails'.*--format documents",
    ):
        prepare_named(str(tmp_path / "store"), "mails", [tmp_path], {})


def test_web_page__is_no_libsvm_file(tmp_path):
    path = tmp_path / "page"
    path.write_text("<html>404</html>\n")
    with pytest.raises(
        WrongInput, match="page, line 1: neither LIBSVM, VW nor CSV: '<html>404</html>'"
    ):
        prepare_file(tmp_path / "store", "page", path)
