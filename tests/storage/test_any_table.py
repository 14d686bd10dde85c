"""Tables as they come: classes by name, categories, dates and times, ARFF, data frames, what text
begins with, and faults of all kinds, which are told at once.
"""

import re
import tracemalloc
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import flows
from flows.views.answer import answer, in_terminal
from flows.views.views import Views
from koco_stream import stream
from storage.preparing.prepare import prepare_file
from storage.sources.numbers import moment
from storage.sources.reading import source_of
from storage.sources.source import MOST_MET, MOST_TOLD
from tests.helpers.malformed import PACKED, put
from tests.helpers.refusal import refusal
from tests.helpers.sweeps import checked, dense_rows, prepared_text, refused_text, swept, written

ABC = "x,y\n1.5,setosa\n2,virginica\n3,setosa\n4,versicolor\n"


# Classes
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "y", "classes"),
    [
        (ABC, {}, [1, 3, 1, 2], {1: "setosa", 2: "versicolor", 3: "virginica"}),
        ("1.5,no\n2,yes\n3,no\n", {}, [-1, 1, -1], {-1: "no", 1: "yes"}),
        ("x,y\n1,b\n2,?\n3,a\n", {"missing": "drop"}, [1, -1], {-1: "a", 1: "b"}),
        ("x,y\n1,<=50K\n2,>50K.\n3,<=50K.\n4,>50K\n", {}, [-1, 1, -1, 1], {-1: "<=50K", 1: ">50K"}),
        ("x,y\n1,3\n2,10\n3,3\n", {"categorical": ("y",)}, [1, -1, 1], {-1: "10", 1: "3"}),
        ("x,y\n1,none\n2,NA\n", {"categorical": ("y",)}, [1, -1], {-1: "NA", 1: "none"}),
        ("x,y\n1,b\n2,g\n", {"labels": "g=5,b=7"}, [7, 5], {5: "g", 7: "b"}),
        ("b 1:1\ng 1:2\n", {"labels": "g=5,b=7"}, [7, 5], {5: "g", 7: "b"}),
        ("dog 1:1\n# one\ncat 1:2\n", {}, [1, -1], {-1: "cat", 1: "dog"}),
        ("c | 0:1\na | 1:2\nb |\n", {}, [3, 1, 2], {1: "a", 2: "b", 3: "c"}),
        ("x,y\n1,3\n2,10\n3,3\n", {}, [3, 10, 3], {}),
    ],
)
def test_classes_that_are_texts__are_numbered_in_sorted_order(text, options, y, classes, tmp_path):
    """And the same rows with the numbers in place of the names have the same identity."""
    manifest, _, labels = prepared_text(tmp_path, text, **options)
    assert labels.tolist() == y
    assert dict(zip(manifest.classes, manifest.class_names, strict=False)) == classes
    names = manifest.class_names or [f"{number:g}" for number in manifest.classes]
    assert [manifest.class_of(name) for name in names] == manifest.classes
    assert manifest.task == "classification"
    if text == ABC:
        numbers = ABC.replace("setosa", "1").replace("versicolor", "2").replace("virginica", "3")
        assert prepared_text(tmp_path, numbers)[0].dataset_hash == manifest.dataset_hash


def test_sweep__takes_classes_by_name_and_shows_them(tmp_path):
    prepared_text(tmp_path, ABC)
    table = '[[dataset]]\nname = "x"\npositive_class = {}\n[[learner]]\nname = "Constant"\n'
    for wrong, message in (('"setsa"', r"did you mean 'setosa'\?"), ('"4"', "'4'; it has .*")):
        spec = written(tmp_path, 'name = "tiny"\n' + table.format(wrong))
        refusal(f"try.toml, .*{message}$", checked, spec, tmp_path / "store")
    spec = written(tmp_path, 'name = "tiny"\n' + table.replace("positive_class = {}\n", ""))
    refusal(r'labels "setosa", .*positive_class = "virginica"', checked, spec, tmp_path / "store")
    runs = swept(tmp_path, table.format('["setosa", 2.0]')).column("positive_class").to_pylist()
    assert sorted(runs) == [1, 2]
    for sweeps in (["tiny"], []):
        views = Views(tmp_path / "store", sweeps)
        shown = views.rows("SELECT DISTINCT stream FROM runs ORDER BY ALL")
        assert [row["stream"] for row in shown] == ["x:setosa", "x:versicolor"]
    text, _ = in_terminal(*answer(tmp_path / "store", single=True), more=0, width=200)
    assert {"setosa", "versicolor"} <= {*text.split()}
    _, y = stream(tmp_path / "store", "x", positive_class="setosa").whole()
    assert y.tolist() == [1, -1, 1, -1]


