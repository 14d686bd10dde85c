"""Parquet as a source: the rows that were written, in order, from any layout of the file, and what
is not right refused with its row.
"""

import datetime
import decimal
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from koco_stream.io.files import file_hash
from storage.sources import roles
from storage.sources.parquet import files as parquet_files
from storage.sources.reading import source_of
from storage.sources.source import Reading
from tests.helpers.refusal import outcome_of, refusal
from tests.helpers.tables import listed


def write(path, columns, per_group=None, **options):
    pq.write_table(pa.table(columns), path, row_group_size=per_group, **options)
    return path


def read(paths, scratch, **reading):
    """The source, surveyed, and its rows; nothing may be left in `scratch`."""
    scratch.mkdir(exist_ok=True)
    source = source_of(paths, Reading(**reading)).surveyed(map, scratch)
    rows = listed(source, scratch)
    assert list(scratch.iterdir()) == []
    return source, rows


def cut_at(piece_bytes, group_bytes=None):
    """Row groups of more bytes are cut into slices of this size."""
    return mock.patch.multiple(
        parquet_files, PIECE_BYTES=piece_bytes, GROUP_BYTES=group_bytes or 4 * piece_bytes
    )


def sparse_table(rows, n_features=None, value_type=None, lists=pa.list_):
    value_type = value_type or pa.float64()
    columns = {
        "label": pa.array([label for label, _ in rows], pa.float64()),
        "indices": pa.array([[j for j, _ in row] for _, row in rows], lists(pa.int32())),
        "values": pa.array([[v for _, v in row] for _, row in rows], lists(value_type)),
    }
    return pa.table(columns, metadata={"n_features": str(n_features)} if n_features else None)


value = st.sampled_from([0.0, 1.0, -2.5, 0.1, 3e-9, 1e30, -1e300])
row = st.tuples(
    value,
    st.lists(st.tuples(st.integers(0, 9), value), max_size=6, unique_by=lambda c: c[0]).map(sorted),
)


@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(st.lists(row, min_size=1, max_size=9), min_size=1, max_size=3),
    per_group=st.integers(1, 9),
    piece_bytes=st.sampled_from([1, 60, 1 << 20]),
    lists=st.sampled_from([pa.list_, pa.large_list]),
)
def test_prepared_sparse_rows__come_back_in_canonical_form_however_they_are_cut(
    files, per_group, piece_bytes, lists, tmp_path_factory
):
    tmp = tmp_path_factory.mktemp("parquet")
    paths = [
        write(tmp / f"{k}.parquet", sparse_table(rows, 10, lists=lists), per_group)
        for k, rows in enumerate(files)
    ]
    with cut_at(piece_bytes):
        source, found = read(paths, tmp / "s")
    assert (source.layout, source.n_features, source.format) == ("sparse", 10, "parquet")
    assert found == [
        (label, {j: v for j, v in cells if v != 0.0}) for rows in files for label, cells in rows
    ]


cells = st.lists(
    st.tuples(value, value, value, st.sampled_from(["b", "a c", "é", "10", "9"])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    rows=cells,
    per_group=st.integers(1, 12),
    piece_bytes=st.sampled_from([1, 60, 1 << 20]),
    version=st.sampled_from(["1.0", "2.6"]),
)
def test_tables_and_dense_prepared_rows__come_back_as_written(
    rows, per_group, piece_bytes, version, tmp_path_factory
):
    tmp = tmp_path_factory.mktemp("parquet")
    x, z, y, text = (list(column) for column in zip(*rows, strict=True))
    columns = {"x": x, "text": text, "z.z": z, "y": y}
    flat = write(tmp / "flat.parquet", columns, per_group, version=version)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(np.column_stack([x, z]).ravel()), 2)
    columns = {"label": y, "values": fixed}
    prepared = write(tmp / "prepared.parquet", columns, per_group, version=version)
    expected = [(label, {0: a, 1: b}) for a, b, label, _ in rows]
    texts = sorted(set(text))
    names = ["x", *(f"text={t}" for t in texts), "z.z"]
    hot = [(label, {0: a, 1 + texts.index(t): 1.0, 1 + len(texts): b}) for a, b, label, t in rows]
    layout = "dense" if len(texts) <= 2 else "sparse"
    with cut_at(piece_bytes):
        for path, options, known in (
            (flat, {"drop": ("text",)}, ("dense", 2, ["x", "z.z"], expected)),
            (prepared, {}, ("dense", 2, [], expected)),
            (flat, {"one_hot": True}, (layout, len(names), names, hot)),
        ):
            source, found = read([path], tmp / "s", **options)
            *about, rows_of = known
            assert [source.layout, source.n_features, source.feature_names] == about
            assert [(y, nonzero(row)) for y, row in found] == [(y, nonzero(r)) for y, r in rows_of]


