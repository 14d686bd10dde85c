"""Tables as they come: classes by name, categories, dates and times, ARFF, and data frames."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flows
from flows.views.answer import answer, in_terminal
from flows.views.views import Views
from koco_stream import WrongInput, stream
from koco_stream.streams.manifest import load_manifest
from storage.preparing.prepare import prepare_file
from storage.sources.numbers import moment
from tests.helpers.sweeps import checked, dense_rows, written
from tests.helpers.swept import swept

ABC = "x,y\n1.5,setosa\n2,virginica\n3,setosa\n4,versicolor\n"


def prepared(folder, text, name="a.txt", **options):
    """A file of this text prepared as dataset "x": its manifest, its rows, its labels."""
    (folder / name).write_text(text)
    manifest = prepare_file(folder / "store", "x", folder / name, **options)
    assert load_manifest(folder / "store", "x") == manifest
    return manifest, *dense_rows(folder / "store")


def refused(folder, text, name="a.csv", **options):
    """The message with which a file of this text is refused."""
    (folder / name).write_text(text)
    with pytest.raises(WrongInput) as error:
        prepare_file(folder / "store", "x", folder / name, **options)
    return str(error.value)


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
    manifest, _, labels = prepared(tmp_path, text, **options)
    assert labels.tolist() == y
    assert dict(zip(manifest.classes, manifest.class_names, strict=False)) == classes
    assert manifest.task == "classification"


def test_class__is_found_by_its_name_or_number(tmp_path):
    manifest = prepared(tmp_path, ABC)[0]
    assert [manifest.class_of(one) for one in ("setosa", "virginica", 2.0)] == [1, 3, 2]
    with pytest.raises(
        WrongInput, match=r"label 'setsa'; it has .*virginica; did you mean 'setosa'\?$"
    ):
        manifest.class_of("setsa")
    numbers = prepared(tmp_path, "1,3\n2,10\n", task="classification")[0]
    assert (numbers.class_names, numbers.class_of("10")) == ([], 10)


def test_sweep__takes_classes_by_name_and_shows_them(tmp_path):
    prepared(tmp_path, ABC)
    table = '[[dataset]]\nname = "x"\npositive_class = {}\n[[learner]]\nname = "Constant"\n'
    for wrong, message in (('"setsa"', r"did you mean 'setosa'\?"), ('"4"', "'4'; it has .*")):
        spec = written(tmp_path, 'name = "tiny"\n' + table.format(wrong))
        with pytest.raises(WrongInput, match=f"try.toml, .*{message}$"):
            checked(spec, tmp_path / "store")
    spec = written(tmp_path, 'name = "tiny"\n' + table.replace("positive_class = {}\n", ""))
    with pytest.raises(WrongInput, match=r'labels "setosa", .*positive_class = "virginica"'):
        checked(spec, tmp_path / "store")
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


def test_identity__does_not_depend_on_the_names(tmp_path):
    numbers = ABC.replace("setosa", "1").replace("versicolor", "2").replace("virginica", "3")
    hashes = {prepared(tmp_path, text)[0].dataset_hash for text in (ABC, numbers)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("x,y\n1,a\n2,?\n", {}, r"line 3: column 'y' is '\?', no class; .*--missing drop"),
        ("x,y\n1,a\n2,NA\n", {}, "line 3: column 'y' is 'NA'.*--categorical y"),
        ("x,y\n1,1\n2,b\n", {}, "line 3: column 'y' is 'b'.*for classes add --categorical y"),
        (
            "x,y\n" + "".join(f"1,k{k}\n" for k in range(201)),
            {},
            "column 'y' holds more than 200 different texts; name another --target",
        ),
        ("x,y\n1,2\n", {"drop": ("x",), "numeric": ("x",)}, "column 'x' is named by two of"),
        ("x,y\n1,2024-03-14\n", {}, "the target, column 'y', holds dates or times; name another"),
        (
            "a 1:1\nb,c 1:2\n",
            {"format": "libsvm"},
            "line 2, .*give the row one label, without commas",
        ),
        ("a 1:1\n? 1:2\n", {"format": "libsvm"}, r"line 2, .*'\?'.*fill the value in"),
    ],
)
def test_classes_that_are_none__are_refused(text, options, message, tmp_path):
    assert re.search(message, refused(tmp_path, text, **options))


# Categories and numbers
# --------------------------------------------------------------------------------------------------

ZIPS = "zip,area,y\n10115,1.5,1\n20095,-2.5,-1\n80331,3.5,1\n10115,0.5,-1\n"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns__are_what_they_are_said_to_be(form, tmp_path):
    path = tmp_path / f"a.{form}"
    frame = pd.DataFrame(
        {
            "zip": [10115, 20095, 10115, 80331],
            "size": ["12", "unknown", "-3", "1e1"],
            "kind": ["red", "blue", "red", "red"],
            "y": [1, -1, 1, -1],
        }
    )
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
    how = {"categorical": ["zip"], "numeric": ["size"]}
    with pytest.raises(WrongInput, match=r"column 'size' is .*--missing mean or --missing drop"):
        prepare_file(tmp_path / "store", "x", path, **how)
    manifest = prepare_file(tmp_path / "store", "x", path, missing="mean", **how)
    zips = ["zip=10115", "zip=20095", "zip=80331"]
    assert manifest.feature_names == [*zips, "size", "kind=blue", "kind=red"]
    expected = [
        [1, 0, 0, 12, 0, 1],
        [0, 1, 0, 19 / 3, 1, 0],
        [1, 0, 0, -3, 0, 1],
        [0, 0, 1, 10, 0, 1],
    ]
    np.testing.assert_allclose(dense_rows(tmp_path / "store")[0], expected)


def test_many_categories__are_refused_with_remedies_that_work(tmp_path):
    text = "street,y\n" + "".join(f"s{k},{k % 2}\n" for k in range(101))
    message = refused(tmp_path, text)
    assert "column 'street' holds more than 100 different texts; leave it out with" in message
    sizes = {
        "--one-hot": ({"one_hot": True}, 101),
        "--one-hot --layout sparse --hash-bits 18": (
            {"one_hot": True, "layout": "sparse", "hash_bits": 18},
            2**18,
        ),
    }
    for words, (options, size) in sizes.items():
        assert words in message
        assert prepared(tmp_path, text, **options)[0].n_features == size
    wider = text.replace("\n", ",1\n").replace("street,y,1", "street,y,x")
    assert prepared(tmp_path, wider, drop=("street",), target="y")[0].feature_names == ["x"]


def test_minmax__of_categories_beside_negative_numbers_is_dense(tmp_path):
    manifest, X, _ = prepared(tmp_path, ZIPS, categorical=("zip",), scale="minmax")
    assert manifest.layout == "dense"
    assert "rows kept dense" in manifest.transformations
    assert X.min() == 0
    assert X.max() == 1


# Dates and times
# --------------------------------------------------------------------------------------------------

NAMES = ["t.year", "t.day_of_year", "t.weekday", "t.time_of_day"]
times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))


@settings(max_examples=40, deadline=None)
@given(when=st.lists(times, min_size=1, max_size=9), missing=st.booleans())
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
    texts = [t.isoformat(" ") for t in when]
    pq.write_table(pa.table({"t": texts, "y": y}), folder / "b.parquet")
    (folder / "a.csv").write_text("t,y\n" + "".join(f"{t.isoformat()}Z,1.5\n" for t in when))
    options = {"missing": "mean"} if missing else {}
    for name in ("a.parquet", "b.parquet", "a.csv"):
        manifest = prepare_file(folder / "store", "x", folder / name, **options)
        assert manifest.feature_names == NAMES
        np.testing.assert_array_equal(dense_rows(folder / "store")[0], expected)


def test_dates__have_no_time_and_times_no_date(tmp_path):
    text = "day,at,x,y\n2024-02-29,06:30,1,1\n?,18:00:00,2,-1\n2023-12-31,00:00,3,1\n"
    manifest, X, _ = prepared(tmp_path, text, missing="mean")
    assert manifest.feature_names == [
        *("day.year", "day.day_of_year", "day.weekday"),
        *("at.time_of_day", "x"),
    ]
    assert X.tolist() == [[2024, 60, 4, 6.5, 1], [2023.5, 212.5, 5.5, 18, 2], [2023, 365, 7, 0, 3]]
    said = "dates and times: column 'day' as year, day_of_year, weekday, column 'at' as time_of_day"
    assert said in manifest.source["columns"]
    assert prepared(tmp_path, text, missing="drop")[0].n_rows == 2
    declared = prepared(tmp_path, text, categorical=("at",), missing="drop")[0]
    assert "at=06:30" in declared.feature_names


def test_time_of_a_column_with_a_zone__is_the_local_one(tmp_path):
    zone = ZoneInfo("Europe/Berlin")
    when = [datetime(2024, 7, 1, 22, 30, tzinfo=UTC), datetime(2024, 12, 31, 23, tzinfo=UTC)]
    table = pa.table({"t": pa.array(when, pa.timestamp("ns", "Europe/Berlin")), "y": [1, -1]})
    pq.write_table(table, tmp_path / "a.parquet")
    prepare_file(tmp_path / "store", "x", tmp_path / "a.parquet")
    X = dense_rows(tmp_path / "store")[0]
    text = "t,y\n" + "".join(f"{t.astimezone(zone).isoformat()},1\n" for t in when)
    assert X.tolist() == [[2024, 184, 2, 0.5], [2025, 1, 3, 0]]
    assert prepared(tmp_path, text)[1].tolist() == X.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-14 15:30", [2024, 74, 4, 15.5]),
        ("2024/3/4T5:30:00.0Z", [2024, 64, 1, 5.5]),
        ("14.3.2024 15 UTC", [2024, 74, 4, 15]),
        ("2024-03-14 15:30:00 +0130", [2024, 74, 4, 15.5]),
        ("2024-03", [2024, 61]),
        ("9:45", [9.75]),
    ],
)
def test_notations_of_a_moment__are_read(text, expected):
    assert [*moment(text).values()] == expected


def test_columns_of_months__have_a_year_and_a_day(tmp_path):
    months = "month,x,y\n" + "".join(f"{2000 + k}-0{k + 1},1,2.5\n" for k in range(9))
    manifest, X, _ = prepared(tmp_path, months)
    assert manifest.feature_names == ["month.year", "month.day_of_year", "x"]
    assert X[:2].tolist() == [[2000, 1, 1], [2001, 32, 1]]


@pytest.mark.parametrize(
    "text", ["03/14/2024", "3/14/24 8:00 AM", "14-Mar-2024", "March 14, 2024", "14-03-2024"]
)
@pytest.mark.parametrize("first", ["red", ""])
def test_date_in_another_order__is_refused_with_what_to_do(first, text, tmp_path):
    rows = f'{first},1\n"{text}",2\n'
    message = refused(tmp_path, f"t,y\n{rows}", missing="mean")
    assert f"line 3: column 't' is '{text}', a date in another order or notation" in message
    assert message.endswith("leave the column out with --drop t")


@pytest.mark.parametrize("text", ["10.0.10.1", "1.2.10", "1/2", "555-1234", "Mars 3", "0b3fe2"])
def test_text_with_digits__is_a_category(text, tmp_path):
    assert f"t={text}" in prepared(tmp_path, f"t,x,y\nred,1,1\n{text},2,2\n")[0].feature_names


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
    found = prepared(tmp_path, text, missing="mean")[0]
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
    assert re.search("line 1: .*add --header.*--no-header", refused(tmp_path, text))
    assert prepared(tmp_path, text, header=True)[0].n_rows == text.count("\n") - 1


@pytest.mark.parametrize("begin", [b"PK\3\4\0\0", "x,y\n1,2\n".encode("utf-16")])
def test_file_of_another_kind__is_refused_as_such(begin, tmp_path):
    (tmp_path / "a.csv").write_bytes(begin)
    with pytest.raises(WrongInput, match=r"is a workbook, text in UTF-16.*; save it as CSV"):
        prepare_file(tmp_path / "store", "x", tmp_path / "a.csv")


@pytest.mark.parametrize("later", ["2024-13-01", "soon", "12:30", "3", ""])
def test_text_that_does_not_fit__is_refused_with_its_line(later, tmp_path):
    message = refused(tmp_path, f"t,y\n2024-01-01,1\n{later},2\n")
    assert "a.csv, line 3: column 't' is" in message
    assert ("--categorical t" if later else "--missing mean or --missing drop") in message


@pytest.mark.parametrize(
    "text", ["12", "T12", "20240101", "2024-13", "1-2-2024", "24:00", "red", ""]
)
def test_other_text__is_no_date(text):
    assert moment(text) == {}


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


def test_arff__is_the_same_as_csv(tmp_path):
    arff, X, y = prepared(tmp_path, IRIS, "a.arff", missing="mean")
    csv, *_ = prepared(tmp_path, SAME, "a.csv", missing="mean")
    assert (arff.dataset_hash, arff.feature_names) == (csv.dataset_hash, csv.feature_names)
    assert arff.class_names == csv.class_names == ["Iris-setosa", "Iris-virginica"]
    assert X[0].tolist() == [5.1, 0, 0, 1, 2024, 1, 1, 1]
    assert y.tolist() == [-1, 1, 1]


def test_arff_separated_by_tabs__is_the_same(tmp_path):
    expected = prepared(tmp_path, IRIS, "a.arff", missing="mean")[0].dataset_hash
    head, data, rows = IRIS.partition("@DATA\n")
    tabs = head + data + rows.replace(",", "\t")
    assert prepared(tmp_path, tabs, "a.arff", missing="mean")[0].dataset_hash == expected


def test_sparse_arff__stays_sparse_and_names_what_it_lacks(tmp_path):
    manifest, X, y = prepared(tmp_path, SPARSE, "a.txt")
    assert manifest.layout == "sparse"
    assert manifest.feature_names == ["w0", "w1", "kind=a b", "kind=none"]
    assert X.tolist() == [[1.5, 0, 0, 1], [0, 0, 0, 1], [0, 2, 1, 0]]
    assert (y.tolist(), manifest.class_names) == ([-1, 1, 1], ["neg", "pos"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("w0 numeric", "bag relational", "line 2: 'bag' is relational: .*; write a file without"),
        ("w0 numeric", "w1 numeric", "line 3: 'w1' is an attribute already; rename"),
        ("w0 numeric", "w0", "line 2: '@attribute w0' is no attribute; write @attribute NAME"),
        ("@data", "@rows", "no line @data"),
        ("0 1.5", "4 1.5", "line 7: attribute 4, and they are numbered from 0 to 3"),
        ("0 1.5", "0 x", "line 7: column 'w0' is 'x', not a finite number"),
        ("{0 1.5", "{0 '1.5", "line 7: .* is no row of ARFF"),
        ("{}", "1,2", "line 8: 2 columns where the first line has 4"),
    ],
)
def test_malformed_arff__is_refused_with_its_line(old, new, message, tmp_path):
    assert re.search(message, refused(tmp_path, SPARSE.replace(old, new), "a.arff"))


# Data frames
# --------------------------------------------------------------------------------------------------

COLUMNS = {
    "x": [1.5, -2.0, 3.0],
    "colour": ["red", "blue", "red"],
    "t": [datetime(2024, 1, 1, 6), datetime(2024, 1, 2), datetime(2024, 1, 3)],
    "y": ["no", "yes", "no"],
}


@pytest.mark.parametrize("kind", ["pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
def test_data_frame__is_prepared_as_its_file(kind, tmp_path):
    library, name = kind.split(".")
    frame = getattr(pytest.importorskip(library, reason=f"needs {library}"), name)(COLUMNS)
    pq.write_table(pa.table(COLUMNS), tmp_path / "a.parquet")
    file = prepare_file(tmp_path / "store", "file", tmp_path / "a.parquet", target="y")
    found = flows.prepare("mine", frame, tmp_path / "store", target="y")
    assert (found.dataset_hash, found.class_names) == (file.dataset_hash, ["no", "yes"])
    assert found.source["files"][0]["file"] == "mine.parquet"


def test_array_and_sparse_frame__are_prepared(tmp_path):
    X = np.array([[1.5, 0, 1], [0, 2, -1], [0, 0, 1]])
    array = flows.prepare("array", X, tmp_path / "store", target=1)
    assert (array.n_features, array.feature_names) == (2, ["2", "3"])
    frame = pd.DataFrame(X, columns=list("aby")).astype(pd.SparseDtype(float, 0.0))
    sparse = flows.prepare("sparse", frame, tmp_path / "store", target="y")
    assert (sparse.n_features, sparse.classes, sparse.layout) == (2, [-1, 1], "sparse")


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


def test_structured_and_masked_arrays__are_tables(tmp_path):
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
    with pytest.raises(WrongInput, match=message):
        flows.prepare("mine", data, tmp_path / "store", **options)