DAY = "day,at,x,y\n2024-02-29,06:30,1,1\n?,18:00:00,2,-1\n2023-12-31,00:00,3,1\n"
STREETS = "street,y\n" + "".join(f"s{k},{k % 2}\n" for k in range(101))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        *(
            (
                f"t,x,y\nred,1,1\n{text},2,2\n",
                {},
                {"feature_names": [*sorted((f"t={text}", "t=red")), "x"]},
            )
            for text in (
                *("10.0.10.1", "1.2.10", "1/2", "555-1234", "Mars 3", "0b3fe2", "10.0.0.1", "5kg"),
                *("1-2", "<5", "A1"),
            )
        ),
        (
            "zip,area,y\n10115,1.5,1\n20095,-2.5,-1\n80331,3.5,1\n10115,0.5,-1\n",
            {"categorical": ("zip",), "scale": "minmax"},
            {
                "layout": "dense",
                "transformations": [
                    "one-hot, values in sorted order: column 'zip' (3)",
                    "rows kept dense",
                    "each feature to [0, 1] over the file: (value - min)/(max - min), 0 if"
                    " constant",
                ],
                "X": [[1, 0, 0, 2 / 3], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0.5]],
            },
        ),
        (
            "month,x,y\n" + "".join(f"{2000 + k}-0{k + 1},1,2.5\n" for k in range(3)),
            {},
            {
                "feature_names": ["month.year", "month.day_of_year", "x"],
                "X": [[2000, 1, 1], [2001, 32, 1], [2002, 60, 1]],
            },
        ),
        (
            DAY,
            {"missing": "mean"},
            {
                "feature_names": [
                    *("day.year", "day.day_of_year", "day.weekday"),
                    *("at.time_of_day", "x"),
                ],
                "X": [[2024, 60, 4, 6.5, 1], [2023.5, 212.5, 5.5, 18, 2], [2023, 365, 7, 0, 3]],
                "columns": [
                    "target: column 'y'",
                    "numeric: 1 (column 'x')",
                    "dates and times: column 'day' as year, day_of_year, weekday, column 'at' as"
                    " time_of_day",
                    "column 'x' may only number the rows; if so, leave it out with --drop x",
                ],
            },
        ),
        (DAY, {"missing": "drop"}, {"n_rows": 2}),
        (
            DAY,
            {"missing": "drop", "categorical": ("at",)},
            {
                "feature_names": [
                    *("day.year", "day.day_of_year", "day.weekday"),
                    *("at=00:00", "at=06:30", "at=18:00:00", "x"),
                ]
            },
        ),
        # the first value that is there says what a column holds
        (
            "a,b,c,y\n?,?,?,1\n?,2,?,0\nred,?,1,1\n",
            {"one_hot": True, "missing": "mean"},
            {"feature_names": ["a=?", "a=red", "b", "c"]},
        ),
        (STREETS, {"one_hot": True}, {"n_features": 101}),
        (STREETS, {"one_hot": True, "layout": "sparse", "hash_bits": 18}, {"n_features": 2**18}),
        (
            STREETS.replace("\n", ",1\n").replace("street,y,1", "street,y,x"),
            {"drop": ("street",), "target": "y"},
            {"feature_names": ["x"]},
        ),
    ],
)
def test_columns__become_what_their_texts_say_or_the_options(text, options, expected, tmp_path):
    manifest, X, y = prepared_text(tmp_path, text, **options)
    columns = manifest.source.get("columns")
    found = {**vars(manifest), "X": X.tolist(), "y": y.tolist(), "columns": columns}
    assert {name: found[name] for name in expected} == expected


# Categories and numbers
# --------------------------------------------------------------------------------------------------


SAID = pd.DataFrame(
    {
        "zip": [10115, 20095, 10115, 80331],
        "size": ["12", "unknown", "-3", "1e1"],
        "kind": ["red", "blue", "red", "red"],
        "y": [1, -1, 1, -1],
    }
)


