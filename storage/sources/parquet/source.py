"""Parquet files as a source: prepared rows, or tables with one column a feature."""

from collections.abc import Sequence
from pathlib import Path

from koco_stream.errors import WrongInput
from storage.sources.numbers import LabelRule
from storage.sources.parquet.base import ParquetRows
from storage.sources.parquet.flat_tables import flat_table
from storage.sources.parquet.prepared_rows import is_prepared, prepared_rows
from storage.sources.parquet.slices import groups_of, opened


def parquet_source(
    paths: Sequence[Path],
    *,
    target: str | None = None,
    labels: str | None = None,
    drop: Sequence[str] = (),
    one_hot: bool = False,
    n_features: int | None = None,
) -> ParquetRows:
    """A source of Parquet files, one after the other. `labels` is the rule by which labels become
    numbers (`LabelRule`).

    Files with lists `values` hold prepared rows: `n_features` is d if sparse ones do not say it.
    Others are tables, for which `target`, `drop` and `one_hot` are as `flat_table` has them. Raises
    `WrongInput` for files that are neither or that do not fit each other, for a file that is
    damaged or has no rows, and for options that say nothing about these files.
    """
    schemas, n_bytes = [], 0
    for path in paths:
        with opened(path) as file:
            schemas.append(file.schema_arrow)
            stored = [part.n_bytes for part in groups_of(file, path)]
        if not stored:
            raise WrongInput(f"{path}: the file holds no rows")
        n_bytes += sum(stored)
    options = {
        "target": target,
        "labels": labels,
        "drop": list(drop) or None,
        "one_hot": one_hot or None,
        "n_features": n_features,
    }
    origin = {name: value for name, value in options.items() if value is not None} | {
        "format": "parquet"
    }
    rule = LabelRule(labels)
    prepared = is_prepared(schemas[0])
    for path, schema in zip(paths, schemas, strict=True):
        if is_prepared(schema) != prepared:
            raise WrongInput(
                f"{path}: lists 'values' in one file and not in another; prepare them as two"
                " datasets"
            )
    wrong = ("target", "drop", "one_hot") if prepared else ("n_features",)
    for name in wrong:
        if name in origin:
            what = (
                "prepared rows, whose columns are label, indices and values"
                if prepared
                else "a table, whose columns are its features"
            )
            raise WrongInput(
                f"{paths[0]}: --{name.replace('_', '-')} says nothing about {what}; leave it out"
            )
    if prepared:
        return prepared_rows(tuple(paths), schemas, rule, n_features, n_bytes, origin)
    return flat_table(
        tuple(paths), schemas, rule, n_bytes, origin, target=target, drop=drop, one_hot=one_hot
    )
