"""Source of Parquet tables with one column per feature and one label column."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.types import Array
from storage.sources.features import (
    INDEX,
    STORED,
    ColumnSource,
    Parsed,
    chosen_columns,
    column_fields,
)
from storage.sources.numbers import CHOOSE, DROP_ROWS
from storage.sources.parquet.numbers import (
    ParquetRows,
    Slice,
    batches_of,
    encoded,
    is_missing,
    is_numeric,
    is_text,
    labels,
    numbers,
    opened,
)
from storage.sources.problems import Problems
from storage.sources.source import Reading, refuse_first

MOST_ROWS, MOST_VALUES = 1000, 4_000_000  # that are looked at


def flat_table(paths: Sequence[Path], schemas: list[pa.Schema], reading: Reading) -> "FlatTable":
    """Open Parquet tables with the same columns as one source.

    Numeric columns are features. With `one_hot`, each distinct text of a text column is a feature.
    Raises `WrongInput` if a named column does not exist, or if columns differ between files or have
    an unsuitable type.
    """
    names, kinds = schemas[0].names, schemas[0].types
    first = _first_values(paths[0], schemas[0])
    choice = chosen_columns(
        paths[0],
        names,
        len(names),
        reading,
        lambda k: first.get(names[k], []),
        _index_columns(schemas[0]),
    )
    columns = (*choice.features, choice.target)
    used = Counter(names[k] for k in columns)
    for path, schema in zip(paths, schemas, strict=True):
        found = Counter(name for name in schema.names if not STORED.fullmatch(name))
        missing, more = list(used - found), list(found - Counter(names))
        refuse_first(
            [
                (
                    bool(missing),
                    f"{path}: no column {''.join(missing[:1])!r}, which {paths[0]} has; give files"
                    " with the same columns",
                ),
                (
                    bool(more),
                    f"{path}: column {''.join(more[:1])!r} is not in {paths[0]}; give files with"
                    " the same columns",
                ),
            ]
        )
        for k in columns:
            _check(path, schema.field(names[k]), kinds[k], choice.one_hot or k == choice.target)
    texts = tuple(k for k in columns if is_text(kinds[k]))
    choice = replace(choice, texts=tuple(k for k in texts if k != choice.target))
    fields = column_fields(paths, "parquet", choice, reading)
    return FlatTable(**fields, texts=tuple(names[k] for k in texts))


@dataclass(kw_only=True)
class FlatTable(ParquetRows, ColumnSource):
    """Source of Parquet tables."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read: the features, and the target."""
        return tuple(self.choice.names[k] for k in (*self.choice.features, self.choice.target))

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Estimated memory in bytes of a Parquet row group after decoding to a piece.

        A label or value takes 8 bytes, a feature index 4, and texts their stored size.
        """
        meta = file.metadata.row_group(group)
        numbers_only = meta.num_rows * len(self.columns) * (8 if self.layout == "dense" else 12)
        return int(numbers_only + (meta.total_byte_size if self.texts else 0))

    def rows(self, piece: Slice) -> Parsed:
        """Read the rows of a slice. Raises `Malformed` with every kind of fault."""
        batch, choice, problems = self.decoded(piece), self.choice, Problems()
        values, texts = np.empty((batch.num_rows, len(choice.features))), {}
        nothing: tuple[Array, list[str]] = np.zeros(batch.num_rows), []
        for j, k in enumerate(choice.features):
            read = partial(self._feature, batch.column(choice.names[k]), k, piece)
            kind = "missing" if is_missing(batch.column(choice.names[k])).any() else "no number"
            values[:, j], found = problems.noting(read, nothing, kind, choice.called(k))
            if k in choice.texts:
                texts[k] = found
        target = choice.target
        known = problems.noting(
            partial(
                labels,
                batch.column(choice.names[target]),
                self.rule,
                piece.at,
                choice.called(target),
                may_miss=self.missing == "drop",
                remedy=DROP_ROWS,
            ),
            nothing[0],
            "label",
        )
        problems.refuse()
        return Parsed(known, values, texts)

    def _feature(self, column: pa.Array, k: int, piece: Slice) -> tuple[Array, list[str]]:
        """Numbers of column k in a slice, and the texts that they stand for, if it has texts."""
        what, may_miss = self.choice.called(k), self.missing is not None
        if k in self.choice.texts:
            return encoded(column, piece.at, what, may_miss, CHOOSE, no_numbers=True)
        return numbers(column, piece.at, what, may_miss, CHOOSE), []


def _first_values(path: Path, schema: pa.Schema) -> dict[str, list[str]]:
    """First values, as texts, of the columns of a table that may number its rows."""
    few = [
        field.name
        for field in schema
        if types.is_integer(field.type)
        or (INDEX.fullmatch(field.name) and (is_numeric(field.type) or is_text(field.type)))
    ]
    at_once = max(3, min(MOST_ROWS, MOST_VALUES // (len(few) + 1)))
    with opened(path) as file:
        groups = (batches_of(file, k, few, at_once) for k in range(file.num_row_groups))
        batch = next(batch for batches in groups for batch in batches if batch.num_rows)
    return {
        name: [str(value) for value in column.to_pylist()]
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def _index_columns(schema: pa.Schema) -> list[str]:
    """Columns in which pandas stored the index of a data frame."""
    try:
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:
        return []
    return [name for name in stored if isinstance(name, str)]


def _check(path: Path, column: pa.Field, first: pa.DataType, may_be_text: bool) -> None:
    """Raise `WrongInput` for a column that cannot be a feature or label.

    Its type is unsuitable, or it holds numbers in one file and texts in another.
    """
    kind, name = column.type, column.name
    drop = f"leave it out with --drop {name}"
    refuse_first(
        (is_there, f"{path}: column {name!r} {message}")
        for is_there, message in [
            (
                is_text(kind) and not may_be_text,
                f"holds texts; treat them as categories with --one-hot, or {drop}",
            ),
            (
                not (is_numeric(kind) or is_text(kind)),
                f"is {kind}; store it as a number, or {drop}",
            ),
            (
                is_text(kind) != is_text(first),
                f"is {kind}, but {first} in the first file; store both as the same type",
            ),
        ]
    )