@pytest.mark.parametrize("write", [pd.DataFrame.to_csv, pd.DataFrame.to_parquet])
def test_columns__are_what_they_are_said_to_be(write, tmp_path):
    write(SAID, tmp_path / "a", index=False)
    read = partial(prepare_file, categorical=["zip"], numeric=["size"])
    given = (tmp_path / "store", "x", tmp_path / "a")
    refusal("column 'size' is .*--missing mean or --missing drop", read, *given)
    found = read(*given, missing="mean").feature_names
    assert found == ["zip=10115", "zip=20095", "zip=80331", "size", "kind=blue", "kind=red"]
    expected = [
        [1, 0, 0, 12, 0, 1],
        [0, 1, 0, 19 / 3, 1, 0],
        [1, 0, 0, -3, 0, 1],
        [0, 0, 1, 10, 0, 1],
    ]
    np.testing.assert_allclose(dense_rows(tmp_path / "store")[0], expected)


# Dates and times
# --------------------------------------------------------------------------------------------------

NAMES = ["t.year", "t.day_of_year", "t.weekday", "t.time_of_day"]


@settings(max_examples=40, deadline=None)
@given(
    when=st.lists(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), min_size=1, max_size=9),
    missing=st.booleans(),
)
def test_times__are_in_text_and_parquet_what_python_says(when, missing, tmp_path_factory):
    folder = tmp_path_factory.mktemp("times")
    expected = [
        [
            t.year,
            t.timetuple().tm_yday,
            t.isoweekday(),
            (t - datetime.combine(t, datetime.min.time())) / timedelta(hours=1),
        ]
        for t in when
    ]
    y = [1.5] * len(when)
    pq.write_table(pa.table({"t": when, "y": y}), folder / "a.parquet")
    pq.write_table(pa.table({"t": [t.isoformat(" ") for t in when], "y": y}), folder / "b.parquet")
    (folder / "a.csv").write_text("t,y\n" + "".join(f"{t.isoformat()}Z,1.5\n" for t in when))
    options = {"missing": "mean"} if missing else {}
    for name in ("a.parquet", "b.parquet", "a.csv"):
        assert prepare_file(folder / "store", "x", folder / name, **options).feature_names == NAMES
        np.testing.assert_array_equal(dense_rows(folder / "store")[0], expected)


def test_time_of_a_column_with_a_zone__is_the_local_one(tmp_path):
    when = [datetime(2024, 7, 1, 22, 30, tzinfo=UTC), datetime(2024, 12, 31, 23, tzinfo=UTC)]
    table = pa.table({"t": pa.array(when, pa.timestamp("ns", "Europe/Berlin")), "y": [1, -1]})
    pq.write_table(table, tmp_path / "a.parquet")
    prepare_file(tmp_path / "store", "x", tmp_path / "a.parquet")
    assert dense_rows(tmp_path / "store")[0].tolist() == [[2024, 184, 2, 0.5], [2025, 1, 3, 0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-14 15:30", [2024, 74, 4, 15.5]),
        ("2024/3/4T5:30:00.0Z", [2024, 64, 1, 5.5]),
        ("14.3.2024 15 UTC", [2024, 74, 4, 15]),
        ("2024-03-14 15:30:00 +0130", [2024, 74, 4, 15.5]),
        ("2024-03", [2024, 61]),
        ("9:45", [9.75]),
        # other text is no date
        *((text, []) for text in ("12", "T12", "20240101", "2024-13", "1-2-2024")),
        *((text, []) for text in ("24:00", "red", "")),
    ],
)
def test_notations_of_a_moment__are_read(text, expected):
    assert [*moment(text).values()] == expected


# What the first line is
# --------------------------------------------------------------------------------------------------

WORDS = [["p", "x"], ["e", "b"], ["p", "b"], ["e", "x"]] * 3


@pytest.mark.parametrize(
    ("first", "rows", "named"),
    [
        (["class", "cap"], WORDS, True),
        (["p", "b"], WORDS, False),
        (["2020", "2021", "label"], [["1", "2", "a"], ["3", "4", "b"]] * 5, True),
        (["region", "2020", "2021"], [["N", "1.5", "2"], ["S", "-3", "4"]] * 5, True),
        (["N", "2020", "2021"], [["N", "1.5", "2"], ["S", "-3", "4"]] * 5, False),
        (["39", "private", "77516"], [["50", "state", "83311"], ["38", "state", "2"]] * 5, False),
        (["kind", "x", "y"], [["a", "?", "b"], ["c", "?", "b"], ["c", "1.5", "d"]], True),
        (["a", "?", "b"], [["a", "?", "b"], ["c", "1.5", "b"]], False),
    ],
)
def test_first_line__is_a_row_or_names_by_what_is_below(first, rows, named, tmp_path):
    text = "".join(",".join(row) + "\n" for row in (first, *rows))
    found = prepared_text(tmp_path, text, missing="mean")[0]
    assert found.n_rows == len(rows) + (not named)
    assert any(name.startswith(first[0]) for name in found.feature_names) == named


