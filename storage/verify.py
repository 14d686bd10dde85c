"""Verification of a store: recomputes the hashes of its datasets and results."""

from collections.abc import Iterator

import pyarrow as pa

from koco_stream.engine.result_file import read_result
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.io.table_file import check
from koco_stream.runs.schemas import CURVES, RUNS, Columns
from koco_stream.streams.manifest import Manifest, dataset_path, load_manifest
from storage.dataset import shard_rows
from storage.preparing.shards import BLOCK, digests_of, identity_of
from storage.results import (
    LACKING,
    OF_COHORTS,
    file_name,
    lacking,
    read_runs,
    result_files,
    rows_in,
    table_files,
)
from storage.sources.source import Piece, concatenated

# of the tables whose rows are looked at, their columns
TABLES: dict[str, Columns] = {
    "curves": CURVES,
    "runs": RUNS,
    **dict.fromkeys(("windows", "predictions", "halving"), ()),
}


def dataset_problems(store: AnyPath, name: str) -> list[str]:
    """Describe what is wrong with a dataset, one line per problem; empty if it is intact.

    A dataset is intact if every file has its recorded hash and the rows have the dataset's identity
    hash. If the dataset is replaced meanwhile, the new version is verified.
    """
    while True:
        try:
            manifest = load_manifest(store, name)
            try:
                problems = problems_of(store, name, manifest)
            except FileNotFoundError as error:
                problems = [f"{error.filename or error} is missing; prepare the dataset again"]
            if not problems or load_manifest(store, name) == manifest:
                return problems
        except WrongInput as error:
            return [str(error)]


def problems_of(store: AnyPath, name: str, manifest: Manifest) -> list[str]:
    """Describe what is wrong with the dataset of one manifest, one line per problem.

    Raises `FileNotFoundError` for a shard that disappears while it is read.
    """
    folder = dataset_path(store, name)
    files = [(folder / shard.path, shard.sha256) for shard in manifest.shards]
    missing = "is missing"
    altered = "is not the file that was prepared: it was altered or damaged"
    problems = [
        f"{path} {altered if path.is_file() else missing}; prepare the dataset again"
        for path, sha256 in files
        if not path.is_file() or path.sha256() != sha256
    ]
    if problems:
        return problems
    try:
        found = identity_of(
            block_digests(store, manifest),
            manifest.n_rows,
            manifest.n_features,
            manifest.layout,
            manifest.value_type,
        )
    except (pa.ArrowInvalid, LookupError) as error:
        return [f"{folder}: its shards cannot be read ({error}); prepare the dataset again"]
    other = f"{folder}: the manifest is not that of these shards; prepare the dataset again"
    return [] if found == manifest.dataset_hash else [other]


def block_digests(store: AnyPath, manifest: Manifest) -> Iterator[bytes]:
    """Hashes of a dataset's blocks of rows, computed from its shards in order."""
    left: list[Piece] = []
    for shard in manifest.shards:
        path = dataset_path(store, manifest.name) / shard.path
        rows = shard_rows(path)
        if (rows.n_rows, rows.values.size) != (shard.n_rows, shard.n_values):
            raise pa.ArrowInvalid(
                f"{path} has {rows.n_rows} rows and {rows.values.size} values, and the manifest"
                " says otherwise"
            )
        rows = concatenated([*left, rows])
        whole = rows.n_rows // BLOCK * BLOCK
        left = [rows.between(whole, rows.n_rows)]
        yield digests_of(rows.between(0, whole), manifest.layout)[0]
    for rows in left:  # the last block
        yield digests_of(rows, manifest.layout)[0]


def result_problems(store: AnyPath) -> list[str]:
    """Describe what is wrong with the result tables, and with those of nightly runs, one line per
    problem.

    Checks the hashes of all files, the columns and names of those of runs (hashes of their runs)
    and of curves, and that runs have their curves, windows and predictions.
    """
    root = store_path(store)
    problems = []
    curves = {path.name for path in table_files(root, "curves")}
    tables = [file for name in TABLES for file in table_files(root, name)]
    others = [file for name in ("history", "accepted") for file in (root / name).files(".parquet")]
    for path in (*result_files(root), *tables, *others):
        folder = str(path).split("/")[-2]
        try:
            check(path)
            if folder == "parts":
                read_result(path)
            elif columns := TABLES.get(folder):
                table = rows_in(path, columns)
        except FileNotFoundError:  # another process has collected the file
            continue
        except WrongInput as error:
            problems.append(str(error))
            continue
        again = "remove it, and the sweeps will compute its runs again"
        if folder == "runs" and path.name not in curves:
            problems.append(f"{path}: the curves of its runs are missing; {again}")
        elif folder == "runs" and file_name(table) != path.name:
            problems.append(f"{path} does not hold the runs of its name; {again}")
    if not problems:
        runs = read_runs(root, LACKING)
        problems += [
            f"{root}/results/{table} lacks the rows of {n:,} run(s); koco sweep --retry-failed will"
            " compute them again"
            for table in OF_COHORTS
            if (n := len(lacking(root, table, runs)))
        ]
    for name in (root / "nights").names():
        problems += result_problems(root / "nights" / name)
    return problems
