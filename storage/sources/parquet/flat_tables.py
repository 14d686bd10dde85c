"""Parquet files with one column a feature, and one of labels, as a source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from koco_stream.errors import WrongInput, nearest
from storage.sources.numbers import LabelRule
from storage.sources.one_hot import feature_names, in_words, one_hot_piece
from storage.sources.parquet.base import ParquetRows
from storage.sources.parquet.numbers import encoded, is_numeric, is_text, labels, numbers
from storage.sources.parquet.slices import Slice, batches_of, groups_of, opened
from storage.sources.source import Each, Piece, dense_piece

MOST_TEXTS = 1_000_000  # different ones of a column: each is a feature, named in the manifest
SURVEY_ROWS = 1 << 16


def flat_table(
    paths: tuple[Path, ...],
    schemas: list[pa.Schema],
    rule: LabelRule,
    n_bytes: int,
    origin: dict[str, Any],
    *,
    target: str | None,
    drop: Sequence[str],
    one_hot: bool,
) -> "FlatTable":
    """A source of tables of the same columns: those of numbers are features, and with `one_hot`
    those of texts one for each text.

    `target` (by default the last) gives the labels, those in `drop` are left out; both by name, or
    by number from 1. Raises `WrongInput` for columns that there are not, that files do not have in
    common, or of other types.
    """
    names = schemas[0].names
    repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if repeated is not None:
        raise WrongInput(
            f"{paths[0]}: two columns are called {repeated!r}; give each a name of its own"
        )
    dropped = [_column(paths[0], names, "--drop", name) for name in drop]
    chosen = names[-1] if target is None else _column(paths[0], names, "--target", target)
    if chosen in dropped:
        raise WrongInput(
            f"{paths[0]}: --drop names the target column, {chosen!r}; name another --target"
        )
    features = [name for name in names if name != chosen and name not in dropped]
    if not features:
        raise WrongInput(
            f"{paths[0]}: no column is left as a feature; keep at least one besides the target"
        )
    given = [chosen] if target is not None else []
    for name in _index_columns(schemas[0]):
        if name in (chosen, *features) and name not in given:
            raise WrongInput(
                f"{paths[0]}: column {name!r} is the index of a data frame; leave it out with"
                f" --drop {name}"
            )
    for path, schema in zip(paths, schemas, strict=True):
        if schema.names != names:
            raise WrongInput(
                f"{path}: other columns than {paths[0]} has; give files of the same columns"
            )
        for name in (*features, chosen):
            _check(
                path,
                schema.field(name),
                name,
                schemas[0].field(name).type,
                one_hot or name == chosen,
            )
    texts = tuple(name for name in (*features, chosen) if is_text(schemas[0].field(name).type))
    done = rule.done
    if dropped:
        done = (*done, f"left out: {', '.join(f'column {name!r}' for name in dropped)}")
    return FlatTable(
        paths,
        rule,
        (*features, chosen),
        texts,
        "sparse" if one_hot else "dense",
        None if one_hot else len(features),
        [] if one_hot else features,
        done,
        n_bytes,
        origin,
        "parquet",
        {},
    )


@dataclass
class FlatTable(ParquetRows):
    """Tables whose last of `columns` is the target; `known` has the texts of each column of texts,
    sorted, after `surveyed`.
    """

    known: dict[str, list[str]]

    def surveyed(self, each: Each, scratch: Path) -> Self:
        """The source with the texts of its columns as features. Raises `WrongInput` for nulls and
        for a column of too many texts.
        """
        source = super().surveyed(each, scratch)
        if self.layout == "dense":
            return source
        columns = [name for name in self.columns[:-1] if name in self.texts]
        met: dict[str, set[str]] = {name: set() for name in columns}
        if columns:
            for found in each(self.texts_of, self._groups()):
                for name, texts in found.items():
                    met[name] |= texts
                    self._check_number(name, met[name])
        known = {name: sorted(texts) for name, texts in met.items()}
        names = feature_names((name, known.get(name)) for name in self.columns[:-1])
        done = (*self.done, in_words((f"column {name!r}", texts) for name, texts in known.items()))
        return replace(source, known=known, n_features=len(names), feature_names=names, done=done)

    def texts_of(self, part: Slice) -> dict[str, set[str]]:
        """The different texts of a row group's columns of texts that are features. Raises
        `WrongInput`.
        """
        columns = [name for name in self.columns[:-1] if name in self.texts]
        met: dict[str, set[str]] = {name: set() for name in columns}
        with opened(part.path, self.texts) as file:
            done = 0
            for batch in batches_of(file, part.group, columns, SURVEY_ROWS):
                here = part._replace(first=part.first + done)
                for name in columns:
                    codes, texts = encoded(batch.column(name), here.at, f"column {name!r}")
                    met[name].update(texts[code] for code in np.unique(codes))
                    self._check_number(name, met[name])
                done += batch.num_rows
        return met

    def decoded_bytes(self, file: pq.ParquetFile, group: int) -> int:
        """8 bytes for a label and a value, 4 for an index, and texts as they are stored."""
        meta = file.metadata.row_group(group)
        numbers_only = meta.num_rows * len(self.columns) * (8 if self.layout == "dense" else 12)
        return int(numbers_only + (meta.total_byte_size if self.texts else 0))

    def piece(self, rows: pa.RecordBatch, part: Slice) -> Piece:
        """The rows of a slice. Raises `WrongInput`; `OSError` for a text that was not there when
        the files were surveyed.
        """
        n, features, target = rows.num_rows, self.columns[:-1], self.columns[-1]
        known = labels(rows.column(target), self.rule, part.at, f"column {target!r}")
        values = np.empty((n, len(features)))
        places = np.zeros((n, len(features)), np.int32)
        for k, name in enumerate(features):
            if name not in self.known:
                values[:, k] = numbers(rows.column(name), part.at, f"column {name!r}")
            else:
                codes, texts = encoded(rows.column(name), part.at, f"column {name!r}")
                rank = {text: number for number, text in enumerate(self.known[name])}
                places[:, k] = np.array([rank.get(text, -1) for text in texts], np.int32)[codes]
                values[:, k] = 1.0
                if (places[:, k] < 0).any():
                    raise OSError(
                        f"{part.at(int(np.argmin(places[:, k])))}: the file changed while it was"
                        " read; begin again"
                    )
        if self.layout == "dense":
            return dense_piece(known, values)
        return one_hot_piece(
            known,
            values,
            places,
            [len(self.known[name]) if name in self.known else 1 for name in features],
        )

    def _groups(self) -> Iterator[Slice]:
        for path in self.paths:
            with opened(path) as file:
                yield from groups_of(file, path)

    def _check_number(self, name: str, texts: set[str]) -> None:
        if len(texts) > MOST_TEXTS:
            raise WrongInput(
                f"{self.paths[0]}: column {name!r} has more than {MOST_TEXTS:,} texts; leave it out"
                f" with --drop {name}"
            )


def _column(path: Path, names: list[str], option: str, wanted: str) -> str:
    """The name of the column that is wanted by name or number."""
    if wanted in names:
        return wanted
    if (
        wanted.isascii()
        and wanted.isdigit()
        and len(wanted) < 10
        and 1 <= int(wanted) <= len(names)
    ):
        return names[int(wanted) - 1]
    raise WrongInput(f"{path}: {option} {wanted}: no such column{nearest(wanted, names)}")


def _index_columns(schema: pa.Schema) -> list[str]:
    """The columns that pandas wrote for a data frame's index."""
    try:
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:
        return []
    return [name for name in stored if isinstance(name, str)]


def _check(path: Path, field: pa.Field, name: str, first: pa.DataType, texts: bool) -> None:
    """Raise `WrongInput` for a column of a type that can be no feature or label, or of numbers in
    one file and texts in another.
    """
    kind = field.type
    if is_text(kind) and not texts:
        raise WrongInput(
            f"{path}: column {name!r} holds texts; declare them as categories with --one-hot, or"
            f" leave it out with --drop {name}"
        )
    if not (is_numeric(kind) or is_text(kind)):
        raise WrongInput(
            f"{path}: column {name!r} is {kind}; store it as a number, or leave it out with --drop"
            f" {name}"
        )
    if is_text(kind) != is_text(first):
        raise WrongInput(
            f"{path}: column {name!r} is {kind}, and {first} in the first file; store both alike"
        )
