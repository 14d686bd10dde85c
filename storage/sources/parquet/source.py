"""Sources of Parquet files: prepared rows, or tables with one column per feature."""

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.errors import WrongInput, refuse_first
from storage.sources.arrow import as_texts, is_date, is_numeric, is_text
from storage.sources.features import ColumnSource, Parsed, column_fields
from storage.sources.parquet.files import ROW_BYTES, ParquetRows, Slice, batches_of, opened
from storage.sources.parquet.prepared import is_prepared, prepared_rows
from storage.sources.roles import INDEX, STORED, chosen_columns, with_kinds
from storage.sources.source import OF_COLUMNS, Reading

COLUMN_BYTES = 1000  # of a column in a row group, beside its values
MOST_ROWS, MOST_VALUES = 1000, 4_000_000  # that are looked at


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
    stored = []
    with suppress(ValueError):
        stored = (schemas[0].pandas_metadata or {}).get("index_columns", [])
    index = [name for name in stored if isinstance(name, str)]
    choice = chosen_columns(paths[0], names, len(names), reading, first_of, index)
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
    return FlatTable(
        **column_fields(paths, "parquet", choice, reading), texts=tuple(names[k] for k in by_type)
    )


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
