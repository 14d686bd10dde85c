"""Preparing: what comes out is what went in, in order, whatever the blocks; what is wrong is
refused with its line, and the store stays as it was; verify.
"""

import hashlib
import json
import math
import os
import re
import socket
import tempfile
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sparse
from hypothesis import assume, given, settings, strategies as st
from sklearn.utils import murmurhash3_32

import storage.dataset
from flows.preparing.preparation import prepare_named
from koco_stream.io.files import file_hash
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import load_manifest
from koco_stream.streams.reader import StreamReader
from koco_stream.streams.stream import Stream
from storage.dataset import dataset_problems, to_dask_array
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.preparing.transform import LAYOUTS, SCALES, hashed
from storage.sources.reading import source_of
from storage.sources.source import Reading
from storage.store import check_store, open_store, staging_folder
from tests.helpers.cut import meanwhile
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import dense_rows, prepared_text
from tests.helpers.tables import table_of


def tree(folder):
    """Every file below a folder, with its content's hash."""
    return (
        {str(p.relative_to(folder)): file_hash(p) for p in folder.rglob("*") if p.is_file()}
        if folder.exists()
        else None
    )


TEXTS = {
    **{"a.svm": "1 1:1\n", "c.csv": "a,b\n1,2\n", "e.csv": "a,c\n3,4\n", "f.csv": "a;b\n1;2\n"},
    **{"g.csv": "1,g\n", "h.csv": "x,y\n5,b\n", "i.csv": "?,b\n"},
}


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (("c.csv", "e.csv"), "the columns differ from those of"),
        # a first line that may be names, where the first file has none
        (("g.csv", "h.csv"), "h.csv, line 1: the columns differ from those .*add --no-header"),
        (("g.csv", "i.csv"), "i.csv, line 1: the columns differ from those .*add --no-header"),
        (("c.csv", "c.csv"), "given twice"),
        (("c.csv", "f.csv"), r"f\.csv"),
        (("c.csv", "a.svm"), "is libsvm and .* is csv"),
        (("",), "or a folder without Parquet .*--format documents"),
    ],
)
def test_files_that_are_no_source__are_refused(sources, message, tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    refusal(
        message,
        prepare_named,
        str(tmp_path / "store"),
        "z",
        [tmp_path / name for name in sources],
        {},
    )


SCALED = [(layout, scale) for layout in LAYOUTS for scale in SCALES]
SCALED.remove(("dense", "tf-idf"))
ZEROS = "1 2:0\n-1\n"
HOLES = "a b;c;y\n1;?;0\n2;5;1\n;7;1\n4;9;?\n"
PRIZES = "prize,b\n1,-2\n3,4\n"
UNKNOWN = "the number of features is unknown; give it with --n-features"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "1 2147483647:1\n-1 1:1\n",
            {"scale": "minmax"},
            "--scale minmax holds .* at most 16,777,216 features, and there are 2,147,483,647; use",
        ),
        (
            "1 2147483647:1\n-1 1:1\n",
            {"scale": "tf-idf"},
            "--scale tf-idf holds .* at most 16,777,216 features, and there are 2,147,483,647; use",
        ),
        (
            "1 400000000:1\n",
            {"layout": "dense"},
            "--layout dense takes at most 16,777,216 features, and there are 400,000,000; keep",
        ),
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
        ("1,red\n2,3\n", {}, "line 1: numbers and the text 'red', over numbers: .*--no-header"),
        (
            "?,1\n3,1\n",
            {"one_hot": True},
            r"a\.txt, line 1: column 1 is '\?', not a finite number; fill the value in, or say",
        ),
        ("3,a,1\n?,b,1\n", {"one_hot": True}, r"line 2: column 1 is '\?'.*fill the value in"),
        ("1 2 3\n1 2\n", {}, "line 2: 2 columns where the first line has 3"),
        (
            "<html>404</html>\n",
            {},
            r"a\.txt, line 1: neither LIBSVM, VW nor CSV: '<html>404</html>'",
        ),
        ("1 1:1e200\n", {}, r"the largest value is 1e\+200"),
        *((ZEROS, {"layout": layout, "scale": scale}, UNKNOWN) for layout, scale in SCALED),
        (ZEROS, {"scale": "unit-mean-square", "n_features": 2}, "every row is empty"),
        (ZEROS, {"scale": "unit-mean-square", "n_features": 2, "layout": "dense"}, "is empty"),
        # what cannot be filled in
        ("1,?,0\n?,3,1\n", {"missing": "drop"}, "each of the 2 rows has a missing value; leave"),
        (
            "1,?,0\n?,3,1\n",
            {"missing": "drop", "scale": "minmax", "scale_rows": 1},
            "each of the 2 rows has a missing value; leave",
        ),
        ("1,inf,0\n2,3,1\n", {"one_hot": True}, "line 1: column 2 is 'inf', not a finite number"),
        (
            "a,b,y\n1,?,0\n2,3,1\n",
            {"missing": "mean", "scale_rows": 1},
            "column 'b' has no value in the 1 rows",
        ),
        ("1,2,?\n1,2,3\n", {"missing": "mean", "header": False}, "is '\\?'.*--missing drop"),
        ("1,2\n", {"missing": "zero"}, "--missing zero is not one of mean, drop"),
        ("1 1:1\n", {"missing": "mean"}, "--missing is for the columns of a CSV file"),
        ("1,2\n3,4\n", {"scale_rows": 1}, "--scale none is computed from no other rows"),
        ("1,2\n3,4\n", {"scale_rows": 3, "scale": "minmax"}, "there are only 2 rows; give at most"),
        (
            "1,2.5\n3,2.5\n4,3\n",
            {"scale_rows": 2, "scale": "minmax"},
            "--scale-rows 2: the target has only one value",
        ),
    ],
)
def test_what_does_not_fit__is_refused_and_the_store_unchanged(text, options, message, tmp_path):
    refusal(message, prepared_text, tmp_path, text, **options)
    assert tree(tmp_path / "store") is None
    prepared_text(tmp_path, "1 1:1\n-1 2:1\n", "good.svm")
    before = tree(tmp_path / "store")
    refusal(message, prepared_text, tmp_path, text, **options)
    assert tree(tmp_path / "store") == before


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        pytest.param(
            "y,a,b\n10,1,5\n20,3,5\n30,2,5\n",
            {"target": "y", "scale": "minmax", "task": "regression"},
            {
                "X": [[0, 0], [1, 0], [0.5, 0]],
                "y": [0, 0.5, 1],
                "feature_names": ["a", "b"],
                "transformations": [
                    "each feature to [0, 1] over the file: (value - min)/(max - min), 0 if"
                    " constant",
                    "the target to [0, 1]: (y - 10.0)/20.0",
                ],
            },
            id="names, a target and minmax of it too",
        ),
        pytest.param(
            '# "id","t","x"\n1,2,3\n',
            {"target": "t", "drop": ("id",)},
            {"X": [[3]], "y": [2], "feature_names": ["x"]},
            id="names after a comment's mark, a column left out",
        ),
        *(
            pytest.param(text, {}, {"n_rows": text.count("\n"), "layout": "sparse"}, id=repr(text))
            # rows of VW are not taken for columns
            for text in ("1 | 2\n-1 | 3\n", "1 |a 2 3\n", "1 'tag|a 2:1 3\n")
        ),
        pytest.param(
            "-1 5\t 6\n1 7 8\n",
            {"target": "1"},
            {"X": [[5, 6], [7, 8]], "y": [-1, 1]},
            id="spaces between columns",
        ),
        pytest.param(
            "1,<=50K\n2,>50K\n3,<=50K.\n",
            {"labels": "<=50K=-1,>50K=1"},
            {"y": [-1, 1, -1], "transformations": ["labels by the rule <=50K=-1,>50K=1"]},
            id="text labels by a rule",
        ),
        pytest.param(
            "Z,1\nA,2\n",
            {"labels": "letters", "target": "1"},
            {"y": [26, 1], "transformations": ["labels by the rule letters"]},
            id="letters as labels",
        ),
        pytest.param(
            "1 1:1\n2.0 2:1\n",
            {"labels": "1=-1,2=1"},
            {"y": [-1, 1], "transformations": ["labels by the rule 1=-1,2=1"]},
            id="numbers as labels by a rule",
        ),
        pytest.param(
            "".join(f"{k},{chr(65 + k)}\n" for k in range(26)),
            {"labels": "letters"},
            {"task": "classification", "classes": list(range(1, 27))},
            id="labels that were given numbers are classes however many",
        ),
        pytest.param(
            "".join(f"{k},{k}\n" for k in range(26)),
            {},
            {"task": "regression", "classes": []},
            id="many numbers are no classes",
        ),
        pytest.param(
            HOLES,
            {"missing": "drop"},
            {"n_rows": 1, "transformations": ["rows with missing values left out: 3"]},
            id="rows with missing values dropped",
        ),
        pytest.param(
            HOLES.replace("9;?", "9;0"),
            {"missing": "mean"},
            {
                "feature_names": ["a b", "c"],
                "transformations": [
                    "missing values filled in with the mean of the feature:"
                    " a b (1 by 2.3333333333333335), c (1 by 7.0)"
                ],
            },
            id="missing values filled in",
        ),
        pytest.param(
            "1,2\n3,4\n",
            {"missing": "mean"},
            {"transformations": ["no value is missing"]},
            id="nothing is missing",
        ),
        pytest.param(
            "1 1:1e-300 2:1e300\n",
            {"scale": "unit-rows"},
            {"X": [[0, 1]], "n_values": 1},
            id="what is scaled to zero is not stored",
        ),
        *(
            pytest.param(
                ZEROS,
                {"layout": layout, "scale": scale, "n_features": 2},
                {"X": [[0, 0], [0, 0]], "layout": layout},
                id=f"rows of zeros only, {layout}, {scale}",
            )
            for layout, scale in SCALED
            if scale != "unit-mean-square"
        ),
    ],
)
def test_prepared__is_what_the_options_say(text, options, expected, tmp_path):
    manifest, X, y = prepared_text(tmp_path, text, **options)
    found = {**vars(manifest), "X": X.tolist(), "y": y.tolist()}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("store", "content", "message"),
    [
        ("a.svm", {}, "is a file, or within one; a store is a folder"),
        ("a.svm/store", {}, "is a file, or within one; a store is a folder"),
        ("/proc/none/store", {}, r"/store cannot be made \(No such .*; choose another --store"),
        (".", {"letter.txt": "dear reader"}, "is not a store"),
        ("store", {"store/koco-store.json": '{"format": 99}'}, "format 99"),
    ],
)
def test_what_is_no_store__is_refused_and_left_alone(store, content, message, tmp_path):
    for name, text in {"a.svm": "1 1:1\n", **content}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = tree(tmp_path)
    refusal(message, prepare_file, tmp_path / store, "a", tmp_path / "a.svm")
    assert tree(tmp_path) == before