@pytest.mark.parametrize(
    "text",
    [
        "a,b\nc,d\n",
        "class,x\n" + "p,x\ne,b\n" * 9,
        "2019,2020,2021\n1.5,2.5,3.5\n",
        "x,2\n" + "1.5,1\n" * 9,
    ],
)
def test_first_line_that_may_be_either__is_asked_about(text, tmp_path):
    assert re.search("line 1: .*add --header.*--no-header", refused_text(tmp_path, text))
    assert prepared_text(tmp_path, text, header=True)[0].n_rows == text.count("\n") - 1


# ARFF
# --------------------------------------------------------------------------------------------------

IRIS = """% a comment
@RELATION 'the iris'

@ATTRIBUTE "sepal length" REAL
@attribute colour {red, 'light blue', "it's"}
@attribute when date 'yyyy-MM-dd'
@attribute n integer
@attribute class {Iris-setosa,Iris-virginica}
@DATA
5.1,red,2024-01-01,1,Iris-setosa
% another
4.9,'light blue',"2024-01-02",-2,Iris-virginica

?,'it\\'s',2024-01-03,3,Iris-virginica
"""
SAME = """sepal length,colour,when,n,class
5.1,red,2024-01-01,1,Iris-setosa
4.9,light blue,2024-01-02,-2,Iris-virginica
?,it's,2024-01-03,3,Iris-virginica
"""
SPARSE = """@relation words
@attribute w0 numeric
@attribute w1 numeric
@attribute kind {none, "a b"}
@attribute class {pos, neg}
@data
{0 1.5, 3 neg}
{}
{ 1 2 , 2 'a b' }
"""


HEAD, DATA, ROWS = IRIS.partition("@DATA\n")


@pytest.mark.parametrize("text", [IRIS, HEAD + DATA + ROWS.replace(",", "\t")])
def test_arff__is_the_same_as_csv(text, tmp_path):
    arff, X, y = prepared_text(tmp_path, text, "a.arff", missing="mean")
    csv, *_ = prepared_text(tmp_path, SAME, "a.csv", missing="mean")
    assert (arff.dataset_hash, arff.feature_names) == (csv.dataset_hash, csv.feature_names)
    assert arff.class_names == csv.class_names == ["Iris-setosa", "Iris-virginica"]
    assert X[0].tolist() == [5.1, 0, 0, 1, 2024, 1, 1, 1]
    assert y.tolist() == [-1, 1, 1]


def test_sparse_arff__stays_sparse_and_names_what_it_lacks(tmp_path):
    manifest, X, y = prepared_text(tmp_path, SPARSE, "a.txt")
    assert manifest.layout == "sparse"
    assert manifest.feature_names == ["w0", "w1", "kind=a b", "kind=none"]
    assert X.tolist() == [[1.5, 0, 0, 1], [0, 0, 0, 1], [0, 2, 1, 0]]
    assert (y.tolist(), manifest.class_names) == ([-1, 1, 1], ["neg", "pos"])


# What is refused
# --------------------------------------------------------------------------------------------------

