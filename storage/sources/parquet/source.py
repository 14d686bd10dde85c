"""Opening of Parquet files as a source of prepared rows or of tables."""

from collections.abc import Sequence
from pathlib import Path

from koco_stream.errors import WrongInput
from storage.sources.parquet.flat_tables import flat_table
from storage.sources.parquet.prepared_rows import is_prepared, prepared_rows
from storage.sources.parquet.slices import ParquetRows, groups_of, opened
from storage.sources.source import Reading, refuse_first


def parquet_source(paths: Sequence[Path], reading: Reading) -> ParquetRows:
    """Open Parquet files as one source; the rows of several files are concatenated in order.

    Files with a list column `values` hold prepared rows (`prepared_rows`); others are tables
    (`flat_table`).

    Parameters
    ----------
    paths : sequence of Path
        The files.
    reading : Reading
        Options: `n_features` applies to prepared rows; `target`, `drop` and `one_hot` apply to
        tables.

    Raises
    ------
    WrongInput
        If a file is damaged, empty or of neither kind, if files do not match, or if an option does
        not apply.
    """
    schemas, n_bytes = [], 0
    for path in paths:
        with opened(path) as file:
            schemas.append(file.schema_arrow)
            stored = [group.n_bytes for group in groups_of(file, path)]
        if not stored:
            raise WrongInput(f"{path}: the file holds no rows")
        n_bytes += sum(stored)
    prepared = is_prepared(schemas[0])
    refuse_first(
        (
            is_prepared(schema) != prepared,
            f"{path}: lists 'values' in one file and not in another; prepare them as two datasets",
        )
        for path, schema in zip(paths, schemas, strict=True)
    )
    what, wrong = "a table, whose columns are its features", ["n-features"]
    if prepared:
        what = "prepared rows, whose columns are label, indices and values"
        wrong = ["target", "drop", "one-hot"]
    refuse_first(
        (
            name.replace("-", "_") in reading.given(),
            f"{paths[0]}: --{name} says nothing about {what}; leave it out",
        )
        for name in wrong
    )
    make = prepared_rows if prepared else flat_table
    return make(tuple(paths), schemas, reading, n_bytes)
