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
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.generated.generators import prepare_synthetic, synthetic_name
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.store import check_store, open_store, staging_folder
from tests.helpers.malformed import MALFORMED, PACKED
from tests.helpers.tables import table_of


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


def prepared(folder, name, text, **options):
    """A file of this name and text prepared as dataset "x" of the folder's store: its manifest, its
    rows as a dense matrix, its labels.
    """
    (folder / name).write_text(text)
    manifest = prepare_file(folder / "store", "x", folder / name, **options)
    return manifest, *read_back(folder / "store", "x")


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
    manifest, back, labels = prepared(tmp, "a.svm", text, values_per_shard=per_shard)
    assert (back.tolist(), labels.tolist()) == (X.tolist(), y.tolist())
    back, labels = read_back(tmp / "store", "x", order="shuffled", order_seed=seed)
    order = np.random.default_rng([seed, 0x0D]).permutation(len(X))
    assert (back.tolist(), labels.tolist()) == (X[order].tolist(), y[order].tolist())
    one = prepare_file(tmp / "store", "one", tmp / "a.svm")
    assert one.dataset_hash == manifest.dataset_hash


def test_same_rows__same_identity_from_every_format_and_compression(tmp_path):
    svm = b"1 1:0.5 3:2\n-1 2:1\n1 \n"
    files = {f"a.svm{suffix}": pack(svm) for suffix, pack in PACKED.items()}
    files["a.vw"] = b"1 |f 2:2 0:0.5\n-1 | 1\n1 |\n"
    files["crlf.svm"] = b"\xef\xbb\xbf" + svm.replace(b"\n", b"\r\n")
    identities = set()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        identities.add(prepare_file(tmp_path / "store", "x", tmp_path / name).dataset_hash)
    assert len(identities) == 1


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_zeros_with_a_sign__are_zeros(layout, tmp_path):
    plain, *_ = prepared(tmp_path, "a.csv", "1,0,0\n-3,2,1\n", layout=layout)
    signed, *_ = prepared(tmp_path, "a.csv", "1,-0.0,-0\n-3,2,1\n", layout=layout)
    assert plain.dataset_hash == signed.dataset_hash
    assert json.dumps(signed.classes) == "[0.0, 1.0]"


@pytest.mark.parametrize("scale", ["none", "minmax", "unit-rows", "unit-mean-square", "tf-idf"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_rows_of_zeros_only__are_refused_or_rows_of_zeros(scale, layout, tmp_path):
    if (layout, scale) == ("dense", "tf-idf"):
        return
    file, options = (tmp_path, "a.svm", "1 2:0\n-1\n"), {"layout": layout, "scale": scale}
    with pytest.raises(
        WrongInput, match="the number of features is not known; give it with --n-features"
    ):
        prepared(*file, **options)
    if scale == "unit-mean-square":
        with pytest.raises(WrongInput, match="every row is empty"):
            prepared(*file, **options, n_features=2)
    else:
        assert prepared(*file, **options, n_features=2)[1].tolist() == [[0, 0], [0, 0]]


PRIZES = "prize,b\n1,-2\n3,4\n"


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
        # these before the source is read, which may take long
        ("1 1:1\nx\n", {"scale": "median"}, "--scale median is not one of"),
        ("1 1:1\nx\n", {"layout": "dense", "hash_bits": 3}, "--hash-bits is for sparse rows"),
        ("1 1:1\nx\n", {"hash_bits": 31}, r"--hash-bits 31: give 1 to 30; .* to 2\^bits"),
        ("1 1:1\nx\n", {"hash_bits": 0}, "--hash-bits 0: give 1 to 30"),
        (PRIZES, {"target": "²"}, "--target ²: no such column"),
        (PRIZES, {"target": "9" * 5000}, "no such column"),
        (PRIZES, {"target": "price"}, "did you mean 'prize'"),
        (PRIZES, {"scale": "median"}, "median is not one of"),
        (PRIZES, {"scale": "tf-idf"}, "takes counts"),
        (PRIZES, {"scale": "none", "layout": "round"}, "round is not one of dense, sparse"),
        (PRIZES, {"drop": ("c",)}, "--drop c: no such column"),
        (PRIZES, {"drop": ("b",)}, "--drop names the target column, column 'b'"),
        (PRIZES, {"drop": ("prize",)}, "no column is left as a feature"),
        (
            PRIZES,
            {"labels": "4=1"},
            r"a\.txt, line 2: column 'b' is '-2', which --labels '4=1' does not have",
        ),
        (PRIZES, {"labels": "g"}, "'g' is not LABEL=NUMBER"),
        (PRIZES, {"labels": "4=1,4=2"}, "'4' is given twice"),
        (PRIZES, {"n_features": 4}, "--n-features is for LIBSVM and VW files"),
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
        (
            "<html>404</html>\n",
            {},
            r"a\.txt, line 1: neither LIBSVM, VW nor CSV: '<html>404</html>'",
        ),
        ("1 1:1e200\n", {}, r"the largest value is 1e\+200"),
    ],
)
def test_what_does_not_fit__is_refused_and_the_store_unchanged(text, options, message, tmp_path):
    with pytest.raises(WrongInput, match=message):
        prepared(tmp_path, "a.txt", text, **options)
    assert tree(tmp_path / "store") is None
    prepared(tmp_path, "good.svm", "1 1:1\n-1 2:1\n")
    before = tree(tmp_path / "store")
    with pytest.raises(WrongInput, match=message):
        prepared(tmp_path, "a.txt", text, **options)
    assert tree(tmp_path / "store") == before