NOTATIONS = (
    *("3,14", "-3,14e5", "1,234", "1,234.5", "1.234.567,8", "12,34,567", "1 234", "1\u202f234"),
    *("1'234.5", "12%", "12 %", "1_000", "0x1F", "$5", "-$5", "5 €", "USD 5", "(5)", "−5", "１"),
)
DATES = ("03/14/2024", "3/14/24 8:00 AM", "14-Mar-2024", "March 14, 2024", "14-03-2024")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,y\n1,a\n2,?\n", {}, r"line 3: column 'y' is '\?', no class; .*--missing drop"),
        ("x,y\n1,a\n2,NA\n", {}, "line 3: column 'y' is 'NA'.*--categorical y"),
        ("x,y\n1,1\n2,b\n", {}, "line 3: column 'y' is 'b'.*for classes add --categorical y"),
        ("kind,x,y\nred,1,0\nblue,?,1\nred,b,x\n", {"one_hot": True}, "^3 problems:"),
        (
            "x,y\n" + "".join(f"1,k{k}\n" for k in range(201)),
            {},
            "column 'y' holds more than 200 different texts; name another --target",
        ),
        (
            STREETS,
            {},
            "column 'street' holds more than 100 different texts; leave it out with.*"
            "--one-hot --layout sparse --hash-bits 18",
        ),
        ("x,y\n1,2\n", {"drop": ("x",), "numeric": ("x",)}, "column 'x' is named by two of"),
        ("x,y\n1,2024-03-14\n", {}, "the target, column 'y', holds dates or times; name another"),
        (
            "a 1:1\nb,c 1:2\n",
            {"format": "libsvm"},
            "line 2, .*give the row one label, without commas",
        ),
        ("a 1:1\n? 1:2\n", {"format": "libsvm"}, r"line 2, .*'\?'.*fill the value in"),
        *(
            (
                f't,y\n{first},1\n"{text}",2\n',
                {"missing": "mean"},
                f"line 3: column 't' is '{text}', a date in another order or notation.*"
                "leave the column out with --drop t$",
            )
            for first in ("red", "")
            for text in DATES
        ),
        *(
            (f"t,y\n2024-01-01,1\n{later},2\n", {}, f"^a.csv, line 3: column 't' is.*{remedy}")
            for later, remedy in (
                *((some, "--categorical t") for some in ("2024-13-01", "soon", "12:30", "3")),
                ("", "--missing mean or --missing drop"),
            )
        ),
        *(
            (
                f"a;y\n{first};2\n{text};3\n",
                {"one_hot": True, "missing": "mean"},
                "line 3: column 'a' is .*; write it with digits and a",
            )
            for first in ("1", "red", "?")
            for text in NOTATIONS
        ),
        *(
            (text, {}, r"is a workbook, text in UTF-16.*; save it as CSV")
            for text in ("PK\3\4\0\0", "x\0,\0y\0\n\0001\0,\0002\0\n\0")
        ),
        *(
            (SPARSE.replace(old, new), {"name": "a.arff"}, message)
            for old, new, message in (
                (
                    "w0 numeric",
                    "bag relational",
                    "line 2: 'bag' is relational: .*; write a file without",
                ),
                ("w0 numeric", "w1 numeric", "line 3: 'w1' is an attribute already; rename"),
                (
                    "w0 numeric",
                    "w0",
                    "line 2: '@attribute w0' is no attribute; write @attribute NAME",
                ),
                ("@data", "@rows", "no line @data"),
                ("0 1.5", "4 1.5", "line 7: attribute 4, and they are numbered from 0 to 3"),
                ("0 1.5", "0 x", "line 7: column 'w0' is 'x', not a finite number"),
                ("{0 1.5", "{0 '1.5", "line 7: .* is no row of ARFF"),
                ("{}", "1,2", "line 8: 2 columns where the first line has 4"),
            )
        ),
    ],
)
def test_what_is_wrong__is_refused_with_its_line_and_a_remedy(text, options, message, tmp_path):
    assert re.search(message, refused_text(tmp_path, text, **options))


# Data frames
# --------------------------------------------------------------------------------------------------

COLUMNS = {
    "x": [1.5, -2.0, 3.0],
    "colour": ["red", "blue", "red"],
    "t": [datetime(2024, 1, 1, 6), datetime(2024, 1, 2), datetime(2024, 1, 3)],
    "y": ["no", "yes", "no"],
}


@pytest.mark.parametrize(
    "kind", ["pandas.DataFrame", "polars.DataFrame", "polars.LazyFrame", "pyarrow.table"]
)
def test_data_frame__is_prepared_as_its_file(kind, tmp_path):
    library, name = kind.split(".")
    frame = getattr(pytest.importorskip(library, reason=f"needs {library}"), name)(COLUMNS)
    pq.write_table(pa.table(COLUMNS), tmp_path / "a.parquet")
    file = prepare_file(tmp_path / "store", "file", tmp_path / "a.parquet", target="y")
    found = flows.prepare("mine", frame, tmp_path / "store", target="y")
    assert (found.dataset_hash, found.class_names) == (file.dataset_hash, ["no", "yes"])
    assert found.source["files"][0]["file"] == "mine.parquet"