def nonzero(row):
    return {j: value for j, value in row.items() if value != 0.0}


def test_tables__every_kind_of_number_and_target(tmp_path):
    ten = [decimal.Decimal(t) for t in ("0.1", "-123456789012345678901234567890.12345678")]
    columns = {
        "i": pa.array([1, -(2**63)], pa.int64()),
        "u": pa.array([2**64 - 2**11, 2**60], pa.uint64()),
        "h": pa.array([0.5, -2.0], pa.float16()),
        "f": pa.array([0.1, 3.0], pa.float32()),
        "b": pa.array([True, False]),
        "d": pa.array(ten, pa.decimal128(38, 8)),
        "e": pa.array(ten, pa.decimal256(60, 8)),
        "n": pa.array([7, 9]).dictionary_encode(),
        "y": pa.array(["ham", "spam"]).dictionary_encode(),
    }
    path = write(tmp_path / "a.parquet", columns)
    source, found = read([path], tmp_path / "s", labels="spam=1,ham=-1")
    first = [1.0, 2.0**64 - 2**11, 0.5, float(np.float32(0.1)), 1.0, 0.1, 0.1, 7.0]
    second = [-(2.0**63), 2.0**60, -2.0, 3.0, 0.0, float(ten[1]), float(ten[1]), 9.0]
    assert found == [(-1, dict(enumerate(first))), (1, dict(enumerate(second)))]
    assert source.done == ("labels by the rule spam=1,ham=-1",)
    said = ["target: column 'y'", f"numeric: 8 ({', '.join(f'column {c!r}' for c in 'iuhfbden')})"]
    assert source.origin == {
        "format": "parquet",
        "labels": "spam=1,ham=-1",
        "files": [{"file": "a.parquet", "sha256": file_hash(path)}],
        "columns": said,
    }
    options = {"target": "5", "labels": "1=2,0=-1", "drop": ("y", "1")}
    numbered, ((one, _), (two, _)) = read([path], tmp_path / "s", **options)
    assert (one, two, numbered.feature_names) == (2, -1, ["u", "h", "f", "d", "e", "n"])
    assert numbered.done[-1] == "left out: column 'y', column 'i'"


def test_prepared_rows__keep_float32_and_take_d_from_the_option_the_file_or_the_rows(tmp_path):
    table = sparse_table([(1.0, [(2, 0.1)])], value_type=pa.float32())
    source, _ = read([write(tmp_path / "a.parquet", table)], tmp_path / "s")
    assert source.read(next(source.pieces(tmp_path))).values.dtype == np.float32
    told = write(tmp_path / "b.parquet", table.replace_schema_metadata({"n_features": "5"}))
    given = source_of(source.paths, Reading(n_features=7))
    assert [one.n_features for one in (source, given, source_of([told]))] == [None, 7, 5]


