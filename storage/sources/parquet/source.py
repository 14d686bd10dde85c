"""Sources of Parquet files: prepared rows, or tables with one column per feature."""

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.errors import WrongInput, refuse_first
from koco_stream.types import Array
from storage.sources.arrow import (
    Locate,
    as_texts,
    is_date,
    is_numeric,
    is_text,
    labels,
    numbers,
    refuse,
    refuse_nulls,
)
from storage.sources.features import ColumnSource, Parsed, column_fields
from storage.sources.numbers import LabelRule, is_missing, shown
from storage.sources.parquet.files import ROW_BYTES, ParquetRows, Slice, batches_of, opened
from storage.sources.roles import INDEX, STORED, chosen_columns, with_kinds
from storage.sources.source import OF_COLUMNS, Piece, Reading

MOST_FEATURES = np.iinfo(np.int32).max
COLUMN_BYTES = 1000  # of a column in a row group, beside its values
MOST_ROWS, MOST_VALUES = 1000, 4_000_000  # that are looked at


def is_prepared(schema: pa.Schema) -> bool:
    """Prepared rows have a list column `values`."""
    return "values" in schema.names and _is_list(schema.field("values").type)


def prepared_rows(
    paths: Sequence[Path], schemas: list[pa.Schema], reading: Reading
) -> "PreparedRows":
    """The number of features d is `reading.n_features` if given."""
    dense = "indices" not in schemas[0].names
    remedy = "prepare them as two datasets" if dense else "give their number with --n-features"
    sizes: list[int | None] = []
    for path, schema in zip(paths, schemas, strict=True):
        _check(path, schema)
        sizes.append(_n_features(path, schema, reading.n_features))
        refuse_first(
            [
                (
                    ("indices" not in schema.names) != dense,
                    f"{path}: dense rows in one file and sparse rows in another; prepare them as"
                    " two datasets",
                ),
                (
                    sizes[-1] != sizes[0],
                    f"{path}: n_features is {sizes[-1]}, and {sizes[0]} in {paths[0]}; {remedy}",
                ),
                (
                    dense and reading.n_features is not None,
                    f"{path}: --n-features is for sparse rows, and these are dense; leave it out",
                ),
            ]
        )
    rule = LabelRule(reading.labels)
    named = is_text(schemas[0].field("label").type)
    return PreparedRows(
        format="parquet",
        paths=tuple(paths),
        rule=rule,
        texts=("label",) * named,
        named=named and reading.labels is None,
        layout="dense" if dense else "sparse",
        n_features=sizes[0],
        class_names=rule.names,
        done=rule.done,
        origin={**reading.given(), "format": "parquet"},
    )


@dataclass(kw_only=True)
class PreparedRows(ParquetRows):
    """Stored zeros of sparse rows are dropped."""

    @property
    def columns(self) -> tuple[str, ...]:
        return ("label", "values") if self.layout == "dense" else ("label", "indices", "values")

    def names_in(self, piece: Slice) -> set[str]:
        """The classes of a slice's rows."""
        names = pc.unique(self.decoded(piece).column("label")).to_pylist()
        self.release(piece)
        return {name for name in names if name and not is_missing(name)}

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        # for a damaged column chunk, pyarrow's metadata access terminates the process; reading one
        # batch first raises a Python exception instead
        next(file.iter_batches(1, row_groups=[group], columns=["values"], use_threads=False), None)
        meta = file.metadata.row_group(group)
        values = meta.column(file.schema_arrow.names.index("values")).num_values
        return int(8 * meta.num_rows + 12 * values)

    def read(self, piece: Slice) -> Piece:
        batch = self.decoded(piece)
        known = labels(batch.column("label"), piece.at, "column 'label'", self.rule)
        ends, items = _flattened(batch.column("values"), piece, "values")

        def locate(item: int) -> str:
            return piece.at(int(np.searchsorted(ends, item, side="right")))

        values = numbers(items, locate, "an item of column 'values'")
        if types.is_float32(items.type):
            values = values.astype(np.float32)
        indptr = np.concatenate([[0], ends]).astype(np.int64)
        if self.layout == "dense":
            return Piece(known, indptr, np.zeros(0, np.int32), values)
        indices = self._indices(batch.column("indices"), indptr, piece, locate)
        kept = values != 0.0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Piece(known, before[indptr], indices[kept], values[kept])

    def _indices(self, column: pa.Array, indptr: Array, piece: Slice, locate: Locate) -> Array:
        """Feature numbers of all values, increasing and below d in each row, or `WrongInput`."""
        ends, items = _flattened(column, piece, "indices")
        sizes = np.diff(indptr)
        own = np.diff(ends, prepend=0)
        refuse(
            own != sizes,
            piece.at,
            lambda k: f"{sizes[k]} values and {own[k]} indices; give each value its index",
        )
        refuse_nulls(items, locate, "an item of column 'indices'")
        raw = items.to_numpy(zero_copy_only=False)
        most = self.n_features or MOST_FEATURES
        beyond = "give more with --n-features, or hash them to fewer"
        refuse(
            (raw < 0) | (raw >= most),
            locate,
            lambda k: (
                f"an item of column 'indices' is {raw[k]}, and n_features is {most};"
                f" {'features are counted from 0' if raw[k] < 0 else beyond}"
            ),
        )
        indices = raw.astype(np.int32)
        wrong = np.diff(indices, prepend=-1) <= 0
        wrong[indptr[:-1][sizes > 0]] = False
        refuse(
            wrong,
            locate,
            lambda k: (
                f"column 'indices' has {indices[k]} after {indices[k - 1]}; sort each row by"
                " feature, each one once"
            ),
        )
        return indices