@settings(max_examples=20, deadline=None)
@given(
    X=st.integers(0, 9).map(lambda seed: np.random.default_rng(seed).integers(-1, 2, (7, 3))),
    at=st.integers(0, 3),
    texts=st.booleans(),
)
def test_sparse_features__are_the_dense_ones_beside_any_target(X, at, texts, tmp_path_factory):
    store = tmp_path_factory.mktemp("sparse") / "store"
    y = np.array(["b", "a", "c", "a", "b", "a", "c"] if texts else [1, 2, 1, 1, 2, 2, 1])
    frame = pd.DataFrame(X, columns=list("uvw")).astype(pd.SparseDtype(float, 0.0))
    frame.insert(at, "y", y)
    found = flows.prepare("sparse", frame, store, target="y")
    assert (found.layout, found.n_values) == ("sparse", np.count_nonzero(X))
    rows, labels = stream(store, "sparse").whole()
    assert rows.toarray().tolist() == X.tolist()
    assert labels.tolist() == ([2, 1, 3, 1, 2, 1, 3] if texts else y.tolist())
    assert found.class_names == (["a", "b", "c"] if texts else [])
    mixed = frame.assign(u=X[:, 0] + 0.5, k=pd.Categorical([1, 2, 1, 1, 2, 2, 1]))
    found = flows.prepare("mixed", mixed, store, target="y")
    assert {*found.feature_names} == {"u", "v", "w", "k=1", "k=2"}


def test_plain_structured_and_masked_arrays__are_tables(tmp_path):
    plain = flows.prepare(
        "array", np.array([[1.5, 0, 1], [0, 2, -1]]), tmp_path / "store", target=1
    )
    assert (plain.n_features, plain.feature_names) == (2, ["2", "3"])
    fields = np.array([(1.5, "a"), (2.5, "b")], [("x", float), ("y", "U1")])
    found = flows.prepare("mine", fields, tmp_path / "store")
    assert (found.feature_names, found.class_names) == (["x"], ["a", "b"])
    masked = np.ma.masked_equal(np.array([[1.0, 1], [9, 2], [3, 1]]), 9)
    flows.prepare("x", masked, tmp_path / "store", missing="mean")
    assert dense_rows(tmp_path / "store")[0].tolist() == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"drop": "id"}, ["x", "7"]),
        ({"drop": 7, "categorical": "id"}, ["id=1", "id=2", "x"]),
        ({"drop": ["id", 7], "labels": {"a": 5, "b": 7}}, ["x"]),
    ],
)
def test_options__are_lists_or_alone_and_rules_mappings(options, names, tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "x": [1.5, 2.5], 7: [0, 1], "y": ["a", "b"]})
    with pytest.warns(UserWarning, match="mixed type"):
        found = flows.prepare("mine", frame, tmp_path / "store", **options)
    assert found.feature_names == names
    assert found.classes == ([5, 7] if "labels" in options else [-1, 1])


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.zeros(3), {}, "ndarray is no data frame"),
        (object(), {}, "object is no data frame"),
        (
            pa.table({"x": [1.0, None], "y": [1, 2]}),
            {},
            "the table, row 2: column 'x' is null; .*missing=.mean. or missing=.drop.",
        ),
        (pd.DataFrame([[1, 2, 3]], columns=list("xxy")), {}, "Duplicate .* a name of its own"),
        (pd.DataFrame({"x": [1, "a"], "y": 1}), {}, r"column x .*; frame\[column\].astype\(str\)"),
        (pa.table({"t v": [timedelta(1)], "y": [1]}), {}, "leave it out with drop=.t v."),
        (pa.table({"x": ["3/14/2024"], "y": [1]}), {}, "leave the column out with drop=.x."),
        ([{"x": 1}], {}, "list is no data frame"),
        (pa.table({"x": [1.0], "y": [1]}), {"targe": "y"}, "there is no option 'targe'"),
    ],
)
def test_wrong_data__is_refused_in_words(data, options, message, tmp_path):
    refusal(message, flows.prepare, "mine", data, tmp_path / "store", **options)


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
    assert said in "; ".join([*manifest.source.get("columns", []), *manifest.transformations])


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
    refusal(re.escape(f"{path.name}, {message}"), prepare_file, tmp_path / "store", "x", path)


def test_long_line__is_refused_before_it_is_held(tmp_path, monkeypatch):
    path = put(tmp_path / "a.csv.bz2", PACKED[".bz2"](b"," * 50_000_000))
    monkeypatch.setattr("storage.sources.text.source.MOST_LINE", 1_000_000)
    tracemalloc.start()
    refusal("line 1: a line of more than 1,000,000 bytes", source_of, [path])
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


