"""Curves of a few runs, among those of very many."""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow.compute as pc

from koco_stream.engine.result_file import result_files_folder
from koco_stream.io.paths import StorePath
from koco_stream.runs.schemas import CURVES
from storage.following import Snapshot
from storage.results import among, conformed, curves_of, named

Row = dict[str, Any]
# It skips what is not asked for; to filter what pyarrow has read takes five times as long.
IN_FOLDER = "SELECT * FROM read_parquet(?, union_by_name = true) WHERE run_id IN (SELECT unnest(?))"


def curves(store: StorePath, snapshot: Snapshot, run_ids: Sequence[str]) -> dict[str, list[Row]]:
    """The points of each of these runs, by t: rows of the table `curves`.

    Raises `FileNotFoundError` if a file of the snapshot has been replaced meanwhile.
    """
    collected: dict[StorePath, list[str]] = {}
    found: list[Row] = []
    for file, ids in snapshot.files_of(run_ids).items():
        if str(file).startswith(f"{result_files_folder(store)}/"):
            results = file.read_table(["run_id", "curve"])
            found += curves_of(results.filter(among(results, set(ids)))).to_pylist()
        else:
            collected[store / "results" / "curves" / file.name] = ids
    found += _in_folder(collected) if store.is_local else _one_by_one(collected)
    points: dict[str, list[Row]] = {}
    for row in sorted(found, key=lambda row: row["t"]):
        points.setdefault(row["run_id"], []).append(row)
    return points


def _in_folder(files: dict[StorePath, list[str]]) -> list[Row]:
    if not files:
        return []
    ids = [run_id for some in files.values() for run_id in some]
    try:
        with duckdb.connect() as connection:
            rows = connection.execute(IN_FOLDER, [list(map(str, files)), ids])
            names = [column[0] for column in rows.description]
            found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    except duckdb.IOException as error:
        raise FileNotFoundError(str(error)) from error
    except duckdb.Error:
        found = []
    if len({row["run_id"] for row in found if row.get("t") is not None}) == len(ids):
        return found
    return list(_one_by_one(files))  # which names the file if there is something wrong with it


def _one_by_one(files: dict[StorePath, list[str]]) -> Iterator[Row]:
    for file, ids in files.items():
        only = pc.field("run_id").isin(ids)
        with named(file):
            yield from conformed(CURVES, file.read_table(only=only)).to_pylist()
