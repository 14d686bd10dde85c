"""Source of Parquet tables with one column per feature and one label column."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput
from storage.sources.features import ColumnSource, add_texts, chosen_columns, left_out
from storage.sources.numbers import LabelRule
from storage.sources.parquet.numbers import encoded, is_numeric, is_text, labels, numbers
from storage.sources.parquet.slices import ParquetRows, Slice, batches_of, opened
from storage.sources.source import ParallelMap, Piece, Reading, dense_piece, refuse_first

SURVEY_ROWS = 1 << 16


def flat_table(
    paths: tuple[Path, ...], schemas: list[pa.Schema], reading: Reading, n_bytes: int
) -> "FlatTable":
    """Open Parquet tables with the same columns as one source.

    Numeric columns are features. With `one_hot`, each distinct text of a text column is a feature.

    Parameters
    ----------
    paths : tuple of Path
        The files.
    schemas : list of pyarrow.Schema
        Schema of each file.
    reading : Reading
        `target` is the label column (by default the last); `drop` lists columns to leave out.
    n_bytes : int
        Total file size, for the progress.

    Raises
    ------
    WrongInput
        If a named column does not exist, or if columns differ between files or have an unsuitable
        type.
    """
    names, one_hot = schemas[0].names, reading.one_hot
    target, chosen, dropped = chosen_columns(paths[0], names, len(names), reading)
    features = [names[k] for k in chosen]
    columns = (*features, names[target])
    may_be_index = features if reading.target is not None else columns
    refuse_first(
        (
            name in may_be_index,
            f"{paths[0]}: column {name!r} is the index of a data frame; leave it out with --drop"
            f" {name}",
        )
        for name in _index_columns(schemas[0])
    )
    for path, schema in zip(paths, schemas, strict=True):
        if schema.names != names:
            raise WrongInput(
                f"{path}: other columns than {paths[0]} has; give files of the same columns"
            )
        for name in columns:
            may_be_text = one_hot or name == names[target]
            _check(path, schema.field(name), schemas[0].field(name).type, may_be_text)
    rule = LabelRule(reading.labels)
    return FlatTable(
        paths=paths,
        rule=rule,
        columns=columns,
        texts=tuple(name for name in columns if is_text(schemas[0].field(name).type)),
        layout="sparse" if one_hot else "dense",
        n_features=None if one_hot else len(features),
        feature_names=[] if one_hot else features,
        done=(*rule.done, *left_out(names, dropped)),
        n_bytes=n_bytes,
        origin={**reading.given(), "format": "parquet"},
    )


@dataclass(kw_only=True)
class FlatTable(ParquetRows, ColumnSource):
    """Source of Parquet tables; the last of `columns` is the target."""

    def surveyed(self, parallel_map: ParallelMap, scratch: Path) -> Self:
        """Copy of this source with the distinct texts of its text columns as features.

        Raises `WrongInput` for a null or a column with too many distinct texts.
        """
        source = super().surveyed(parallel_map, scratch)
        if self.layout == "dense":
            return source
        met = self._no_texts()
        groups = (group for _, group in self.groups())
        for found in parallel_map(self.texts_of, groups) if met else ():
            for name, texts in found.items():
                add_texts(met[name], texts, self.paths[0], f"column {name!r}", name)
        columns = ((name, name, f"column {name!r}") for name in self.columns[:-1])
        return source.with_texts(met, columns)

    def texts_of(self, group: Slice) -> dict[str, dict[str, None]]:
        """Distinct texts of the text features in one row group, by column.

        Raises `WrongInput` for a null or a column with too many distinct texts.
        """
        met = self._no_texts()
        with opened(group.path, self.texts) as file:
            for batch in batches_of(file, group.group, list(met), SURVEY_ROWS):
                for name in met:
                    codes, texts = encoded(batch.column(name), group.at, f"column {name!r}")
                    found = (texts[code] for code in np.unique(codes))
                    add_texts(met[name], found, group.path, f"column {name!r}", name)
                group = group._replace(first=group.first + batch.num_rows)
        return met

    def _no_texts(self) -> dict[str, dict[str, None]]:
        """Empty set of texts (as a dict) for each text feature, by column."""
        return {name: {} for name in self.columns[:-1] if name in self.texts}

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """Estimated memory in bytes of a Parquet row group after decoding to a piece.

        A label or value takes 8 bytes, a feature index 4, and texts their stored size.
        """
        meta = file.metadata.row_group(group)
        numbers_only = meta.num_rows * len(self.columns) * (8 if self.layout == "dense" else 12)
        return int(numbers_only + (meta.total_byte_size if self.texts else 0))

    def piece(self, rows: pa.RecordBatch, source: Slice) -> Piece:
        """Convert the decoded columns of a table to a piece.

        Raises `WrongInput` for a bad value, and `OSError` for a text that was absent during the
        survey.
        """
        n, features, target = rows.num_rows, self.columns[:-1], self.columns[-1]
        known = labels(rows.column(target), self.rule, source.at, f"column {target!r}")
        values = np.empty((n, len(features)))
        offsets = np.zeros((n, len(features)), np.int32)
        for k, name in enumerate(features):
            if name not in self.known:
                values[:, k] = numbers(rows.column(name), source.at, f"column {name!r}")
            else:
                codes, texts = encoded(rows.column(name), source.at, f"column {name!r}")
                rank = {text: number for number, text in enumerate(self.known[name])}
                offsets[:, k] = np.array([rank.get(text, -1) for text in texts], np.int32)[codes]
                values[:, k] = 1.0
                if (offsets[:, k] < 0).any():
                    raise OSError(
                        f"{source.at(int(np.argmin(offsets[:, k])))}: the file changed while it was"
                        " read; begin again"
                    )
        if self.layout == "dense":
            return dense_piece(known, values)
        return self.one_hot(features, known, values, offsets)


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
                f"holds texts; declare them as categories with --one-hot, or {drop}",
            ),
            (
                not (is_numeric(kind) or is_text(kind)),
                f"is {kind}; store it as a number, or {drop}",
            ),
            (
                is_text(kind) != is_text(first),
                f"is {kind}, and {first} in the first file; store both alike",
            ),
        ]
    )
