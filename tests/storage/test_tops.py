"""What tables of text begin with, and faults of all kinds, which are told at once."""

import re
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from koco_stream import WrongInput
from storage.preparing.prepare import prepare_file
from storage.sources.numbers import is_other_number
from storage.sources.reading import source_of
from storage.sources.source import MOST_MET, MOST_TOLD, Malformed, Reading
from tests.helpers.malformed import PACKED, put
from tests.helpers.sweeps import dense_rows

INDEX, COUNTED = "left out: column {!r} (an index)", "column {!r} may only number the rows"
MEAN = {"missing": "mean"}
WIDE = ",".join(map(str, range(12)))
TEXTS = {"one_hot": True}


@pytest.mark.parametrize(
    ("text", "options", "names", "rows", "said"),
    [
        # the separator is seen from the first line
        *(
            (text, {"file": file}, names, [[1, 2, 3], [4, 5, 6]], "")
            for file, text, names in (
                ("a.csv", "1;2;3\n4;5;6\n", []),
                ("a.txt", "1;2;3\n4;5;6\n", []),
                ("a.tsv", "1\t2\t3\n4\t5\t6\n", []),
                ("a.csv", 'x\t"a,b;c,d"\ty\n1\t2\t3\n4\t5\t6\n', ["x", "a,b;c,d"]),
                ("a.txt", "x\tz\ty\n1\t2\t3\n4\t5\t6\n", ["x", "z"]),
                ("a.txt", "1\t2\t3\n4\t5\t6\n", []),
                ("a.txt", "1 2\t3\n4 5\t6\n", []),
                ("a.csv", '"x, one";"z, two";y\n1;2;3\n4;5;6\n', ["x, one", "z, two"]),
                ("a.tsv", "1,2,3\n4,5,6\n", []),
                ("a.tsv", "x, x, x\tz\ty\n1\t2\t3\n4\t5\t6\n", ["x, x, x", "z"]),
            )
        ),
        # an empty field is one, in the first line or in a later one, at either end of a line
        ("1\t\t3\n2\t\t4\n5\t6\t7\n", MEAN, [], [[1, 6, 3], [2, 6, 4], [5, 6, 7]], ""),
        ("\t2\t3\n4\t5\t6\n", MEAN, [], [[4, 2, 3], [4, 5, 6]], ""),
        ("1\t2\t\n4\t5\t6\n", {"missing": "drop"}, [], [[4, 5, 6]], "left out: 1"),
        ("a\tb\ty\n\t\t1\n2\t3\t4\n", MEAN, ["a", "b"], [[2, 3, 1], [2, 3, 4]], ""),
        (";;1\n2;3;4\n", MEAN, [], [[2, 3, 1], [2, 3, 4]], ""),
        (" 1 \t 2 \t 3\n4\t5\t6\n", {}, [], [[1, 2, 3], [4, 5, 6]], ""),
        ("-1 5\t 6\n1 7 8\n", {}, [], [[-1, 5, 6], [1, 7, 8]], ""),
        # numbers of columns are names if what follows makes it sure
        ("0,1,2\n1.5,2.5,1\n3.5,1,2\n", {}, ["0", "1"], [[1.5, 2.5, 1], [3.5, 1, 2]], ""),
        ("0,1,2\n3,4,5\n", {"header": False}, [], [[0, 1, 2], [3, 4, 5]], ""),
        ("0,1,3\n3,4,5\n", {}, [], [[0, 1, 3], [3, 4, 5]], ""),
        ("0.0,1.0,2.0\n3.5,4.5,5.5\n", {}, [], [[0, 1, 2], [3.5, 4.5, 5.5]], ""),
        ("1,2,3\n4.5,5.5,6.5\n", {}, [], [[1, 2, 3], [4.5, 5.5, 6.5]], ""),
        ("0,1,y\n3,4,1\n", {}, ["0", "1"], [[3, 4, 1]], ""),
        (f"{WIDE}\n{WIDE}\n", {}, WIDE.split(",")[:-1], [list(range(12))], ""),
        (",0,1\n0,2,1\n1,5,0\n", {}, ["0"], [[2, 1], [5, 0]], INDEX.format("")),
        # an index is left out, a named column is not
        (",a,y\n7,1.5,1\n3,2.5,0\n", {}, ["a"], [[1.5, 1], [2.5, 0]], INDEX.format("")),
        (",a,y\nu,1.5,1\nv,2.5,0\n", {}, ["a"], [[1.5, 1], [2.5, 0]], INDEX.format("")),
        (",a,y\n.5,1,1\n.7,2,0\n", {}, ["", "a"], [[0.5, 1, 1], [0.7, 2, 0]], "--drop ''"),
        ("a,y,index\n1.5,1,0\n2.5,0,1\n", {}, ["a"], [[1.5, 1], [2.5, 0]], INDEX.format("index")),
        ("index,y\n1.5,1\n1.7,0\n", {}, ["index"], [[1.5, 1], [1.7, 0]], COUNTED.format("index")),
        ("t,y\n0,4\n1,3\n2,4\n", {}, ["t"], [[0, 4], [1, 3], [2, 4]], COUNTED.format("t")),
        ("1,4\n2,3\n3,4\n", {}, [], [[1, 4], [2, 3], [3, 4]], "column 1 may only number the rows"),
        ("Unnamed: 0,y,a\n0,1,3\n", {"target": "y"}, ["a"], [[3, 1]], INDEX.format("Unnamed: 0")),
        ("__index_level_1__\ty\ta\n.5\t1\t3\n", {}, ["y"], [[1, 3]], "__index_level_1__' (an"),
        # marked lines are comments or hold the names, but a row whose text begins so is a row
        ("# a\n#b,c\nx,y\n1,2\n", {}, ["x"], [[1, 2]], "left out: 2 line(s) of comments"),
        ("% a\n\n1,2\n", {}, [], [[1, 2]], "left out: 1 line(s) of comments"),
        ("# one\n# x y\n1 2\n", {}, ["x"], [[1, 2]], "left out: 1 line(s) of comments"),
        ("#x,y\n1,2\n", {"header": True}, ["x"], [[1, 2]], ""),
        ("#1,2\n3,4\n", {}, [], [[3, 4]], "left out: 1 line(s) of comments"),
        ("#f,1\nred,2\n", TEXTS, ["column 1=#f", "column 1=red"], [[1, 0, 1], [0, 1, 2]], ""),
        ("# a\n% b\n1 1:3\n2 2:4\n", {}, [], [[3, 0, 1], [0, 4, 2]], "left out: 2 line(s)"),
        ("# a\n1 | 0:3\n2 | 1:4\n", {}, [], [[3, 0, 1], [0, 4, 2]], "left out: 1 line(s)"),
    ],
)
def test_top_of_a_table__is_told_apart(text, options, names, rows, said, tmp_path):
    path = put(tmp_path / options.get("file", "a.txt"), text.encode())
    given = {name: value for name, value in options.items() if name != "file"}
    manifest = prepare_file(tmp_path / "store", "x", path, **given)
    X, y = dense_rows(tmp_path / "store")
    assert manifest.feature_names == names
    assert np.column_stack([X, y]).tolist() == rows
    told = [*manifest.source.get("columns", []), *manifest.transformations]
    assert said in "; ".join(told)