def _check(path: Path, schema: pa.Schema) -> None:
    refuse_first(
        [
            *(
                (
                    name not in ("label", "indices", "values") or schema.names.count(name) > 1,
                    f"{path}: column {name!r}; where 'values' is a list, the columns are label,"
                    " indices and values; write the file without it",
                )
                for name in schema.names
            ),
            (
                "label" not in schema.names,
                f"{path}: no column 'label' beside the lists 'values'; add it",
            ),
        ]
    )
    label = schema.field("label").type
    values = schema.field("values").type
    indices = schema.field("indices").type if "indices" in schema.names else None
    refuse_first(
        [
            (
                not (is_numeric(label) or is_text(label)),
                f"{path}: column 'label' is {label}; store it as a number",
            ),
            (
                not is_numeric(values.value_type),
                f"{path}: column 'values' is {values}; its items must be numbers",
            ),
            (
                indices is not None
                and not (_is_list(indices) and types.is_integer(indices.value_type)),
                f"{path}: column 'indices' is {indices}; it must be a list of integers",
            ),
            (
                indices is None and not (types.is_fixed_size_list(values) and values.list_size),
                f"{path}: column 'values' is {values} and there are no 'indices'; add them, or make"
                " the lists a fixed_size_list",
            ),
        ]
    )


def _n_features(path: Path, schema: pa.Schema, given: int | None) -> int | None:
    """None if it is only known from the rows."""
    if "indices" not in schema.names:
        return int(schema.field("values").type.list_size)
    text = (schema.metadata or {}).get(b"n_features")
    if given is not None or text is None:
        return given
    if not (text.isdigit() and 1 <= int(text[:11]) <= MOST_FEATURES):
        raise WrongInput(
            f"{path}: the metadata has n_features = {shown(text)}, not a number from 1 to"
            f" {MOST_FEATURES}; give it with --n-features"
        )
    return int(text)


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _flattened(column: pa.Array, source: Slice, name: str) -> tuple[Array, pa.Array]:
    """The end of each row among the items of a list column, (n,), and the items."""
    refuse_nulls(column, source.at, f"column {name!r}")
    return (
        np.cumsum(pc.list_value_length(column).to_numpy(zero_copy_only=False), dtype=np.int64),
        column.flatten(),
    )


def flat_table(paths: Sequence[Path], schemas: list[pa.Schema], reading: Reading) -> "FlatTable":
    names = schemas[0].names
    kinds = schemas[0].types
    first = _first_values(paths[0], schemas[0])

    def first_of(k: int) -> list[str]:
        return first.get(names[k], [])

    refuse_first(
        (n > 1, f"{paths[0]}: two columns are called {name!r}; rename one of them")
        for name, n in Counter(names).items()
    )
    choice = chosen_columns(
        paths[0], names, len(names), reading, first_of, _index_columns(schemas[0])
    )
    columns = (*choice.features, choice.target)
    used = Counter(names[k] for k in columns)
    for path, schema in zip(paths, schemas, strict=True):
        found = Counter(name for name in schema.names if not STORED.fullmatch(name))
        refuse_first(
            (
                True,
                f"{path}: column {name!r} is not in both this file and {paths[0]}; give files with"
                " the same columns",
            )
            for name in (*(used - found), *(found - Counter(names)))
        )
        kinds_of = {(schema.field(names[k]).type, kinds[k]): k for k in reversed(columns)}
        for k in kinds_of.values():  # in little time if columns are many
            _check_column(path, schema.field(names[k]), kinds[k])
    by_type = [k for k in columns if is_text(kinds[k])]
    choice = with_kinds(choice, first_of, reading.labels is not None, by_type)
    fields = column_fields(paths, "parquet", choice, reading)
    return FlatTable(**fields, texts=tuple(names[k] for k in by_type))


