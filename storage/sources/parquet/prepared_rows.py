"""Source of Parquet files of prepared rows.

Sparse rows have the columns `label`, `indices` and `values`; dense rows have `label` and a
fixed-size list `values`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.errors import WrongInput
from koco_stream.types import Array
from storage.sources.numbers import LabelRule
from storage.sources.parquet.numbers import (
    Locate,
    is_numeric,
    is_text,
    labels,
    numbers,
    refuse_nulls,
)
from storage.sources.parquet.slices import ParquetRows, Slice, values_in
from storage.sources.source import Piece, Reading, refuse_first

MOST_FEATURES = np.iinfo(np.int32).max


def is_prepared(schema: pa.Schema) -> bool:
    """Whether a Parquet schema is that of prepared rows: it has a list column `values`."""
    return "values" in schema.names and _is_list(schema.field("values").type)


def prepared_rows(
    paths: tuple[Path, ...], schemas: list[pa.Schema], reading: Reading, n_bytes: int
) -> "PreparedRows":
    """Open Parquet files of prepared rows as one source.

    The number of features d is `reading.n_features` if given, else the value in the files'
    metadata, else the largest feature number plus one.

    Parameters
    ----------
    paths : tuple of Path
        The files.
    schemas : list of pyarrow.Schema
        Schema of each file.
    reading : Reading
        Options: `n_features` and `labels`.
    n_bytes : int
        Total file size, for the progress.

    Raises
    ------
    WrongInput
        If the columns are not those of prepared rows, or if files differ in layout or d.
    """
    dense = "indices" not in schemas[0].names
    remedy = "prepare them as two datasets" if dense else "say with --n-features how many there are"
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
    return PreparedRows(
        paths=paths,
        rule=rule,
        columns=("label", "values") if dense else ("label", "indices", "values"),
        texts=tuple(name for name in schemas[0].names if is_text(schemas[0].field(name).type)),
        layout="dense" if dense else "sparse",
        n_features=sizes[0],
        done=rule.done,
        n_bytes=n_bytes,
        origin={**reading.given(), "format": "parquet"},
    )


@dataclass(kw_only=True)
class PreparedRows(ParquetRows):
    """Source of prepared rows, written by this or another program.

    Stored zeros of sparse rows are dropped.
    """

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Memory in bytes of a Parquet row group after decoding to a piece.

        A label or value takes 8 bytes, a feature index 4.
        """
        return 8 * file.metadata.row_group(group).num_rows + 12 * values_in(file, group, "values")

    def piece(self, rows: pa.RecordBatch, source: Slice) -> Piece:
        """Convert the decoded columns of prepared rows to a piece.

        Raises `WrongInput` for a bad value.
        """
        known = labels(rows.column("label"), self.rule, source.at, "column 'label'")
        ends, items = _flattened(rows.column("values"), source, "values")
        values = numbers(items, _locate(source, ends), "an item of column 'values'")
        if types.is_float32(items.type):
            values = values.astype(np.float32)
        indptr = np.concatenate([[0], ends]).astype(np.int64)
        if self.layout == "dense":
            return Piece(known, indptr, np.zeros(0, np.int32), values)
        indices = self._indices(rows.column("indices"), ends, source)
        kept = values != 0.0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Piece(known, before[indptr], indices[kept], values[kept])

    def _indices(self, column: pa.Array, ends: Array, source: Slice) -> Array:
        """Feature numbers of all values of sparse rows, row by row.

        Raises `WrongInput` unless each row has as many as values, in increasing order and below d.
        """
        own, items = _flattened(column, source, "indices")
        other = np.flatnonzero(own != ends)
        if other.size:
            row = int(other[0])
            sizes = [int(e[row] - (e[row - 1] if row else 0)) for e in (ends, own)]
            raise WrongInput(
                f"{source.at(row)}: {sizes[0]} values and {sizes[1]} indices; give each value its"
                " index"
            )
        locate = _locate(source, ends)
        refuse_nulls(items, locate, "an item of column 'indices'")
        raw = items.to_numpy(zero_copy_only=False)
        most = self.n_features or MOST_FEATURES
        outside = np.flatnonzero((raw < 0) | (raw >= most))
        if outside.size:
            k = int(outside[0])
            remedy = (
                "features are counted from 0"
                if raw[k] < 0
                else "give more with --n-features, or hash them to fewer"
            )
            raise WrongInput(
                f"{locate(k)}: an item of column 'indices' is {raw[k]}, and n_features is {most};"
                f" {remedy}"
            )
        indices = raw.astype(np.int32)
        starts = np.zeros(indices.size + 1, bool)
        starts[ends] = True
        wrong = (
            np.flatnonzero((np.diff(indices) <= 0) & ~starts[1:-1])
            if indices.size
            else np.zeros(0, int)
        )
        if wrong.size:
            k = int(wrong[0]) + 1
            raise WrongInput(
                f"{locate(k)}: column 'indices' has {indices[k]} after {indices[k - 1]}; sort each"
                " row by feature, each one once"
            )
        return indices


def _check(path: Path, schema: pa.Schema) -> None:
    """Raise `WrongInput` if a column is unknown, missing, repeated, or of an unsuitable type."""
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
    label, values = schema.field("label").type, schema.field("values").type
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
        ]
    )
    if "indices" in schema.names:
        indices = schema.field("indices").type
        if not (_is_list(indices) and types.is_integer(indices.value_type)):
            raise WrongInput(
                f"{path}: column 'indices' is {indices}; it must be a list of integers"
            )
    elif not (types.is_fixed_size_list(values) and values.list_size):
        raise WrongInput(
            f"{path}: column 'values' is {values} and there are no 'indices'; add them, or make the"
            " lists a fixed_size_list"
        )


def _n_features(path: Path, schema: pa.Schema, given: int | None) -> int | None:
    """Number of features of one file, or None if it is only known from the rows."""
    if "indices" not in schema.names:
        return int(schema.field("values").type.list_size)
    text = (schema.metadata or {}).get(b"n_features")
    if given is not None or text is None:
        return given
    if not (text.isdigit() and 1 <= int(text[:11]) <= MOST_FEATURES):
        shown = text[:60].decode("utf-8", "replace")
        raise WrongInput(
            f"{path}: the metadata say n_features = {shown!r}, no number from 1 to {MOST_FEATURES};"
            " say it with --n-features"
        )
    return int(text)


def _is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _flattened(column: pa.Array, source: Slice, name: str) -> tuple[Array, pa.Array]:
    """Flatten a list column to (end of each row among the items, (n,); the items).

    Raises `WrongInput` for a row that is null.
    """
    refuse_nulls(column, source.at, f"column {name!r}")
    return (
        np.cumsum(pc.list_value_length(column).to_numpy(zero_copy_only=False), dtype=np.int64),
        column.flatten(),
    )


def _locate(source: Slice, ends: Array) -> Locate:
    """Function that maps the index of an item to the position of its row, for messages.

    `ends` (n,) is the end of each row among the items.
    """
    return lambda k: source.at(int(np.searchsorted(ends, k, side="right")))