@pytest.mark.parametrize("first", ["numbers", "texts", "missing"])
@pytest.mark.parametrize(
    "text",
    [
        *("3,14", "-3,14e5", "1,234", "1,234.5", "1.234.567,8", "12,34,567", "1 234", "1\u202f234"),
        *(
            "1'234.5",
            "12%",
            "12 %",
            "1_000",
            "0x1F",
            "$5",
            "-$5",
            "5 €",
            "USD 5",
            "(5)",
            "−5",
            "１",
        ),
    ],
)
def test_number_in_another_notation__is_never_a_category(text, first, tmp_path):
    path = tmp_path / "a.csv"
    before = {"numbers": "1;2\n", "texts": "red;2\n", "missing": "?;2\n"}[first]
    path.write_text(f"a;y\n{before}{text};3\n")
    with pytest.raises(WrongInput, match=r"line 3: column 'a' is .*; write it with digits and a"):
        prepare_file(tmp_path / "store", "x", path, one_hot=True, missing="mean")


@pytest.mark.parametrize(
    "text", ["red", "31.12.2020", "10.0.0.1", "12:30", "5kg", "1-2", "<5", "A1", "-1.5e3", "?", ""]
)
def test_text_with_digits__is_no_number_in_another_notation(text):
    assert not is_other_number(text)


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", b"," * 5000, "line 1: a line of more than 1,000 bytes"),
        ("a.csv", b"a,b\n1,2\n1," + b"1" * 5000, "line 3: a line of more than 1,000 bytes"),
        ("a.csv", b'a,b\n1,"' + b"x" * 5000, "line 2: a line of more than 1,000 bytes"),
        ("a.txt", b"1 2" + b" " * 5000 + b"3\n", "line 1: a line of more than 1,000 bytes"),
        ("a.svm", b"1 1:1\n1" + b" 2:1" * 5000, "line 2: a line of more than 1,000 bytes"),
        ("a.vw", b"1 | 1\n1 |" + b" 2:1" * 5000, "line 2: a line of more than 1,000 bytes"),
        ("a.csv", b"#" * 5000, "line 1: a line of more than 1,000 bytes"),
        ("a.csv", b"a,b\n1,2\n" + b"1" * 200 + b",2\n", "line 3: a field of more than 100 bytes"),
        ("a.csv", b"a" * 200 + b",b\n1,2\n", "line 1: a field of more than 100 bytes"),
        ("a.svm", b"1 1:1\n1 1:" + b"1" * 200 + b"\n", "line 2: a field of more than 100 bytes"),
        ("a.csv", b"1,2\n" + b"1," * 300 + b"1\n", "line 2: more than 200 columns"),
        ("a.csv", b"1," * 300 + b"1\n", "line 1: more than 200 columns"),
    ],
)
def test_line_field_and_row__have_a_limit(name, text, message, suffix, tmp_path, monkeypatch):
    limits = {
        "source.MOST_LINE": 1000,
        **dict.fromkeys(("source.MOST_FIELD", "columns.MOST_FIELD"), 100),
        "columns.MOST_COLUMNS": 200,
    }
    for limit, most in limits.items():
        monkeypatch.setattr(f"storage.sources.text.{limit}", most)
    path = put(tmp_path / f"{name}{suffix}", PACKED[suffix](text))
    with pytest.raises(WrongInput, match=re.escape(f"{path.name}, {message}")):
        prepare_file(tmp_path / "store", "x", path)