@pytest.mark.parametrize("case", MALFORMED)
def test_wrong_file__leaves_the_store_unchanged(case, tmp_path):
    name, content, options, _ = MALFORMED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WrongInput):
        prepare_file(tmp_path / "store", "x", tmp_path / name, **options)
    assert tree(tmp_path / "store") is None


def test_shards__have_no_more_rows_than_values_may_be(tmp_path):
    text = "1\n" * 250 + "1 1:1\n"
    several, *_ = prepared(tmp_path, "a.svm", text, values_per_shard=100)
    assert [shard.n_rows for shard in several.shards] == [100, 100, 51]
    assert several.dataset_hash == prepared(tmp_path, "a.svm", text)[0].dataset_hash


def test_csv__header_target_and_minmax(tmp_path):
    options = {"target": "y", "scale": "minmax", "task": "regression"}
    manifest, X, y = prepared(tmp_path, "a.csv", "y,a,b\n10,1,5\n20,3,5\n30,2,5\n", **options)
    assert (X.tolist(), y.tolist()) == ([[0, 0], [1, 0], [0.5, 0]], [0, 0.5, 1])
    assert manifest.feature_names == ["a", "b"]
    assert len(manifest.transformations) == 2


@pytest.mark.parametrize(
    ("store", "content", "message"),
    [
        ("a.svm", {}, "is a file; a store is a folder"),
        (".", {"letter.txt": "dear reader"}, "is not a store"),
        ("store", {"store/koco-store.json": '{"format": 99}'}, "format 99"),
    ],
)
def test_what_is_no_store__is_refused_and_left_alone(store, content, message, tmp_path):
    for name, text in {"a.svm": "1 1:1\n", **content}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = tree(tmp_path)
    with pytest.raises(WrongInput, match=message):
        prepare_file(tmp_path / store, "a", tmp_path / "a.svm")
    assert tree(tmp_path) == before


def test_prepared_again__replaces_the_dataset_whole(tmp_path):
    first, *_ = prepared(tmp_path, "a.svm", "1 1:1\n-1 2:1\n")
    before = tree(tmp_path / "store")
    assert prepared(tmp_path, "a.svm", "1 1:1\n-1 2:1\n")[0] == first
    assert tree(tmp_path / "store") == before
    second, *_ = prepared(tmp_path, "b.svm", "1 1:1\n-1 2:2\n")
    assert second.dataset_hash != first.dataset_hash
    assert len(list((tmp_path / "store" / "datasets" / "x").rglob("*.parquet"))) == 1
    assert [p.name for p in (tmp_path / "store").iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("name", "text", "options", "labels"),
    [
        ("a.csv", "1,<=50K\n2,>50K\n3,<=50K.\n", {"labels": "<=50K=-1,>50K=1"}, [-1, 1, -1]),
        ("a.csv", "Z,1\nA,2\n", {"labels": "letters", "target": "1"}, [26, 1]),
        ("a.svm", "1 1:1\n2.0 2:1\n", {"labels": "1=-1,2=1"}, [-1, 1]),
    ],
)
def test_labels__by_rule(name, text, options, labels, tmp_path):
    manifest, _, y = prepared(tmp_path, name, text, **options)
    assert y.tolist() == labels
    assert manifest.transformations == [f"labels by the rule {options['labels']}"]