def test_one_hot__texts_that_no_row_of_the_last_group_has_and_two_files(tmp_path):
    one = write(tmp_path / "1.parquet", {"c": ["z", "z", "a"], "y": [1, 2, 3]}, 1)
    two = write(tmp_path / "2.parquet", {"c": pa.array(["m"], pa.large_string()), "y": [4.5]})
    source, rows = read([one, two], tmp_path / "s", one_hot=True)
    assert source.feature_names == ["c=a", "c=m", "c=z"]
    assert rows == [(1, {2: 1}), (2, {2: 1}), (3, {0: 1}), (4.5, {1: 1})]
    assert source.done == ("one-hot, values in sorted order: column 'c' (3)",)


def lists_of(*rows, kind=None):
    return pa.array(list(rows), pa.list_(kind or pa.float64()))


def dense_of(*rows):
    """Prepared dense rows with these values, labelled 1."""
    values = pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(rows)), len(rows[0]))
    return {"label": [1.0] * len(rows), "values": values}


I32, NAN, INF = pa.int32(), float("nan"), float("inf")
GOOD = {
    "label": [1.0, 2.0],
    "indices": lists_of([0], [1], kind=I32),
    "values": lists_of([1.0], [2.0]),
}
BIG = 2**53 + 1
WRONG = {
    # prepared rows
    "null label": (
        {**GOOD, "label": [1.0, None]},
        {},
        "row group 2, row 2: column 'label' is null; remove the row",
    ),
    "label not finite": (
        {**GOOD, "label": [1.0, INF]},
        {},
        "row group 2, row 2: column 'label' is inf, not a finite number",
    ),
    "null list": (
        {**GOOD, "values": lists_of([1.0], None)},
        {},
        "row group 2, row 2: column 'values' is null",
    ),
    "null item": (
        {**GOOD, "values": lists_of([1.0], [None])},
        {},
        "row group 2, row 2: an item of column 'values' is null",
    ),
    "nan item": (
        {**GOOD, "values": lists_of([1.0], [NAN])},
        {},
        "row group 2, row 2: an item of column 'values' is nan, not a finite",
    ),
    "null index": (
        {**GOOD, "indices": lists_of([0], [None], kind=I32)},
        {},
        "row 2: an item of column 'indices' is null",
    ),
    "descending": (
        {**GOOD, "indices": lists_of([0], [5, 3], kind=I32), "values": lists_of([1.0], [1.0, 2.0])},
        {},
        "row group 2, row 2: column 'indices' has 3 after 5; sort each row",
    ),
    "repeated": (
        {**GOOD, "indices": lists_of([0], [5, 5], kind=I32), "values": lists_of([1.0], [1.0, 2.0])},
        {},
        "row 2: column 'indices' has 5 after 5",
    ),
    "lengths": (
        {**GOOD, "values": lists_of([1.0], [2.0, 3.0])},
        {},
        "row group 2, row 2: 2 values and 1 indices; give each",
    ),
    "negative": (
        {**GOOD, "indices": lists_of([0], [-1], kind=I32)},
        {},
        "'indices' is -1, and n_features is .* counted from 0",
    ),
    "beyond d": (
        GOOD,
        {"n_features": 1},
        "row 2: an item of column 'indices' is 1, and n_features is 1; give more with --n-features",
    ),
    "beyond int32": (
        {**GOOD, "indices": lists_of([0], [2**31], kind=pa.uint64())},
        {},
        "'indices' is 2147483648, and .* hash them to fewer",
    ),
    "large integer value": (
        {**GOOD, "values": lists_of([1], [BIG], kind=pa.int64())},
        {},
        f"row 2: an item .* is {BIG}, beyond 2\\^53",
    ),
    "no label": ({"indices": GOOD["indices"], "values": GOOD["values"]}, {}, "no column 'label'"),
    "another column": (
        {**GOOD, "weight": [1.0, 2.0]},
        {},
        "column 'weight'; where 'values' is a list",
    ),
    "no indices": (
        {"label": [1.0, 2.0], "values": GOOD["values"]},
        {},
        "there are no 'indices'; add them",
    ),
    "indices of floats": (
        {**GOOD, "indices": GOOD["values"]},
        {},
        "column 'indices' is list.*; it must be a list of integers",
    ),
    "values of texts": (
        {**GOOD, "values": lists_of(["a"], ["b"], kind=pa.string())},
        {},
        "column 'values' is list.* must be numbers",
    ),
    "label of times": (
        {**GOOD, "label": [datetime.date(2020, 1, 1)] * 2},
        {},
        "column 'label' is date32",
    ),
    "target of prepared rows": (
        GOOD,
        {"target": "label"},
        "--target does not apply to prepared rows",
    ),
    "d in metadata": (
        pa.table(GOOD, metadata={"n_features": "many"}),
        {},
        "the metadata has n_features = 'many'",
    ),
    "d of dense rows": (
        dense_of([1.0], [2.0]),
        {"n_features": 3},
        "--n-features is for sparse rows",
    ),
    # tables
    "null": (
        {"a": [1, None], "y": [1, 2]},
        {},
        "row group 2, row 2: column 'a' is null; fill the value in, or say what",
    ),
    "nothing but nulls": (
        {"a": pa.nulls(2), "y": [1, 2]},
        {},
        "column 'a' is null; store it as a number",
    ),
    "nan": (
        {"a": [1.0, NAN], "y": [1, 2]},
        {},
        "row group 2, row 2: column 'a' is nan, not a finite number",
    ),
    "target not finite": ({"a": [1, 2], "y": [1.0, -INF]}, {}, "row 2: column 'y' is -inf"),
    "large integer": (
        {"a": [1, BIG], "y": [1, 2]},
        {},
        f"row 2: column 'a' is {BIG}, beyond 2\\^53, .* store it as a float",
    ),
    "large negative": ({"a": [1, -BIG], "y": [1, 2]}, {}, f"row 2: column 'a' is -{BIG}, beyond"),
    "large unsigned": (
        {"a": pa.array([1, 2**64 - 1], pa.uint64()), "y": [1, 2]},
        {},
        f"column 'a' is {2**64 - 1}, beyond",
    ),
    "null text": (
        {"a": ["x", None], "y": [1, 2]},
        {"one_hot": True},
        "row group 2, row 2: column 'a' is null",
    ),
    "too many texts": (
        {"id": [str(k) for k in range(6)], "y": list(range(6))},
        {"one_hot": True},
        "column 'id' holds more than 5 different texts; leave it out with --drop id",
    ),
    "times": (
        {"a": [datetime.timedelta(1)] * 2, "y": [1, 2]},
        {},
        "column 'a' is duration.*; store it as a number, or .*--drop a",
    ),
    "lists": ({"a": lists_of([1.0], [2.0]), "y": [1, 2]}, {}, "column 'a' is list"),
    "text labels": (
        {"a": [1, 2], "y": ["1", "yes"]},
        {"numeric": ["y"]},
        "row group 2, row 2: column 'y' is 'yes', not a finite number; correct it, or for classes"
        " add --categorical y",
    ),
    "labels without a rule for one": (
        {"a": [1, 2], "y": [1, 2]},
        {"labels": "1=5"},
        "row 2: column 'y' is '2', which --labels '1=5' does not have; give its number, for example"
        " --labels 1=5,2=2",
    ),
    "no such target": (
        {"alpha": [1, 2], "y": [1, 2]},
        {"target": "alhpa"},
        "--target alhpa: no such column; did you mean 'alpha'",
    ),
    "number beyond": ({"a": [1, 2], "y": [1, 2]}, {"drop": ["3"]}, "--drop 3: no such column"),
    "target dropped": (
        {"a": [1, 2], "y": [1, 2]},
        {"drop": ["y"]},
        "--drop names the target column, column 'y'",
    ),
    "no features": ({"y": [1, 2]}, {}, "no column is left as a feature"),
    "same names": (
        pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "a", "y"]),
        {},
        "two columns are called 'a'",
    ),
    "nothing but an index": (
        pa.table({"a": [1, 2], "i": [5, 6]}, metadata={"pandas": '{"index_columns": ["i"]}'}),
        {},
        "no column is left as a feature; .* or rename column 'i' if it is no index",
    ),
    "other notation": (
        {"a": ["x", "12%"], "y": [1, 2]},
        {"one_hot": True},
        "row group 2, row 2: column 'a' is '12%', not a finite number; write it with digits",
    ),
    "d of a table": (
        {"a": [1, 2], "y": [1, 2]},
        {"n_features": 2},
        "--n-features does not apply to a table",
    ),
    "a text that is not UTF-8": (
        {"c": pa.array([b"caf\xe9", b"tea"]).view(pa.string()), "y": [1, 2]},
        {"one_hot": True},
        "not a Parquet file, or damaged .*UTF8",
    ),
    "no rows": (
        {"a": pa.array([], pa.int64()), "y": pa.array([], pa.int64())},
        {},
        "the file holds no rows",
    ),
}