def test_prepared_again__replaces_the_dataset_whole_or_killed_keeps_it(tmp_path):
    first, *_ = prepared_text(tmp_path, "1 1:1\n-1 2:1\n", "a.svm")
    before = tree(tmp_path / "store")
    assert prepared_text(tmp_path, "1 1:1\n-1 2:1\n", "a.svm")[0] == first
    assert tree(tmp_path / "store") == before
    prepared_text(tmp_path, "1 1:1\n-1 2:2\n", "b.svm")
    (path,) = (tmp_path / "store" / "datasets" / "x").rglob("*.parquet")
    assert [p.name for p in (tmp_path / "store").iterdir() if p.name.startswith(".")] == []
    # as another version of the library would have written the same rows
    path.write_bytes(path.read_bytes() + b" ")
    killed = mock.patch.object(StorePath, "write_text", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        prepare_file(tmp_path / "store", "x", tmp_path / "b.svm")
    assert path.is_file()
    assert prepared_text(tmp_path, "1 1:1\n-1 2:2\n", "b.svm")[1].tolist() == [[1, 0], [0, 2]]
    assert len(list((tmp_path / "store" / "datasets" / "x").rglob("*.parquet"))) == 1


def test_scaling__of_zeros_and_of_the_smallest_and_largest_numbers(tmp_path):
    file = (tmp_path, "0,0,1\n1e308,1e308,1\n3e-320,4e-320,-1\n-1e308,0,1\n")
    unit_rows, minmax, unit_mean_square = (
        prepared_text(*file, scale=scale)[1]
        for scale in ("unit-rows", "minmax", "unit-mean-square")
    )
    root = 0.5**0.5
    np.testing.assert_allclose(unit_rows, [[0, 0], [root, root], [0.6, 0.8], [-1, 0]], rtol=1e-3)
    np.testing.assert_allclose(minmax, [[0.5, 0], [1, 1], [0.5, 0], [0, 0]], atol=1e-300)
    assert (unit_mean_square**2).sum(1).mean() == pytest.approx(1)
    table = table_of(scipy.sparse.csr_array([[1.7e308, 0], [0, np.inf]]), np.ones(2))
    refusal(
        "row 1 has a value that is not a finite number after --scale tf-idf",
        prepare_source,
        tmp_path / "store",
        "b",
        table,
        Preparing(scale="tf-idf"),
    )


def test_staging_folders__of_the_living_and_of_other_machines_stay(tmp_path):
    staging = tmp_path / ".staging"
    stay = [f"{socket.gethostname()}-{os.getpid()}-abc", "elsewhere-99999999-abc"]
    for name in (*stay, f"{socket.gethostname()}-99999999-abc"):
        (staging / name).mkdir(parents=True)
    with staging_folder(tmp_path) as folder, staging_folder(tmp_path) as other:
        assert folder != other
        assert {p.name for p in staging.iterdir()} == {*stay, folder.name, other.name}


def test_store__whose_first_maker_was_killed_or_is_at_work_is_opened(tmp_path, monkeypatch):
    (tmp_path / ".koco-store.json.4711-4711.tmp").write_text("{")
    assert not check_store(tmp_path)
    open_store(tmp_path)
    meanwhile(monkeypatch, StorePath, "names", open_store)
    assert check_store(tmp_path / "other")


def test_staging_folder__is_made_though_another_process_removes_the_empty_one(
    tmp_path, monkeypatch
):
    meanwhile(monkeypatch, tempfile, "mkdtemp", lambda *_, dir, **__: dir.rmdir())
    with staging_folder(tmp_path) as folder:
        assert folder.is_dir()
        assert tempfile.mkdtemp.__module__ == "tempfile"  # it has happened


@pytest.mark.parametrize("name", ["ill-conditioned", "ill-conditioned,data_seed=3"])
def test_generator_s_name__is_not_for_files(name, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    refusal(
        "is a generated dataset",
        prepare_named,
        str(tmp_path / "store"),
        name,
        [tmp_path / "a.svm"],
        {},
    )
    prepare_file(tmp_path / "store", "ill-conditioned", tmp_path / "a.svm")
    refusal(
        "was not made by the generator",
        prepare_synthetic,
        tmp_path / "store",
        "ill-conditioned",
        {},
    )
    assert load_manifest(tmp_path / "store", "ill-conditioned").n_rows == 2


# Scales, layouts and feature hashing, literally
# --------------------------------------------------------------------------------------------------


def scaled(X, scale, n=None):
    """Each scale, literally, on a dense matrix, with the statistics of its first n rows."""
    known = X[:n]
    low, high = known.min(axis=0), known.max(axis=0)
    idf = np.log((1 + len(known)) / (1 + (known != 0).sum(axis=0))) + 1
    with np.errstate(all="ignore"):
        divided = {
            "none": (X, 1.0),
            "minmax": (X - low, np.where(high > low, high - low, np.inf)),
            "unit-mean-square": (X, math.sqrt((known**2).sum() / len(known))),
            "tf-idf": (X * idf, np.linalg.norm(X * idf, axis=1, keepdims=True)),
            "unit-rows": (X, np.linalg.norm(X, axis=1, keepdims=True)),
        }
        return np.nan_to_num(np.divide(*divided[scale]))


def hashed(X, bits):
    """Columns and signs by murmurhash3."""
    codes = [murmurhash3_32(j, positive=True) for j in range(X.shape[1])]
    found = np.zeros((len(X), 2**bits))
    for code, column in zip(codes, X.T, strict=True):
        found[:, code % 2**bits] += -column if code >= 2**31 else column
    return found


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
    bits=st.sampled_from([None, 1, 2, 4]),
)
def test_dataset__does_not_depend_on_the_cuts_nor_its_values_on_the_layouts(
    data, n, of_source, layout, scale, task, bits, tmp_path_factory
):
    assume((scale, layout) != ("tf-idf", "dense"))
    bits = bits if layout == "sparse" else None
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
            layout, scale, scale_rows=first, hash_bits=bits, task=task, values_per_shard=values
        )
        matrix = X if of_source == "dense" else scipy.sparse.csr_array(X)
        manifest = prepare_source(store, "x", table_of(matrix, y, rows_per_piece=pieces), how)
        rows, labels = dense_rows(store)
        # sparse rows keep their zeros, so that [0, max] is the range if a feature may be absent
        zeros = np.zeros((1, 4)) if layout == "sparse" and scale == "minmax" and first else X[:0]
        literal = scaled(np.vstack([zeros, X]), scale, first and first + len(zeros))[len(zeros) :]
        if zeros.size and first == n:
            literal = scaled(X, scale)
        literal = hashed(literal, bits) if bits else literal
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
    X = to_dask_array(small_store, "sparse")
    assert X.numblocks[0] == len(load_manifest(small_store, "sparse").shards) > 1
    assert {type(X._meta), type(X.blocks[1].compute(scheduler="synchronous"))} == {sparse.GCXS}
    rows = X.compute(scheduler="synchronous").todense()
    assert (rows == dense_rows(small_store, "sparse")[0]).all()