def test_several_files__are_read_in_order(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 3:1\n")
    (tmp_path / "b.svm").write_text("1 2:4\n")
    both = [tmp_path / "b.svm", tmp_path / "a.svm"]
    assert prepare_file(tmp_path / "store", "x", both, n_features=5).n_features == 5
    rows = [[0, 4, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert read_back(tmp_path / "store", "x")[0].tolist() == rows
    (tmp_path / "c.csv").write_text("a,b\n1,2\n")
    (tmp_path / "e.csv").write_text("a,c\n3,4\n")
    for second, message in (
        ("e.csv", "other columns"),
        ("c.csv", "given twice"),
        ("a.svm", "is libsvm and .* is csv"),
    ):
        with pytest.raises(WrongInput, match=message):
            prepare_file(tmp_path / "store", "z", [tmp_path / "c.csv", tmp_path / second])


def test_drop_header_and_spaces(tmp_path):
    text = '# "id","t","x"\n1,2,3\n'
    manifest, X, _ = prepared(tmp_path, "a.csv", text, target="t", drop=("id",))
    assert (manifest.feature_names, X.tolist()) == (["x"], [[3]])
    _, X, y = prepared(tmp_path, "b.txt", "-1 5\t 6\n1 7 8\n", target="1")
    assert (X.tolist(), y.tolist()) == ([[5, 6], [7, 8]], [-1, 1])


@pytest.mark.parametrize("scale", ["none", "minmax", "unit-rows", "unit-mean-square"])
@pytest.mark.parametrize("first", [2, 0])
def test_layout__changes_no_value(scale, first, tmp_path):
    # a first feature that every row has, or not
    rows = np.array([[first, 1, 0.0, 3], [4, 0, 0, 3], [6, 5, 0, 3]])
    svm = "".join(f"1 {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}\n" for row in rows)
    csv = "".join(f"{','.join(map(str, row))},1\n" for row in rows)
    back = []
    for name, text in {"a.svm": svm, "a.csv": csv}.items():
        for layout in ("sparse", "dense"):
            manifest, X, _ = prepared(tmp_path, name, text, layout=layout, scale=scale)
            assert manifest.layout == layout
            back.append(X)
    for X in back:
        np.testing.assert_allclose(X, back[0], rtol=1e-15)


def test_scaling__of_zeros_and_of_the_smallest_and_largest_numbers(tmp_path):
    file = (tmp_path, "a.csv", "0,0,1\n1e308,1e308,1\n3e-320,4e-320,-1\n-1e308,0,1\n")
    root = 0.5**0.5
    rows = [[0, 0], [root, root], [0.6, 0.8], [-1, 0]]
    np.testing.assert_allclose(prepared(*file, scale="unit-rows")[1], rows, rtol=1e-3)
    rows = [[0.5, 0], [1, 1], [0.5, 0], [0, 0]]
    np.testing.assert_allclose(prepared(*file, scale="minmax")[1], rows, atol=1e-300)
    X = prepared(*file, scale="unit-mean-square")[1]
    assert (X**2).sum(1).mean() == pytest.approx(1)
    table = table_of(scipy.sparse.csr_array([[1.7e308, 0], [0, np.inf]]), np.ones(2))
    with pytest.raises(
        WrongInput, match="row 1 has a value that is no finite number after --scale tf-idf"
    ):
        prepare_source(tmp_path / "store", "b", table, Preparing(scale="tf-idf"))


def test_scaling__of_a_row_s_smallest_values_leaves_no_stored_zero(tmp_path):
    manifest, *_ = prepared(tmp_path, "a.svm", "1 1:1e-300 2:1e300\n", scale="unit-rows")
    assert manifest.n_values == 1


def test_prepared_again__and_killed_anywhere_keeps_the_dataset(tmp_path, monkeypatch):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    (shard,) = load_manifest(tmp_path / "store", "x").shards
    path = tmp_path / "store" / "datasets" / "x" / shard.path
    # as another version of the library would have written the same rows
    path.write_bytes(path.read_bytes() + b" ")

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
    assert len(list((tmp_path / "store" / "datasets" / "x").rglob("*.parquet"))) == 1


def test_altered_shard__is_refused(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1.25\n")
    (shard,) = prepare_file(tmp_path / "store", "x", tmp_path / "a.svm").shards
    path = tmp_path / "store" / "datasets" / "x" / shard.path
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
    text = "".join(f"{k},{chr(65 + k)}\n" for k in range(26))
    assert prepared(tmp_path, "a.csv", text, labels="letters")[0].classes == list(range(1, 27))
    text = "".join(f"{k},{k}\n" for k in range(26))
    assert prepared(tmp_path, "a.csv", text)[0].task == "regression"


def test_folder__that_no_dataset_of_the_catalogue_has_is_told_about_documents(tmp_path):
    with pytest.raises(
        WrongInput,
        match=r"is a folder, and the catalogue does not have 'mails'.*--format documents",
    ):
        prepare_named(str(tmp_path / "store"), "mails", [tmp_path], {})