@pytest.mark.parametrize("per_group", [1, 2])
@pytest.mark.parametrize("case", WRONG)
def test_wrong__is_refused_with_file_place_and_remedy(case, per_group, tmp_path, monkeypatch):
    """Wherever its rows are cut: into row groups, or slices of one."""
    monkeypatch.setattr(roles, "MOST_TEXTS", 5)
    columns, options, message = WRONG[case]
    path = write(tmp_path / "a.parquet", columns, per_group)
    message = message.replace("row group 2", f"row group {3 - per_group}")
    for size in (1, 1 << 20):
        with cut_at(size):
            said = refusal(message, read, [path], tmp_path / f"s{size}", **options)
        assert said.startswith(str(path))


KINDS = {
    "table": {"a": [1], "y": [1]},
    "prepared": GOOD,
    "dense": dense_of([1.0]),
    "wider": dense_of([1.0, 2.0]),
    "fewer": {"y": [1]},
    "more": {"a": [1], "y": [1], "b": [1]},
    "text": {"a": [1], "y": ["1"]},
}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("table", "prepared", "lists 'values' in one file and not in another"),
        ("prepared", "dense", "dense rows in one file and sparse rows in another"),
        ("dense", "wider", "n_features is 2, and 1 in"),
        ("table", "fewer", "column 'a' is not in both"),
        ("table", "more", "column 'b' is not in .*table.parquet"),
        ("table", "text", "column 'y' is string, but int64 in the first file"),
    ],
)
def test_wrong__files_that_do_not_fit_each_other(first, second, message, tmp_path):
    paths = [write(tmp_path / f"{kind}.parquet", KINDS[kind]) for kind in (first, second)]
    refusal(f"{second}.parquet: {message}", source_of, paths)


