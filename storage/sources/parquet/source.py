"""Opening of Parquet files as a source of prepared rows or of tables."""

from collections.abc import Sequence
from pathlib import Path

from koco_stream.errors import WrongInput
from storage.sources.parquet.flat_tables import flat_table
from storage.sources.parquet.prepared_rows import is_prepared, prepared_rows
from storage.sources.parquet.slices import ROW_BYTES, ParquetRows, opened
from storage.sources.source import Reading, refuse_first


def parquet_source(paths: Sequence[Path], reading: Reading) -> ParquetRows:
    """Open Parquet files as one source; the rows of several files are concatenated in order.

    Files with a list column `values` hold prepared rows (`prepared_rows`); others are tables
    (`flat_table`). A file without rows adds none. Raises `WrongInput` if a file is damaged or of
    neither kind, if files do not match, if none has rows, or if an option does not apply.
    """
    schemas, n_bytes = {}, 0
    for path in paths:
        with opened(path) as file:
            if file.metadata.num_rows:
                schemas[path] = file.schema_arrow
                n_bytes += file.metadata.num_rows * ROW_BYTES
    if not schemas:
        raise WrongInput(f"{paths[0]}: the file holds no rows")
    paths = list(schemas)
    prepared = is_prepared(schemas[paths[0]])
    what, wrong = "a table, whose columns are its features", ["n_features"]
    if prepared:
        what = "prepared rows, whose columns are label, indices and values"
        wrong = ["target", "drop", "one_hot", "missing"]
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