def test_long_line__is_refused_before_it_is_held(tmp_path, monkeypatch):
    path = put(tmp_path / "a.csv.bz2", PACKED[".bz2"](b"," * 50_000_000))
    monkeypatch.setattr("storage.sources.text.source.MOST_LINE", 1_000_000)
    tracemalloc.start()
    with pytest.raises(WrongInput, match="line 1: a line of more than 1,000,000 bytes"):
        source_of([path])
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


FRAME = pd.DataFrame({"x": [1.5, 2.5], "z": [3.0, 4.0], "y": [1, -1]}, index=[7, 3])


def folder_of(folder, *tables):
    """A folder with these tables as Parquet files, in their order by name."""
    folder.mkdir()
    for k, table in enumerate(tables):
        pq.write_table(table, folder / f"{k}.parquet")
    return folder


def test_folder_of_parquet_files__is_one_table_whose_columns_go_by_name(tmp_path):
    plain, with_index = pa.table(FRAME.to_dict("list")), pa.Table.from_pandas(FRAME)
    tables = [
        pa.table({"q": pa.array([], pa.string())}),
        with_index,
        plain.select(["y", "z", "x"]),
        plain.slice(0, 0),
        with_index.replace_schema_metadata(None),
    ]
    for k in (1, 2, 4):  # each may be the first one
        ordered = [tables[k], *tables[:k], *tables[k + 1 :]]
        folder = folder_of(tmp_path / f"tables-{k}", *ordered)
        (folder / "_SUCCESS").touch()
        (folder / "_old.parquet").write_text("no table")
        options = {"target": "y"} if k == 2 else {}
        source = source_of([folder], Reading(**options))
        manifest = prepare_file(tmp_path / "store", "x", folder, **options)
        X, y = dense_rows(tmp_path / "store")
        by_name = dict(zip(manifest.feature_names, X.T.tolist(), strict=True))
        assert by_name == {"x": [1.5, 2.5] * 3, "z": [3.0, 4.0] * 3}
        assert y.tolist() == [1, -1] * 3
        assert len(source.paths) == 3
    (folder / "k=1").mkdir()
    pq.write_table(plain, folder / "k=1" / "a.parquet")
    with pytest.raises(WrongInput, match=r"k=1/a\.parquet: a folder within .*; write whole rows"):
        source_of([folder])