def test_verify__from_the_command_line(small_store, koco):
    verify = partial(koco, "store", "verify", "--store", small_store)
    assert {row["what"]: row["state"] for row in json.loads(verify("--json", status=0).stdout)} == {
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
        refusal(said, load_manifest, tmp_path, name)


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
    refusal(
        r"rows, and .* in the manifest",
        list,
        StreamReader(small_store, Stream("sparse", manifest.dataset_hash)).blocks(),
    )


def test_verify__of_a_dataset_that_is_prepared_anew_meanwhile_is_of_the_new_one(
    small_store, tmp_path, monkeypatch
):
    again = partial(prepare_file, source=tmp_path / "sparse.svm")
    meanwhile(
        monkeypatch, storage.dataset, "problems_of", lambda store, name, _: again(store, name)
    )
    assert dataset_problems(small_store, "sparse") == []
    assert len(load_manifest(small_store, "sparse").shards) == 1


number = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e150, -1e150, 5e-324, 0.1]),
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
)


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    missing=st.sampled_from(["mean", "drop"]),
    form=st.sampled_from(["csv", "parquet"]),
    mark=st.sampled_from(["", "?", "NA", "nan", "NULL", "n/a", " ? "]),
    colours=st.sampled_from([[], ["red"], ["red", "blue", "?"], list("abcdefgh")]),
)
def test_missing_values__are_treated_as_pandas_would(
    data, missing, form, mark, colours, tmp_path_factory
):
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 3))
    draw = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = np.array(data.draw(st.lists(number, min_size=4, max_size=9)))
    frame = (
        pd.DataFrame(draw.choice(values, (n, d))).add_prefix("x").mask(draw.random((n, d)) < 0.3)
    )
    frame.iloc[0] = 3.0  # each column has a known value in the first rows, and one row is whole
    if colours:
        frame["colour"] = [colours[0], *draw.choice(colours, n - 1)]
    X, y = pd.get_dummies(frame, dtype=float), draw.integers(0, 2, n)
    first = None if missing == "drop" else data.draw(st.none() | st.integers(1, n))
    folder = tmp_path_factory.mktemp("missing")
    path = folder / f"a.{form}"
    if form == "csv":
        frame.assign(y=y).to_csv(path, index=False, na_rep=mark)
    else:
        frame.assign(y=y).to_parquet(path, index=False, row_group_size=3)
    found = set()
    for block_bytes in (1, 1 << 24):
        reading = Reading(missing=missing, one_hot=bool(colours), target="y")
        how = Preparing(scale_rows=first, values_per_shard=data.draw(st.integers(1, 99)))
        source = source_of([path], reading, block_bytes)
        manifest = prepare_source(folder / "store", "x", source, how)
        found.add((manifest.dataset_hash, str(manifest.transformations)))
    assert len(found) == 1
    rows, labels = dense_rows(folder / "store")
    expected = X.dropna() if missing == "drop" else X.fillna(X[:first].mean())
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=1e-12 * np.abs(values).max())
    assert labels.tolist() == y[expected.index].tolist()
    assert manifest.layout == ("dense" if 2 * d >= X.shape[1] else "sparse")