def test_damaged__is_refused_by_name_and_nothing_else_happens(tmp_path):
    draw = np.random.default_rng(0)
    texts = [f"text {k % 7}" for k in range(300)]
    columns = {"t": texts, "x": draw.standard_normal(300), "y": draw.integers(0, 9, 300)}
    path = write(tmp_path / "a.parquet", columns, 100, write_page_checksum=True)
    whole = path.read_bytes()
    expected = read([path], tmp_path / "s", one_hot=True)[1]
    assert len(expected) == 300

    def outcome(content):
        path.write_bytes(content)
        found, said = outcome_of(partial(read, one_hot=True), [path], tmp_path / "s")
        assert not said or said.startswith(str(path))
        return "refused" if said else "same" if found[1] == expected else "other"

    ends = (0, 1, 3, 8, 100, len(whole) // 2, len(whole) - 9, len(whole) - 1)
    wrong = (b"1,2\n" * 100, b"\x99 not what its name says", *(whole[:end] for end in ends))
    assert {outcome(content) for content in wrong} == {"refused"}
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    outcomes = [
        outcome(whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :])
        for k in (*draw.integers(4, footer, 60), *draw.integers(footer, len(whole), 60))
    ]
    # a change that is not refused is in a field of a page's header that nobody needs
    assert outcomes[:60].count("refused") > 40
    # thanks to the pages' checksums; the footer has none: it is refused or read, and nothing worse
    assert "other" not in outcomes[:60]