def test_parquet_columns_that_number_the_rows__are_left_out_or_said(tmp_path):
    frame = {"index": [0, 1, 2], "id": [1, 2, 3], "x": [0.5, 1, 2], "y": [1, 2, 1]}
    manifest = prepare_file(tmp_path / "store", "x", folder_of(tmp_path / "a", pa.table(frame)))
    assert manifest.feature_names == ["id", "x"]
    assert manifest.transformations == [INDEX.format("index")]
    assert manifest.source["columns"][1:] == [
        "numeric: 2 (column 'id', column 'x')",
        f"{COUNTED.format('id')}; if so, leave it out with --drop id",
    ]


def test_command__says_which_columns_became_features_and_how(tmp_path, koco):
    names = [f"x{k}" for k in range(30)]
    (tmp_path / "a.csv").write_text(f",kind,{','.join(names)},y\n0,red{',1' * 30},2\n")
    words = ("prepare", "x", "--from", tmp_path / "a.csv", "--store", tmp_path / "store")
    said = koco(*words, "--one-hot", status=0).stdout.splitlines()
    first = ", ".join(f"column {name!r}" for name in names[:10])
    assert said[2:] == [
        "  target: column 'y'",
        f"  numeric: 30 ({first} and 20 more)",
        "  left out: column '' (an index)",
        "  one-hot, values in sorted order: column 'kind' (1)",
    ]


# All kinds of fault are told at once
# --------------------------------------------------------------------------------------------------


def refused(tmp_path, name, text, **options):
    """The message with which a file of this text is refused."""
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Malformed) as error:
        prepare_file(tmp_path / "store", "x", tmp_path / name, **options)
    return str(error.value).replace(f"{tmp_path}/", "")


OWN = "the age;kind;income;left?\n40;red;1.5;yes\n?;blue;2,5;no\n31;green;NA;yes;9\n22;;3;maybe\n"


def test_all_problems_of_a_table__are_told_at_once(tmp_path):
    assert refused(tmp_path, "own.csv", OWN).split("\n") == [
        "3 problems:",
        "  own.csv, line 3: column 'the age' is '?', not a finite number; fill the value in, or say"
        " what to do with missing values: --missing mean or --missing drop",
        "  own.csv, line 3: column 'income' is '2,5', not a finite number; write it with digits and"
        " a decimal point only, such as -1234.5 (if all commas of the file are decimal ones: tr , ."
        " < FILE > NEW)",
        "  own.csv, line 4: 5 columns where the first line has 4; correct or remove the line",
    ]


def test_problems_of_the_first_faulty_piece__are_told(tmp_path, monkeypatch):
    text = "1 1:1\n2 1:x\n1 1:1\n1 2:1 2:1\n1 3:y\n\0\n1 z\n"
    message = refused(tmp_path, "a.svm", text)
    assert message.startswith("3 problems:\n  a.svm, line 2, column 5: the value of feature 1")
    assert "(and 1 more of this kind)\n  a.svm, line 4, column 7: feature 2 is there" in message
    assert message.splitlines()[-1].startswith("  a.svm, line 6, column 1: a NUL byte")
    source_of_the_file = partial(source_of, block_bytes=9)
    monkeypatch.setattr("storage.preparing.prepare.source_of", source_of_the_file)
    assert refused(tmp_path, "a.svm", text) == (
        "a.svm, line 2, column 5: the value of feature 1 is 'x', not a finite number; correct it"
    )


def test_more_problems_than_can_be_told__are_counted(tmp_path):
    text = "1 1:1\n" + "".join(f"1 {'a' * k}\n" for k in range(1, 2 * MOST_MET))
    message = refused(tmp_path, "a.svm", text)
    assert message.endswith("(and 999 more of this kind)\nreading ended at 1,000 problems")
    width = MOST_TOLD + 5
    rows = [",".join(["1"] * width), ",".join(["a"] * width)]
    message = refused(tmp_path, "a.csv", "\n".join(rows) + "\n", target="1")
    assert "and 4 more)" in message


def test_what_is_malformed_in_the_survey__is_told_too(tmp_path):
    text = "kind,x,y\nred,1,0\nblue,?,1\nred,b,x\n"
    message = refused(tmp_path, "a.csv", text, one_hot=True)
    assert message.startswith("3 problems:")
    assert not (tmp_path / "store" / "datasets").exists()


def test_column_of_texts__is_one_whose_first_value_that_is_there_is_a_text(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,y\n?,?,?,1\n?,2,?,0\nred,?,?,1\n")
    reading = Reading(one_hot=True, missing="mean", target="y")
    assert source_of([tmp_path / "a.csv"], reading).choice.texts == (0,)
