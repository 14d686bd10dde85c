"""Preparing: what comes out is what went in, in order; what is wrong is refused with its line, and
the store stays as it was.
"""

import json
import os
import socket
import tempfile
from unittest import mock

import numpy as np
import pytest
import scipy.sparse

from flows.prepare.preparation import prepare_named
from koco_stream import WrongInput
from koco_stream.io.files import file_hash
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import load_manifest
from storage.generated.generators import prepare_synthetic
from storage.preparing.prepare import Preparing, prepare_file, prepare_source
from storage.preparing.transform import LAYOUTS, SCALES
from storage.store import check_store, open_store, staging_folder
from tests.helpers.sweeps import dense_rows
from tests.helpers.tables import table_of


def prepared(folder, name, text, **options):
    """A file of this name and text prepared as dataset "x" of the folder's store: its manifest, its
    rows as a dense matrix, its labels.
    """
    (folder / name).write_text(text)
    manifest = prepare_file(folder / "store", "x", folder / name, **options)
    return manifest, *dense_rows(folder / "store")


def tree(folder):
    """Every file below a folder, with its content's hash."""
    return (
        {str(p.relative_to(folder)): file_hash(p) for p in folder.rglob("*") if p.is_file()}
        if folder.exists()
        else None
    )


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (("c.csv", "e.csv"), "the columns differ from those of"),
        (("c.csv", "c.csv"), "given twice"),
        (("c.csv", "a.svm"), "is libsvm and .* is csv"),
        (("",), "is a folder without Parquet .* does not have 'z'.*--format documents"),
    ],
)
def test_files_that_are_no_source__are_refused(sources, message, tmp_path):
    for name, text in {"a.svm": "1 1:1\n", "c.csv": "a,b\n1,2\n", "e.csv": "a,c\n3,4\n"}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(WrongInput, match=message):
        prepare_named(str(tmp_path / "store"), "z", [tmp_path / name for name in sources], {})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zeros_with_a_sign__are_zeros(layout, tmp_path):
    plain, *_ = prepared(tmp_path, "a.csv", "1,0,0\n-3,2,1\n", layout=layout)
    signed, *_ = prepared(tmp_path, "a.csv", "1,-0.0,-0\n-3,2,1\n", layout=layout)
    assert plain.dataset_hash == signed.dataset_hash
    assert json.dumps(signed.classes) == "[0.0, 1.0]"


SCALED = [(layout, scale) for layout in LAYOUTS for scale in SCALES]
SCALED.remove(("dense", "tf-idf"))
ZEROS = "1 2:0\n-1\n"
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
        ("1,red\n2,blue\n", {"target": "1"}, "line 1: numbers and the text 'red': .*--one-hot"),
        ("1,red\n2,blue\n", {}, "line 1: numbers and the text 'red': .*--labels"),
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
    manifest, X, y = prepared(tmp_path, "a.txt", text, **options)
    found = {**vars(manifest), "X": X.tolist(), "y": y.tolist()}
    assert {name: found[name] for name in expected} == expected


def test_shards__have_no_more_rows_than_values_may_be(tmp_path):
    text = "1\n" * 250 + "1 1:1\n"
    several, *_ = prepared(tmp_path, "a.svm", text, values_per_shard=100)
    assert [shard.n_rows for shard in several.shards] == [100, 100, 51]
    assert several.dataset_hash == prepared(tmp_path, "a.svm", text)[0].dataset_hash


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


def test_scaling__of_zeros_and_of_the_smallest_and_largest_numbers(tmp_path):
    file = (tmp_path, "a.csv", "0,0,1\n1e308,1e308,1\n3e-320,4e-320,-1\n-1e308,0,1\n")
    unit_rows, minmax, unit_mean_square = (
        prepared(*file, scale=scale)[1] for scale in ("unit-rows", "minmax", "unit-mean-square")
    )
    root = 0.5**0.5
    np.testing.assert_allclose(unit_rows, [[0, 0], [root, root], [0.6, 0.8], [-1, 0]], rtol=1e-3)
    np.testing.assert_allclose(minmax, [[0.5, 0], [1, 1], [0.5, 0], [0, 0]], atol=1e-300)
    assert (unit_mean_square**2).sum(1).mean() == pytest.approx(1)
    table = table_of(scipy.sparse.csr_array([[1.7e308, 0], [0, np.inf]]), np.ones(2))
    with pytest.raises(
        WrongInput, match="row 1 has a value that is not a finite number after --scale tf-idf"
    ):
        prepare_source(tmp_path / "store", "b", table, Preparing(scale="tf-idf"))


def test_prepared_again__and_killed_anywhere_keeps_the_dataset(tmp_path):
    (shard,) = prepared(tmp_path, "a.svm", "1 1:1\n-1 2:1\n")[0].shards
    path = tmp_path / "store" / "datasets" / "x" / shard.path
    # as another version of the library would have written the same rows
    path.write_bytes(path.read_bytes() + b" ")

    killed = mock.patch.object(StorePath, "write_text", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        prepare_file(tmp_path / "store", "x", tmp_path / "a.svm")
    assert path.is_file()
    assert prepared(tmp_path, "a.svm", "1 1:1\n-1 2:1\n")[1].tolist() == [[1, 0], [0, 1]]
    assert len(list((tmp_path / "store" / "datasets" / "x").rglob("*.parquet"))) == 1


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

    def names_after_another_made_it(self):
        monkeypatch.undo()
        open_store(self)
        return self.names()

    monkeypatch.setattr(StorePath, "names", names_after_another_made_it)
    assert check_store(tmp_path / "other")


def test_staging_folder__is_made_though_another_process_removes_the_empty_one(
    tmp_path, monkeypatch
):
    def removed_before(*args, dir, **kwargs):
        monkeypatch.undo()
        dir.rmdir()
        return tempfile.mkdtemp(*args, dir=dir, **kwargs)

    monkeypatch.setattr(tempfile, "mkdtemp", removed_before)
    with staging_folder(tmp_path) as folder:
        assert folder.is_dir()
        assert tempfile.mkdtemp != removed_before


@pytest.mark.parametrize("name", ["ill-conditioned", "ill-conditioned,data_seed=3"])
def test_generator_s_name__is_not_for_files(name, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    with pytest.raises(WrongInput, match="is a generated dataset"):
        prepare_named(str(tmp_path / "store"), name, [tmp_path / "a.svm"], {})
    prepare_file(tmp_path / "store", "ill-conditioned", tmp_path / "a.svm")
    with pytest.raises(WrongInput, match="was not made by the generator"):
        prepare_synthetic(tmp_path / "store", "ill-conditioned", {})
    assert load_manifest(tmp_path / "store", "ill-conditioned").n_rows == 2