@dataclass(kw_only=True)
class FlatTable(ParquetRows, ColumnSource):
    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.choice.names[k] for k in (*self.choice.features, self.choice.target))

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """A value takes 8 bytes, a feature index 4, and texts their stored size."""
        meta = file.metadata.row_group(group)
        numbers_only = meta.num_rows * len(self.columns) * (8 if self.layout == "dense" else 12)
        n_texts = len({*self.texts}.intersection(self.columns))
        # without the columns' own sizes, of which those of a damaged file end the process
        others = (8 * meta.num_rows + COLUMN_BYTES) * (meta.num_columns - n_texts)
        share = meta.total_byte_size * n_texts // meta.num_columns
        return int(numbers_only + (max(meta.total_byte_size - others, share) if n_texts else 0))

    def rows(self, piece: Slice) -> Parsed:
        batch = self.decoded(piece)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        return self.from_arrow([columns[name] for name in self.columns], piece.at)


def _first_values(path: Path, schema: pa.Schema) -> dict[str, list[str]]:
    """First texts of the columns that may number the rows, hold texts, or dates."""
    few = [
        field.name
        for k, field in enumerate(schema)
        if (types.is_integer(field.type) and k < MOST_ROWS)
        or is_text(field.type)
        or is_date(field.type)
        or (INDEX.fullmatch(field.name) and is_numeric(field.type))
    ]
    at_once = max(3, min(MOST_ROWS, MOST_VALUES // (len(few) + 1)))
    with opened(path) as file:
        groups = (batches_of(file, k, few, at_once) for k in range(file.num_row_groups))
        batch = next(batch for batches in groups for batch in batches if batch.num_rows)
    return {
        name: as_texts(column.drop_null() if column.null_count < len(column) else stub).to_pylist()
        for name, column, stub in zip(
            batch.schema.names,
            batch.columns,
            (pa.array([0] if is_date(one.type) else [], one.type) for one in batch.columns),
            strict=True,
        )
    }


def _index_columns(schema: pa.Schema) -> list[str]:
    with suppress(ValueError):
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in stored if isinstance(name, str)]
    return []


def _check_column(path: Path, column: pa.Field, first: pa.DataType) -> None:
    """Raise `WrongInput` for an unsuitable type, or another kind than in the first file."""
    kind = column.type
    name = column.name
    holds = (is_numeric, is_text, is_date)
    refuse_first(
        (is_there, f"{path}: column {name!r} {message}")
        for is_there, message in [
            (
                not any(of(kind) for of in holds),
                f"is {kind}; store it as a number, or leave it out with --drop {shlex.quote(name)}",
            ),
            (
                any(of(kind) != of(first) for of in holds),
                f"is {kind}, but {first} in the first file; store both as the same type",
            ),
        ]
    )


def parquet_source(paths: Sequence[Path], reading: Reading) -> ParquetRows:
    """A file without rows adds none."""
    schemas = {}
    n_bytes = 0
    for path in paths:
        with opened(path) as file:
            if file.metadata.num_rows:
                schemas[path] = file.schema_arrow
                n_bytes += file.metadata.num_rows * ROW_BYTES
    if not schemas:
        raise WrongInput(f"{paths[0]}: the file holds no rows")
    paths = list(schemas)
    prepared = is_prepared(schemas[paths[0]])
    what, wrong = (
        ("prepared rows, whose columns are label, indices and values", OF_COLUMNS)
        if prepared
        else ("a table, whose columns are its features", ("n_features",))
    )
    refuse_first(
        [
            *(
                (
                    is_prepared(schema) != prepared,
                    f"{path}: lists 'values' in one file and not in another; prepare them as two"
                    " datasets",
                )
                for path, schema in schemas.items()
            ),
            *(
                (
                    name in reading.given(),
                    f"{paths[0]}: --{name.replace('_', '-')} does not apply to {what}; leave it"
                    " out",
                )
                for name in wrong
            ),
        ]
    )
    source = (prepared_rows if prepared else flat_table)(paths, list(schemas.values()), reading)
    source.n_bytes = n_bytes
    return source
