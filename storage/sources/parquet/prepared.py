"""Parquet files of prepared rows: labels, and lists of values with or without indices."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from koco_stream.errors import WrongInput, refuse_first
from koco_stream.types import Array
from storage.sources.arrow import Locate, is_numeric, is_text, labels, numbers, refuse, refuse_nulls
from storage.sources.numbers import LabelRule, is_missing, shown
from storage.sources.parquet.files import ParquetRows, Slice
from storage.sources.source import Piece, Reading

MOST_FEATURES = np.iinfo(np.int32).max


def is_prepared(schema: pa.Schema) -> bool:
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
    refuse_nulls(column, source.at, f"column {name!r}")
    return (
        np.cumsum(pc.list_value_length(column).to_numpy(zero_copy_only=False), dtype=np.int64),
        column.flatten(),
    )