FRAME = pd.DataFrame({"x": [1.5, 2.5], "z": [3.0, 4.0], "y": [1, -1]}, index=[7, 3])


PLAIN, WITH_INDEX = pa.table(FRAME.to_dict("list")), pa.Table.from_pandas(FRAME)
TABLES = [
    pa.table({"q": pa.array([], pa.string())}),
    WITH_INDEX,
    PLAIN.select(["y", "z", "x"]),
    PLAIN.slice(0, 0),
    WITH_INDEX.replace_schema_metadata(None),
]


@pytest.mark.parametrize(("k", "options"), [(1, {}), (2, {"target": "y"}), (4, {})])
def test_folder_of_parquet_files__is_one_table_whose_columns_go_by_name(k, options, tmp_path):
    for place, table in enumerate([TABLES[k], *TABLES[:k], *TABLES[k + 1 :]]):  # each may be first
        pq.write_table(table, tmp_path / f"{place}.parquet")
    (tmp_path / "_old.parquet").write_text("no table")
    manifest = prepare_file(tmp_path / ".store", "x", tmp_path, **options)
    X, y = dense_rows(tmp_path / ".store")
    by_name = dict(zip(manifest.feature_names, X.T.tolist(), strict=True))
    assert by_name == {"x": [1.5, 2.5] * 3, "z": [3.0, 4.0] * 3}
    assert y.tolist() == [1, -1] * 3
    assert len(manifest.source["files"]) == 3
    (tmp_path / "k=1").mkdir()
    pq.write_table(PLAIN, tmp_path / "k=1" / "a.parquet")
    refusal(r"k=1/a\.parquet: a folder within .*; write whole rows", source_of, [tmp_path])


def test_parquet_columns_that_number_the_rows__are_left_out_or_said(tmp_path):
    frame = {"index": [0, 1, 2], "id": [1, 2, 3], "x": [0.5, 1, 2], "y": [1, 2, 1]}
    pq.write_table(pa.table(frame), tmp_path / "a.parquet")
    manifest = prepare_file(tmp_path / "store", "x", tmp_path / "a.parquet")
    assert manifest.feature_names == ["id", "x"]
    assert manifest.transformations == [INDEX.format("index")]
    assert manifest.source["columns"][1:] == [
        "numeric: 2 (column 'id', column 'x')",
        f"{COUNTED.format('id')}; if so, leave it out with --drop id",
    ]


def test_command__says_which_columns_became_features_and_how(tmp_path, koco):
    names = [f"x{k}" for k in range(30)]
    words = (
        "prepare",
        "x",
        "--from",
        written(tmp_path, f",kind,{','.join(names)},y\n0,red{',1' * 30},2\n", "a.csv"),
        "--store",
        tmp_path / "store",
    )
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


OWN = "the age;kind;income;left?\n40;red;1.5;yes\n?;blue;2,5;no\n31;green;NA;yes;9\n22;;3;maybe\n"


def test_all_problems_of_a_table__are_told_at_once(tmp_path):
    assert refused_text(tmp_path, OWN, "own.csv").split("\n") == [
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
    message = refused_text(tmp_path, text, "a.svm")
    assert message.startswith("3 problems:\n  a.svm, line 2, column 5: the value of feature 1")
    assert "(and 1 more of this kind)\n  a.svm, line 4, column 7: feature 2 is there" in message
    assert message.splitlines()[-1].startswith("  a.svm, line 6, column 1: a NUL byte")
    monkeypatch.setattr("storage.preparing.prepare.source_of", partial(source_of, block_bytes=9))
    assert refused_text(tmp_path, text, "a.svm") == (
        "a.svm, line 2, column 5: the value of feature 1 is 'x', not a finite number; correct it"
    )


def test_more_problems_than_can_be_told__are_counted(tmp_path):
    text = "1 1:1\n" + "".join(f"1 {'a' * k}\n" for k in range(1, 2 * MOST_MET))
    message = refused_text(tmp_path, text, "a.svm")
    assert message.endswith("(and 999 more of this kind)\nreading ended at 1,000 problems")
    width = MOST_TOLD + 5
    rows = [",".join(["1"] * width), ",".join(["a"] * width)]
    message = refused_text(tmp_path, "\n".join(rows) + "\n", target="1")
    assert "and 4 more)" in message
